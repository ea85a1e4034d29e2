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
