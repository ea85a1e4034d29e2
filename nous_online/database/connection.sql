-- name: begin_call
-- Everything is transaction-local: a setting that outlived its transaction would speak for the wrong agent
-- when the pool lends the connection to the next caller. The lock is shared by all calls of an agent; erasing it
-- takes it alone, so that no call adds to what is being erased. The second is shared by the calls that store vectors;
-- moving an agent to another embedding space takes it alone, so that no vector of the old one arrives after the move.
select set_config('nous.agent_id', %(agent_id)s, true),
       set_config('statement_timeout', %(timeout)s, true),
       set_config('lock_timeout', %(timeout)s, true),
       set_config('synchronous_commit', 'on', true),
       set_config('hnsw.iterative_scan', 'strict_order', true),
       case when %(agent_id)s <> '' then pg_advisory_xact_lock_shared(hashtextextended('agent:' || %(agent_id)s, 0))::text end,
       case when %(keeps_space)s then pg_advisory_xact_lock_shared(hashtextextended('space:' || %(agent_id)s, 0))::text end

-- name: take_role
select set_config('role', %s, true)

-- name: find_space
select weights_sha256, dimensions from heart.embedding_spaces where id = %s

-- name: store_space
insert into heart.embedding_spaces (id, model, weights_sha256, dimensions)
values (%(id)s, %(model)s, %(weights_sha256)s, %(dimensions)s)
on conflict (id) do nothing

-- name: index_space
select heart.index_embedding_space(%s)

-- name: capability
-- What `require_capable` judges: the server's version, and pgvector as installed.
select
    current_setting('server_version_num')::int                                     as server_version_num,
    null                                                                           as vector_offered,
    (select extversion from pg_catalog.pg_extension where extname = 'vector')::text as vector_installed

-- name: vector_offered
-- The version of pgvector that can be installed. To say what is offered, the server reads the files of every extension.
select default_version from pg_catalog.pg_available_extensions where name = 'vector'

-- name: bind_to_nobody
-- Longer than the name of any agent, so that no agent's it can be; names are printed with their schema.
select set_config('nous.agent_id', repeat('?', 101), true), set_config('search_path', 'pg_catalog', true)

-- name: find_openings
-- One row for everything that lets the role in force see or change rows of other agents, with what closes it.
with guarded as materialized (
    select c.oid, format('%s.%s', n.nspname, c.relname) as name, c.relowner, c.relrowsecurity, c.relforcerowsecurity,
           format(case a.attname when 'agent_hash'
                      then '(%s = encode(sha256(convert_to(heart.current_agent(), ''UTF8''::name)), ''hex''::text))'
                      else '(%s = heart.current_agent())' end, a.attname) as rule
    from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    join pg_attribute a on a.attrelid = c.oid and not a.attisdropped
         and a.attname = case c.relname when 'agents' then 'id' when 'tombstones' then 'agent_hash' else 'agent_id' end
    where n.nspname in ('heart', 'brain', 'lifecycle') and c.relkind in ('r', 'p')
), openings as (
    select format('role %s is a superuser', rolname) as opening, format('alter role %I nosuperuser', rolname) as fix
    from pg_roles where rolname = current_user and rolsuper
    union all
    select format('role %s has BYPASSRLS', rolname), format('alter role %I nobypassrls', rolname)
    from pg_roles where rolname = current_user and rolbypassrls
    union all
    select format('role %s owns %s', current_user, name), format('alter table %s owner to %I', name, session_user)
    from guarded where pg_has_role(current_user, relowner, 'usage')
    union all
    select format('%s has row-level security off', name), format('alter table %s enable row level security', name)
    from guarded where not relrowsecurity
    union all
    select format('%s does not force row-level security', name), format('alter table %s force row level security', name)
    from guarded where not relforcerowsecurity
    union all
    select format('%s has no policy one_agent that binds %s to its agent', g.name, current_user), 'run sql/roles.sql as the owner'
    from guarded g
    where not exists (
        select from pg_policy p
        where p.polrelid = g.oid and p.polname = 'one_agent' and p.polpermissive and p.polcmd = '*'
          and pg_get_expr(p.polqual, p.polrelid) = g.rule and pg_get_expr(p.polwithcheck, p.polrelid) = g.rule)
    union all
    select format('policy %s on %s opens it to %s', p.polname, g.name, current_user), format('drop policy %I on %s', p.polname, g.name)
    from guarded g join pg_policy p on p.polrelid = g.oid
    where p.polname <> 'one_agent' and p.polpermissive
      and exists (select from unnest(p.polroles) r(role) where r.role = 0 or pg_has_role(current_user, r.role, 'usage'))
    union all
    select format('view %s.%s reads with the rights of its owner', n.nspname, c.relname),
           format('alter view %I.%I set (security_invoker = true)', n.nspname, c.relname)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('heart', 'brain', 'lifecycle') and c.relkind = 'v'
      and not coalesce(c.reloptions @> array['security_invoker=true'], false)
    union all
    select format('function %s runs with the rights of its owner', p.oid::regprocedure),
           format('alter function %s security invoker', p.oid::regprocedure)
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname in ('heart', 'brain', 'lifecycle') and p.prosecdef
    union all
    select 'an agent that does not exist sees rows of heart.facts', 'run sql/roles.sql as the owner'
    where exists (select from heart.facts)
    union all
    select 'an agent that does not exist sees rows of heart.agents', 'run sql/roles.sql as the owner'
    where exists (select from heart.agents)
)
select opening, fix from openings order by opening like 'role %' desc, opening

-- name: find_powers
-- What the user who logged in may do once the role is left, for which any statement is enough.
select format('calls log in as %s, %s', session_user, power)
from pg_roles
cross join lateral (values
    (1, rolsuper, 'a superuser'),
    (2, rolbypassrls, 'who has BYPASSRLS'),
    (3, pg_has_role(session_user, 'nous_night', 'member') or pg_has_role(session_user, 'nous_purge', 'member'),
     'who may act as nous_night or nous_purge'),
    (4, exists (select from pg_class where oid = 'heart.facts'::regclass and pg_has_role(session_user, relowner, 'member')),
     'who owns the tables')
) held(place, is_held, power)
where rolname = session_user and is_held
order by place
limit 1
