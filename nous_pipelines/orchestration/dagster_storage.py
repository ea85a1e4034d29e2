"""Where Dagster keeps its records, in every process that reads or writes them: Postgres, over connections that stay."""

from __future__ import annotations

from dagster._core.storage.config import PostgresStorageConfig
from dagster._serdes import ConfigurableClassData
from dagster_postgres import DagsterPostgresStorage
from dagster_postgres.utils import pg_url_from_config

STATEMENT_TIMEOUT_MS, POOL_RECYCLE_S, MAX_OVERFLOW = 60_000, 3600, 8


class PostgresOverKeptConnections(DagsterPostgresStorage):
    """Dagster's own storage, but for one thing: a connection is kept for the next query.

    Dagster opens one for every query, except in its webserver: 440 in a night, 2 s of its 5, and so does its daemon.
    """

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: PostgresStorageConfig
    ) -> PostgresOverKeptConnections:
        storage = cls(
            inst_data=inst_data,
            postgres_url=pg_url_from_config(config_value),
            should_autocreate_tables=config_value.get("should_autocreate_tables", True),
        )
        for each in (storage.run_storage, storage.event_log_storage, storage.schedule_storage):
            each.optimize_for_webserver(STATEMENT_TIMEOUT_MS, POOL_RECYCLE_S, MAX_OVERFLOW)
        return storage
