-- The index for searching, made by the first search. It can be dropped at any
-- time and made again from the states, and no save touches it. `hf` stands for the schema.
--
-- Neighbouring texts of a thread, prepared by the operations, are one row of
-- `search_stretch`, with a pg_trgm index over them; `search_thread` says at which
-- `changed` a thread was indexed. A thread of another `changed` or `form` is not indexed
-- as it is; a search reads its state instead. Both belong to a family as all else does,
-- and are written with the family's number; a thread that is gone is still found by its
-- own.

-- name: exists
select to_regclass('hf.search_stretch') is not null

-- name: lock
-- One at a time makes the tables, and the extension, which is for the whole database.
select pg_advisory_xact_lock(hashtext('holdfast search'))

-- name: create_extension
create extension if not exists pg_trgm

-- name: extension_schema
select n.nspname from pg_extension e join pg_namespace n on n.oid = e.extnamespace
where e.extname = 'pg_trgm'

-- name: create_thread_table
create table if not exists hf.search_thread (
    family bigint not null,
    thread bigint not null,
    changed bigint not null,
    form bigint not null,
    primary key (family, thread)
)

-- name: create_thread_index
create index if not exists search_thread_number on hf.search_thread (thread)

-- name: create_stretch_table
create table if not exists hf.search_stretch (
    family bigint not null,
    thread bigint not null,
    first bigint not null,
    last bigint not null,
    size bigint not null,
    hash bigint not null,
    text text not null,
    primary key (family, thread, first)
)

-- name: distribute
-- Before the index over the texts is made, which is then made on every shard.
select hf.distribute_search()

-- name: indexed
select family, changed, form from hf.search_thread where thread = :thread

-- name: family_of
-- Of a thread that is there, or of one that is gone and still indexed.
select family from hf.thread where number = :thread
union all
select family from hf.search_thread where thread = :thread
limit 1

-- name: lock_indexed
select family, changed, form from hf.search_thread
where family = :family and thread = :thread
for update

-- name: stretches
select first, last, size, hash
from hf.search_stretch
where family = :family and thread = :thread
order by first

-- name: drop_stretches
delete from hf.search_stretch
where family = :family and thread = :thread and first >= :first

-- name: drop_thread
delete from hf.search_thread where family = :family and thread = :thread

-- name: enter_thread
insert into hf.search_thread (family, thread, changed, form)
values (:family, :thread, -1, 0)
on conflict (family, thread) do nothing

-- name: mark_thread
update hf.search_thread set changed = :changed, form = :form
where family = :family and thread = :thread

-- name: insert_stretch
insert into hf.search_stretch (family, thread, first, last, size, hash, text)
values (:family, :thread, :first, :last, :size, :hash, :text)

-- name: unindexed
select number, name from hf.thread
where kind = :kind and deleted_at is null and head is not null
    and (:owner::text is null or owner = :owner)
    and (:agent::text is null or agent = :agent)
order by changed desc

-- name: outdated
select t.number, t.name
from hf.thread t
left join hf.search_thread i on i.family = t.family and i.thread = t.number
where t.kind = :kind and t.deleted_at is null and t.head is not null
    and (:owner::text is null or t.owner = :owner)
    and (:agent::text is null or t.agent = :agent)
    and (i.changed is distinct from t.changed or i.form is distinct from :form)
order by t.changed desc

-- name: gone
select i.thread, null
from hf.search_thread i
where not exists (
    select 1 from hf.thread t
    where t.family = i.family and t.number = i.thread and t.deleted_at is null)

-- name: scattered
select t.number, t.name
from hf.search_stretch s
join hf.thread t on t.family = s.family and t.number = s.thread and t.deleted_at is null
group by t.number, t.name
having count(*) > 2 * sum(s.size) / :stretch + 1

-- name: candidates
with wanted as materialized (
    select t.family, t.number, t.changed, i.thread is not null as is_indexed
    from hf.thread t
    left join hf.search_thread i
        on i.family = t.family and i.thread = t.number and i.changed = t.changed
        and i.form = :form
    where t.kind = :kind and t.deleted_at is null and t.head is not null
        and t.changed < :after
        and (:owner::text is null or t.owner = :owner)
        and (:agent::text is null or t.agent = :agent)
),
matching as materialized (
    select s.family, s.thread, array_agg(s.first order by s.first) as firsts,
        array_agg(s.last order by s.first) as lasts
    from hf.search_stretch s
    where s.text like :pattern_0
        and (:pattern_1::text is null or s.text like :pattern_1)
        and (:pattern_2::text is null or s.text like :pattern_2)
        and (:pattern_3::text is null or s.text like :pattern_3)
        and s.text like all(:remaining::text[])
    group by s.family, s.thread
),
chosen as materialized (
    select w.family, w.number, w.is_indexed, m.firsts, m.lasts
    from wanted w
    left join matching m on m.family = w.family and m.thread = w.number
    where m.thread is not null or not w.is_indexed
    order by w.changed desc
    limit :limit
)
select c.is_indexed, c.firsts, c.lasts, {t.thread_full}
from chosen c
join hf.thread_full t on t.thread_family = c.family and t.number = c.number
order by t.changed desc
