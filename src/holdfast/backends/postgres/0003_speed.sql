-- Format 3: saves that ask the server for less.

-- Up to which number the family of a thread may have blocks: only there a save has to look
-- whether one holds the numbers of its segments. New segments of a value that grows come
-- behind its blocks. Of threads that were there before, or came from another store, nobody
-- knows.
alter table hf.thread
add column packed_to bigint not null default 9223372036854775807;

-- What every transaction that takes sequence numbers begins with; gives the first. As
-- before, without a statement of its own for the last number: expressions alone cost a save
-- a fifteenth less. A sequence that was never used has no last number.
create or replace function hf.enter(durable boolean) returns bigint
language plpgsql as $$
declare
    done boolean;
begin
    if current_setting('holdfast.entered', true) = 'hf.seq' then
        return nextval('hf.seq');
    end if;
    done := set_config('holdfast.entered', 'hf.seq', true) is null;
    done := pg_advisory_xact_lock_shared(
        hf.lock_key(coalesce(pg_sequence_last_value('hf.seq'), 0) + 1)) is null;
    if not durable then
        done := set_config('synchronous_commit', 'off', true) is null;
    elsif durable and current_setting('synchronous_commit') = 'off' then
        done := set_config('synchronous_commit', 'on', true) is null;
    end if;
    if durable is null or pg_try_advisory_xact_lock(hf.lock_key(-1)) then
        done := pg_notify('hf.changes', '') is null;
    end if;
    return nextval('hf.seq');
end $$;

-- What most saves are: one new segment, on the head that is expected, without marks. As
-- `save`, but with no arrays: these and the values that only a first save has took a
-- sixth of its time in the server, and more in the client.
create function hf.append(
    durable boolean, of_family bigint, of_thread text, expected bigint,
    expected_id text, at bigint, new_id text, new_step bigint, new_saved_at bigint,
    new_kind text, new_metadata bytea, new_runs text, new_manifest bytea,
    new_size bigint, new_digest bytea, new_checksum bigint, segment_number bigint,
    segment_packing bigint, segment_data bytea, segment_checksum bigint
) returns bigint[]
language plpgsql as $$
declare
    taken bigint := hf.enter(durable);
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

-- A new thread, of a family of its own if none is given. Gives family and number, nothing
-- if there is a thread of that name, or was one and it is not `anew`. Who forks holds the
-- threads of the family, so that nobody packs it meanwhile.
create or replace function hf.begin_thread(
    of_name text, of_family bigint, new_kind text, new_owner text, new_agent text,
    new_metadata bytea, new_head bigint, new_changed bigint, at bigint,
    from_thread text, from_checkpoint text, anew boolean
) returns bigint[]
language plpgsql as $$
declare
    of_number bigint;
    blocks_end bigint := -1;
begin
    if not anew then
        perform 1 from hf.directory d
        where d.name = of_name and d.deleted_at is not null;
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
