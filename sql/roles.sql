-- Who may do what. Run after every migration; safe to run again.
--
--   nous_app    the agent's own calls: sees one agent, the one named in nous.agent_id, and deletes no memory
--   nous_night  the nightly pipeline: sees all agents, writes through proposals and events, deletes no memory
--   nous_purge  the purge and erasure commands: the only one that may delete
--
-- The owner of the tables runs migrations only. Row-level security is forced, so that it binds the owner too.

do $$
declare
    name text;
begin
    foreach name in array array['nous_app', 'nous_night', 'nous_purge'] loop
        if not exists (select from pg_roles where rolname = name) then
            begin
                execute format('create role %I nologin nosuperuser nobypassrls', name);
            exception when duplicate_object or unique_violation then null;  -- another process was quicker
            end;
        end if;
        if not pg_has_role(current_user, name, 'usage') then
            execute format('grant %I to current_user', name);  -- to set the role; 15 knows no `with set true`
        end if;
    end loop;
end $$;

grant usage on schema heart, brain, lifecycle to nous_app, nous_night, nous_purge;

grant select on all tables in schema heart, brain, lifecycle to nous_app, nous_night, nous_purge;
grant insert, update on all tables in schema heart, brain to nous_app, nous_night;
grant insert on lifecycle.events to nous_app, nous_night, nous_purge;
grant insert, update on lifecycle.plans, lifecycle.proposals, lifecycle.agent_policies to nous_night;
grant delete on heart.postings, heart.term_stats, heart.working_memory, heart.next_embeddings, heart.links to nous_app, nous_night;
grant insert, update, delete on all tables in schema heart, brain to nous_purge;
grant delete, update on lifecycle.plans, lifecycle.proposals, lifecycle.agent_policies to nous_purge;
grant delete on lifecycle.events to nous_purge;
grant insert on lifecycle.tombstones to nous_purge;
revoke insert, update on heart.embedding_spaces from nous_app, nous_night;  -- shared by all agents: the owner's alone
revoke select on lifecycle.plans, lifecycle.tombstones from nous_app;  -- they name, or tell of, other agents
revoke insert, update on lifecycle.transitions from nous_app, nous_night, nous_purge;

do $$
declare
    target record;
begin
    for target in
        select c.oid::regclass as name
        from pg_class c
        join pg_namespace n on n.oid = c.relnamespace
        join pg_attribute a on a.attrelid = c.oid and a.attname = 'agent_id' and not a.attisdropped
        where n.nspname in ('heart', 'brain', 'lifecycle') and c.relkind = 'r'
    loop
        execute format('alter table %s enable row level security', target.name);
        execute format('alter table %s force row level security', target.name);
        execute format('drop policy if exists one_agent on %s', target.name);
        execute format(
            'create policy one_agent on %s to nous_app using (agent_id = heart.current_agent()) with check (agent_id = heart.current_agent())',
            target.name);
        execute format('drop policy if exists every_agent on %s', target.name);
        execute format('create policy every_agent on %s to nous_night, nous_purge using (true) with check (true)', target.name);
    end loop;
end $$;

alter table heart.agents enable row level security;
alter table heart.agents force row level security;
drop policy if exists one_agent on heart.agents;
create policy one_agent on heart.agents to nous_app using (id = heart.current_agent()) with check (id = heart.current_agent());
drop policy if exists every_agent on heart.agents;
create policy every_agent on heart.agents to nous_night, nous_purge using (true) with check (true);
