-- Format 2: a row of `segment` may be a block, which holds `count` segments with
-- consecutive numbers, the first of which is in its key. `packing` is 3 for a block of
-- plain bytes and 4 for one that zstd has compressed.

alter table segment add column count integer not null default 1;

-- Two forks that reach for the same numbers are told apart by the key; this does the
-- same where the numbers are inside of a block.
create trigger segment_taken before insert on segment
when (
    select key + count from segment where key < new.key order by key desc limit 1
) > new.key begin
    select raise(abort, 'the segment is in a block');
end;
