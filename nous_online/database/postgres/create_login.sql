-- The user that agents' calls log in as: it owns nothing, inherits nothing, and sql/roles.sql lets it be `nous_app`.
do $$
begin
    if not exists (select from pg_roles where rolname = 'nous_login') then
        create role nous_login login noinherit nosuperuser nobypassrls nocreatedb nocreaterole;
    end if;
end $$
