-- name: copy_rows
copy ({}) to stdout (format binary)

-- name: describe
-- The columns of a query, without its rows.
select * from ({}) described limit 0

-- name: name_type
select typname from pg_type where oid = %s
