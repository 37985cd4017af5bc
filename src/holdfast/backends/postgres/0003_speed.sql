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
