-- Format 3: saves that ask the server for less.

-- The largest segment number that a block of the thread's family may hold. A save looks
-- for blocks only if its segments have numbers up to this one; new segments of a growing
-- value have larger numbers. For threads that are older than this format, or were copied
-- from another store, it is not known: the default stands for any number.
alter table hf.thread
add column packed_to bigint not null default 9223372036854775807;
