-- The statements that SQLite and PostgreSQL run as they are written here.
-- `_sql/statements.py` explains the notation. Both read `case` and `cast` alike, and a
-- cast says what the type of a parameter is where PostgreSQL cannot tell.

-- name: checkpoint_by_id
-- hot
select {checkpoint_full} from hf.checkpoint_full where id = :id and family = :family

-- part: listed
-- Which threads belong into a listing. `described` is a part of each dialect: whether the
-- encoded metadata may hold some items. It comes first: it leaves the fewest.
{=described}
and (:every or (deleted_at is null and head is not null))
and (cast(:kind as text) is null or kind = :kind)
and (cast(:without as text) is null or kind <> :without)
and (cast(:owner as text) is null or owner = :owner)
and (cast(:agent as text) is null or agent = :agent)
and (cast(:prefix as text) is null or substr(name, 1, length(:prefix)) = :prefix)

-- name: threads
-- From the newest `recent` on, each sorted by itself, until the page is full.
select {t.thread_full}
from (
    select family, number from hf.thread
    where recent <= cast(:after as bigint) >> 10 and changed < :after and {=listed}
    order by recent desc, changed desc
    limit :limit
) chosen
join hf.thread_full t on t.thread_family = chosen.family and t.number = chosen.number
order by t.changed desc

-- name: narrowed_threads
-- Of the four that begin with `by_` one is given. If it leaves few threads they are
-- sorted. Otherwise it is faster to walk as `threads` does: if n of N threads are left, a
-- page needs N / n steps for each of its threads, of which one takes a quarter as long.
-- So n is enough if 4 * n * n > N * the size of a page; it is counted no further.
-- A limit of 0 ends a part at once; PostgreSQL would start its workers for a condition.
with narrow as (
    select family, number from hf.thread where owner = :by_owner
    union all
    select family, number from hf.thread where agent = :by_agent
    union all
    select family, number from hf.thread where kind = :by_kind
    union all
    select family, number from hf.thread where name >= :by_name and name < :by_end
),
enough as materialized (
    select 1 + cast(sqrt(
        coalesce(max(number), 0) * case when :limit > 1000 then 250.0 else :limit / 4.0 end
    ) as bigint) as threads
    from hf.thread
),
found as materialized (
    select count(*) = (select threads from enough) as is_much
    from (
        select 1 from hf.thread where owner = :by_owner
        union all
        select 1 from hf.thread where agent = :by_agent
        union all
        select 1 from hf.thread where kind = :by_kind
        union all
        select 1 from hf.thread where name >= :by_name and name < :by_end
        limit (select threads from enough)
    ) first
)
select {t.thread_full}
from (
    select family, number from (
        select m.family, m.number from narrow
        join hf.thread m on m.family = narrow.family and m.number = narrow.number
        where not (select is_much from found) and m.changed < :after and {=listed}
        order by m.changed desc
        limit case when (select is_much from found) then 0 else :limit end
    ) few
    union all
    select family, number from (
        select family, number from hf.thread
        where (select is_much from found)
            and recent <= cast(:after as bigint) >> 10 and changed < :after and {=listed}
        order by recent desc, changed desc
        limit {=if_much}
    ) much
) chosen
join hf.thread_full t on t.thread_family = chosen.family and t.number = chosen.number
order by t.changed desc

-- name: described_threads
-- Among the newest, or else one pass over all: to walk far is slower than that. A limit of
-- 0 ends a part at once; whatever else stands in the pass is looked at for every thread.
with among as materialized (
    select family, number from (
        select * from hf.thread
        where recent <= cast(:after as bigint) >> 10 and changed < :after
        order by recent desc, changed desc
        limit 1000
    ) newest
    where {=listed}
    order by changed desc
    limit :limit
),
found as materialized (
    select count(*) < :limit as is_short from among
)
select {t.thread_full}
from (
    select family, number from among where not (select is_short from found)
    union all
    select family, number from (
        select family, number from hf.thread
        where {=listed} and changed < :after
        order by changed desc
        limit case when (select is_short from found) then :limit else 0 end
    ) rest
) chosen
join hf.thread_full t on t.thread_family = chosen.family and t.number = chosen.number
order by t.changed desc

-- name: family_threads
select {thread_full} from hf.thread_full
where thread_family = :family and changed < :after
    and (:every or (deleted_at is null and head is not null))
    and (cast(:without as text) is null or thread_kind <> :without)
order by changed desc
limit :limit

-- name: thread_saves_newest
select {checkpoint_full} from hf.checkpoint_full
where family = :family
    and thread = (
        select t.number from hf.thread t where t.name = :thread and t.family = :family
        order by t.deleted_at is not null, t.number desc limit 1)
    and seq > :after and seq < :before
order by seq desc
limit :limit

-- name: thread_saves_oldest
select {checkpoint_full} from hf.checkpoint_full
where family = :family
    and thread = (
        select t.number from hf.thread t where t.name = :thread and t.family = :family
        order by t.deleted_at is not null, t.number desc limit 1)
    and seq > :after and seq < :before
order by seq
limit :limit

-- name: family_saves_newest
select {checkpoint_full} from hf.checkpoint_full
where family = :family and seq > :after and seq < :before
order by seq desc
limit :limit

-- name: family_saves_oldest
select {checkpoint_full} from hf.checkpoint_full
where family = :family and seq > :after and seq < :before
order by seq
limit :limit

-- name: outlines
select {checkpoint_full} from hf.checkpoint_full
where family = :family and thread = :thread and seq > :after
order by seq
limit :limit

-- name: labelled
select {checkpoint_full} from hf.checkpoint_full
where family = :family and label = :mark and seq < :before
    and (label is not null or tags is not null)
order by seq desc
limit :limit

-- name: matches
select {checkpoint_full} from hf.checkpoint_full
where id >= :prefix and id < :end and id > :after
    and (cast(:family as bigint) is null or family = :family)
    and substr(thread_name, 1, length(:within)) = :within
    and (not :direct or substr(thread_name, length(:within) + 1)
        = replace(substr(thread_name, length(:within) + 1), :separator, ''))
order by id, family
limit :limit

-- name: set_owner
update hf.thread set owner = :owner where family = :family and number = :number

-- name: set_metadata
update hf.thread set metadata = :metadata where family = :family and number = :number

-- name: set_agent
update hf.thread set agent = :agent where family = :family and number = :number

-- name: kinds
select kind, count(*) from hf.thread
where deleted_at is null and head is not null
group by kind

-- name: saved_in
select count(*) from hf.checkpoint
where family in (select family from hf.thread where kind = :kind and head is not null)

-- name: lost_heads
select t.name from hf.thread t
where t.number between :first and :last and t.head is not null
    and not exists (
        select 1 from hf.checkpoint c where c.family = t.family and c.seq = t.head)
order by t.number

-- name: count_saved
select count(*) from hf.checkpoint where family = :family and seq <= :up_to

-- name: count_checkpoints
select count(*) from hf.checkpoint

-- name: setting
select value from hf.setting where name = :name

-- name: insert_setting
insert into hf.setting (name, value) values (:name, :value) on conflict (name) do nothing

-- name: replace_setting
insert into hf.setting (name, value) values (:name, :value)
on conflict (name) do update set value = excluded.value

-- name: families_end
select family from hf.thread where family > :after order by family limit 1 offset :limit - 1

-- name: surplus
select counted.family, cast(sum(counted.saved) as bigint)
from (
    select family, thread, count(*) as saved, max(seq) as newest
    from hf.checkpoint
    where family > :after and family <= :last
    group by family, thread
) counted
left join hf.thread t
    on t.family = counted.family and t.number = counted.thread and t.deleted_at is null
group by counted.family
having max(case when t.number is null then 1 when counted.saved <= :more_than then 0
    when counted.saved = 1 and counted.newest = t.head then 0 else 1 end) = 1
order by counted.family

-- name: aged_surplus
select counted.family, cast(sum(counted.saved) as bigint)
from (
    select family, thread, count(*) as saved, max(seq) as newest,
        min(saved_at) as oldest
    from hf.checkpoint
    where family > :after and family <= :last
    group by family, thread
) counted
left join hf.thread t
    on t.family = counted.family and t.number = counted.thread and t.deleted_at is null
group by counted.family
having max(case when t.number is null then 1 when counted.saved <= :more_than then 0
    when counted.oldest >= :saved_before then 0
    when counted.saved = 1 and counted.newest = t.head then 0 else 1 end) = 1
order by counted.family
