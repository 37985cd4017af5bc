-- Row-level security for scopes: a second lock, below the library. `bind_role` runs this
-- once for a schema, as the owner of the tables, whom no policy holds back.
--
-- `tenant` says which scope a role is bound to, by what the names in it begin with. A role
-- that is not in it sees nothing; one with an empty prefix sees everything. A role cannot
-- change this as it could change a setting of its session.
create table hf.tenant (
    role name primary key,
    prefix text collate "C" not null
);

-- Of the caller: `current_user` is the role that was logged in as, or set.
create function hf.own_prefix() returns text
language sql stable as $$
    select t.prefix from hf.tenant t where t.role = current_user
$$;

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

-- In brackets, so that it is found out once for a statement and not for each row.
create policy scope on hf.directory using (starts_with(name, (select hf.own_prefix())));
create policy scope on hf.thread using (starts_with(name, (select hf.own_prefix())));
create policy scope on hf.checkpoint
using (starts_with(thread_name, (select hf.own_prefix())));

-- A family is of one scope: of its threads the caller sees all or none.
create policy scope on hf.segment
using (exists (select from hf.thread t where t.family = segment.family));
create policy scope on hf.journal
using (exists (select from hf.thread t where t.family = journal.family));
create policy scope on hf.move
using (exists (select from hf.thread t where t.family = move.family));

-- Settings of the whole store can be read: the wrapped keys of an encrypted one, without
-- which no one could open it.
create policy scope on hf.setting using (starts_with(name, (select hf.own_prefix())));
create policy whole on hf.setting for select using (strpos(name, E'\x1f') = 0);
-- What the first erasure makes.
create policy graves on hf.setting for insert with check (name = 'graves');
create policy whole on hf.migration for select using (true);
