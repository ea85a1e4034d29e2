"""Dagster's records are stored without waiting for the disk, in a storage that looks up once what it consists of."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier

from nous_pipelines.orchestration.dagster_classes import PostgresOverKeptConnections
from nous_pipelines.orchestration.instance import dagster_url


@pytest.fixture
def records(database_url: str) -> Iterator[psycopg.Connection]:
    """A connection of our own to the database of Dagster; the server of the tests waits for the disk nowhere else."""
    dagster_url(database_url)
    name = f"{conninfo_to_dict(database_url)['dbname']}_dagster"
    with psycopg.connect(database_url, dbname=name, autocommit=True) as connection:
        connection.execute(SQL("alter database {} set synchronous_commit = on").format(Identifier(name)))
    with psycopg.connect(database_url, dbname=name, autocommit=True) as connection:
        yield connection


@pytest.fixture
def storage(records, database_url: str) -> Iterator[PostgresOverKeptConnections]:
    settings = {"postgres_url": dagster_url(database_url), "should_autocreate_tables": True}
    opened = PostgresOverKeptConnections.from_config_value(None, settings)
    yield opened
    for each in (opened.run_storage, opened.event_log_storage, opened.schedule_storage):
        each._engine.dispose()


def test_what_dagster_records_does_not_wait_for_the_disk_and_erasing_it_does(storage, records):
    for each in (storage.run_storage, storage.event_log_storage, storage.schedule_storage):
        for _ in range(2):  # of a new connection, and of one that was given back
            with each._engine.connect() as connection:
                assert connection.exec_driver_sql("show synchronous_commit").scalar() == "off"

    assert records.execute("show synchronous_commit").fetchone() == ("on",)


def test_a_table_that_is_missing_is_looked_up_again_and_one_that_is_there_is_not(storage, records):
    events = storage.event_log_storage
    assert not events.has_table("later")
    assert not events.has_asset_key_col("later")
    records.execute("create table later ()")
    records.execute("alter table asset_keys add column later text")

    assert events.has_table("later")
    assert events.has_asset_key_col("later")

    records.execute("drop table later")
    assert events.has_table("later")
    assert not events.has_table("sooner")
