-- The statements of the SQLite backend by name. Parameters are always bound.

-- part: described
-- Two items, each with the texts of which one must be there. Many threads have none.
(:item is null
    or metadata <> x'' and (
        instr(metadata, :item) > 0 or instr(metadata, :item_b) > 0
        or (:item_c is not null
            and (instr(metadata, :item_c) > 0 or instr(metadata, :item_d) > 0))))
and (:second is null
    or instr(metadata, :second) > 0 or instr(metadata, :second_b) > 0
    or (:second_c is not null
        and (instr(metadata, :second_c) > 0 or instr(metadata, :second_d) > 0)))

-- part: if_much
-- A condition with a subquery would be looked at for every row.
case when (select is_much from found) then :limit else 0 end

-- part: thread_checksum
-- What saves do not change.
row_checksum(number, name, family, kind, owner, agent, metadata, created_at,
    forked_thread, forked_checkpoint, deleted_at)

-- part: thread_guard
-- What every save changes: SQLite has no operator for the exclusive or.
((changed * 41 + coalesce(head, -1) * 37) | updated_at)
- ((changed * 41 + coalesce(head, -1) * 37) & updated_at)

-- name: next_seq
select max(
    coalesce((select max(seq) from checkpoint), 0),
    coalesce((select max(seq) from journal), 0),
    coalesce((select max(seq) from move), 0)) + 1

-- name: last_settled
select max(
    coalesce((select max(seq) from checkpoint), 0),
    coalesce((select max(seq) from journal), 0),
    coalesce((select max(seq) from move), 0))

-- name: move_known_head
-- The thread of a save is most often the one that its parent was saved in. `returning`
-- and the look-up by name take a tenth of the time of a save's statements.
update thread set head = ?1, changed = ?2, updated_at = ?3,
    guard = ((?2 * 41 + ?1 * 37) | ?3) - ((?2 * 41 + ?1 * 37) & ?3)
where number = ?4 and family = ?5 and head = ?6 and name = ?7 and deleted_at is null

-- name: move_head
update thread set head = ?1, changed = ?2, updated_at = ?3,
    guard = ((?2 * 41 + ?1 * 37) | ?3) - ((?2 * 41 + ?1 * 37) & ?3)
where name = ?4 and deleted_at is null and head is ?5
returning number, family

-- name: touch_known_thread
update thread set changed = ?1, updated_at = ?2,
    guard = ((?1 * 41 + coalesce(head, -1) * 37) | ?2)
        - ((?1 * 41 + coalesce(head, -1) * 37) & ?2)
where number = ?3

-- name: touch_thread
update thread set changed = :changed, updated_at = :at,
    guard = ((:changed * 41 + coalesce(head, -1) * 37) | :at)
        - ((:changed * 41 + coalesce(head, -1) * 37) & :at)
where name = :name and deleted_at is null
returning number, family

-- name: thread_at_head
select number, family from thread
where name = :name and deleted_at is null and head is :head

-- name: start_thread
insert into thread ({thread}) values ({:thread})
returning number

-- name: found_family
update thread set family = number where number = :number

-- name: seal_thread
update thread set checksum = {=thread_checksum}, guard = {=thread_guard}
where number = :number

-- name: insert_checkpoint
insert into checkpoint ({checkpoint}) values ({?checkpoint})

-- name: insert_segment
insert into segment (key, packing, data, checksum, count) values (?, ?, ?, ?, ?)

-- name: checkpoint_by_seq
select {checkpoint_full} from checkpoint_full where seq = :seq

-- name: update_checkpoint
update checkpoint
set parent = :parent, label = :label, tags = :tags, link = :link, checksum = :checksum
where seq = :seq

-- name: insert_entry
insert into journal ({entry}) values ({:entry})
on conflict (thread, checkpoint, key) do nothing

-- name: replace_entry
insert or replace into journal ({entry}) values ({:entry})

-- name: insert_move
insert into move (seq, thread, kind, source, target, moved_at, checksum)
values (:seq, :thread, :kind, :source, :target, :at,
    row_checksum(:seq, :thread, :kind, :source, :target, :at))

-- name: thread_by_name
select {thread_full} from thread_full
where number = coalesce(
    (select number from thread where name = :name and deleted_at is null),
    (select max(number) from thread where name = :name and deleted_at is not null))

-- name: living_thread
-- `thread_full` written out, which the first load of a connection plans in half the
-- time, and with the columns of the index `thread_name`, which takes less again.
select {t.thread}, o.name, p.id, {c.checkpoint}
from thread t
left join checkpoint c on c.seq = t.head
left join thread o on o.number = c.thread
left join checkpoint p on p.seq = c.parent
where t.name = :name and case when t.deleted_at is null then 0 else t.number end = 0

-- name: live_thread
select number, family from thread where name = :name and deleted_at is null

-- name: tombstone
select deleted_at from thread where name = :name and deleted_at is not null
order by number desc
limit 1

-- name: ancestors
with recursive line (seq, depth) as (
    select coalesce(:seq, (
        select head from thread where name = :thread and deleted_at is null)), 0
    union all
    select c.parent, line.depth + 1
    from line join checkpoint c on c.seq = line.seq
    where c.parent is not null and line.depth + 1 < :depth
        and c.step > :down_to_step
)
select {f.checkpoint_full}
from line cross join checkpoint_full f on f.seq = line.seq
where line.depth >= :skip and f.step <= :from_step
order by line.depth

-- name: line_length
with recursive line (seq) as (
    select head from thread
    where name = :thread and deleted_at is null and head is not null
    union all
    select c.parent
    from line join checkpoint c on c.seq = line.seq
    where c.parent is not null
)
select count(*) from line

-- name: tagged
select {checkpoint_full} from checkpoint_full
where family = :family and seq < :before
    and (label is not null or tags is not null)
    and exists (select 1 from json_each(tags) where value = :mark)
order by seq desc
limit :limit

-- name: moves
-- Subqueries and not joins: both halves then come in order, and the limit ends them.
select c.seq, 'save' as kind, p.id as source, c.id as target, c.saved_at as moved_at
from checkpoint c left join checkpoint p on p.seq = c.parent
where c.family = (select family from thread where name = :name and deleted_at is null)
    and c.thread = (select number from thread where name = :name and deleted_at is null)
    and c.seq < :before
union all
select m.seq, m.kind, s.id, t.id, m.moved_at
from move m
left join checkpoint s on s.seq = m.source
left join checkpoint t on t.seq = m.target
where m.thread = (select number from thread where name = :name and deleted_at is null)
    and m.seq < :before
order by 1 desc
limit :limit

-- name: thread_moves
-- Without what prunes have logged.
select m.seq, o.name, m.kind, s.id, t.id, m.moved_at
from move m
join thread o on o.number = m.thread
left join checkpoint s on s.seq = m.source
left join checkpoint t on t.seq = m.target
where m.thread = :number and m.kind not in ('prune', 'delete') and m.seq < :before
order by m.seq desc
limit :limit

-- name: last_thread_move
select coalesce(max(seq), 0) from move
where thread = :number and kind not in ('prune', 'delete')

-- name: family_log
select coalesce(max(m.seq), 0), count(m.seq)
from thread o cross join move m on m.thread = o.number
where o.family = :family and m.kind not in ('prune', 'delete')

-- name: entries
select {entry} from journal
where thread = (select number from thread where name = :name and deleted_at is null)
order by seq

-- name: entries_of
select {entry} from journal
where thread = (select number from thread where name = :name and deleted_at is null)
    and checkpoint = :checkpoint
order by seq

-- name: entries_from
select {entry} from journal
where thread = (select number from thread where name = :name and deleted_at is null)
    and checkpoint = :checkpoint and key >= :first and key < :last
order by seq

-- name: family_entries
-- The threads first: one probe of the index for each. Every call made once looks here
-- and finds few rows, which the caller sorts: SQLite takes longer to make a sorter.
select t.name, {j.entry}
from thread t cross join journal j on j.thread = t.number
where t.family = :family and t.deleted_at is null
    and j.checkpoint = '' and j.key >= :first and j.key < :last

-- name: own_entries
select t.name, {j.entry}
from json_each(:names_json) wanted
cross join thread t on t.name = wanted.value and t.deleted_at is null
cross join journal j on j.thread = t.number
where j.checkpoint = '' and j.key >= :first and j.key < :last
order by j.seq

-- name: checkpoint_entries
select {entry} from journal
where thread = (
        select number from thread
        where name = :name and family = :family and deleted_at is null)
    and checkpoint in (select value from json_each(:checkpoints))
order by seq

-- name: entry_in_family
select t.name, {j.entry}
from thread t cross join journal j on j.thread = t.number
where t.family = :family and t.deleted_at is null
    and j.checkpoint = :checkpoint and j.key = :key
limit 1

-- name: forget_entry
delete from journal where thread = :thread and checkpoint = '' and key = :key

-- name: entry_of
select {entry} from journal
where thread = (select number from thread where name = :name and deleted_at is null)
    and checkpoint = :checkpoint and key = :key

-- name: has_entry
select 1 from journal where thread = ?1 and checkpoint = ?2 and key = ?3

-- name: entry
select {entry} from journal
where thread = :thread and checkpoint = :checkpoint and key = :key

-- name: segments
-- A block that holds the first may begin before it. Planned in three quarters of the time
-- that `max(key)` takes; where there is no such segment, nothing is found.
select key, packing, data, checksum, count from segment
where key >= (select key from segment where key <= ?1 order by key desc limit 1)
    and key <= ?2 and key + count > ?1
order by key

-- name: pieces
-- As `segments`, of several families.
select b.key, s.key, s.packing, s.data, s.checksum, s.count
from json_each(:bounds) b
cross join segment s on s.key between
        coalesce((select max(key) from segment where key <= b.value ->> 0),
            b.value ->> 0)
        and b.value ->> 1
    and s.key + s.count > b.value ->> 0

-- The index has the numbers of all checkpoints of a family; only the rows of the page
-- are read from the table.
-- name: family_saves_newest
select {f.checkpoint_full}
from (
    select seq from checkpoint
    where family = :family and seq > :after and seq < :before
    order by seq desc
    limit :limit
) page cross join checkpoint_full f on f.seq = page.seq
order by page.seq desc

-- name: family_saves_oldest
select {f.checkpoint_full}
from (
    select seq from checkpoint
    where family = :family and seq > :after and seq < :before
    order by seq
    limit :limit
) page cross join checkpoint_full f on f.seq = page.seq
order by page.seq

-- name: changes
select c.seq, o.name, 'save' as kind, c.id as subject, c.saved_at
from checkpoint c join thread o on o.number = c.thread
where c.seq > :after
union all
select j.seq, o.name, 'record', j.key, j.recorded_at
from journal j join thread o on o.number = j.thread
where j.seq > :after
union all
select m.seq, o.name, m.kind, t.id, m.moved_at
from move m
join thread o on o.number = m.thread
left join checkpoint t on t.seq = m.target
where m.seq > :after
order by 1
limit :limit

-- name: threads_of_families
select {thread_full} from thread_full
where thread_family in (select value from json_each(:families))
order by number

-- name: saves_of_families
select {checkpoint_full} from checkpoint_full
where family in (select value from json_each(:families))
order by seq

-- name: sizes_of_families
select family, count(*) from checkpoint
where family in (select value from json_each(:families)) and seq <= :up_to
group by family

-- name: sums_of_families
select
    (select count(*) from thread
        where family in (select value from json_each(:families))
            and deleted_at is null and head is not null),
    saves.checkpoints, pieces.segments,
    (select count(*) from journal where thread in (
        select number from thread
        where family in (select value from json_each(:families)))),
    saves.logical, saves.records + pieces.stored
from (select count(*) as checkpoints, coalesce(sum(size), 0) as logical,
            coalesce(sum(length(manifest) + length(runs) + length(metadata)), 0) as records
        from checkpoint where family in (select value from json_each(:families))) saves,
    (select coalesce(sum(p.count), 0) as segments,
            coalesce(sum(length(p.data)), 0) as stored
        from json_each(:families) f join segment p
            on p.key between f.value << 32 and f.value << 32 | 0xffffffff) pieces

-- name: saves_by_number
select {checkpoint_full} from checkpoint_full
where seq in (select value from json_each(:numbers)) and +family = :family
order by seq

-- name: plan_is_stale
-- A child that is not in the plan is looked for thread by thread, in this order: so an
-- index leads to the checkpoints after a number, of which there are few.
select exists (
    select 1 from thread
    where family = :family and deleted_at is null
        and head in (select value from json_each(:doomed))
) or exists (
    select 1 from thread
    cross join checkpoint on checkpoint.family = thread.family
        and checkpoint.thread = thread.number and seq > :known
    where thread.family = :family
        and parent in (select value from json_each(:doomed))
        and seq not in (select value from json_each(:doomed))
        and seq not in (select value from json_each(:children))
) or (
    select count(*) from checkpoint
    where seq in (select value from json_each(:doomed))
) <> json_array_length(:doomed) or (
    select count(*) from checkpoint
    where seq in (select value from json_each(:doomed))
        and label is null and tags is null
) <> :unmarked or (
    select count(*) from checkpoint
    where seq in (select value from json_each(:children))
        and parent in (select value from json_each(:doomed))
) <> json_array_length(:children) or (
    select count(*) from checkpoint
    where seq in (select value from json_each(:adopters))
) <> json_array_length(:adopters)

-- name: delete_checkpoints
delete from checkpoint where seq in (select value from json_each(:doomed))
returning length(manifest) + length(runs) + length(metadata)

-- name: delete_checkpoint_entries
delete from journal
where checkpoint in (select value from json_each(:ids))
    and thread in (select number from thread where family = :family)

-- name: delete_checkpoint_moves
delete from move
where thread in (select number from thread where family = :family)
    and (source in (select value from json_each(:doomed))
        or target in (select value from json_each(:doomed)))

-- name: measure_segments
select coalesce(sum(count), 0), coalesce(sum(length(data)), 0) from segment
where key between :first and :last

-- name: segments_are_divided
-- Whether a block holds numbers on both sides of an end of the run.
select exists (
    select 1 from segment
    where key = (select max(key) from segment where key < :first)
        and key + count > :first
) or exists (
    select 1 from segment
    where key = (select max(key) from segment where key <= :last)
        and key + count > :last + 1
)

-- name: delete_segments
delete from segment where key between :first and :last

-- name: living_threads
select count(*) from thread where family = :family and deleted_at is null

-- name: delete_family_checkpoints
delete from checkpoint where family = :family
returning length(manifest) + length(runs) + length(metadata)

-- name: bury_thread
update thread
set deleted_at = :at, changed = :seq, updated_at = :at, head = null, owner = null,
    agent = null, metadata = x''
where name = :name and deleted_at is null and changed = :changed
returning number

-- name: erase_name
-- `seal_thread` comes next.
update thread
set name = :grave, kind = 'erased', forked_thread = null, forked_checkpoint = null
where number = :number and changed = :changed and deleted_at is not null
returning number

-- name: delete_thread_entries
delete from journal where thread = :number

-- name: delete_thread_moves
delete from move where thread = :number

-- name: rewrite_move
update move
set kind = :kind,
    checksum = row_checksum(seq, thread, :kind, source, target, moved_at)
where seq = :seq

-- name: threads_of
select distinct thread from checkpoint
where seq in (select value from json_each(:doomed))

-- name: forget_tombstones
delete from thread
where deleted_at < :before and kind <> 'erased'
    and number < (select max(number) from thread)
    and not exists (select 1 from checkpoint
        where checkpoint.family = thread.family and checkpoint.thread = thread.number)
returning changed

-- name: forget_moves
delete from move
where thread not in (select number from thread) and seq < (select max(seq) from move)

-- name: rescue_checkpoints
-- The limit keeps it from touching the page of the next row, which may be bad.
select null, p.id, {c.checkpoint}
from checkpoint c left join checkpoint p on p.seq = c.parent
where c.seq between :first and :last
order by c.seq
limit :last - :first + 1

-- name: rescue_threads
select {thread} from thread
where number between :first and :last
order by number
limit :last - :first + 1

-- name: rescue_entries
select {entry} from journal
where seq between :first and :last
order by seq
limit :last - :first + 1

-- name: rescue_moves
select m.seq, o.name, m.kind, s.id, t.id, m.moved_at
from move m
join thread o on o.number = m.thread and o.deleted_at is null
left join checkpoint s on s.seq = m.source
left join checkpoint t on t.seq = m.target
where m.seq between :first and :last
order by m.seq
limit :last - :first + 1

-- name: head_ids
select t.name, t.family, c.id
from thread t cross join checkpoint c on c.seq = t.head
where t.number between :first and :last and t.deleted_at is null
order by t.number

-- name: rescue_family_threads
select {thread} from thread
where family in (select value from json_each(:families))
order by number

-- name: rescue_family_checkpoints
select null, p.id, {c.checkpoint}
from checkpoint c left join checkpoint p on p.seq = c.parent
where c.family in (select value from json_each(:families))
order by c.seq

-- name: rescue_family_heads
select null, p.id, {c.checkpoint}
from thread t
cross join checkpoint c on c.seq = t.head
left join checkpoint p on p.seq = c.parent
where t.family in (select value from json_each(:families))
order by c.seq

-- name: rescue_family_entries
select {j.entry}
from thread t cross join journal j on j.thread = t.number
where t.family in (select value from json_each(:families))
order by j.seq

-- name: rescue_family_moves
select m.seq, o.name, m.kind, s.id, t.id, m.moved_at
from thread o
cross join move m on m.thread = o.number
left join checkpoint s on s.seq = m.source
left join checkpoint t on t.seq = m.target
where o.family in (select value from json_each(:families)) and o.deleted_at is null
order by m.seq

-- name: keys_in_thread
-- Of the index alone, whose pages have checksums.
select family, thread, seq from checkpoint
where family = :family and thread = :thread and seq > :after
order by seq
limit :limit

-- name: keys_behind_thread
select family, thread, seq from checkpoint
where (family, thread) > (:family, :thread)
order by family, thread, seq
limit :limit

-- name: checkpoints_by_seq
select null, p.id, {c.checkpoint}
from json_each(:keys) k
join checkpoint c on c.seq = k.value
left join checkpoint p on p.seq = c.parent
order by k.key

-- name: count_segments
select (
    select coalesce(sum(count), 0) from segment
    where key between f.value << 32 and f.value << 32 | 4294967295)
from json_each(:families) f
order by f.key

-- name: count_strays
-- From family to family by the key: it reads one segment of each.
with recursive stored (family) as (
    select min(key) >> 32 from segment
    union all
    select (
        select min(key) >> 32 from segment
        where key > stored.family << 32 | 4294967295)
    from stored where stored.family is not null
)
select coalesce(sum((
    select coalesce(sum(count), 0) from segment
    where key between stored.family << 32 and stored.family << 32 | 4294967295)), 0)
from stored
where stored.family is not null
    and not exists (select 1 from checkpoint where family = stored.family)

-- name: headed_by
select name from thread where head in (select value from json_each(:lost))

-- name: names_of
select number, name from thread where number in (select value from json_each(:numbers))

-- name: last_move
select max(seq) from move

-- name: next_move
select min(seq) from move where seq > :after

-- name: drop_family_entries
delete from journal where thread in (select number from thread where family = :family)

-- name: drop_family_moves
delete from move where thread in (select number from thread where family = :family)

-- name: drop_family_threads
delete from thread where family = :family

-- name: adopt_thread
insert or ignore into thread ({thread}) values ({:thread})

-- name: adopt_checkpoint
insert or ignore into checkpoint ({checkpoint}) values ({:checkpoint})

-- name: adopt_segment
insert or ignore into segment (key, packing, data, checksum, count)
select ?1, ?2, ?3, ?4, ?5
where coalesce((
    select key + count from segment where key < ?1 order by key desc limit 1), 0) <= ?1

-- name: adopt_move
insert or ignore into move (seq, thread, kind, source, target, moved_at, checksum)
values (:seq, :thread, :kind, :source, :target, :at,
    row_checksum(:seq, :thread, :kind, :source, :target, :at))

-- name: insert_setting
insert into setting (name, value, checksum)
values (:name, :value, row_checksum(:name, :value))
on conflict (name) do nothing

-- name: replace_setting
insert into setting (name, value, checksum)
values (:name, :value, row_checksum(:name, :value))
on conflict (name) do update set value = excluded.value, checksum = excluded.checksum

-- name: wrong_rows
-- The rows that are not as they were written; those without a checksum are told apart.
select 'thread', number, checksum is null from thread
where checksum is not {=thread_checksum} or guard is not {=thread_guard}
union all
select 'move', seq, checksum is null from move
where checksum is not row_checksum(seq, thread, kind, source, target, moved_at)
union all
select 'setting', name, checksum is null from setting
where checksum is not row_checksum(name, value)

-- name: orphans
-- Rows whose thread or parent is not there.
select 'checkpoint', id from checkpoint c
where thread not in (select number from thread)
    or (parent is not null
        and not exists (select 1 from checkpoint p where p.seq = c.parent))
union all
select 'journal entry', key from journal
where thread not in (select number from thread)

-- name: weigh_threads
-- Reads every page of the table.
select sum(length(metadata)) from thread

-- name: rescue_segments
select key, packing, data, checksum, count from segment
where key between
        coalesce((select max(key) from segment where key <= :first), :first) and :last
    and key + count > :first
order by key
limit :last - :first + 1

-- name: last_checkpoint
select max(seq) from checkpoint

-- name: next_checkpoint
select min(seq) from checkpoint where seq > :after

-- name: last_thread
select max(number) from thread

-- name: next_thread
select min(number) from thread where number > :after

-- name: last_used_thread
select max(thread) from checkpoint

-- name: last_entry
select max(seq) from journal

-- name: next_entry
select min(seq) from journal where seq > :after

-- name: weights
with record (family, checkpoints, logical, bytes) as (
    select family, count(*), sum(size),
        sum(length(manifest) + length(runs) + length(metadata))
    from checkpoint
    group by family
),
piece (family, segments, bytes) as (
    select key >> 32, sum(count), sum(length(data)) from segment group by key >> 32
)
select r.family, r.checkpoints, r.logical, coalesce(p.segments, 0),
    r.bytes + coalesce(p.bytes, 0) as stored
from record r left join piece p on p.family = r.family
order by stored desc, r.family
limit :limit

-- name: segment_sizes
select key >> 32, key & 0xffffffff, count, packing, length(data) from segment
where key > :after
order by key
limit :limit

-- name: drop_dictionary
-- A dictionary that no segment needs any more still has text of what was removed.
delete from setting
where name = 'zstd dictionary 2'
    and not exists (select 1 from segment where packing = 2)

-- name: pack_manifests
update checkpoint set manifest = pack_manifest(manifest, runs, size)
where manifest between x'7b' and x'7c'

-- name: totals
select coalesce(sum(found), 0), json_group_array(name) filter (where found is null)
from (
    select t.name, json_extract(cast(case when c.manifest < x'80' then c.manifest
            else unpack_manifest(c.manifest, c.runs, c.size) end as text),
        :path) as found
    from thread t join checkpoint c on c.seq = t.head
    where t.kind = :kind
)

-- name: facts
-- One pass over each table. Small values stand in the manifests.
select t.threads, c.checkpoints, s.segments, j.entries, c.logical,
    c.records + s.stored,
    (select page_count * page_size from pragma_page_count(), pragma_page_size())
from (select count(*) as threads from thread
        where deleted_at is null and head is not null) t,
    (select count(*) as checkpoints, coalesce(sum(size), 0) as logical,
            coalesce(sum(length(manifest) + length(runs) + length(metadata)), 0) as records
        from checkpoint) c,
    (select coalesce(sum(count), 0) as segments,
            coalesce(sum(length(data)), 0) as stored
        from segment) s,
    (select count(*) as entries from journal) j
