-- What `require_capable` judges: the server's version, and pgvector as offered and as installed.
select
    current_setting('server_version_num')::int                                             as server_version_num,
    (select default_version from pg_catalog.pg_available_extensions where name = 'vector') as vector_offered,
    (select extversion from pg_catalog.pg_extension where extname = 'vector')              as vector_installed
