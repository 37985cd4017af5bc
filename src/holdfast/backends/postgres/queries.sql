-- The statements of the PostgreSQL backend by name; `hf` stands for the schema.
-- Parameters are always bound. What is marked "hot" must name the family it is about.

-- name: around
-- The last tells whether pg_trgm is there, or could be made.
select pg_backend_pid(), current_setting('server_encoding'),
    exists (select 1 from pg_extension where extname = 'pg_trgm')
    or (exists (select 1 from pg_available_extensions where name = 'pg_trgm')
        and has_database_privilege(current_database(), 'create'))

-- name: enter
-- The first sequence number of a transaction, which is one of many statements.
select hf.enter(%(durable)s)

-- name: save
-- hot
select hf.save(
    %(durable)s, %(family)s, %(thread)s, %(expected)s, %(parent_id)s, %(at)s,
    %(id)s, %(step)s, %(saved_at)s, %(kind)s, %(label)s, %(tags)s, %(metadata)s,
    %(runs)s, %(manifest)s, %(size)s, %(digest)s, %(checksum)s, %(numbers)s,
    %(packings)s, %(pieces)s, %(checksums)s, %(begin_kind)s, %(begin_owner)s,
    %(begin_agent)s, %(begin_metadata)s, %(begin_anew)s)

-- name: save_and_record
-- hot
-- The journal is written if the save was made; `offset 0` keeps it from being made twice.
select s.saved, case when s.saved is not null then
    hf.record(%(durable)s, %(thread)s, %(at)s, %(replaces)s, %(entry_checkpoints)s,
        %(entry_keys)s, %(entry_contents)s, %(entry_times)s, %(entry_checksums)s)
    end
from (
    select hf.save(
        %(durable)s, %(family)s, %(thread)s, %(expected)s, %(parent_id)s, %(at)s,
        %(id)s, %(step)s, %(saved_at)s, %(kind)s, %(label)s, %(tags)s, %(metadata)s,
        %(runs)s, %(manifest)s, %(size)s, %(digest)s, %(checksum)s, %(numbers)s,
        %(packings)s, %(pieces)s, %(checksums)s, %(begin_kind)s, %(begin_owner)s,
        %(begin_agent)s, %(begin_metadata)s, %(begin_anew)s) as saved
    offset 0
) s

-- name: save_each
-- hot
-- Saves of several families at once, those whose threads can be had without waiting.
with entered as materialized (
    select hf.enter(%(durable)s) as lowest
),
wanted as materialized (
    select w.* from unnest(
        %(all_family)s::bigint[], %(all_thread)s::text[], %(all_expected)s::bigint[],
        %(all_at)s::bigint[], %(all_id)s::text[], %(all_parent_id)s::text[],
        %(all_step)s::bigint[], %(all_saved_at)s::bigint[], %(all_kind)s::text[],
        %(all_metadata)s::bytea[], %(all_runs)s::text[], %(all_manifest)s::bytea[],
        %(all_size)s::bigint[], %(all_digest)s::bytea[], %(all_checksum)s::bigint[])
    with ordinality w (family, thread, expected, at, id, parent_id, step, saved_at, kind,
        metadata, runs, manifest, size, digest, checksum, place)
),
held as materialized (
    select t.family, t.number, w.place
    from wanted w
    join hf.thread t on t.family = w.family and t.name = w.thread
        and t.deleted_at is null and t.head = w.expected
    for no key update of t skip locked
),
numbered as materialized (
    select h.family, h.number, h.place,
        case when e.lowest is not null then nextval('hf.seq') end as seq
    from held h cross join entered e
),
moved as (
    update hf.thread t set head = n.seq, changed = n.seq, updated_at = w.at
    from numbered n join wanted w on w.place = n.place
    where t.family = n.family and t.number = n.number and t.head = w.expected
    returning n.place, n.seq, n.family, n.number
),
saved as (
    insert into hf.checkpoint (family, seq, id, thread, thread_name, parent, parent_id,
        step, saved_at, kind, metadata, runs, manifest, size, digest, checksum)
    select m.family, m.seq, w.id, m.number, w.thread, w.expected, w.parent_id, w.step,
        w.saved_at, w.kind, w.metadata, w.runs, w.manifest, w.size, w.digest, w.checksum
    from moved m join wanted w on w.place = m.place
),
cut as (
    insert into hf.segment (family, number, packing, data, checksum)
    select m.family, s.number, s.packing, s.data, s.checksum
    from unnest(%(owners)s::bigint[], %(numbers)s::bigint[], %(packings)s::smallint[],
        %(pieces)s::bytea[], %(checksums)s::bigint[])
        s (owner, number, packing, data, checksum)
    join moved m on m.place = s.owner
)
select place, seq, family, number from moved

-- name: record
-- hot
select hf.record(%(durable)s, %(thread)s, %(at)s, %(replaces)s, %(entry_checkpoints)s,
    %(entry_keys)s, %(entry_contents)s, %(entry_times)s, %(entry_checksums)s)

-- name: place
-- Where a living thread is.
select family, number from hf.directory where name = %(name)s and deleted_at is null

-- name: move_head
-- hot
update hf.thread set head = %(head)s, changed = %(changed)s, updated_at = %(at)s
where family = %(family)s and name = %(name)s and deleted_at is null
    and head is not distinct from %(was)s::bigint
returning number

-- name: touch_thread
-- hot
update hf.thread
set changed = greatest(changed, %(changed)s), updated_at = %(at)s
where family = %(family)s and number = %(number)s and deleted_at is null
returning number

-- name: set_owner
update hf.thread set owner = %(owner)s
where family = %(family)s and number = %(number)s

-- name: begin_thread
select hf.begin_thread(%(name)s, %(family)s, %(kind)s, %(owner)s, %(agent)s, %(metadata)s,
    %(head)s, %(changed)s, %(at)s, %(forked_thread)s, %(forked_checkpoint)s, %(anew)s)

-- name: set_metadata
update hf.thread set metadata = %(metadata)s
where family = %(family)s and number = %(number)s

-- name: hold_family
-- Keeps a prune of the family waiting until this transaction ends, but nobody else.
select number from hf.thread where family = %(family)s order by number for key share

-- name: hold_head
-- Keeps a thread as it is until this transaction ends.
select number from hf.thread
where family = %(family)s and name = %(name)s and deleted_at is null
    and head = %(head)s
for share

-- name: hold_checkpoint
-- Whoever changes a checkpoint does so one after the other.
select seq from hf.checkpoint where family = %(family)s and seq = %(seq)s for update

-- name: lock_family
select number from hf.thread where family = %(family)s order by number for update

-- name: insert_entry
-- hot
insert into hf.journal (family, thread, checkpoint, key, seq, value, recorded_at,
    checksum)
values (%(family)s, %(thread)s, %(checkpoint)s, %(key)s, %(seq)s, %(value)s, %(at)s,
    %(checksum)s)
on conflict (family, thread, checkpoint, key) do nothing
returning seq

-- name: insert_move
insert into hf.move (family, seq, thread, kind, source, target, moved_at)
values (%(family)s, %(seq)s, %(thread)s, %(kind)s, %(source)s, %(target)s, %(at)s)

-- name: thread_by_name
-- hot
select t.*
from hf.directory d
join hf.thread_full t on t.thread_family = d.family and t.number = d.number
where d.name = %(name)s
order by d.deleted_at is not null, d.number desc
limit 1

-- name: obstacle
-- hot
-- What stands in the way of a save: its id, or the thread as it is.
select exists (
    select 1 from hf.checkpoint c where c.family = t.thread_family and c.id = %(id)s
), t.*
from hf.directory d
join hf.thread_full t on t.thread_family = d.family and t.number = d.number
where d.name = %(name)s
order by d.deleted_at is not null, d.number desc
limit 1

-- name: happened
-- Whether a transaction of which this was a part has been committed.
select exists (
    select 1 from hf.checkpoint
    where family = %(family)s and seq = %(seq)s and saved_at = %(at)s
) or exists (
    select 1 from hf.move
    where family = %(family)s and seq = %(seq)s and moved_at = %(at)s
)

-- name: settle
-- A change of nothing, whose commit waits until all before it is where it has to be.
update hf.thread set updated_at = updated_at
where family = %(family)s
    and number = (select min(number) from hf.thread where family = %(family)s)
    and hf.enter(%(durable)s) is not null

-- name: state
-- hot
-- A living thread with its head, and the segments of the head unless it is known: run by
-- run, in whatever order, which costs half of what sorting them in each array does.
-- `offset 0` keeps the planner from reading all of the family instead.
select t.*, s.numbers, s.packings, s.pieces, s.checksums
from hf.directory d
join hf.thread_full t on t.thread_family = d.family and t.number = d.number
left join lateral (
    select array_agg(s.number) as numbers, array_agg(s.packing) as packings,
        array_agg(s.data) as pieces, array_agg(s.checksum) as checksums
    from json_array_elements(t.runs::json) r (run)
    cross join lateral (
        select s.number, s.packing, s.data, s.checksum
        from hf.segment s
        where s.family = t.thread_family
            and s.number between (r.run ->> 0)::bigint and (r.run ->> 1)::bigint
        order by s.number
        offset 0
    ) s
) s on t.head is distinct from %(known)s::bigint
where d.name = %(name)s and d.deleted_at is null and t.head is not null

-- name: threads
select * from hf.thread_full
where changed < %(after)s
    and (%(every)s or (deleted_at is null and head is not null))
    and case when %(kind)s::text is null then %(every)s or thread_kind <> 'pin'
        else thread_kind = %(kind)s end
    and (%(prefix)s::text is null or starts_with(name, %(prefix)s))
    and (%(owner)s::text is null or owner = %(owner)s)
    and (%(agent)s::text is null or agent = %(agent)s)
order by changed desc
limit %(limit)s

-- name: family_threads
select * from hf.thread_full
where thread_family = %(family)s and changed < %(after)s
    and (%(every)s or (deleted_at is null and head is not null))
order by changed desc
limit %(limit)s

-- name: checkpoint_by_id
-- hot
select * from hf.checkpoint_full where id = %(id)s and family = %(family)s

-- name: checkpoint_by_seq
-- hot
select * from hf.checkpoint_full where family = %(family)s and seq = %(seq)s

-- name: update_checkpoint
update hf.checkpoint
set parent = %(parent)s, parent_id = %(parent_id)s, label = %(label)s,
    tags = %(tags)s, link = %(link)s, checksum = %(checksum)s
where family = %(family)s and seq = %(seq)s

-- name: ancestors
-- hot
with recursive origin as materialized (
    select %(family)s::bigint as family, %(seq)s::bigint as seq
    where %(seq)s::bigint is not null
    union all
    select t.family, t.head
    from hf.directory d
    join hf.thread t on t.family = d.family and t.number = d.number
    where d.name = %(thread)s::text and d.deleted_at is null
),
line (family, seq, depth) as (
    select o.family, o.seq, 0 from origin o
    union all
    select line.family, c.parent, line.depth + 1
    from line join hf.checkpoint c on c.family = line.family and c.seq = line.seq
    where c.parent is not null and line.depth + 1 < %(depth)s
        and c.step > %(down_to_step)s
)
select f.*
from line join hf.checkpoint_full f on f.family = line.family and f.seq = line.seq
where line.depth >= %(skip)s and f.step <= %(from_step)s
order by line.depth

-- name: saves_newest
select * from hf.checkpoint_full
where family = %(family)s and seq > %(after)s and seq < %(before)s
    and (%(thread)s::text is null or thread = (
        select t.number from hf.thread t
        where t.family = %(family)s and t.name = %(thread)s
        order by t.deleted_at is not null, t.number desc limit 1))
order by seq desc
limit %(limit)s

-- name: saves_oldest
select * from hf.checkpoint_full
where family = %(family)s and seq > %(after)s and seq < %(before)s
    and (%(thread)s::text is null or thread = (
        select t.number from hf.thread t
        where t.family = %(family)s and t.name = %(thread)s
        order by t.deleted_at is not null, t.number desc limit 1))
order by seq
limit %(limit)s

-- name: labelled
select * from hf.checkpoint_full
where family = %(family)s and label = %(mark)s and seq < %(before)s
    and (label is not null or tags is not null)
order by seq desc
limit %(limit)s

-- name: tagged
select * from hf.checkpoint_full
where family = %(family)s and seq < %(before)s
    and (label is not null or tags is not null)
    and tags::jsonb ? %(mark)s
order by seq desc
limit %(limit)s

-- name: matches
select * from hf.checkpoint_full
where id >= %(prefix)s and starts_with(id, %(prefix)s) and id > %(after)s
    and id < %(end)s
    and (%(family)s::bigint is null or family = %(family)s)
order by id, family
limit %(limit)s

-- name: moves
-- The newest of both: each has to be looked at only as far as the page goes.
(select c.seq, 'save' as kind, c.parent_id as source, c.id as target,
    c.saved_at as moved_at
from hf.checkpoint c
where c.family = %(family)s and c.thread = %(number)s and c.seq < %(before)s
order by c.seq desc
limit %(limit)s)
union all
(select m.seq, m.kind, s.id, t.id, m.moved_at
from hf.move m
left join hf.checkpoint s on s.family = m.family and s.seq = m.source
left join hf.checkpoint t on t.family = m.family and t.seq = m.target
where m.family = %(family)s and m.thread = %(number)s and m.seq < %(before)s
order by m.seq desc
limit %(limit)s)
order by 1 desc
limit %(limit)s

-- name: entries
-- hot
select j.seq, j.checkpoint, j.key, j.value, j.recorded_at, j.checksum, j.thread
from hf.directory d
join hf.journal j on j.family = d.family and j.thread = d.number
where d.name = %(name)s and d.deleted_at is null
order by j.seq

-- name: entries_of
-- hot
select j.seq, j.checkpoint, j.key, j.value, j.recorded_at, j.checksum, j.thread
from hf.directory d
join hf.journal j on j.family = d.family and j.thread = d.number
where d.name = %(name)s and d.deleted_at is null and j.checkpoint = %(checkpoint)s
order by j.seq

-- name: entry_of
-- hot
select j.seq, j.checkpoint, j.key, j.value, j.recorded_at, j.checksum, j.thread
from hf.directory d
join hf.journal j on j.family = d.family and j.thread = d.number
where d.name = %(name)s and d.deleted_at is null and j.checkpoint = %(checkpoint)s
    and j.key = %(key)s

-- name: entry
-- hot
select seq, checkpoint, key, value, recorded_at, checksum, thread
from hf.journal
where family = %(family)s and thread = %(thread)s and checkpoint = %(checkpoint)s
    and key = %(key)s

-- name: segments
-- hot
select s.number, s.packing, s.data, s.checksum
from unnest(%(firsts)s::bigint[], %(lasts)s::bigint[]) with ordinality
    r (first, last, place)
join hf.segment s on s.family = %(family)s and s.number between r.first and r.last
order by r.place, s.number

-- name: horizon
-- A standby does not show the locks, and a transaction that keeps its first view not the
-- rows that belong to them.
select hf.horizon(), pg_is_in_recovery(), current_setting('transaction_isolation')

-- name: changes
select c.seq, c.thread_name, 'save' as kind, c.id as subject, c.saved_at
from hf.checkpoint c
where c.seq > %(after)s and c.seq <= %(last)s
union all
select j.seq, o.name, 'record', j.key, j.recorded_at
from hf.journal j join hf.thread o on o.family = j.family and o.number = j.thread
where j.seq > %(after)s and j.seq <= %(last)s
union all
select m.seq, o.name, m.kind, t.id, m.moved_at
from hf.move m
join hf.thread o on o.family = m.family and o.number = m.thread
left join hf.checkpoint t on t.family = m.family and t.seq = m.target
where m.seq > %(after)s and m.seq <= %(last)s
order by 1
limit %(limit)s

-- name: plan_is_stale
select exists (
    select 1 from hf.thread
    where family = %(family)s and deleted_at is null and head = any(%(doomed)s::bigint[])
        and number <> all(%(dropped)s::bigint[])
) or exists (
    select 1 from hf.checkpoint
    where family = %(family)s and parent = any(%(doomed)s::bigint[])
        and seq <> all(%(doomed)s::bigint[]) and seq <> all(%(children)s::bigint[])
) or (
    select count(*) from hf.checkpoint
    where family = %(family)s and seq = any(%(doomed)s::bigint[])
) <> cardinality(%(doomed)s::bigint[]) or (
    select count(*) from hf.checkpoint
    where family = %(family)s and seq = any(%(doomed)s::bigint[])
        and label is null and tags is null
) <> %(unmarked)s or (
    select count(*) from hf.checkpoint
    where family = %(family)s and seq = any(%(children)s::bigint[]) and parent = any(%(doomed)s::bigint[])
) <> cardinality(%(children)s::bigint[]) or (
    select count(*) from hf.checkpoint
    where family = %(family)s and seq = any(%(adopters)s::bigint[])
) <> cardinality(%(adopters)s::bigint[])

-- name: delete_checkpoints
delete from hf.checkpoint where family = %(family)s and seq = any(%(doomed)s::bigint[])
returning length(manifest) + octet_length(runs) + length(metadata)

-- name: delete_checkpoint_entries
delete from hf.journal where family = %(family)s and checkpoint = any(%(ids)s::text[])

-- name: delete_checkpoint_moves
delete from hf.move
where family = %(family)s and (source = any(%(doomed)s::bigint[]) or target = any(%(doomed)s::bigint[]))

-- name: delete_segments
with gone as (
    delete from hf.segment
    where family = %(family)s and number between %(first)s and %(last)s
    returning length(data) as size
)
select count(*), coalesce(sum(size), 0)::bigint from gone

-- name: measure_threads
-- How many of some threads are as they were, and how many others are in the family.
select
    (select count(*)
        from unnest(%(numbers)s::bigint[], %(changed)s::bigint[]) w (number, changed)
        join hf.thread t on t.family = %(family)s and t.number = w.number
            and t.changed = w.changed and t.deleted_at is null),
    (select count(*) from hf.thread t
        where t.family = %(family)s and t.deleted_at is null
            and t.number <> all(%(numbers)s::bigint[]))

-- name: measure_family
select count(*), coalesce(
    sum(length(manifest) + octet_length(runs) + length(metadata)), 0)::bigint
from hf.checkpoint where family = %(family)s

-- name: measure_checkpoints
select count(*), coalesce(
    sum(length(manifest) + octet_length(runs) + length(metadata)), 0)::bigint
from hf.checkpoint where family = %(family)s and seq = any(%(doomed)s::bigint[])

-- name: measure_segments
select count(*), coalesce(sum(length(data)), 0)::bigint from hf.segment
where family = %(family)s and number between %(first)s and %(last)s

-- name: bury_thread
update hf.thread
set deleted_at = %(at)s, changed = %(seq)s, updated_at = %(at)s, head = null,
    owner = null, agent = null, metadata = ''
where family = %(family)s and number = %(number)s and deleted_at is null
    and changed = %(changed)s
returning number

-- name: leave_directory
update hf.directory set deleted_at = %(at)s
where name = %(name)s and number = %(number)s

-- name: delete_thread_entries
delete from hf.journal where family = %(family)s and thread = %(number)s

-- name: delete_thread_moves
delete from hf.move where family = %(family)s and thread = %(number)s

-- name: living_threads
select count(*) from hf.thread where family = %(family)s and deleted_at is null

-- name: delete_family_checkpoints
delete from hf.checkpoint where family = %(family)s
returning length(manifest) + octet_length(runs) + length(metadata)

-- name: threads_of
select distinct thread from hf.checkpoint
where family = %(family)s and seq = any(%(doomed)s::bigint[])

-- name: forget_tombstones
with gone as (
    delete from hf.thread t
    where t.deleted_at < %(before)s and not exists (
        select 1 from hf.checkpoint c
        where c.family = t.family and c.thread = t.number)
    returning t.name, t.number
)
delete from hf.directory d using gone
where d.name = gone.name and d.number = gone.number

-- name: forget_moves
delete from hf.move m
where not exists (
    select 1 from hf.thread t where t.family = m.family and t.number = m.thread)

-- name: setting
select value from hf.setting where name = %(name)s

-- name: insert_setting
insert into hf.setting (name, value) values (%(name)s, %(value)s)
on conflict (name) do nothing

-- name: weights
with record as (
    select family, count(*) as checkpoints, sum(size)::bigint as logical,
        sum(length(manifest) + length(runs) + length(metadata))::bigint as bytes
    from hf.checkpoint
    group by family
),
piece as (
    select family, count(*) as segments, sum(length(data))::bigint as bytes
    from hf.segment
    group by family
)
select r.family, r.checkpoints, r.logical, coalesce(p.segments, 0),
    r.bytes + coalesce(p.bytes, 0) as stored
from record r left join piece p on p.family = r.family
order by stored desc, r.family
limit %(limit)s

-- name: facts
select
    (select count(*) from hf.thread where deleted_at is null and head is not null),
    (select count(*) from hf.checkpoint),
    (select count(*) from hf.segment),
    (select count(*) from hf.journal),
    (select coalesce(sum(size), 0)::bigint from hf.checkpoint),
    (select coalesce(sum(length(data)), 0)::bigint from hf.segment),
    (select sum(pg_total_relation_size(c.oid))::bigint
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = %(schema)s and c.relkind = 'r')

-- name: rescue_threads
select name, kind, owner, agent, metadata, family, forked_thread, forked_checkpoint,
    created_at, updated_at, deleted_at, changed, number, head
from hf.thread
order by number

-- name: rescue_checkpoints
select p.seq is not null as has_parent, c.*
from hf.checkpoint_full c
left join hf.checkpoint p on p.family = c.family and p.seq = c.parent
order by c.seq

-- name: rescue_entries
select seq, checkpoint, key, value, recorded_at, checksum, thread
from hf.journal
order by seq

-- name: count_segments
select count(*) from hf.segment

-- name: rescue_moves
select m.seq, o.name, m.kind, s.id, t.id, m.moved_at
from hf.move m
join hf.thread o on o.family = m.family and o.number = m.thread
    and o.deleted_at is null
left join hf.checkpoint s on s.family = m.family and s.seq = m.source
left join hf.checkpoint t on t.family = m.family and t.seq = m.target
order by m.seq

-- name: adopt_directory
insert into hf.directory (name, number, family, deleted_at)
values (%(name)s, %(number)s, %(family)s, %(deleted_at)s)
on conflict (name, number) do nothing

-- name: adopt_thread
insert into hf.thread (family, number, name, kind, owner, agent, metadata, head,
    changed, created_at, updated_at, forked_thread, forked_checkpoint, deleted_at)
values (%(family)s, %(number)s, %(name)s, %(kind)s, %(owner)s, %(agent)s, %(metadata)s,
    %(head)s, %(changed)s, %(created_at)s, %(updated_at)s, %(forked_thread)s,
    %(forked_checkpoint)s, %(deleted_at)s)
on conflict (family, number) do nothing

-- name: adopt_checkpoint
insert into hf.checkpoint (family, seq, id, thread, thread_name, parent, parent_id, step,
    saved_at, kind, label, tags, metadata, runs, manifest, size, digest, link, checksum)
values (%(family)s, %(seq)s, %(id)s, %(thread)s, %(thread_name)s, %(parent)s,
    %(parent_id)s, %(step)s, %(saved_at)s, %(kind)s, %(label)s, %(tags)s, %(metadata)s,
    %(runs)s, %(manifest)s, %(size)s, %(digest)s, %(link)s, %(checksum)s)
on conflict (family, seq) do nothing

-- name: adopt_segments
insert into hf.segment (family, number, packing, data, checksum)
select %(family)s, s.number, s.packing, s.data, s.checksum
from unnest(%(numbers)s::bigint[], %(packings)s::smallint[], %(pieces)s::bytea[],
    %(checksums)s::bigint[]) s (number, packing, data, checksum)
on conflict (family, number) do nothing

-- name: adopt_move
insert into hf.move (family, seq, thread, kind, source, target, moved_at)
values (%(family)s, %(seq)s, %(thread)s, %(kind)s, %(source)s, %(target)s, %(at)s)
on conflict (family, seq) do nothing

-- name: take_seqs
select nextval('hf.seq') from generate_series(1, %(count)s)

-- name: take_numbers
select nextval('hf.number') from generate_series(1, %(count)s)

-- name: pass_numbers
-- What is numbered from now on comes behind what was adopted.
select setval('hf.seq', greatest(%(seq)s, (select last_value from hf.seq))),
    setval('hf.number', greatest(%(number)s, (select last_value from hf.number)))
