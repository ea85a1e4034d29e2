-- The migration runner's own table; made before anything else, under the runner's advisory lock.
-- (Its schema must not be called like the user who connects: "$user" comes first in the search path.)
create schema if not exists migration;
create table if not exists migration.applied (
    number     integer primary key,
    name       text not null,
    sha256     text not null,
    applied_at timestamptz not null default now()
);

-- Which database this is, so that snapshots of two databases are never taken for each other's.
create table if not exists migration.identity (
    id      uuid not null default gen_random_uuid(),
    is_sole boolean primary key default true check (is_sole)
);
insert into migration.identity default values on conflict do nothing;
grant usage on schema migration to public;
grant select on migration.identity to public;
