-- name: take_lock
select pg_advisory_xact_lock(%s)

-- name: has_schema_and_roles
-- A restored database arrives without its roles: they belong to the server. Whoever asks acts as one of them, or has to be
-- let act as an agent.
select to_regclass('migration.applied') is not null and to_regrole('nous_app') is not null
   and has_table_privilege(to_regclass('migration.applied'), 'select')
   and (current_user <> session_user or pg_has_role(session_user, to_regrole('nous_app'), 'member'))
   and not exists (  -- a database that was restored here, or upgraded, says that sql/roles.sql ran: on another server
       select from (values ('nous_night_login', 'nous_night'), ('nous_operator_login', 'nous_purge')) held(login, role)
       where not pg_has_role(to_regrole(login)::oid, to_regrole(role)::oid, 'member'))
   and not exists (
       select from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = 'heart' and c.relname = 'facts'
         and case when current_setting('server_version_num')::int >= 170000
             then not has_table_privilege(to_regrole('nous_purge')::oid, c.oid, 'maintain') end)

-- name: find_applied
select number, sha256 from migration.applied

-- name: store_applied
insert into migration.applied (number, name, sha256) values (%(number)s, %(name)s, %(sha256)s)
on conflict (number) do update set sha256 = excluded.sha256, applied_at = now()
