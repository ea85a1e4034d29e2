-- name: find_dagster
select datname from pg_database where datname = current_database() || '_dagster'

-- name: find_tables
select n.nspname, c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'm') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
order by 1, 2

-- name: rewrite_table
-- A new file for the table and for each of its indexes; the statistics of its columns are drawn anew.
vacuum (full, analyze) {table}

-- name: rewrite_statistics
vacuum full pg_catalog.pg_statistic

-- name: is_superuser
select rolsuper from pg_roles where rolname = current_user

-- name: set_recycling
-- A segment of the write-ahead log that is recycled keeps what it said until it is written over.
alter system set wal_recycle = off

-- name: reset_recycling
alter system reset wal_recycle

-- name: reload
select pg_reload_conf()

-- name: count_segments
select count(*) from pg_ls_waldir() where name ~ '^[0-9A-F]{24}$'

-- name: leave_segment
-- A record, or there is nothing to switch from.
select pg_logical_emit_message(false, 'nous', ''), pg_switch_wal()

-- name: checkpoint
checkpoint
