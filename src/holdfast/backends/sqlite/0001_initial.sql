-- A Holdfast store in one SQLite file, format 1.
--
-- Every change is a row of `checkpoint`, `journal` or `move` and takes the next sequence
-- number inside its transaction; order is never taken from a clock. Rows refer to one
-- another by sequence number (checkpoints) and by number (threads), never used again.
-- Times are integer microseconds UTC. `checksum` columns are xxh3-64 less 2^63.

-- A named line of work. `head` is the sequence number of its current checkpoint, null
-- until the first save; `owner` is a user, `agent` whom it works for. A thread and all its forks share a family, the number of the
-- thread that began it. A deleted thread stays behind as a tombstone for a while.
-- `changed`, the number of its last change, has no index: that would be two more pages to
-- write with every save. `recent` is a 1,024th of it and has one: for a thread that is
-- saved often it stays the same, and a listing sorts only what has the same `recent`.
create table thread (
    number integer primary key,
    name text not null,
    family integer not null,
    kind text not null,
    owner text,
    agent text,
    metadata blob not null,
    head integer,
    changed integer not null,
    created_at integer not null,
    updated_at integer not null,
    forked_thread text,
    forked_checkpoint text,
    deleted_at integer,
    recent integer
) strict;

-- One living thread of a name, and any number of tombstones.
create unique index thread_name on thread (
    name, (case when deleted_at is null then 0 else number end));
create index thread_owner on thread (owner) where owner is not null;
create index thread_agent on thread (agent) where agent is not null;
create index thread_kind on thread (kind);
create index thread_family on thread (family);
create index thread_recent on thread (recent) where recent is not null;

-- By triggers, because a statement that sets `recent` writes its index also if it stays
-- the same.
create trigger thread_begun after insert on thread begin
    update thread set recent = new.changed >> 10 where number = new.number;
end;

create trigger thread_used after update of changed on thread
when new.changed >> 10 is not old.recent begin
    update thread set recent = new.changed >> 10 where number = new.number;
end;

-- One immutable saved state; only label and tags change. `runs` lists the segments of
-- its values, `manifest` says which value is made of which runs. `digest` is a SHA-256
-- over content, metadata and the parent's digest; `link` keeps that parent's digest
-- when retention removed the parent and `parent` now names an older ancestor.
create table checkpoint (
    seq integer primary key,
    id text not null,
    family integer not null,
    thread integer not null,
    parent integer,
    step integer not null,
    saved_at integer not null,
    kind text not null,
    label text,
    tags text,
    metadata blob not null,
    runs text not null,
    manifest blob not null,
    size integer not null,
    digest blob not null,
    link blob,
    checksum integer not null
) strict;

create unique index checkpoint_id on checkpoint (id, family);
create index checkpoint_thread on checkpoint (family, thread);
create index checkpoint_marked on checkpoint (family, label)
where label is not null or tags is not null;

-- An immutable piece of a value. The key is `family << 32 | number`: one integer, so
-- that a family is one clustered range and a long row needs no overflow page.
-- `packing` is 0 for plain bytes, 1 for zstd, 2 for zstd with the store's dictionary.
create table segment (
    key integer primary key,
    packing integer not null,
    data blob not null,
    checksum integer not null
) strict;

-- Values recorded once under a key, on a checkpoint (by id; it may come later) or, with
-- an empty id, on the thread itself.
create table journal (
    seq integer primary key,
    thread integer not null,
    checkpoint text not null,
    key text not null,
    value blob not null,
    recorded_at integer not null,
    checksum integer not null
) strict;

create unique index journal_key on journal (thread, checkpoint, key);

-- Every change that is neither a save nor a journal entry: rewind, undo, redo, fork,
-- mark, describe, forget, prune, delete. Together the three tables are the feed of changes.
create table move (
    seq integer primary key,
    thread integer not null,
    kind text not null,
    source integer,
    target integer,
    moved_at integer not null
) strict;

create index move_thread on move (thread);

-- Facts about the whole store, such as its compression dictionary; written once.
create table setting (
    name text primary key,
    value blob not null
) strict, without rowid;

-- A checkpoint with its thread's name and its parent's id.
create view checkpoint_full as
select c.seq, c.id, o.name as thread_name, c.parent, p.id as parent_id, c.step,
    c.saved_at, c.kind, c.label, c.tags, c.size, c.digest, c.family, c.runs,
    c.manifest, c.metadata, c.link, c.checksum, c.thread
from checkpoint c
join thread o on o.number = c.thread
left join checkpoint p on p.seq = c.parent;

-- A thread with its head, tombstones included.
create view thread_full as
select t.name, t.kind as thread_kind, t.owner, t.agent, t.metadata as thread_metadata,
    t.family as thread_family, t.forked_thread, t.forked_checkpoint, t.created_at,
    t.updated_at, t.deleted_at, t.changed, t.number, t.head,
    c.seq, c.id, o.name as thread_name, c.parent, p.id as parent_id, c.step,
    c.saved_at, c.kind, c.label, c.tags, c.size, c.digest, c.family, c.runs,
    c.manifest, c.metadata, c.link, c.checksum, c.thread
from thread t
left join checkpoint c on c.seq = t.head
left join thread o on o.number = c.thread
left join checkpoint p on p.seq = c.parent;
