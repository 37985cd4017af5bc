-- The views and functions of a store. Every migration makes all of them again, after the
-- numbered files have changed the tables: so each is here once, as it is now. A view
-- shows the rows that the caller may see in its tables, not those that its owner may.

-- A thread with its head, tombstones included.
create view hf.thread_full with (security_invoker = true) as
select t.name, t.kind as thread_kind, t.owner, t.agent, t.metadata as thread_metadata,
    t.family as thread_family, t.forked_thread, t.forked_checkpoint, t.created_at,
    t.updated_at, t.deleted_at, t.changed, t.number, t.head,
    c.seq, c.id, c.thread_name, c.parent, c.parent_id, c.step, c.saved_at, c.kind,
    c.label, c.tags, c.size, c.digest, c.family, c.runs, c.manifest, c.metadata, c.link,
    c.checksum, c.thread
from hf.thread t
left join hf.checkpoint c on c.family = t.family and c.seq = t.head;

-- A checkpoint, with its columns in the same order.
create view hf.checkpoint_full with (security_invoker = true) as
select seq, id, thread_name, parent, parent_id, step, saved_at, kind, label, tags, size,
    digest, family, runs, manifest, metadata, link, checksum, thread
from hf.checkpoint;

-- A row of `state`. A view, because a type cannot repeat the columns of another.
create view hf.thread_state with (security_invoker = true) as
select t.*, null::bigint[] as numbers, null::smallint[] as packings,
    null::bytea[] as pieces, null::bigint[] as checksums, null::int[] as counts
from hf.thread_full t;

-- Begins a transaction that takes sequence numbers; returns the first one.
--
-- Before the transaction takes a number it locks, until it ends, the lowest number that
-- it could get. A reader of the feed learns from these locks below which number no more
-- rows can appear. The lock is shared and never waits. One lock is enough for all numbers
-- of a transaction, and the server has room for few: a setting that ends with the
-- transaction tells that it has one.
--
-- `how` is the format that the caller knows, times four, and how durable the transaction
-- is: 0 not at once, 1 at once, 2 as the caller's own transaction is. A program of
-- another format is refused here, before it changes anything: it would lose data that it
-- does not know. Versions before format 7 passed a boolean or null here; no function
-- takes one any more.
--
-- Durability is set for this transaction only, since the session may be shared. A durable
-- transaction changes `synchronous_commit` only if it is off, and keeps any other
-- setting.
--
-- The server commits notifying transactions one after another, so only one of ours at a
-- time notifies; a listener reads again as long as other transactions are running.
--
-- The function uses expressions only: reading the last number by a statement of its own
-- made a save slower by a fifteenth. A sequence that was never used has no last number.
create function hf.enter(how bigint) returns bigint
language plpgsql as $$
declare
    done boolean;
begin
    if how >> 2 is distinct from /*format*/0 then
        raise exception 'the store has format %', /*format*/0 using errcode = 'HF001';
    end if;
    if current_setting('holdfast.entered', true) = 'hf.seq' then
        return nextval('hf.seq');
    end if;
    done := set_config('holdfast.entered', 'hf.seq', true) is null;
    done := pg_advisory_xact_lock_shared(
        hf.lock_key(coalesce(pg_sequence_last_value('hf.seq'), 0) + 1)) is null;
    if how & 3 = 0 then
        done := set_config('synchronous_commit', 'off', true) is null;
    elsif how & 3 = 1 and current_setting('synchronous_commit') = 'off' then
        done := set_config('synchronous_commit', 'on', true) is null;
    end if;
    if how & 3 = 2 or pg_try_advisory_xact_lock(hf.lock_key(-1)) then
        done := pg_notify('hf.changes', '') is null;
    end if;
    return nextval('hf.seq');
end $$;

-- The number of a lock: 15 bits that tell this schema from others, 48 of a sequence
-- number.
create function hf.lock_key(low bigint) returns bigint
language sql immutable as $$
    select (hashtext('hf.seq') & 32767)::bigint << 48 | (low & 281474976710655)
$$;

-- The last settled sequence number, up to which no row can still appear, and the lowest
-- number that a running transaction may have. The last number is read first, then the
-- locks, and the caller reads the rows by a later statement: any other order could miss a
-- row.
create function hf.horizon() returns bigint[]
language plpgsql as $$
declare
    last bigint;
    lowest bigint;
begin
    select case when s.is_called then s.last_value else s.last_value - 1 end into last
    from hf.seq s;
    select min((l.classid::bigint << 32 | l.objid::bigint) & 281474976710655) into lowest
    from pg_locks l
    where l.locktype = 'advisory' and l.objsubid = 1
        and l.database = (select oid from pg_database where datname = current_database())
        and (l.classid::bigint << 32 | l.objid::bigint) >> 48 = hf.lock_key(0) >> 48
        and (l.classid::bigint << 32 | l.objid::bigint) <> hf.lock_key(-1);
    return array[least(last, lowest - 1), lowest];
end $$;

-- Locks the threads of a transaction of several changes until it ends, all at once and
-- always in one order: by family and number. Two transactions that lock them one by one,
-- in the order of their changes, can deadlock. `names` are the threads that are changed;
-- of the families in `whole` every thread is held, so that none of their checkpoints is
-- removed; from those in `thinned` the transaction removes checkpoints or threads.
create function hf.hold(names text[], whole bigint[], thinned bigint[]) returns void
language plpgsql as $$
declare
    place record;
begin
    for place in
        select f.family, array_agg(f.number) as numbers
        from (
            select d.family, d.number from hf.directory d
            where d.name = any(names) and d.deleted_at is null
            union all select w.family, null from unnest(whole || thinned) w (family)
        ) f
        group by f.family order by f.family
    loop
        if place.family = any(thinned) then
            perform from hf.thread t where t.family = place.family
            order by t.number for update;
        else
            perform from hf.thread t where t.family = place.family
                and (place.family = any(whole) or t.number = any(place.numbers))
            order by t.number for no key update;
        end if;
    end loop;
end $$;

-- The primary key refuses two forks that insert the same segment number, but it does not
-- see the numbers inside of a block: this function does. It is volatile, so that it sees
-- a block that was made after the statement around it began to wait for the thread.
create function hf.is_in_block(of_family bigint, of_number bigint) returns boolean
language plpgsql as $$
begin
    return coalesce((
        select s.number + s.count > of_number from hf.segment s
        where s.family = of_family and s.number < of_number
        order by s.number desc
        limit 1), false);
end $$;

-- The error that the key would give.
create function hf.refuse_number() returns bigint
language plpgsql as $$
begin
    raise exception 'the segment is in a block'
        using errcode = 'unique_violation', table = 'segment';
end $$;

-- The hot path: a save on the head that is expected, in one call. Without a family it is
-- the first of its thread, which is made if need be: `begin_` says how. Gives the
-- sequence number and the thread's family and number, nothing if the head is another. Of
-- numbers that follow one another only the first is looked for in blocks: the key tells
-- of a block that begins among them. Few segments are inserted one by one, which is
-- faster; where the tables are distributed, each of many would be a request to another
-- server.
create function hf.save(
    how bigint, of_family bigint, of_thread text, expected bigint,
    expected_id text, at bigint, new_id text, new_step bigint, new_saved_at bigint,
    new_kind text, new_label text, new_tags text, new_metadata bytea, new_runs text,
    new_manifest bytea, new_size bigint, new_digest bytea, new_checksum bigint,
    numbers bigint[], packings smallint[], pieces bytea[], checksums bigint[],
    begin_kind text, begin_owner text, begin_agent text, begin_metadata bytea,
    begin_anew boolean
) returns bigint[]
language plpgsql as $$
declare
    taken bigint := hf.enter(how);
    of_number bigint;
    begun bigint[];
begin
    if of_family is not null then
        update hf.thread t set head = taken, changed = taken, updated_at = at
        where t.family = of_family and t.name = of_thread and t.deleted_at is null
            and t.head = expected
        returning t.number into of_number;
        if not found then
            return null;
        end if;
    else
        begun := hf.first_save(of_thread, begin_kind, begin_owner, begin_agent,
            begin_metadata, taken, at, begin_anew);
        if begun is null then
            return null;
        end if;
        of_family := begun[1];
        of_number := begun[2];
    end if;
    insert into hf.checkpoint (family, seq, id, thread, thread_name, parent, parent_id,
        step, saved_at, kind, label, tags, metadata, runs, manifest, size, digest,
        checksum)
    values (of_family, taken, new_id, of_number, of_thread, expected, expected_id,
        new_step, new_saved_at, new_kind, new_label, new_tags, new_metadata, new_runs,
        new_manifest, new_size, new_digest, new_checksum);
    for i in 1 .. cardinality(numbers) loop
        if begun is null and numbers[i - 1] is distinct from numbers[i] - 1
            and hf.is_in_block(of_family, numbers[i])
        then
            perform hf.refuse_number();
        end if;
    end loop;
    if cardinality(numbers) > 8 then
        insert into hf.segment (family, number, packing, data, checksum)
        select of_family, s.number, s.packing, s.data, s.checksum
        from unnest(numbers, packings, pieces, checksums)
            s (number, packing, data, checksum);
    else
        for i in 1 .. cardinality(numbers) loop
            insert into hf.segment (family, number, packing, data, checksum)
            values (of_family, numbers[i], packings[i], pieces[i], checksums[i]);
        end loop;
    end if;
    return array[taken, of_family, of_number];
end $$;

-- The plainest and most frequent save: one new segment on the expected head, no marks. It
-- does the work of `save` without arrays and without the values of a first save: these
-- took a sixth of the time in the server, and more in the client.
create function hf.append(
    how bigint, of_family bigint, of_thread text, expected bigint,
    expected_id text, at bigint, new_id text, new_step bigint, new_saved_at bigint,
    new_kind text, new_metadata bytea, new_runs text, new_manifest bytea,
    new_size bigint, new_digest bytea, new_checksum bigint, segment_number bigint,
    segment_packing bigint, segment_data bytea, segment_checksum bigint
) returns bigint[]
language plpgsql as $$
declare
    taken bigint := hf.enter(how);
    of_number bigint;
    blocks_end bigint;
begin
    update hf.thread t set head = taken, changed = taken, updated_at = at
    where t.family = of_family and t.name = of_thread and t.deleted_at is null
        and t.head = expected
    returning t.number, t.packed_to into of_number, blocks_end;
    if not found then
        return null;
    end if;
    if segment_number <= blocks_end then
        if hf.is_in_block(of_family, segment_number) then
            perform hf.refuse_number();
        end if;
    end if;
    insert into hf.checkpoint (family, seq, id, thread, thread_name, parent, parent_id,
        step, saved_at, kind, metadata, runs, manifest, size, digest, checksum)
    values (of_family, taken, new_id, of_number, of_thread, expected, expected_id,
        new_step, new_saved_at, new_kind, new_metadata, new_runs, new_manifest,
        new_size, new_digest, new_checksum);
    insert into hf.segment (family, number, packing, data, checksum)
    values (of_family, segment_number, segment_packing, segment_data, segment_checksum);
    return array[taken, of_family, of_number];
end $$;

-- A thread for its first save: one that has only a journal so far, or a new one. Gives
-- family and number, nothing if there is one with a head.
create function hf.first_save(
    of_name text, new_kind text, new_owner text, new_agent text, new_metadata bytea,
    new_head bigint, at bigint, anew boolean
) returns bigint[]
language plpgsql as $$
declare
    place hf.directory;
begin
    select d.* into place from hf.directory d
    where d.name = of_name and d.deleted_at is null;
    if not found then
        return hf.begin_thread(of_name, null, new_kind, new_owner, new_agent, new_metadata,
            new_head, new_head, at, null, null, anew);
    end if;
    update hf.thread t set head = new_head, changed = new_head, updated_at = at
    where t.family = place.family and t.number = place.number and t.deleted_at is null
        and t.head is null;
    if not found then
        return null;
    end if;
    return array[place.family, place.number];
end $$;

-- The name that replaces that of an erased thread, null if the store never erased any.
create function hf.grave_of(of_name text) returns text
language plpgsql stable as $$
declare
    salt bytea;
begin
    select s.value into salt from hf.setting s where s.name = 'graves';
    -- It stays in the scope of the name, which ends with the last U+001F.
    return left(of_name, 1 - strpos(reverse(E'\x1f' || of_name), E'\x1f'))
        || 'erased:' || left(encode(sha256(salt || convert_to(of_name, 'UTF8')), 'hex'), 32);
end $$;

-- A new thread, of a family of its own if none is given. Gives family and number, nothing
-- if there is a thread of that name, or a deleted one unless `anew` is true. A fork locks
-- the threads of the family, so that no other transaction packs it meanwhile.
create function hf.begin_thread(
    of_name text, of_family bigint, new_kind text, new_owner text, new_agent text,
    new_metadata bytea, new_head bigint, new_changed bigint, at bigint,
    from_thread text, from_checkpoint text, anew boolean
) returns bigint[]
language plpgsql as $$
declare
    of_number bigint;
    blocks_end bigint := -1;
    grave text;
begin
    if not anew then
        perform 1 from hf.directory d
        where d.name = of_name and d.deleted_at is not null;
        if found then
            return null;
        end if;
        grave := hf.grave_of(of_name);
        perform 1 from hf.directory d where d.name = grave;
        if found then
            return null;
        end if;
    end if;
    if of_family is not null then
        select max(t.packed_to) into blocks_end from hf.thread t
        where t.family = of_family;
    end if;
    of_number := nextval('hf.number');
    of_family := coalesce(of_family, of_number);
    insert into hf.directory (name, number, family)
    values (of_name, of_number, of_family)
    on conflict (name) where deleted_at is null do nothing;
    if not found then
        return null;
    end if;
    insert into hf.thread (family, number, name, kind, owner, agent, metadata, head,
        changed, created_at, updated_at, forked_thread, forked_checkpoint, packed_to)
    values (of_family, of_number, of_name, new_kind, new_owner, new_agent, new_metadata,
        new_head, new_changed, at, at, from_thread, from_checkpoint, blocks_end);
    return array[of_family, of_number];
end $$;

-- Journal entries of a thread, in one call. Gives its family and number and, for each
-- entry, its sequence number, or null if there was one under its key and it is not
-- replaced; nothing if there is no such thread, or if its head is not the expected one.
-- If `family_wide`, an entry in any living thread of the family counts, and transactions
-- that ask the same wait until this one ends. The `forgotten` entries are removed last;
-- with `logs` a move is logged for it. An entry is copied out of the arrays first: Citus
-- copies every value that a statement refers to.
create function hf.record(
    how bigint, of_name text, at bigint, expects boolean, expected bigint,
    family_wide boolean, replaces boolean, checkpoints text[], keys text[],
    contents bytea[], times bigint[], checksums bigint[], forgotten text[],
    logs boolean
) returns bigint[]
language plpgsql as $$
declare
    place hf.directory;
    taken bigint[];
    used int := cardinality(keys) + logs::int;
    new_checkpoint text;
    new_key text;
    new_seq bigint;
    new_value bytea;
    new_time bigint;
    new_checksum bigint;
    recorded bigint;
    result bigint[];
begin
    select d.* into place from hf.directory d
    where d.name = of_name and d.deleted_at is null;
    if not found then
        return null;
    end if;
    taken := array[hf.enter(how)];
    for i in 2 .. used loop
        taken := taken || nextval('hf.seq');
    end loop;
    if family_wide then
        perform from hf.thread t where t.family = place.family
        order by t.number for no key update;
    end if;
    update hf.thread t
    set changed = greatest(t.changed, taken[used]), updated_at = at
    where t.family = place.family and t.number = place.number and t.deleted_at is null
        and (not expects or t.head is not distinct from expected);
    if not found then
        return null;
    end if;
    result := array[place.family, place.number];
    for i in 1 .. cardinality(keys) loop
        new_checkpoint := checkpoints[i];
        new_key := keys[i];
        new_seq := taken[i];
        new_value := contents[i];
        new_time := times[i];
        new_checksum := checksums[i];
        if family_wide then
            perform 1 from hf.thread t
            join hf.journal j on j.family = t.family and j.thread = t.number
            where t.family = place.family and t.deleted_at is null
                and j.checkpoint = new_checkpoint and j.key = new_key;
            if found then
                result := result || null::bigint;
                continue;
            end if;
        end if;
        insert into hf.journal (family, thread, checkpoint, key, seq, value,
            recorded_at, checksum)
        values (place.family, place.number, new_checkpoint, new_key, new_seq, new_value,
            new_time, new_checksum)
        on conflict (family, thread, checkpoint, key) do update
        set seq = excluded.seq, value = excluded.value,
            recorded_at = excluded.recorded_at, checksum = excluded.checksum
        where replaces
        returning seq into recorded;
        result := result || recorded;
    end loop;
    if cardinality(forgotten) > 0 then
        delete from hf.journal j
        where j.family = place.family and j.thread = place.number
            and j.checkpoint = '' and j.key = any(forgotten);
    end if;
    if logs then
        insert into hf.move (family, seq, thread, kind, source, moved_at)
        values (place.family, taken[used], place.number, 'forget', expected, at);
    end if;
    return result;
end $$;

-- Changes nothing, but its commit waits until all commits before it are durable. `enter`
-- is called by itself: a function that changes something may not decide which rows of a
-- distributed table are updated.
create function hf.settle(of_family bigint, how bigint) returns void
language plpgsql as $$
begin
    perform hf.enter(how);
    update hf.thread t set updated_at = t.updated_at
    where t.family = of_family
        and t.number = (select min(o.number) from hf.thread o where o.family = of_family);
end $$;

-- Removes the rows of threads that were deleted before a time. All families are asked for
-- such rows; each row is then locked and removed by its family, because one statement
-- cannot lock rows of several shards. Rows that another transaction has locked are left
-- to a later prune: waiting for that transaction could deadlock. Gives the number of the
-- last deletion.
create function hf.forget_tombstones(before bigint) returns bigint
language plpgsql as $$
declare
    old record;
    last_change bigint;
begin
    for old in
        select t.family, t.number, t.name, t.changed from hf.thread t
        where t.deleted_at < before and t.kind <> 'erased' and not exists (
            select 1 from hf.checkpoint c
            where c.family = t.family and c.thread = t.number)
    loop
        perform 1 from hf.thread t where t.family = old.family and t.number = old.number
        for update skip locked;
        if found then
            delete from hf.thread t
            where t.family = old.family and t.number = old.number;
            delete from hf.directory d
            where d.name = old.name and d.number = old.number;
            last_change := greatest(last_change, old.changed);
        end if;
    end loop;
    return last_change;
end $$;

-- Removes the moves of threads whose rows are gone, in the same way.
create function hf.forget_moves() returns void
language plpgsql as $$
declare
    old record;
begin
    for old in
        select m.family, m.seq from hf.move m
        where not exists (
            select 1 from hf.thread t where t.family = m.family and t.number = m.thread)
    loop
        perform 1 from hf.move m where m.family = old.family and m.seq = old.seq
        for update skip locked;
        if found then
            delete from hf.move m where m.family = old.family and m.seq = old.seq;
        end if;
    end loop;
end $$;

-- The reads that begin with a name. Each asks the directory which family the name leads
-- to, and then reads the other tables with this family. On one server a join with the
-- directory would do the same. Citus refuses it or asks every shard: it joins tables on
-- one shard only if they are distributed by the same column, and chooses the shard by a
-- family that is known when the statement is planned. In a function, both statements are
-- one round trip. All functions are stable, so their statements see the same moment. On
-- distributed tables they do not, so records that belong together are read by one
-- statement.

-- The living thread of a name, or the newest deleted one, or the tombstone of an erased
-- one.
create function hf.thread_by_name(of_name text) returns setof hf.thread_full
language plpgsql stable rows 1 as $$
declare
    of_family bigint;
    of_number bigint;
    grave text;
begin
    select d.family, d.number into of_family, of_number from hf.directory d
    where d.name = of_name
    order by d.deleted_at is not null, d.number desc
    limit 1;
    if not found then
        grave := hf.grave_of(of_name);
        select d.family, d.number into of_family, of_number from hf.directory d
        where d.name = grave
        order by d.number desc
        limit 1;
    end if;
    if of_family is null then
        return;
    end if;
    return query select t.* from hf.thread_full t
    where t.thread_family = of_family and t.number = of_number;
end $$;

-- Whether a family has a checkpoint with an id.
create function hf.has_checkpoint(of_family bigint, of_id text) returns boolean
language plpgsql stable as $$
begin
    perform 1 from hf.checkpoint c where c.family = of_family and c.id = of_id;
    return found;
end $$;

-- A living thread with its head, and what holds the segments of the head unless it is
-- known: run by run, in no order, which costs half of what sorting them in each array
-- does. The limits are above any real number of rows. They keep the planner from reading
-- the whole family, and from a cost estimate so high that it plans again for each family.
-- One row and not a set: the rows of a set are stored once more, in a file if the state
-- is large.
create function hf.state(of_name text, known bigint) returns hf.thread_state
language plpgsql stable as $$
declare
    of_family bigint;
    of_number bigint;
    result hf.thread_state;
begin
    select d.family, d.number into of_family, of_number from hf.directory d
    where d.name = of_name and d.deleted_at is null;
    if not found then
        return null;
    end if;
    select t.*, s.numbers, s.packings, s.pieces, s.checksums, s.counts into result
    from hf.thread_full t
    left join lateral (
        select array_agg(s.number) as numbers, array_agg(s.packing) as packings,
            array_agg(s.data) as pieces, array_agg(s.checksum) as checksums,
            array_agg(s.count) as counts
        from (
            -- Without the files, which follow the empty run.
            select case when position('[1,0]' in t.runs) = 0 then t.runs
                else rtrim(split_part(t.runs, '[1,0]', 1), ',') || ']'
            end::json as of_state
        ) runs
        cross join lateral (
            select (found.run ->> 0)::bigint as first, (found.run ->> 1)::bigint as last
            from (
                select json_array_elements(runs.of_state) as run
                limit json_array_length(runs.of_state)
            ) found
        ) r
        cross join lateral (
            select s.number, s.packing, s.data, s.checksum, s.count
            from hf.segment s
            where s.family = of_family and s.number <= r.last
                and s.number >= coalesce((
                    select b.number from hf.segment b
                    where b.family = of_family and b.number <= r.first
                    order by b.number desc
                    limit 1), r.first)
                and s.number + s.count > r.first
            order by s.number
            limit greatest(0, 1 + r.last - r.first)
        ) s
    ) s on t.head is distinct from known
    where t.thread_family = of_family and t.number = of_number and t.head is not null;
    return result;
end $$;

-- The line of a checkpoint, or of the head of a thread, from the newest. The family
-- is a condition of every step, because a recursion may not leave its shard, and a value
-- from the step before is no constant. `offset 0` makes every step a look-up by key:
-- without it, a planner that takes families for small reads the whole family each time.
create function hf.ancestors(
    of_family bigint, of_seq bigint, of_name text, deepest bigint, skipped bigint,
    down_to_step bigint, from_step bigint
) returns setof hf.checkpoint_full
language plpgsql stable as $$
declare
    of_number bigint;
begin
    if of_name is not null then
        select d.family, d.number into of_family, of_number from hf.directory d
        where d.name = of_name and d.deleted_at is null;
        if not found then
            return;
        end if;
    end if;
    return query
    with recursive line (seq, depth) as (
        select coalesce(of_seq, (
            select t.head from hf.thread t
            where t.family = of_family and t.number = of_number)), 0
        union all
        select c.parent, line.depth + 1
        from line cross join lateral (
            select c.parent, c.step from hf.checkpoint c
            where c.family = of_family and c.seq = line.seq
            offset 0
        ) c
        where c.parent is not null and line.depth + 1 < deepest and c.step > down_to_step
    )
    select f.*
    from line cross join lateral (
        select c.* from hf.checkpoint_full c
        where c.family = of_family and c.seq = line.seq
        offset 0
    ) f
    where line.depth >= skipped and f.step <= from_step
    order by line.depth;
end $$;

-- How many checkpoints the line of a thread's head has.
create function hf.line_length(of_name text) returns bigint
language plpgsql stable as $$
declare
    of_family bigint;
    of_number bigint;
    result bigint;
begin
    select d.family, d.number into of_family, of_number from hf.directory d
    where d.name = of_name and d.deleted_at is null;
    if not found then
        return 0;
    end if;
    with recursive line (seq) as (
        select t.head from hf.thread t
        where t.family = of_family and t.number = of_number and t.head is not null
        union all
        select c.parent
        from line cross join lateral (
            select c.parent from hf.checkpoint c
            where c.family = of_family and c.seq = line.seq
            offset 0
        ) c
        where c.parent is not null
    )
    select count(*) into result from line;
    return result;
end $$;

-- The log of a thread. It takes the newest rows of both kinds, so that neither is read
-- further than the page goes.
create function hf.moves(of_name text, before bigint, most bigint)
returns table (seq bigint, kind text, source text, target text, moved_at bigint)
language plpgsql stable as $$
declare
    of_family bigint;
    of_number bigint;
begin
    select d.family, d.number into of_family, of_number from hf.directory d
    where d.name = of_name and d.deleted_at is null;
    if not found then
        return;
    end if;
    return query
    (select c.seq, 'save', c.parent_id, c.id, c.saved_at
    from hf.checkpoint c
    where c.family = of_family and c.thread = of_number and c.seq < before
    order by c.seq desc
    limit most)
    union all
    (select m.seq, m.kind, s.id, t.id, m.moved_at
    from hf.move m
    left join hf.checkpoint s on s.family = m.family and s.seq = m.source
    left join hf.checkpoint t on t.family = m.family and t.seq = m.target
    where m.family = of_family and m.thread = of_number and m.seq < before
    order by m.seq desc
    limit most)
    order by 1 desc
    limit most;
end $$;

-- The journal of a thread: all entries, those on a checkpoint, and of these the ones with
-- a key or with keys in a range. Each has a statement of its own: one plan for all would
-- read the whole journal.
create function hf.entries(
    of_name text, of_checkpoint text, of_key text, from_key text, to_key text
) returns setof hf.journal
language plpgsql stable as $$
declare
    of_family bigint;
    of_number bigint;
begin
    select d.family, d.number into of_family, of_number from hf.directory d
    where d.name = of_name and d.deleted_at is null;
    if not found then
        return;
    end if;
    if of_checkpoint is null then
        return query select j.* from hf.journal j
        where j.family = of_family and j.thread = of_number
        order by j.seq;
    elsif of_key is not null then
        return query select j.* from hf.journal j
        where j.family = of_family and j.thread = of_number
            and j.checkpoint = of_checkpoint and j.key = of_key;
    elsif from_key is not null then
        return query select j.* from hf.journal j
        where j.family = of_family and j.thread = of_number
            and j.checkpoint = of_checkpoint and j.key >= from_key and j.key < to_key
        order by j.seq;
    else
        return query select j.* from hf.journal j
        where j.family = of_family and j.thread = of_number
            and j.checkpoint = of_checkpoint
        order by j.seq;
    end if;
end $$;

-- Segments of several families, each run by itself: Citus joins no list of runs with the
-- segments in them and before them.
create function hf.pieces(
    places bigint[], families bigint[], firsts bigint[], lasts bigint[]
) returns table (
    place bigint, number bigint, packing smallint, data bytea, checksum bigint, count int
)
language plpgsql stable as $$
declare
    of_family bigint;
begin
    for i in 1 .. cardinality(families) loop
        of_family := families[i];
        return query
        select places[i], s.number, s.packing, s.data, s.checksum, s.count
        from hf.segment s
        where s.family = of_family and s.number <= lasts[i]
            and s.number >= coalesce((
                select b.number from hf.segment b
                where b.family = of_family and b.number <= firsts[i]
                order by b.number desc
                limit 1), firsts[i])
            and s.number + s.count > firsts[i]
        order by s.number;
    end loop;
end $$;

-- How many bytes the tables take with their indexes, on all servers.
create function hf.file_bytes() returns bigint
language plpgsql stable as $$
declare
    distributed oid[] := '{}';
    result bigint;
begin
    if to_regclass('pg_dist_partition') is not null then
        select array_agg(p.logicalrelid::oid), sum(citus_total_relation_size(p.logicalrelid))
        into distributed, result
        from pg_dist_partition p join pg_class c on c.oid = p.logicalrelid
        where c.relnamespace = 'hf'::regnamespace;
    end if;
    select coalesce(result, 0) + coalesce(sum(pg_total_relation_size(c.oid)), 0)
    into result
    from pg_class c
    where c.relnamespace = 'hf'::regnamespace and c.relkind = 'r'
        and c.oid <> all(coalesce(distributed, '{}'));
    return result;
end $$;

-- Distributes the tables over the servers of Citus: the tables of families by family, the
-- directory by name; every server gets a copy of the small tables. The store must have no
-- partitions and must not be in use meanwhile.
create function hf.distribute() returns void
language plpgsql as $$
begin
    perform set_config('citus.multi_shard_modify_mode', 'sequential', true);
    perform create_distributed_table('hf.thread', 'family', colocate_with => 'none');
    perform hf.distribute_with_threads(
        array['hf.checkpoint', 'hf.segment', 'hf.journal', 'hf.move']);
    perform create_distributed_table('hf.directory', 'name', colocate_with => 'none');
    perform create_reference_table('hf.setting');
    perform create_reference_table('hf.migration');
    if to_regclass('hf.search_stretch') is not null then
        perform hf.distribute_search();
    end if;
end $$;

create function hf.distribute_with_threads(tables regclass[]) returns void
language plpgsql as $$
declare
    of_table regclass;
begin
    foreach of_table in array tables loop
        perform create_distributed_table(
            of_table, 'family', colocate_with => 'hf.thread');
    end loop;
end $$;

-- The tables for searching, which the first search makes, are distributed if the threads
-- are. The same transaction fills them, so one connection to each server has to do both.
create function hf.distribute_search() returns void
language plpgsql as $$
begin
    if to_regclass('pg_dist_partition') is null then
        return;
    end if;
    perform 1 from pg_dist_partition p where p.logicalrelid = 'hf.thread'::regclass;
    if found then
        perform set_config('citus.multi_shard_modify_mode', 'sequential', true);
        perform hf.distribute_with_threads(
            array['hf.search_thread', 'hf.search_stretch']);
        perform create_reference_table('hf.search_state');
    end if;
end $$;

-- Removes checkpoints of a family, with what is recorded on them and with the segments in
-- the runs from `firsts` to `lasts`, in one call; a run is `whole` if other segments
-- replace those in it. Logs a move in every thread that loses checkpoints. Gives the
-- number of the last move, and the counts of checkpoints, segments and bytes; nothing if
-- a run has only a part of a block, or if a segment of a whole run is missing.
create function hf.thin(
    how bigint, of_family bigint, at bigint, ids text[], doomed bigint[],
    firsts bigint[], lasts bigint[], whole smallint[], numbers bigint[],
    packings smallint[], pieces bytea[], checksums bigint[], counts bigint[]
) returns bigint[]
language plpgsql as $$
declare
    place record;
    logged bigint;
    freed record;
    result bigint[];
begin
    delete from hf.journal j where j.family = of_family and j.checkpoint = any(ids);
    delete from hf.move m
    where m.family = of_family and (m.source = any(doomed) or m.target = any(doomed));
    for place in
        select distinct c.thread from hf.checkpoint c
        where c.family = of_family and c.seq = any(doomed)
    loop
        logged := hf.enter(how);
        insert into hf.move (family, seq, thread, kind, moved_at)
        values (of_family, logged, place.thread, 'prune', at);
    end loop;
    with gone as (
        delete from hf.checkpoint c where c.family = of_family and c.seq = any(doomed)
        returning length(c.manifest) + octet_length(c.runs) + length(c.metadata) as size
    )
    select count(*) as number, coalesce(sum(g.size), 0)::bigint as bytes into freed
    from gone g;
    result := array[logged, freed.number, 0, freed.bytes];
    for i in 1 .. cardinality(firsts) loop
        if hf.is_in_block(of_family, firsts[i])
            or hf.is_in_block(of_family, lasts[i] + 1)
        then
            return null;
        end if;
        with gone as (
            delete from hf.segment s
            where s.family = of_family and s.number between firsts[i] and lasts[i]
            returning s.count, length(s.data) as size
        )
        select coalesce(sum(g.count), 0)::bigint as number,
            coalesce(sum(g.size), 0)::bigint as bytes into freed
        from gone g;
        if whole[i] = 1 and freed.number <> lasts[i] - firsts[i] + 1 then
            return null;
        end if;
        result[3] := result[3] + freed.number;
        result[4] := result[4] + freed.bytes;
    end loop;
    insert into hf.segment (family, number, packing, data, checksum, count)
    select of_family, s.number, s.packing, s.data, s.checksum, s.count
    from unnest(numbers, packings, pieces, checksums, counts)
        s (number, packing, data, checksum, count);
    select coalesce(sum(s.count), 0)::bigint as number,
        coalesce(sum(length(s.data)), 0)::bigint as bytes into freed
    from unnest(counts, pieces) s (count, data);
    result[3] := result[3] - freed.number;
    result[4] := result[4] - freed.bytes;
    return result;
end $$;

-- Leaves a tombstone of a thread that has not changed, and removes its family with its
-- last one, in one call. Gives the number of the move that logs it, and the counts of
-- checkpoints, segments and bytes; nothing if the thread has changed.
create function hf.bury_thread(
    how bigint, of_family bigint, of_number bigint, of_name text, known bigint,
    at bigint
) returns bigint[]
language plpgsql as $$
declare
    logged bigint := hf.enter(how);
    freed bigint[];
begin
    update hf.thread t
    set deleted_at = at, changed = logged, updated_at = at, head = null, owner = null,
        agent = null, metadata = ''
    where t.family = of_family and t.number = of_number and t.deleted_at is null
        and t.changed = known;
    if not found then
        return null;
    end if;
    update hf.directory d set deleted_at = at
    where d.name = of_name and d.number = of_number;
    delete from hf.journal j where j.family = of_family and j.thread = of_number;
    delete from hf.move m where m.family = of_family and m.thread = of_number;
    insert into hf.move (family, seq, thread, kind, moved_at)
    values (of_family, logged, of_number, 'delete', at);
    perform from hf.thread t where t.family = of_family and t.deleted_at is null;
    if found then
        return array[logged, 0, 0, 0];
    end if;
    return logged || hf.drop_family(of_family);
end $$;

-- Replaces the name of a deleted thread by a digest; `known` is the number of its
-- deletion. Gives true if the row was found and changed.
create function hf.erase_name(
    of_family bigint, of_number bigint, of_name text, known bigint
) returns boolean
language plpgsql as $$
declare
    grave text := hf.grave_of(of_name);
    buried_at bigint;
begin
    update hf.thread t
    set name = grave, kind = 'erased', forked_thread = null, forked_checkpoint = null
    where t.family = of_family and t.number = of_number and t.changed = known
        and t.deleted_at is not null
    returning t.deleted_at into buried_at;
    if not found then
        return false;
    end if;
    delete from hf.directory d where d.name = of_name and d.number = of_number;
    insert into hf.directory (name, number, family, deleted_at)
    values (grave, of_number, of_family, buried_at);
    return true;
end $$;

-- Removes all checkpoints and segments of a family; gives how many and their bytes.
create function hf.drop_family(of_family bigint) returns bigint[]
language plpgsql as $$
declare
    saved record;
    pieces record;
begin
    with gone as (
        delete from hf.checkpoint c where c.family = of_family
        returning length(c.manifest) + octet_length(c.runs) + length(c.metadata) as size
    )
    select count(*) as number, coalesce(sum(g.size), 0)::bigint as bytes into saved
    from gone g;
    with gone as (
        delete from hf.segment s where s.family = of_family
        returning s.count, length(s.data) as size
    )
    select coalesce(sum(g.count), 0)::bigint as number,
        coalesce(sum(g.size), 0)::bigint as bytes into pieces
    from gone g;
    return array[saved.number, pieces.number, saved.bytes + pieces.bytes];
end $$;
