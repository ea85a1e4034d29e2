-- name: find_database
select 1 from pg_database where datname = %s

-- name: create_database
create database {}
