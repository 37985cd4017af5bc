-- The statements that differ for Citus, which allows no subquery in a limit and cannot
-- plan a part of a statement by the result of another part. `hf` stands for the schema.

-- name: narrowed_threads
-- Of the four that begin with `by_` one is given. An owner, an agent or a prefix leaves
-- threads that each shard sorts; a kind may leave most of them, so they are walked
-- through from the newest on, as in `threads`.
with narrow as (
    select family, number from hf.thread where owner = :by_owner
    union all
    select family, number from hf.thread where agent = :by_agent
    union all
    select family, number from hf.thread where name >= :by_name and name < :by_end
)
select {t.thread_full}
from (
    select family, number from (
        select m.family, m.number from narrow
        join hf.thread m on m.family = narrow.family and m.number = narrow.number
        where m.changed < :after and {=listed}
        order by m.changed desc
        limit :limit
    ) few
    union all
    select family, number from (
        select family, number from hf.thread
        where cast(:by_kind as text) is not null
            and recent <= cast(:after as bigint) >> 10 and changed < :after and {=listed}
        order by recent desc, changed desc
        limit :limit
    ) much
) chosen
join hf.thread_full t on t.thread_family = chosen.family and t.number = chosen.number
order by t.changed desc

-- name: described_threads
-- One pass over all threads; every shard gives its newest.
select {t.thread_full}
from (
    select family, number from hf.thread
    where changed < :after and {=listed}
    order by changed desc
    limit :limit
) chosen
join hf.thread_full t on t.thread_family = chosen.family and t.number = chosen.number
order by t.changed desc
