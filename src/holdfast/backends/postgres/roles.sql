-- Row-level security for scopes: a second lock, below the library. `bind_role` runs this
-- as the owner of the tables, whom no policy holds back: once for a schema, and again for
-- one that an older version has secured, whose policies it removes first.
--
-- `tenant` says which scope a role is bound to, by what the names in it begin with. A
-- role that is not in it sees nothing; one with an empty prefix sees everything. A role
-- cannot change this as it could change a setting of its session.
--
-- A policy is read when it is made, so its operators are those of PostgreSQL whatever the
-- caller's `search_path` is; the text of a function is read when it runs, so each of
-- these has a path of its own.
create table if not exists hf.tenant (
    role name primary key,
    prefix text collate "C" not null
);

-- Of the caller: `current_user` is the role that was logged in as, or set.
create or replace function hf.own_prefix() returns text
language sql stable set search_path = pg_catalog, pg_temp as $$
    select t.prefix from hf.tenant t where t.role = current_user
$$;

-- True if the caller sees a thread of a family. A function, because a policy of `thread`
-- may not read `thread`; it runs with the caller's rights.
create or replace function hf.sees_family(of_family bigint) returns boolean
language plpgsql stable set search_path = pg_catalog, pg_temp as $$
begin
    return exists (select from hf.thread t where t.family = of_family);
end $$;

alter table hf.tenant enable row level security;
alter table hf.directory enable row level security;
alter table hf.thread enable row level security;
alter table hf.checkpoint enable row level security;
alter table hf.segment enable row level security;
alter table hf.journal enable row level security;
alter table hf.move enable row level security;
alter table hf.setting enable row level security;
alter table hf.migration enable row level security;

create policy scope on hf.tenant for select using (role = current_user);

-- `own_prefix` in a subquery runs once for a statement and not for each row.
create policy scope on hf.directory using (starts_with(name, (select hf.own_prefix())));
create policy scope on hf.thread using (starts_with(name, (select hf.own_prefix())));
create policy scope on hf.checkpoint
using (starts_with(thread_name, (select hf.own_prefix())));

-- A family is of one scope: of its threads the caller sees all or none. That is so
-- because no role chooses the family of a thread: it is one that the role sees already,
-- or the number that its session drew last from the sequence, which no other session can
-- get. The number of a thread is always a drawn one. `bind_role` lets no role change
-- either later.
create policy own_family on hf.thread as restrictive for insert with check (
    (select hf.own_prefix()) = ''
    or number = currval('hf.number') and (family = number or hf.sees_family(family)));
-- A name is put into the directory before its thread is made.
create policy own_family on hf.directory as restrictive for insert with check (
    (select hf.own_prefix()) = ''
    or hf.sees_family(family) or family = number and number = currval('hf.number'));
create policy own_family on hf.checkpoint as restrictive for insert with check (
    hf.sees_family(family));
create policy scope on hf.segment
using (exists (select from hf.thread t where t.family = segment.family));
create policy scope on hf.journal
using (exists (select from hf.thread t where t.family = journal.family));
create policy scope on hf.move
using (exists (select from hf.thread t where t.family = move.family));

-- Every role reads the settings of the whole store, such as the wrapped keys without
-- which it could not open an encrypted store.
create policy scope on hf.setting using (starts_with(name, (select hf.own_prefix())));
create policy whole on hf.setting for select using (strpos(name, E'\x1f') = 0);
-- The salt of erased names, which the first erasure makes.
create policy graves on hf.setting for insert
with check (name = 'graves' and octet_length(value) = 32);
create policy whole on hf.migration for select using (true);
