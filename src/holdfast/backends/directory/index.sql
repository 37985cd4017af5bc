-- The tables that the index of a folder has beside those of a SQLite store, and the
-- statements for them. All of it can be made again from the files.

-- name: create
-- `file` is a file of lines as it was when the index last took it in: its stamp (size,
-- modified, inode), how many of its bytes are in the index (`taken`), and the checksum of
-- the last line among them (`tail`). A `problem` says what is wrong with the file; with
-- `is_certain` the names of all its threads are known nevertheless.
create table if not exists file (
    name text primary key,
    family integer,
    size integer not null,
    modified integer not null,
    inode integer not null,
    taken integer not null,
    tail text not null,
    problem text,
    is_certain integer not null default 1
) strict, without rowid;

create unique index if not exists file_family on file (family)
where family is not null;
create index if not exists file_problem on file (problem)
where problem is not null;

-- The family that the rows of a thread belong to, also after the thread was removed.
create table if not exists member (
    thread integer primary key,
    family integer not null
) strict;

create index if not exists member_family on member (family);

-- One row: the version of the index, the last known change of the folder, and the epoch:
-- how often rows were replaced because a file was.
create table if not exists folder (
    one integer primary key check (one = 1),
    version integer not null,
    changed_at integer not null,
    epoch integer not null
) strict;

-- name: watch
-- Every row that a transaction changes, in order. The triggers are temporary: they belong
-- to the one connection that writes. A change that removes something is `gone`: the file
-- that held it is written again as a whole. A journal entry that is removed by itself is
-- `forgotten` by a line at the end: an agent's loop does it with every save.
create temp table if not exists touched (
    number integer primary key,
    what text not null,
    key any,
    family integer,
    how text not null
) strict;

create temp trigger thread_made after insert on main.thread begin
    insert into touched (what, key, family, how)
    values ('thread', new.number, new.family, 'made');
    delete from member where thread = new.number;
    insert into member values (new.number, new.family);
end;

create temp trigger thread_changed after update on main.thread begin
    insert into touched (what, key, family, how)
    values ('thread', new.number, new.family, case
        when new.deleted_at is not null and old.deleted_at is null then 'gone'
        when new.name <> old.name then 'gone'
        when new.owner is not old.owner or new.agent is not old.agent
            or new.metadata is not old.metadata
            or new.family <> old.family then 'made'
        else 'moved' end);
    update member set family = new.family where thread = new.number;
end;

create temp trigger thread_gone after delete on main.thread begin
    insert into touched (what, key, family, how)
    values ('thread', old.number, old.family, 'gone');
end;

create temp trigger checkpoint_made after insert on main.checkpoint begin
    insert into touched (what, key, family, how)
    values ('checkpoint', new.seq, new.family, 'made');
end;

create temp trigger checkpoint_changed after update on main.checkpoint begin
    insert into touched (what, key, family, how)
    values ('checkpoint', new.seq, new.family, case
        when new.parent is not old.parent or new.link is not old.link then 'gone'
        else 'moved' end);
end;

create temp trigger checkpoint_gone after delete on main.checkpoint begin
    insert into touched (what, key, family, how)
    values ('checkpoint', old.seq, old.family, 'gone');
end;

create temp trigger segment_made after insert on main.segment begin
    insert into touched (what, key, family, how)
    values ('segment', new.key, new.key >> 32, 'made');
end;

create temp trigger segment_gone after delete on main.segment begin
    insert into touched (what, key, family, how)
    values ('segment', old.key, old.key >> 32, 'gone');
end;

create temp trigger journal_made after insert on main.journal begin
    insert into touched (what, key, family, how)
    select 'journal', new.seq, family, 'made' from member where thread = new.thread;
end;

create temp trigger journal_gone after delete on main.journal begin
    insert into touched (what, key, family, how)
    select 'journal', old.seq, family, 'forgotten' from member
    where thread = old.thread;
end;

create temp trigger move_made after insert on main.move begin
    insert into touched (what, key, family, how)
    select 'move', new.seq, family, 'made' from member where thread = new.thread;
end;

create temp trigger move_changed after update on main.move begin
    insert into touched (what, key, family, how)
    select 'move', new.seq, family, 'gone' from member where thread = new.thread;
end;

create temp trigger move_gone after delete on main.move begin
    insert into touched (what, key, family, how)
    select 'move', old.seq, family, 'gone' from member where thread = old.thread;
end;

create temp trigger setting_made after insert on main.setting begin
    insert into touched (what, key, family, how) values ('setting', new.name, 0, 'made');
end;

create temp trigger setting_changed after update on main.setting begin
    insert into touched (what, key, family, how) values ('setting', new.name, 0, 'gone');
end;

-- name: forget_touched
delete from touched

-- name: touched
select what, key, family, how from touched order by number

-- --- the folder ------------------------------------------------------------------------

-- name: folder
select version, changed_at, epoch from folder

-- name: set_folder
insert or replace into folder (one, version, changed_at, epoch)
values (1, :version, :changed_at, :epoch)

-- name: files
select name, family, size, modified, inode, taken, tail, problem, is_certain from file

-- name: file_of
select name, family, size, modified, inode, taken, tail, problem, is_certain from file
where family = :family

-- name: set_file
insert or replace into file
    (name, family, size, modified, inode, taken, tail, problem, is_certain)
values (?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: forget_file
delete from file where name = :name

-- name: problems
select name, family, problem, is_certain from file where problem is not null

-- name: state_of_family
-- What has to be known before a request about one family, in one statement.
select s.changed_at, s.epoch, exists (select 1 from file where problem is not null),
    f.name, f.size, f.modified, f.inode
from folder s left join file f on f.family = :what

-- name: state_of_thread
select s.changed_at, s.epoch, exists (select 1 from file where problem is not null),
    f.name, f.size, f.modified, f.inode
from folder s left join file f on f.family = (
    select family from thread where name = :what
    order by deleted_at is not null, number desc limit 1)

-- name: family_of
select family from thread where name = :name
order by deleted_at is not null, number desc
limit 1

-- name: identity
select id, digest from checkpoint where seq = :seq

-- --- rows of a family --------------------------------------------------------------------

-- name: thread
select number, name, head, changed, updated_at, kind, owner, agent, metadata,
    created_at, forked_thread, forked_checkpoint, deleted_at
from thread where number = :key

-- name: checkpoint
select seq, id, thread, parent, step, saved_at, kind, label, tags, metadata, size,
    digest, link, runs, manifest
from checkpoint where seq = :key

-- name: segment
select packing, data from segment where key = :key

-- name: journal
select seq, thread, checkpoint, key, value, recorded_at from journal where seq = :key

-- name: move
select seq, thread, kind, source, target, moved_at from move where seq = :key

-- name: setting_value
select value from setting where name = :key

-- name: setting_names
-- All but the one that SQLite's own files have.
select name from setting where name <> 'page checksums' order by name

-- name: threads_of_family
select number from thread where family = :family order by number

-- name: changes_of_family
select 'checkpoint', seq from checkpoint where family = :family
union all
select 'journal', seq from journal
where thread in (select thread from member where family = :family)
union all
select 'move', seq from move
where thread in (select thread from member where family = :family)
order by 2

-- name: segments_of_family
select key from segment where key between :first and :last order by key

-- --- taking lines in -----------------------------------------------------------------------

-- name: take_thread
insert into thread (number, name, family, kind, owner, agent, metadata, head, changed,
    created_at, updated_at, forked_thread, forked_checkpoint, deleted_at)
values (:number, :name, :family, :kind, :owner, :agent, :metadata, :head, :changed,
    :created_at, :updated_at, :forked_thread, :forked_checkpoint, :deleted_at)
on conflict (number) do update set name = :name, kind = :kind, owner = :owner,
    agent = :agent, metadata = :metadata, head = :head, changed = :changed,
    created_at = :created_at, updated_at = :updated_at,
    forked_thread = :forked_thread, forked_checkpoint = :forked_checkpoint,
    deleted_at = :deleted_at, checksum = null, guard = null
where family = :family
returning number

-- name: take_thread_move
-- In a damaged file an older line can come last.
update thread set head = :head, changed = :changed, updated_at = :updated_at,
    checksum = null, guard = null
where number = :number and family = :family and changed <= :changed
returning number

-- name: marked
select {checkpoint} from checkpoint where seq = :seq and family = :family

-- name: take_member
insert into member (thread, family) values (:thread, :family)
on conflict (thread) do update set family = family where family = :family
returning thread

-- name: take_entry
insert into journal (seq, thread, checkpoint, key, value, recorded_at, checksum)
values (:seq, :thread, :checkpoint, :key, :value, :recorded_at, :checksum)
on conflict (thread, checkpoint, key) do update set seq = :seq, value = :value,
    recorded_at = :recorded_at, checksum = :checksum
where seq < :seq

-- name: forget_entry
delete from journal
where seq = :seq and thread in (select thread from member where family = :family)

-- name: take_setting
insert or replace into setting (name, value) values (:name, :value)

-- --- removing a family ---------------------------------------------------------------------

-- name: count_search
select count(*) from sqlite_schema where type = 'table' and name = 'search_thread'

-- name: outdate_search
-- The next search drops what it finds of threads that are gone.
update search_thread set changed = -1
where thread in (select thread from member where family = :family)

-- name: drop_entries
delete from journal where thread in (select thread from member where family = :family)

-- name: drop_moves
delete from move where thread in (select thread from member where family = :family)

-- name: drop_checkpoints
delete from checkpoint where family = :family

-- name: drop_segments
delete from segment where key between :first and :last

-- name: drop_threads
delete from thread where family = :family

-- name: drop_members
delete from member where family = :family

-- name: drop_settings
delete from setting
