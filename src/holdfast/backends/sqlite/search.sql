-- The index for searching, made by the first search. It can be dropped at any time
-- and made again from the states; no save touches it, and salvage leaves it out.
--
-- Neighbouring texts of a thread, prepared by the operations, are one row of
-- `search_text`: an FTS5 index of trigrams that keeps neither the texts nor where in them
-- a trigram stands. `search_stretch` says which texts a row is about, `search_thread` at
-- which `changed` a thread was indexed. A thread of another `changed` or `form` is not
-- indexed as it is; a search reads its state instead.

-- name: count_tables
select count(*) from sqlite_schema
where type = 'table' and name like 'search\_%' escape '\'

-- name: create
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

-- name: drop
drop table search_text;
drop table search_stretch;
drop table search_thread

-- name: forget
-- For what is too damaged to be dropped: its pages stay, unused, until compacting.
delete from sqlite_schema where tbl_name like 'search\_%' escape '\'

-- name: schema_version
pragma schema_version

-- name: indexed
select changed, form from search_thread where thread = :thread

-- name: stretches
select first, last, size, hash from search_stretch where thread = :thread order by first

-- name: drop_texts
delete from search_text
where rowid in (
    select number from search_stretch where thread = :thread and first >= :first)

-- name: drop_stretches
delete from search_stretch where thread = :thread and first >= :first

-- name: drop_thread
delete from search_thread where thread = :thread

-- name: insert_thread
insert or replace into search_thread (thread, changed, form)
values (:thread, :changed, :form)

-- name: insert_stretch
insert into search_stretch (thread, first, last, size, hash) values (?, ?, ?, ?, ?)
returning number

-- name: insert_text
insert into search_text (rowid, text) values (?, ?)

-- name: unindexed
-- Of the three parts at most one does anything: each uses its own index.
select number, name, changed from thread
where :owner is null and :agent is null
    and kind = :kind and deleted_at is null and head is not null
union all
select number, name, changed from thread
where :owner is null and agent = :agent
    and kind = :kind and deleted_at is null and head is not null
union all
select number, name, changed from thread
where owner = :owner and (:agent is null or agent = :agent)
    and kind = :kind and deleted_at is null and head is not null
order by changed desc

-- name: outdated
with wanted (number, name, changed) as (
    select number, name, changed from thread
    where :owner is null and :agent is null
        and kind = :kind and deleted_at is null and head is not null
    union all
    select number, name, changed from thread
    where :owner is null and agent = :agent
        and kind = :kind and deleted_at is null and head is not null
    union all
    select number, name, changed from thread
    where owner = :owner and (:agent is null or agent = :agent)
        and kind = :kind and deleted_at is null and head is not null
)
select w.number, w.name from wanted w
left join search_thread i on i.thread = w.number
where i.changed is not w.changed or i.form is not :form
order by w.changed desc

-- name: gone
select i.thread, null from search_thread i
left join thread t on t.number = i.thread and t.deleted_at is null
where t.number is null

-- name: scattered
select t.number, t.name
from search_stretch s join thread t on t.number = s.thread and t.deleted_at is null
group by s.thread
having count(*) > 2 * sum(s.size) / :stretch + 1

-- name: matching
-- A row without a stretch says that the two tables do not belong together.
select s.thread, s.first, s.last
from search_text f left join search_stretch s on s.number = f.rowid
where f.search_text match :grams
order by s.thread, s.first

-- name: candidates
with wanted (number, changed) as (
    select number, changed from thread
    where :owner is null and :agent is null and changed < :after
        and kind = :kind and deleted_at is null and head is not null
    union all
    select number, changed from thread
    where :owner is null and agent = :agent and changed < :after
        and kind = :kind and deleted_at is null and head is not null
    union all
    select number, changed from thread
    where owner = :owner and (:agent is null or agent = :agent) and changed < :after
        and kind = :kind and deleted_at is null and head is not null
),
chosen (number, is_indexed) as materialized (
    select w.number, i.thread is not null
    from wanted w
    left join search_thread i
        on i.thread = w.number and i.changed = w.changed and i.form = :form
    where i.thread is null or w.number in (select value from json_each(:matching))
    order by w.changed desc
    limit :limit
)
select c.is_indexed, {t.thread_full}
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
