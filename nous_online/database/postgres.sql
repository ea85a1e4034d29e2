-- name: identity
-- Whose server answers: its data directory and version, and whether the database asked for exists.
select
    current_setting('data_directory')                                  as data_directory,
    split_part(current_setting('server_version'), ' ', 1)              as version,
    exists (select from pg_catalog.pg_database where datname = 'nous') as is_complete

-- name: create_database
-- The one database Nous keeps its schemas in; cannot run inside a transaction.
create database nous

-- name: create_extension
-- Vectors, in the database `nous`.
create extension if not exists vector

-- name: create_logins
-- The users that log in for us: they inherit nothing. sql/roles.sql says what each may become, and the last owns Dagster's
-- database alone.
do $$
declare
    login text;
begin
    foreach login in array array['nous_login', 'nous_night_login', 'nous_operator_login', 'nous_dagster_login'] loop
        if to_regrole(login) is null then
            execute format('create role %I login noinherit nosuperuser nobypassrls nocreatedb nocreaterole', login);
        end if;
    end loop;
end $$

-- name: set_password
-- A new password, already hashed.
alter role {user} password {password}
