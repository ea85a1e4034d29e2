-- name: read_versions
select current_setting('server_version'), (select extversion from pg_extension where extname = 'vector')

-- name: take_role
select set_config('role', %s, true)
