-- Whose server answers: its data directory and version, and whether the database asked for exists.
select
    current_setting('data_directory')                                  as data_directory,
    split_part(current_setting('server_version'), ' ', 1)              as version,
    exists (select from pg_catalog.pg_database where datname = 'nous') as is_complete
