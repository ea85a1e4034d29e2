-- name: copy_rows
copy ({}) to stdout (format binary)

-- name: name_type
select typname from pg_type where oid = %s
