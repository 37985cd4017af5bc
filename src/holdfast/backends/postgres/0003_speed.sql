-- Format 3: saves that ask the server for less.

-- Up to which number the family of a thread may have blocks: only there a save has to look
-- whether one holds the numbers of its segments. New segments of a value that grows come
-- behind its blocks. Of threads that were there before, or came from another store, nobody
-- knows.
alter table hf.thread
add column packed_to bigint not null default 9223372036854775807;
