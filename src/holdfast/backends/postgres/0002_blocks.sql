-- Format 2: a row of `segment` may be a block, which holds `count` segments with
-- consecutive numbers, `number` being the first. `packing` is 3 for a block of plain bytes
-- and 4 for one that zstd has compressed.

alter table hf.segment add column count int not null default 1;
