-- The index for searching, made by the first search. It can be dropped at any time
-- and made again from the states; no save touches it, and salvage leaves it out.
--
-- Neighbouring texts of a thread, prepared by the operations, are one row of
-- `search_text`: an FTS5 index of trigrams that keeps neither the texts nor where in them
-- a trigram stands. `search_stretch` says which texts a row is about, `search_thread` at
-- which `changed` a thread was indexed. A thread of another `changed` or `form` is not
-- indexed as it is; a search reads its state instead. `search_state` says up to which
-- change all threads are indexed as they are, so that a search looks only at later ones.

-- name: count_tables
select count(*) from sqlite_schema
where type = 'table' and name like 'search\_%' escape '\'

-- name: create
create table search_state (
    one integer primary key check (one = 1),
    form integer not null,
    position integer not null
) strict;

create table search_thread (
    thread integer primary key,
    changed integer not null,
    form integer not null
) strict;

create table search_stretch (
    number integer primary key,
    thread integer not null,
    first integer not null,
    last integer not null,
    size integer not null,
    hash integer not null
) strict;

create unique index search_stretch_thread on search_stretch (thread, first);

create virtual table search_text using fts5(
    text,
    content = '',
    contentless_delete = 1,
    detail = none,
    tokenize = 'trigram case_sensitive 1'
);

-- Every transaction adds a part to the index. While it is filled, 64 of a size are merged
-- at a time, and few are merged more than once; 256 would have to be merged at once, in a
-- transaction that takes long. `settle` ends this.
insert into search_text (search_text, rank) values ('automerge', 64);
insert into search_text (search_text, rank) values ('crisismerge', 256)

-- name: merging
-- How many parts of a size are merged at a time.
select v from search_text_config where k = 'automerge'

-- name: merge
-- Merge parts until so many pages are written; a negative number begins with all parts.
insert into search_text (search_text, rank) values ('merge', :pages)

-- name: settle
-- With few parts a search has few places to look into.
insert into search_text (search_text, rank) values ('automerge', 8);
insert into search_text (search_text, rank) values ('crisismerge', 16)

-- name: drop
drop table search_text;
drop table search_stretch;
drop table search_thread;
drop table if exists search_state

-- name: forget
-- For what is too damaged to be dropped: its pages stay, unused, until compacting.
delete from sqlite_schema where tbl_name like 'search\_%' escape '\'

-- name: schema_version
pragma schema_version

-- name: position
select form, position from search_state

-- name: set_position
insert or replace into search_state (one, form, position) values (1, :form, :position)

-- name: reset_position
update search_state set position = 0 where position < :before

-- name: indexed
select thread, changed, form from search_thread
where thread in (select value from json_each(:threads))

-- name: stretches
select thread, first, last, size, hash from search_stretch
where thread in (select value from json_each(:threads))
order by thread, first

-- name: last_stretch
select coalesce(max(number), 0) from search_stretch

-- name: drop_texts
delete from search_text
where rowid in (
    select number from search_stretch where thread = :thread and first >= :first)

-- name: drop_stretches
delete from search_stretch where thread = :thread and first >= :first

-- name: drop_thread
delete from search_thread where thread = :thread

-- name: insert_thread
insert or replace into search_thread (thread, changed, form) values (?, ?, ?)

-- name: insert_stretch
insert into search_stretch (number, thread, first, last, size, hash)
values (?, ?, ?, ?, ?, ?)

-- name: insert_texts
-- One step for all: without the interpreter in between, another thread can have it.
insert into search_text (rowid, text) select :first + key, value from json_each(:texts)

-- part: outdated
-- A thread that changed after a number is not indexed as it is, or gone and still there.
t.recent >= :after >> 10 and t.changed > :after and t.kind <> :without
and case when t.deleted_at is null and t.head is not null
    then i.changed is not t.changed or i.form is not :form
    else i.thread is not null end

-- name: outdated
with stale (number, was, form) as materialized (
    select t.number, i.changed, i.form
    from thread t left join search_thread i on i.thread = t.number
    where {=outdated} and t.changed <= :up_to
    order by t.recent, t.changed
    limit :limit
)
select coalesce(s.was, -1), coalesce(s.form, 0), t.number, t.changed,
    t.deleted_at is not null or t.head is null, {t.checkpoint_full}
from stale s join thread_full t on t.number = s.number
order by t.changed

-- name: is_outdated
select exists (
    select 1
    from thread t left join search_thread i on i.thread = t.number
    where {=outdated} and t.recent <= :up_to >> 10 and t.changed <= :up_to)

-- name: outdated_count
select count(*)
from thread t left join search_thread i on i.thread = t.number
where {=outdated}

-- name: gone
select i.thread, i.changed, i.form from search_thread i
left join thread t on t.number = i.thread and t.deleted_at is null
where t.number is null

-- name: scattered
with chosen (number) as materialized (
    select s.thread
    from search_stretch s
    join thread t on t.number = s.thread and t.deleted_at is null and t.head is not null
    where s.thread > :after
    group by s.thread
    having count(*) > 2 * sum(s.size) / :stretch + 1
    order by s.thread
    limit :limit
)
select coalesce(i.changed, -1), coalesce(i.form, 0), t.number, t.changed,
    false, {t.checkpoint_full}
from chosen c
join thread_full t on t.number = c.number
left join search_thread i on i.thread = c.number
order by t.number

-- name: frequency
-- How many of the texts that were indexed last match.
select count(*) from search_text where search_text match :grams and rowid > :after

-- name: matching
-- A row without a stretch says that the two tables do not belong together.
select f.rowid, s.thread, s.first, s.last
from search_text f left join search_stretch s on s.number = f.rowid
where f.search_text match :grams and f.rowid > :after
order by f.rowid
limit :limit

-- part: wanted
t.changed < :after and t.deleted_at is null and t.head is not null
and (:kind is null or t.kind = :kind)
and (:without is null or t.kind <> :without)
and (:owner is null or t.owner = :owner)
and (:agent is null or t.agent = :agent)

-- name: candidates
-- The threads that match, and those that are not indexed as they are.
with found (number, changed, is_indexed) as (
    select t.number, t.changed, i.thread is not null
    from json_each(:matching) m
    cross join thread t on t.number = m.value
    left join search_thread i
        on i.thread = t.number and i.changed = t.changed and i.form = :form
    where (i.thread is not null or t.changed <= :position) and {=wanted}
    union all
    select t.number, t.changed, 0
    from thread t
    left join search_thread i
        on i.thread = t.number and i.changed = t.changed and i.form = :form
    where t.recent >= :position >> 10 and t.changed > :position and i.thread is null
        and {=wanted}
),
chosen (number, is_indexed) as materialized (
    select number, is_indexed from found order by changed desc limit :limit
)
select c.is_indexed, {t.thread_full}
from chosen c join thread_full t on t.number = c.number
order by t.changed desc

-- name: reach
-- How far back the last changes of about so many threads reach, and how many there are.
-- It always is before `after`.
select coalesce(min(recent), 0) << 10, count(*) from (
    select recent from thread where recent <= (:after - 1) >> 10
    order by recent desc limit :reach)

-- name: looked_up
-- Of the threads used last, those that match, and those that are not indexed as they are.
with matched (number) as materialized (
    select rowid from search_text where search_text match :grams
),
chosen (number, is_indexed) as materialized (
    select t.number, i.thread is not null
    from thread t
    left join search_thread i
        on i.thread = t.number and i.changed = t.changed and i.form = :form
    where t.recent >= :down_to >> 10 and t.recent <= :after >> 10 and {=wanted}
        and (i.thread is null or exists (
            select 1 from search_stretch s
            where s.thread = t.number and s.number in matched))
    order by t.changed desc
    limit :limit
)
select case when c.is_indexed then (
        select json_group_array(json_array(s.first, s.last)) from search_stretch s
        where s.thread = c.number and s.number in matched) end,
    {t.thread_full}
from chosen c join thread_full t on t.number = c.number
order by t.changed desc

-- name: check
select integrity_check from pragma_integrity_check(:table)

-- name: misplaced
select 1 from search_text_docsize where id not in (select number from search_stretch)
union all
select 1 from search_stretch where number not in (select id from search_text_docsize)
limit 1

-- name: refresh
-- FTS5 looks whether another connection has changed the index when it is read, but not
-- before it is checked: a check alone may find damage where there is none.
select rowid from search_text where rowid = 0

-- name: optimize
insert into search_text (search_text) values ('optimize')
