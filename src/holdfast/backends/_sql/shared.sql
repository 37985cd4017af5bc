-- The statements that SQLite and PostgreSQL run as they are written here.
-- `_sql/statements.py` explains the notation. Both read `case` and `cast` alike, and a
-- cast says what the type of a parameter is where PostgreSQL cannot tell.

-- name: checkpoint_by_id
-- hot
select {checkpoint_full} from hf.checkpoint_full where id = :id and family = :family

-- name: threads
select {t.thread_full}
from (
    select family, number from hf.thread
    where changed < :after
        and (:every or (deleted_at is null and head is not null))
        and (cast(:kind as text) is null or kind = :kind)
        and (cast(:without as text) is null or kind <> :without)
        and (cast(:prefix as text) is null
            or substr(name, 1, length(:prefix)) = :prefix)
    order by changed desc
    limit :limit
) chosen
join hf.thread_full t on t.thread_family = chosen.family and t.number = chosen.number
order by t.changed desc

-- name: owner_threads
select {t.thread_full}
from (
    select family, number from hf.thread
    where owner = :owner and changed < :after
        and (cast(:agent as text) is null or agent = :agent)
        and (:every or (deleted_at is null and head is not null))
        and (cast(:kind as text) is null or kind = :kind)
        and (cast(:without as text) is null or kind <> :without)
        and (cast(:prefix as text) is null
            or substr(name, 1, length(:prefix)) = :prefix)
    order by changed desc
    limit :limit
) chosen
join hf.thread_full t on t.thread_family = chosen.family and t.number = chosen.number
order by t.changed desc

-- name: agent_threads
select {t.thread_full}
from (
    select family, number from hf.thread
    where agent = :agent and changed < :after
        and (:every or (deleted_at is null and head is not null))
        and (cast(:kind as text) is null or kind = :kind)
        and (cast(:without as text) is null or kind <> :without)
        and (cast(:prefix as text) is null
            or substr(name, 1, length(:prefix)) = :prefix)
    order by changed desc
    limit :limit
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
order by id, family
limit :limit

-- name: set_owner
update hf.thread set owner = :owner where family = :family and number = :number

-- name: set_metadata
update hf.thread set metadata = :metadata where family = :family and number = :number

-- name: count_segments
select count(*) from hf.segment

-- name: setting
select value from hf.setting where name = :name

-- name: insert_setting
insert into hf.setting (name, value) values (:name, :value) on conflict (name) do nothing

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
