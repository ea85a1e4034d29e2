-- The migration runner's own table; made before anything else, under the runner's advisory lock.
-- (Its schema must not be called like the user who connects: "$user" comes first in the search path.)
create schema if not exists migration;
create table if not exists migration.applied (
    number     integer primary key,
    name       text not null,
    sha256     text not null,
    applied_at timestamptz not null default now()
);
