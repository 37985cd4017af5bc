-- The index for searching, made by the first search. It can be dropped at any time and
-- made again from the states, and no save touches it. `hf` stands for the schema.
--
-- Neighbouring texts of a thread, prepared by the operations, are one row of
-- `search_stretch`, with a pg_trgm index over them; `search_thread` says at which
-- `changed` a thread was indexed. The index of a thread with another `changed` or `form`
-- is out of date, and a search reads the state of the thread instead. The rows of both
-- tables carry the family's number like all others; those of a deleted thread are found
-- by its own number. The one row of `search_state` holds the change up to which the index
-- of all threads is up to date; a transaction that writes to the index locks this row.

-- name: exists
select to_regclass('hf.search_stretch') is not null

-- name: readable
-- True if the tables exist and the role may read them.
select coalesce(bool_and(has_table_privilege(c.oid, 'select')), false)
from pg_class c
where c.oid in (to_regclass('hf.search_state'), to_regclass('hf.search_thread'),
    to_regclass('hf.search_stretch'))

-- name: made
-- True if the tables exist; true if the index over the texts exists.
select to_regclass('hf.search_stretch') is not null,
    to_regclass('hf.search_stretch_text') is not null

-- name: lock
-- Only one transaction at a time makes the tables and the extension of the database.
select pg_advisory_xact_lock(hashtext('holdfast search'))

-- name: create_extension
-- Run only if the extension is missing: Citus demands the right to make it even where it
-- exists. It goes into a named schema, because the path leads to PostgreSQL's own.
do $$ begin
    execute 'create extension if not exists pg_trgm schema '
        || coalesce(to_regnamespace('public')::text, 'hf');
end $$

-- name: extension_schema
select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace
where e.extname = 'pg_trgm'

-- name: create_state_table
create table if not exists hf.search_state (
    one integer primary key check (one = 1),
    form bigint not null,
    position bigint not null
)

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
-- The index over the texts is made later, and then on every shard.
select hf.distribute_search()

-- name: position
select form, position from hf.search_state

-- name: lock_position
insert into hf.search_state as s (one, form, position) values (1, 0, 0)
on conflict (one) do update set form = s.form
returning form

-- name: set_position
update hf.search_state set form = :form, position = :position

-- name: reset_position
update hf.search_state set position = 0 where position < :before

-- name: families_of
-- Of threads that are there, or that are gone and still indexed.
select number, family from hf.thread where number = any(:threads::bigint[])
union
select thread, family from hf.search_thread where thread = any(:threads::bigint[])

-- name: indexed
select thread, changed, form from hf.search_thread where thread = any(:threads::bigint[])

-- name: stretches
select s.thread, s.first, s.last, s.size, s.hash
from hf.search_thread i
join hf.search_stretch s on s.family = i.family and s.thread = i.thread
where i.thread = any(:threads::bigint[])
order by s.thread, s.first

-- name: drop_stretches
delete from hf.search_stretch
where family = :family and thread = :thread and first >= :first

-- name: drop_thread
delete from hf.search_thread where family = :family and thread = :thread

-- name: drop_gone_stretches
delete from hf.search_stretch s
where not exists (
    select 1 from hf.thread t
    where t.family = s.family and t.number = s.thread and t.deleted_at is null)

-- name: drop_gone_threads
delete from hf.search_thread s
where not exists (
    select 1 from hf.thread t
    where t.family = s.family and t.number = s.thread and t.deleted_at is null)

-- name: mark_threads
insert into hf.search_thread (family, thread, changed, form)
select w.family, w.thread, w.changed, w.form
from unnest(:families::bigint[], :threads::bigint[], :changed::bigint[],
    :forms::bigint[]) w (family, thread, changed, form)
on conflict (family, thread) do update
set changed = excluded.changed, form = excluded.form

-- name: insert_stretches
insert into hf.search_stretch (family, thread, first, last, size, hash, text)
select w.family, w.thread, w.first, w.last, w.size, w.hash, w.text
from unnest(:families::bigint[], :threads::bigint[], :firsts::bigint[],
    :lasts::bigint[], :sizes::bigint[], :hashes::bigint[], :texts::text[])
    w (family, thread, first, last, size, hash, text)

-- part: outdated
-- A thread that changed after a number is not indexed as it is, or gone and still there.
t.recent >= cast(:after as bigint) >> 10 and t.changed > :after and t.kind <> :without
and case when t.deleted_at is null and t.head is not null
    then i.changed is distinct from t.changed or i.form is distinct from :form
    else i.thread is not null end

-- name: outdated
with stale as materialized (
    select t.family, t.number, i.changed as was, i.form
    from hf.thread t
    left join hf.search_thread i on i.family = t.family and i.thread = t.number
    where {=outdated} and t.changed <= :up_to
    order by t.recent, t.changed
    limit :limit
)
select coalesce(s.was, -1), coalesce(s.form, 0), t.number, t.changed,
    t.deleted_at is not null or t.head is null, {t.checkpoint_full}
from stale s
join hf.thread_full t on t.thread_family = s.family and t.number = s.number
order by t.changed

-- name: is_outdated
select exists (
    select 1
    from hf.thread t
    left join hf.search_thread i on i.family = t.family and i.thread = t.number
    where {=outdated} and t.recent <= cast(:up_to as bigint) >> 10
        and t.changed <= :up_to)

-- name: outdated_count
select count(*)
from hf.thread t
left join hf.search_thread i on i.family = t.family and i.thread = t.number
where {=outdated}

-- name: gone
select i.thread, i.changed, i.form
from hf.search_thread i
where not exists (
    select 1 from hf.thread t
    where t.family = i.family and t.number = i.thread and t.deleted_at is null)

-- name: scattered
with chosen as materialized (
    select t.family, t.number
    from hf.search_stretch s
    join hf.thread t on t.family = s.family and t.number = s.thread
        and t.deleted_at is null and t.head is not null
    where t.number > :after
    group by t.family, t.number
    having count(*) > 2 * sum(s.size) / :stretch + 1
    order by t.number
    limit :limit
)
select coalesce(i.changed, -1), coalesce(i.form, 0), t.number, t.changed,
    false, {t.checkpoint_full}
from chosen c
join hf.thread_full t on t.thread_family = c.family and t.number = c.number
left join hf.search_thread i on i.family = t.thread_family and i.thread = t.number
order by t.number

-- name: frequency
-- How many of the newest threads' stretches match, of how many, and about how many
-- threads there are.
select count(*) filter (where s.text like all(:patterns::text[])), count(*),
    (select coalesce(max(i.thread), 0) from hf.search_thread i)
from (
    select text from hf.search_stretch
    order by family desc, thread desc, first desc
    limit :sample
) s

-- part: wanted
t.changed < :after and t.deleted_at is null and t.head is not null
and (:kind::text is null or t.kind = :kind)
and (:without::text is null or t.kind <> :without)
and (:owner::text is null or t.owner = :owner)
and (:agent::text is null or t.agent = :agent)

-- name: candidates
-- The threads that match, and those that are not indexed as they are.
with matching as materialized (
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
    select t.family, t.number, t.changed, i.thread is not null as is_indexed, m.firsts,
        m.lasts
    from matching m
    join hf.thread t on t.family = m.family and t.number = m.thread
    left join hf.search_thread i
        on i.family = t.family and i.thread = t.number and i.changed = t.changed
        and i.form = :form
    where (i.thread is not null or t.changed <= :position) and {=wanted}
    union all
    select t.family, t.number, t.changed, false, null, null
    from hf.thread t
    left join hf.search_thread i
        on i.family = t.family and i.thread = t.number and i.changed = t.changed
        and i.form = :form
    where t.recent >= cast(:position as bigint) >> 10 and t.changed > :position
        and i.thread is null and {=wanted}
    order by 3 desc
    limit :limit
)
select c.is_indexed, c.firsts, c.lasts, {t.thread_full}
from chosen c
join hf.thread_full t on t.thread_family = c.family and t.number = c.number
order by t.changed desc

-- name: reach
-- How far back the last changes of so many threads reach, how many there are, and the
-- position.
select coalesce(min(changed), 0), count(*),
    coalesce((select position from hf.search_state where form = :form), 0)
from (
    select changed from hf.thread
    where recent <= cast(:after as bigint) >> 10 and changed < :after
    order by recent desc, changed desc limit :reach
) newest

-- name: looked_up
-- As `candidates`, among the threads used last and without the index over the texts.
with chosen as materialized (
    select t.family, t.number, t.changed, i.thread is not null as is_indexed,
        array_agg(s.first order by s.first) as firsts,
        array_agg(s.last order by s.first) as lasts
    from hf.thread t
    join hf.search_stretch s on s.family = t.family and s.thread = t.number
    left join hf.search_thread i
        on i.family = t.family and i.thread = t.number and i.changed = t.changed
        and i.form = :form
    where t.recent >= cast(:down_to as bigint) >> 10 and t.changed >= :down_to
        and t.recent <= cast(:after as bigint) >> 10
        and s.text like all(:patterns::text[])
        and (i.thread is not null or t.changed <= :position) and {=wanted}
    group by t.family, t.number, t.changed, i.thread
    union all
    select t.family, t.number, t.changed, false, null, null
    from hf.thread t
    left join hf.search_thread i
        on i.family = t.family and i.thread = t.number and i.changed = t.changed
        and i.form = :form
    where t.recent >= cast(:position as bigint) >> 10 and t.changed > :position
        and t.changed >= :down_to and i.thread is null and {=wanted}
    order by 3 desc
    limit :limit
)
select c.is_indexed, c.firsts, c.lasts, {t.thread_full}
from chosen c
join hf.thread_full t on t.thread_family = c.family and t.number = c.number
order by t.changed desc
