-- name: take_lock
select pg_advisory_xact_lock(%s)

-- name: has_schema_and_roles
-- A restored database arrives without its roles: they belong to the server.
select to_regclass('migration.applied') is not null and to_regrole('nous_app') is not null

-- name: find_applied
select number, sha256 from migration.applied

-- name: store_applied
insert into migration.applied (number, name, sha256) values (%(number)s, %(name)s, %(sha256)s)
on conflict (number) do update set sha256 = excluded.sha256, applied_at = now()
