-- name: find_database
-- Who owns a database, where there is one of this name.
select pg_get_userbyid(datdba) from pg_database where datname = %s

-- name: create_database
create database {}

-- name: commit_without_waiting
set synchronous_commit = off

-- name: hand_over
-- The database of Dagster, with all that stands in it, to the user who logs in for Dagster: all or nothing.
do $$
declare
    thing text;
begin
    for thing in
        select format('table %s', c.oid::regclass) from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.relkind in ('r', 'p', 'v', 'm') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
        union all
        select format('sequence %s', c.oid::regclass) from pg_class c  -- a table takes those of its columns with it
        where c.relkind = 'S' and not exists (
            select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i'))
        union all
        select format('type %s', t.oid::regtype) from pg_type t where t.typtype = 'e'
    loop
        execute format('alter %s owner to nous_dagster_login', thing);
    end loop;
    execute format('alter database %I owner to nous_dagster_login', current_database());
end $$
