-- The statements of the PostgreSQL backend by name; `hf` stands for the schema.
-- Parameters are always bound. A statement marked "hot" must name its family.
-- `_sql/statements.py` explains the notation.

-- part: described
-- Two items, each with the texts of which one must be there.
(:item::bytea is null
    or position(:item::bytea in metadata) > 0
    or position(:item_b::bytea in metadata) > 0
    or position(:item_c::bytea in metadata) > 0
    or position(:item_d::bytea in metadata) > 0)
and (:second::bytea is null
    or position(:second::bytea in metadata) > 0
    or position(:second_b::bytea in metadata) > 0
    or position(:second_c::bytea in metadata) > 0
    or position(:second_d::bytea in metadata) > 0)

-- part: if_much
-- The condition is looked at once. A limit that the planner knows lets it walk.
:limit

-- name: server
select current_setting('server_version_num')::bigint, version()

-- name: around
-- The third tells whether pg_trgm is there, or could be made, the fourth whether Citus
-- is, the next ones whether this server can be written to, and whether the schema has the
-- name of a word that SQL reserves; the last are the schemas that are searched for a
-- name.
select pg_backend_pid(), current_setting('server_encoding'),
    exists (select 1 from pg_extension where extname = 'pg_trgm')
    or (exists (select 1 from pg_available_extensions where name = 'pg_trgm')
        and has_database_privilege(current_database(), 'create')),
    exists (select 1 from pg_extension where extname = 'citus'),
    current_setting('transaction_read_only') = 'on', pg_is_in_recovery(),
    exists (select 1 from pg_get_keywords() where word = 'hf' and catcode in ('R', 'T')),
    pg_catalog.current_schemas(true)::text[]

-- name: reads_only
select current_setting('transaction_read_only') = 'on', pg_is_in_recovery()

-- name: enter
-- The first sequence number of a transaction, which is one of many statements.
select hf.enter(:durable)

-- name: save
-- hot
select hf.save(
    :durable, :family, :thread, :expected, :parent_id, :at,
    :id, :step, :saved_at, :kind, :label, :tags, :metadata,
    :runs, :manifest, :size, :digest, :checksum, :numbers,
    :packings, :pieces, :checksums, :begin_kind, :begin_owner,
    :begin_agent, :begin_metadata, :begin_anew)

-- name: append
-- hot
select hf.append(
    :durable, :family, :thread, :expected, :parent_id, :at,
    :id, :step, :saved_at, :kind, :metadata, :runs,
    :manifest, :size, :digest, :checksum, :segment_number,
    :segment_packing, :segment_data, :segment_checksum)

-- name: save_and_record
-- hot
-- The journal is written if the save was made; `offset 0` keeps it from being made twice.
select s.saved, case when s.saved is not null then
    hf.record(:durable, :thread, :at, false, null, :family_wide, :replaces,
        :entry_checkpoints, :entry_keys, :entry_contents, :entry_times,
        :entry_checksums, :forgotten, false)
    end
from (
    select hf.save(
        :durable, :family, :thread, :expected, :parent_id, :at,
        :id, :step, :saved_at, :kind, :label, :tags, :metadata,
        :runs, :manifest, :size, :digest, :checksum, :numbers,
        :packings, :pieces, :checksums, :begin_kind, :begin_owner,
        :begin_agent, :begin_metadata, :begin_anew) as saved
    offset 0
) s

-- name: save_each
-- hot
-- Saves of several families at once; threads that others have locked are skipped.
with entered as materialized (
    select hf.enter(:durable) as lowest
),
wanted as materialized (
    select w.* from unnest(
        :all_family::bigint[], :all_thread::text[], :all_expected::bigint[],
        :all_at::bigint[], :all_id::text[], :all_parent_id::text[],
        :all_step::bigint[], :all_saved_at::bigint[], :all_kind::text[],
        :all_metadata::bytea[], :all_runs::text[], :all_manifest::bytea[],
        :all_size::bigint[], :all_digest::bytea[], :all_checksum::bigint[])
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
    returning n.place, n.seq, n.family, n.number, t.packed_to
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
    select m.family, case
            when s.number <= m.packed_to and hf.is_in_block(m.family, s.number)
            then hf.refuse_number() else s.number end,
        s.packing, s.data, s.checksum
    from unnest(:owners::bigint[], :numbers::bigint[], :packings::smallint[],
        :pieces::bytea[], :checksums::bigint[])
        s (owner, number, packing, data, checksum)
    join moved m on m.place = s.owner
    order by m.family, s.number
)
select place, seq, family, number from moved

-- name: record
-- hot
select hf.record(:durable, :thread, :at, :expects, :expected_head, :family_wide,
    :replaces, :entry_checkpoints, :entry_keys, :entry_contents, :entry_times,
    :entry_checksums, :forgotten, :logs)

-- name: place
-- The family and number of a living thread.
select family, number from hf.directory where name = :name and deleted_at is null

-- name: move_head
-- hot
update hf.thread set head = :head, changed = :changed, updated_at = :at
where family = :family and name = :name and deleted_at is null
    and head is not distinct from :was::bigint
returning number

-- name: touch_thread
-- hot
update hf.thread
set changed = greatest(changed, :changed), updated_at = :at
where family = :family and number = :number and deleted_at is null
returning number

-- name: begin_thread
select hf.begin_thread(:name, nullif(:family, 0), :kind, :owner, :agent, :metadata,
    :head, :changed, :at, :forked_thread, :forked_checkpoint, :anew)

-- name: hold_family
-- Lets only a prune of the family wait until this transaction ends.
select number from hf.thread where family = :family order by number for key share

-- name: hold_head
-- Keeps a thread as it is until this transaction ends.
select number from hf.thread
where family = :family and name = :name and deleted_at is null
    and head is not distinct from :head::bigint
for no key update

-- name: hold_checkpoint
-- Transactions that change a checkpoint wait for one another.
select seq from hf.checkpoint where family = :family and seq = :seq for update

-- name: hold
select hf.hold(:names::text[], :whole::bigint[], :thinned::bigint[])

-- name: insert_entry
-- hot
insert into hf.journal (family, {entry}) values (:family, {:entry})
on conflict (family, thread, checkpoint, key) do nothing
returning seq

-- name: insert_move
insert into hf.move (family, seq, thread, kind, source, target, moved_at)
values (:family, :seq, :thread, :kind, :source, :target, :at)

-- name: prove_move
-- The last move of the thread is the one that this transaction has logged.
with last as (
    select m.seq from hf.move m
    where m.family = :family and m.thread = :number
        and m.kind not in ('prune', 'delete')
    order by m.seq desc
    limit 2
)
update hf.move
set kind = kind || cast(:proof as text)
where family = :family and seq = (select max(l.seq) from last l)
    and (cast(:last_move as bigint) is null or cast(:last_move as bigint) = (
        select case when count(*) = 2 then min(l.seq) else 0 end from last l))
returning seq

-- name: thread_moves
-- Without the moves that prunes have logged.
select m.seq, o.name, m.kind, s.id, t.id, m.moved_at
from hf.move m
join hf.thread o on o.family = m.family and o.number = m.thread
left join hf.checkpoint s on s.family = m.family and s.seq = m.source
left join hf.checkpoint t on t.family = m.family and t.seq = m.target
where m.family = :family and m.thread = :number
    and m.kind not in ('prune', 'delete') and m.seq < :before
order by m.seq desc
limit :limit

-- name: family_log
select coalesce(max(m.seq), 0), count(m.seq) from hf.move m
where m.family = :family and m.kind not in ('prune', 'delete')

-- name: rewrite_move
update hf.move set kind = :kind where family = :family and seq = :seq

-- name: thread_by_name
-- hot
select {t.thread_full} from hf.thread_by_name(:name) t

-- name: obstacle
-- hot
-- Why a save was refused: its id is taken, or the thread is another.
select hf.has_checkpoint(t.thread_family, :id), {t.thread_full}
from hf.thread_by_name(:name) t

-- name: happened
-- True if the transaction that wrote this row has been committed.
select exists (
    select 1 from hf.checkpoint
    where family = :family and seq = :seq and saved_at = :at
) or exists (
    select 1 from hf.move
    where family = :family and seq = :seq and moved_at = :at
)

-- name: settle
select hf.settle(:family, :durable)

-- name: state
-- hot
-- `offset 0` keeps the function from being called for every column.
select {t.thread_full}, t.numbers, t.packings, t.pieces, t.checksums, t.counts
from (select hf.state(:name, :known) as found offset 0) s
cross join lateral (select (s.found).*) t
where t.number is not null

-- name: checkpoint_by_seq
-- hot
select {checkpoint_full} from hf.checkpoint_full where family = :family and seq = :seq

-- name: update_checkpoint
update hf.checkpoint
set parent = :parent, parent_id = :parent_id, label = :label,
    tags = :tags, link = :link, checksum = :checksum
where family = :family and seq = :seq

-- name: ancestors
-- hot
select {f.checkpoint_full}
from hf.ancestors(:family, :seq, :thread, :depth, :skip, :down_to_step, :from_step) f

-- name: line_length
select hf.line_length(:thread)

-- name: tagged
select {checkpoint_full} from hf.checkpoint_full
where family = :family and seq < :before
    and (label is not null or tags is not null)
    and tags::jsonb ? :mark
order by seq desc
limit :limit

-- name: moves
select m.seq, m.kind, m.source, m.target, m.moved_at
from hf.moves(:name, :before, :limit) m

-- name: entries
-- hot
select {j.entry} from hf.entries(:name, null, null, null, null) j

-- name: entries_of
-- hot
select {j.entry} from hf.entries(:name, :checkpoint, null, null, null) j

-- name: entries_from
-- hot
select {j.entry} from hf.entries(:name, :checkpoint, null, :first, :last) j

-- name: checkpoint_entries
-- hot
-- The checkpoints as one array: a join would look up each of them on its own.
select {j.entry}
from hf.journal j
where j.family = :family and j.thread = :number
    and j.checkpoint = any(
        array(select jsonb_array_elements_text(:checkpoints::text::jsonb)))
order by j.seq

-- name: family_entries
-- hot
select t.name, {j.entry}
from hf.thread t
join hf.journal j on j.family = t.family and j.thread = t.number
where t.family = :family and t.deleted_at is null and j.checkpoint = ''
    and j.key >= :first and j.key < :last
order by j.seq

-- name: own_entries
select t.name, {j.entry}
from hf.thread t
join hf.journal j on j.family = t.family and j.thread = t.number
where t.name = any(:names::text[]) and t.deleted_at is null and j.checkpoint = ''
    and j.key >= :first and j.key < :last
order by j.seq

-- name: entry_in_family
-- hot
select t.name, {j.entry}
from hf.thread t
join hf.journal j on j.family = t.family and j.thread = t.number
where t.family = :family and t.deleted_at is null
    and j.checkpoint = :checkpoint and j.key = :key
limit 1

-- name: entry_of
-- hot
select {j.entry} from hf.entries(:name, :checkpoint, :key, null, null) j

-- name: entry
-- hot
select {entry}
from hf.journal
where family = :family and thread = :thread and checkpoint = :checkpoint
    and key = :key

-- name: segments
-- hot
-- A block that holds the first of a run may begin before it.
select s.number, s.packing, s.data, s.checksum, s.count
from unnest(:firsts::bigint[], :lasts::bigint[]) with ordinality
    r (first, last, place)
cross join lateral (
    select s.* from hf.segment s
    where s.family = :family and s.number <= r.last
        and s.number >= coalesce((
            select b.number from hf.segment b
            where b.family = :family and b.number <= r.first
            order by b.number desc
            limit 1), r.first)
        and s.number + s.count > r.first
) s
order by r.place, s.number

-- name: pieces
-- As `segments`, of several families.
select place, number, packing, data, checksum, count
from hf.pieces(:places::bigint[], :families::bigint[], :firsts::bigint[], :lasts::bigint[])

-- name: horizon
-- A standby does not show the locks; a transaction that keeps its first view does not
-- show the rows that belong to them.
select hf.horizon(), pg_is_in_recovery(), current_setting('transaction_isolation')

-- name: last_settled
select (hf.horizon())[1]

-- name: changes
select c.seq, c.thread_name, 'save' as kind, c.id as subject, c.saved_at
from hf.checkpoint c
where c.seq > :after and c.seq <= :last
union all
select j.seq, o.name, 'record', j.key, j.recorded_at
from hf.journal j join hf.thread o on o.family = j.family and o.number = j.thread
where j.seq > :after and j.seq <= :last
union all
select m.seq, o.name, m.kind, t.id, m.moved_at
from hf.move m
join hf.thread o on o.family = m.family and o.number = m.thread
left join hf.checkpoint t on t.family = m.family and t.seq = m.target
where m.seq > :after and m.seq <= :last
order by 1
limit :limit

-- name: threads_of_families
select {thread_full} from hf.thread_full
where thread_family = any(:families::bigint[])
order by number

-- name: saves_of_families
select {checkpoint_full} from hf.checkpoint_full
where family = any(:families::bigint[])
order by seq

-- name: sizes_of_families
select family, count(*) from hf.checkpoint
where family = any(:families::bigint[]) and seq <= :up_to
group by family

-- name: sums_of_families
select t.threads, c.checkpoints, s.segments, j.entries, c.logical,
    c.records + s.stored
from (select count(*) as threads from hf.thread
        where family = any(:families::bigint[])
            and deleted_at is null and head is not null) t,
    (select count(*) as checkpoints, coalesce(sum(size), 0)::bigint as logical,
            coalesce(sum(length(manifest) + length(runs) + length(metadata)), 0)::bigint
                as records
        from hf.checkpoint where family = any(:families::bigint[])) c,
    (select coalesce(sum(count), 0)::bigint as segments,
            coalesce(sum(length(data)), 0)::bigint as stored
        from hf.segment where family = any(:families::bigint[])) s,
    (select count(*) as entries from hf.journal
        where family = any(:families::bigint[])) j

-- name: saves_by_number
select {checkpoint_full} from hf.checkpoint_full
where family = :family and seq = any(:numbers::bigint[])
order by seq

-- name: plan_is_stale
select exists (
    select 1 from hf.thread
    where family = :family and deleted_at is null and head = any(:doomed::bigint[])
        and number <> all(:dropped::bigint[])
) or exists (
    select 1 from hf.checkpoint
    where family = :family and seq > :known and parent = any(:doomed::bigint[])
        and seq <> all(:doomed::bigint[]) and seq <> all(:children::bigint[])
) or (
    select count(*) from hf.checkpoint
    where family = :family and seq = any(:doomed::bigint[])
) <> cardinality(:doomed::bigint[]) or (
    select count(*) from hf.checkpoint
    where family = :family and seq = any(:doomed::bigint[])
        and label is null and tags is null
) <> :unmarked or (
    select count(*) from hf.checkpoint
    where family = :family and seq = any(:children::bigint[]) and parent = any(:doomed::bigint[])
) <> cardinality(:children::bigint[]) or (
    select count(*) from hf.checkpoint
    where family = :family and seq = any(:adopters::bigint[])
) <> cardinality(:adopters::bigint[])

-- name: measure_threads
-- How many of some threads are as they were, and how many others are in the family.
select
    (select count(*)
        from unnest(:numbers::bigint[], :changed::bigint[]) w (number, changed)
        join hf.thread t on t.family = :family and t.number = w.number
            and t.changed = w.changed and t.deleted_at is null),
    (select count(*) from hf.thread t
        where t.family = :family and t.deleted_at is null
            and t.number <> all(:numbers::bigint[]))

-- name: measure_family
select count(*), coalesce(
    sum(length(manifest) + octet_length(runs) + length(metadata)), 0)::bigint
from hf.checkpoint where family = :family

-- name: measure_checkpoints
select count(*), coalesce(
    sum(length(manifest) + octet_length(runs) + length(metadata)), 0)::bigint
from hf.checkpoint where family = :family and seq = any(:doomed::bigint[])

-- name: measure_segments
select coalesce(sum(count), 0)::bigint, coalesce(sum(length(data)), 0)::bigint
from hf.segment
where family = :family and number between :first and :last

-- name: thin
select hf.thin(:durable, :family, :at, :ids::text[], :doomed::bigint[], :firsts::bigint[],
    :lasts::bigint[], :whole::smallint[], :numbers::bigint[], :packings::smallint[],
    :pieces::bytea[], :checksums::bigint[], :counts::bigint[])

-- name: mark_packed
-- Every save to the family looks for blocks up to this number from now on.
update hf.thread set packed_to = :last where family = :family and packed_to < :last

-- name: bury_thread
select hf.bury_thread(:durable, :family, :number, :name, :changed, :at)

-- name: erase_name
select hf.erase_name(:family, :number, :name, :changed)

-- name: forget_tombstones
select hf.forget_tombstones(:before)

-- name: forget_moves
select hf.forget_moves()

-- name: weights
with record as (
    select family, count(*) as checkpoints, sum(size)::bigint as logical,
        sum(length(manifest) + length(runs) + length(metadata))::bigint as bytes
    from hf.checkpoint
    group by family
),
piece as (
    select family, sum(count)::bigint as segments, sum(length(data))::bigint as bytes
    from hf.segment
    group by family
)
select r.family, r.checkpoints, r.logical, coalesce(p.segments, 0),
    r.bytes + coalesce(p.bytes, 0) as stored
from record r left join piece p on p.family = r.family
order by stored desc, r.family
limit :limit

-- name: totals
-- `offset 0` lets parallel workers read the manifests, not the one that adds up.
select coalesce(sum(found), 0)::bigint, json_agg(name) filter (where found is null)::text
from (
    select t.name,
        (convert_from(c.manifest, 'UTF8')::json #>> :steps::text[])::bigint as found
    from hf.thread t join hf.checkpoint c on c.family = t.family and c.seq = t.head
    where t.kind = :kind
    offset 0
) of_kind

-- name: segment_sizes
select family, number, count, packing, length(data) from hf.segment
where (family, number) > (:after >> 32, :after & 4294967295)
order by family, number
limit :limit

-- name: refused_vacuum
-- The tables that the role may not vacuum. The server only warns of them, and goes on.
select c.relname::text
from pg_class c join pg_database d on d.datname = current_database()
where c.relnamespace = 'hf'::regnamespace and c.relname = any(:tables::text[])
    and not pg_has_role(c.relowner, 'usage') and not pg_has_role(d.datdba, 'usage')
    and case when current_setting('server_version_num')::int >= 170000
        then not has_table_privilege(c.oid, 'maintain') else true end
order by c.relname

-- name: drop_dictionary
-- A dictionary that no segment needs any more still holds text of removed segments.
delete from hf.setting
where name = 'zstd dictionary 2'
    and not exists (select 1 from hf.segment where packing = 2)

-- name: facts
-- One pass over each table. Small values stand in the manifests.
select t.threads, c.checkpoints, s.segments, j.entries, c.logical,
    c.records + s.stored, hf.file_bytes()
from (select count(*) as threads from hf.thread
        where deleted_at is null and head is not null) t,
    (select count(*) as checkpoints, coalesce(sum(size), 0)::bigint as logical,
            coalesce(sum(length(manifest) + length(runs) + length(metadata)), 0)::bigint
                as records
        from hf.checkpoint) c,
    (select coalesce(sum(count), 0)::bigint as segments,
            coalesce(sum(length(data)), 0)::bigint as stored
        from hf.segment) s,
    (select count(*) as entries from hf.journal) j

-- name: portion_of_threads
select {thread} from hf.thread where number > :after order by number limit :limit

-- name: portion_of_checkpoints
select {checkpoint_full} from hf.checkpoint_full
where (family, seq) > (:family, :after)
order by family, seq
limit :limit

-- name: portion_of_entries
select {entry} from hf.journal where seq > :after order by seq limit :limit

-- name: count_segments
select coalesce(sum(s.count), 0)::bigint
from unnest(:families::bigint[]) with ordinality f (family, place)
left join hf.segment s on s.family = f.family
group by f.place
order by f.place

-- name: count_strays
select coalesce(sum(s.count), 0)::bigint from hf.segment s
where not exists (select 1 from hf.checkpoint c where c.family = s.family)

-- name: headed_by
select name from hf.thread where head = any(:lost::bigint[])

-- name: names_of
select number, name from hf.thread where number = any(:numbers::bigint[])

-- name: portion_of_saves
select {checkpoint_full} from hf.checkpoint_full
where seq > :after
order by seq
limit :limit

-- name: portion_of_heads
select t.number, t.name, t.family, c.id
from hf.thread t join hf.checkpoint c on c.family = t.family and c.seq = t.head
where t.number > :after and t.deleted_at is null
order by t.number
limit :limit

-- name: rescue_family_threads
select {thread} from hf.thread
where family = any(:families::bigint[])
order by number

-- name: rescue_family_checkpoints
select {checkpoint_full} from hf.checkpoint_full
where family = any(:families::bigint[])
order by seq

-- name: rescue_family_heads
select {checkpoint_full} from hf.checkpoint_full
where family = any(:families::bigint[]) and (family, seq) in (
    select t.family, t.head from hf.thread t where t.family = any(:families::bigint[]))
order by seq

-- name: rescue_family_entries
select {entry} from hf.journal
where family = any(:families::bigint[])
order by seq

-- name: rescue_family_moves
select m.seq, o.name, m.kind, s.id, t.id, m.moved_at
from hf.move m
join hf.thread o on o.family = m.family and o.number = m.thread
    and o.deleted_at is null
left join hf.checkpoint s on s.family = m.family and s.seq = m.source
left join hf.checkpoint t on t.family = m.family and t.seq = m.target
where m.family = any(:families::bigint[])
order by m.seq

-- name: adopt_directory
insert into hf.directory (name, number, family, deleted_at)
values (:name, :number, :family, :deleted_at)
on conflict (name, number) do nothing

-- name: adopt_thread
insert into hf.thread ({thread}) values ({:thread})
on conflict (family, number) do nothing

-- name: adopt_checkpoint
insert into hf.checkpoint ({checkpoint_full}) values ({:checkpoint_full})
on conflict (family, seq) do nothing

-- name: adopt_segments
insert into hf.segment (family, number, packing, data, checksum)
select :family, s.number, s.packing, s.data, s.checksum
from unnest(:numbers::bigint[], :packings::smallint[], :pieces::bytea[],
    :checksums::bigint[]) s (number, packing, data, checksum)
where coalesce((
    select b.number + b.count from hf.segment b
    where b.family = :family and b.number < s.number
    order by b.number desc
    limit 1), 0) <= s.number
on conflict (family, number) do nothing

-- name: drop_segments
delete from hf.segment where family = :family

-- name: drop_checkpoints
delete from hf.checkpoint where family = :family

-- name: drop_entries
delete from hf.journal where family = :family

-- name: drop_moves
delete from hf.move where family = :family

-- name: drop_threads
delete from hf.thread where family = :family
returning name, number

-- name: drop_name
delete from hf.directory where name = :name and number = :number

-- name: adopt_move
insert into hf.move (family, seq, thread, kind, source, target, moved_at)
values (:family, :seq, :thread, :kind, :source, :target, :at)
on conflict (family, seq) do nothing

-- name: take_seqs
select nextval('hf.seq') from generate_series(1, :count)

-- name: take_number
select nextval('hf.number')

-- name: pass_numbers
-- New records get numbers above those of the adopted ones.
select setval('hf.seq', greatest(:seq, (select last_value from hf.seq))),
    setval('hf.number', greatest(:number, (select last_value from hf.number)))
