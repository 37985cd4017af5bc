-- A Holdfast store in one PostgreSQL schema, format 1. `hf` stands for that schema.
--
-- Everything of a family, a thread and all its forks, carries the family's number as the
-- first column of its key, and every statement but those about the whole store says which
-- family it is about, by a value that is known before it is planned: the tables can be
-- partitioned or distributed by it. `directory` leads from names to families and is
-- written when a thread begins or ends; no statement joins it with the other tables.
-- `setting` and `migration` are small and the same everywhere. No foreign keys, no
-- triggers, no uniqueness across families but that of living names.
--
-- Sequence numbers are taken inside the transaction that uses them, after the advisory
-- lock of `enter`, and rows refer to one another by them. Times are integer microseconds
-- UTC. `checksum` columns are xxh3-64 less 2^63. Where there are many rows, columns of
-- fixed width come first: nothing has to be aligned between them.

create sequence hf.seq as bigint cache 1;
create sequence hf.number as bigint cache 1;

-- Which family a name leads to; tombstones of deleted threads stay for a while.
create table hf.directory (
    name text collate "C" not null,
    number bigint not null,
    family bigint not null,
    deleted_at bigint,
    primary key (name, number)
);

create unique index directory_living on hf.directory (name) where deleted_at is null;

-- A named line of work. `head` is the sequence number of its current checkpoint, null
-- until the first save; `owner` is a user, `agent` the agent it belongs to. `changed` is
-- the number of the last change: every move of the head gives it a new value, by which a
-- search finds the threads to index again. Listings go by `recent`, a 1,024th of it. Room
-- is left in the pages, so that moving the head touches no index unless `recent` moves
-- too.
create table hf.thread (
    family bigint not null,
    number bigint not null,
    name text collate "C" not null,
    kind text not null,
    owner text,
    agent text,
    metadata bytea not null,
    head bigint,
    changed bigint not null,
    created_at bigint not null,
    updated_at bigint not null,
    forked_thread text,
    forked_checkpoint text,
    deleted_at bigint,
    recent bigint not null generated always as (changed >> 10) stored,
    primary key (family, number)
) /*partitioned*/ with (fillfactor = 70);

-- By name first, for listings by the beginning of names; living names are unique in
-- `directory`.
create index thread_name on hf.thread (name, family);
create index thread_kind on hf.thread (kind);
create index thread_recent on hf.thread (recent);
-- For the index for searching, which knows threads by their numbers.
create index thread_number on hf.thread (number);
create index thread_owner on hf.thread (owner) where owner is not null;
create index thread_agent on hf.thread (agent) where agent is not null;

-- One immutable saved state; only label and tags change, and retention may give it an
-- older parent: then `link` keeps the digest of the removed one. The name of the thread
-- and the id of the parent are repeated here, so that a read needs no join.
create table hf.checkpoint (
    family bigint not null,
    seq bigint not null,
    thread bigint not null,
    parent bigint,
    step bigint not null,
    saved_at bigint not null,
    size bigint not null,
    checksum bigint not null,
    id text collate "C" not null,
    parent_id text,
    thread_name text not null,
    kind text not null,
    label text,
    tags text,
    metadata bytea not null,
    runs text not null,
    manifest bytea not null,
    digest bytea not null,
    link bytea,
    primary key (family, seq)
) /*partitioned*/;

-- By id first, for a look-up by nothing but an id.
create unique index checkpoint_id on hf.checkpoint (id, family);
create index checkpoint_marked on hf.checkpoint (family, label)
where label is not null or tags is not null;
-- For the feed, which goes by sequence number over all families. It grows at its end
-- only, so its cost to a save could not be measured. A BRIN index costs as little, but
-- becomes useless when the space of removed rows is used again.
create index checkpoint_seq on hf.checkpoint (seq);

-- An immutable piece of a value. `packing` is 0 for plain bytes, 1 for zstd, 2 for zstd
-- with the store's dictionary.
create table hf.segment (
    family bigint not null,
    number bigint not null,
    checksum bigint not null,
    packing smallint not null,
    data bytea not null,
    primary key (family, number)
) /*partitioned*/;

-- Values recorded once under a key, on a checkpoint (by id; it may come later) or, with
-- an empty id, on the thread itself.
create table hf.journal (
    family bigint not null,
    thread bigint not null,
    seq bigint not null,
    recorded_at bigint not null,
    checksum bigint not null,
    checkpoint text collate "C" not null,
    key text collate "C" not null,
    value bytea not null,
    primary key (family, thread, checkpoint, key)
) /*partitioned*/;

create index journal_seq on hf.journal (seq);

-- Every change that is neither a save nor a journal entry.
create table hf.move (
    family bigint not null,
    seq bigint not null,
    thread bigint not null,
    kind text not null,
    source bigint,
    target bigint,
    moved_at bigint not null,
    primary key (family, seq)
) /*partitioned*/;

create index move_seq on hf.move (seq);

-- Facts about the whole store, such as its compression dictionary; written once.
create table hf.setting (
    name text primary key,
    value bytea not null
);
