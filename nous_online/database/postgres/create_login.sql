-- The user that agents' calls log in as: it owns nothing, inherits nothing, and is let be `nous_app` by sql/roles.sql.
do $$
begin
    if not exists (select from pg_roles where rolname = 'nous_login') then
        create role nous_login login noinherit nosuperuser nobypassrls nocreatedb nocreaterole;
    end if;
end $$
