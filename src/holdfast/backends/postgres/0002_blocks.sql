-- Format 2: a row of `segment` may be a block, which holds `count` segments with
-- consecutive numbers, `number` being the first. `packing` is 3 for a block of plain bytes
-- and 4 for one that zstd has compressed.

alter table hf.segment add column count int not null default 1;

-- Two forks that reach for the same numbers are told apart by the key. This tells it
-- where the numbers are inside of a block. Volatile, so that it sees a block that was made
-- after the statement around it began to wait for the thread.
create function hf.is_in_block(of_family bigint, of_number bigint) returns boolean
language plpgsql as $$
begin
    return coalesce((
        select s.number + s.count > of_number from hf.segment s
        where s.family = of_family and s.number < of_number
        order by s.number desc
        limit 1), false);
end $$;

-- The error that the key would give.
create function hf.refuse_number() returns bigint
language plpgsql as $$
begin
    raise exception 'the segment is in a block'
        using errcode = 'unique_violation', table = 'segment';
end $$;

-- As before, and looks into blocks. Numbers that follow one another are looked up once:
-- the key tells of a block that begins among them.
create or replace function hf.save(
    durable boolean, of_family bigint, of_thread text, expected bigint,
    expected_id text, at bigint, new_id text, new_step bigint, new_saved_at bigint,
    new_kind text, new_label text, new_tags text, new_metadata bytea, new_runs text,
    new_manifest bytea, new_size bigint, new_digest bytea, new_checksum bigint,
    numbers bigint[], packings smallint[], pieces bytea[], checksums bigint[],
    begin_kind text, begin_owner text, begin_agent text, begin_metadata bytea,
    begin_anew boolean
) returns bigint[]
language plpgsql as $$
declare
    taken bigint := hf.enter(durable);
    of_number bigint;
    begun bigint[];
begin
    if of_family is not null then
        update hf.thread t set head = taken, changed = taken, updated_at = at
        where t.family = of_family and t.name = of_thread and t.deleted_at is null
            and t.head = expected
        returning t.number into of_number;
        if not found then
            return null;
        end if;
    else
        begun := hf.first_save(of_thread, begin_kind, begin_owner, begin_agent,
            begin_metadata, taken, at, begin_anew);
        if begun is null then
            return null;
        end if;
        of_family := begun[1];
        of_number := begun[2];
    end if;
    insert into hf.checkpoint (family, seq, id, thread, thread_name, parent, parent_id,
        step, saved_at, kind, label, tags, metadata, runs, manifest, size, digest,
        checksum)
    values (of_family, taken, new_id, of_number, of_thread, expected, expected_id,
        new_step, new_saved_at, new_kind, new_label, new_tags, new_metadata, new_runs,
        new_manifest, new_size, new_digest, new_checksum);
    for i in 1 .. cardinality(numbers) loop
        if begun is null and numbers[i - 1] is distinct from numbers[i] - 1
            and hf.is_in_block(of_family, numbers[i])
        then
            perform hf.refuse_number();
        end if;
        insert into hf.segment (family, number, packing, data, checksum)
        values (of_family, numbers[i], packings[i], pieces[i], checksums[i]);
    end loop;
    return array[taken, of_family, of_number];
end $$;

drop function hf.state(text, bigint);
drop view hf.thread_state;

-- A row of `state`. A view, because a type cannot repeat the columns of another.
create view hf.thread_state as
select t.*, null::bigint[] as numbers, null::smallint[] as packings,
    null::bytea[] as pieces, null::bigint[] as checksums, null::int[] as counts
from hf.thread_full t;

-- A living thread with its head, and what holds the segments of the head unless it is
-- known: run by run, in whatever order, which costs half of what sorting them in each
-- array does. The limits are no more than there can be. They keep the planner from reading
-- all of the family instead, and from taking the plan for so costly that it makes a new
-- one for every family. One row and not a set: the rows of a set are stored once more, in
-- a file if the state is large.
create function hf.state(of_name text, known bigint) returns hf.thread_state
language plpgsql stable as $$
declare
    of_family bigint;
    of_number bigint;
    result hf.thread_state;
begin
    select d.family, d.number into of_family, of_number from hf.directory d
    where d.name = of_name and d.deleted_at is null;
    if not found then
        return null;
    end if;
    select t.*, s.numbers, s.packings, s.pieces, s.checksums, s.counts into result
    from hf.thread_full t
    left join lateral (
        select array_agg(s.number) as numbers, array_agg(s.packing) as packings,
            array_agg(s.data) as pieces, array_agg(s.checksum) as checksums,
            array_agg(s.count) as counts
        from (
            select (found.run ->> 0)::bigint as first, (found.run ->> 1)::bigint as last
            from (
                select json_array_elements(t.runs::json) as run
                limit json_array_length(t.runs::json)
            ) found
        ) r
        cross join lateral (
            select s.number, s.packing, s.data, s.checksum, s.count
            from hf.segment s
            where s.family = of_family and s.number <= r.last
                and s.number >= coalesce((
                    select b.number from hf.segment b
                    where b.family = of_family and b.number <= r.first
                    order by b.number desc
                    limit 1), r.first)
                and s.number + s.count > r.first
            order by s.number
            limit greatest(0, 1 + r.last - r.first)
        ) s
    ) s on t.head is distinct from known
    where t.thread_family = of_family and t.number = of_number and t.head is not null;
    return result;
end $$;

drop function hf.thin(boolean, bigint, bigint, text[], bigint[], bigint[], bigint[]);

-- Removes checkpoints of a family, with what is recorded on them and with the segments in
-- the runs from `firsts` to `lasts`, in one call; segments that others take the place of
-- are in a run that is `whole`. Leaves a move in every thread that loses some. Gives the
-- number of the last one, and how many checkpoints, segments and bytes went; nothing if a
-- block is only in part in a run, or a segment of a whole one is missing.
create function hf.thin(
    durable boolean, of_family bigint, at bigint, ids text[], doomed bigint[],
    firsts bigint[], lasts bigint[], whole smallint[], numbers bigint[],
    packings smallint[], pieces bytea[], checksums bigint[], counts bigint[]
) returns bigint[]
language plpgsql as $$
declare
    place record;
    logged bigint;
    freed record;
    result bigint[];
begin
    delete from hf.journal j where j.family = of_family and j.checkpoint = any(ids);
    delete from hf.move m
    where m.family = of_family and (m.source = any(doomed) or m.target = any(doomed));
    for place in
        select distinct c.thread from hf.checkpoint c
        where c.family = of_family and c.seq = any(doomed)
    loop
        logged := hf.enter(durable);
        insert into hf.move (family, seq, thread, kind, moved_at)
        values (of_family, logged, place.thread, 'prune', at);
    end loop;
    with gone as (
        delete from hf.checkpoint c where c.family = of_family and c.seq = any(doomed)
        returning length(c.manifest) + octet_length(c.runs) + length(c.metadata) as size
    )
    select count(*) as number, coalesce(sum(g.size), 0)::bigint as bytes into freed
    from gone g;
    result := array[logged, freed.number, 0, freed.bytes];
    for i in 1 .. cardinality(firsts) loop
        if hf.is_in_block(of_family, firsts[i])
            or hf.is_in_block(of_family, lasts[i] + 1)
        then
            return null;
        end if;
        with gone as (
            delete from hf.segment s
            where s.family = of_family and s.number between firsts[i] and lasts[i]
            returning s.count, length(s.data) as size
        )
        select coalesce(sum(g.count), 0)::bigint as number,
            coalesce(sum(g.size), 0)::bigint as bytes into freed
        from gone g;
        if whole[i] = 1 and freed.number <> lasts[i] - firsts[i] + 1 then
            return null;
        end if;
        result[3] := result[3] + freed.number;
        result[4] := result[4] + freed.bytes;
    end loop;
    for i in 1 .. cardinality(numbers) loop
        insert into hf.segment (family, number, packing, data, checksum, count)
        values (of_family, numbers[i], packings[i], pieces[i], checksums[i], counts[i]);
        result[3] := result[3] - counts[i];
        result[4] := result[4] - length(pieces[i]);
    end loop;
    return result;
end $$;

-- Removes all checkpoints and segments of a family; gives how many and their bytes.
create or replace function hf.drop_family(of_family bigint) returns bigint[]
language plpgsql as $$
declare
    saved record;
    pieces record;
begin
    with gone as (
        delete from hf.checkpoint c where c.family = of_family
        returning length(c.manifest) + octet_length(c.runs) + length(c.metadata) as size
    )
    select count(*) as number, coalesce(sum(g.size), 0)::bigint as bytes into saved
    from gone g;
    with gone as (
        delete from hf.segment s where s.family = of_family
        returning s.count, length(s.data) as size
    )
    select coalesce(sum(g.count), 0)::bigint as number,
        coalesce(sum(g.size), 0)::bigint as bytes into pieces
    from gone g;
    return array[saved.number, pieces.number, saved.bytes + pieces.bytes];
end $$;
