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
begin
    update hf.thread t set head = taken, changed = taken, updated_at = at
    where t.family = of_family and t.name = of_thread and t.deleted_at is null
        and t.head = expected
    returning t.number into of_number;
    if not found then
        return null;
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
