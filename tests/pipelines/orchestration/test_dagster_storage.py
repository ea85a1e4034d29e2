"""Dagster's records are stored without waiting for the disk, in a storage that looks up once what it consists of."""

import logging
import time
from collections.abc import Iterator

import dagster as dg
import psycopg
import pytest
from dagster import DagsterEventType, EventLogEntry
from dagster._core.definitions.data_version import DATA_VERSION_TAG
from dagster._core.events import StepMaterializationData
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier
from sqlalchemy import event

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


def entry(kind: DagsterEventType, data=None) -> EventLogEntry:
    """An event of run r1, now."""
    happened = dg.DagsterEvent(kind.value, job_name="nightly", event_specific_data=data)
    return EventLogEntry(None, logging.INFO, "", "r1", time.time(), dagster_event=happened)


def made(version: str) -> EventLogEntry:
    """The event of the asset a, made in this version for the night of 1 June."""
    tags = {DATA_VERSION_TAG: version}
    done = dg.AssetMaterialization("a", partition="2026-06-01", tags=tags)
    return entry(DagsterEventType.ASSET_MATERIALIZATION, StepMaterializationData(done))


def test_versions_are_looked_up_once_a_run_until_the_asset_is_made_again_and_always_between_runs(storage):
    events, statements = storage.event_log_storage, []
    event.listen(events._engine, "before_cursor_execute", lambda *told: statements.append(told[2]))

    def version():
        statements.clear()
        kind, night = DagsterEventType.ASSET_MATERIALIZATION, "2026-06-01"
        found = events.get_latest_tags_by_partition(
            dg.AssetKey("a"), kind, [DATA_VERSION_TAG], asset_partitions=[night]
        )
        return found[night][DATA_VERSION_TAG], sum("asset_event_tags" in each for each in statements)

    events.store_event(made("one"))
    assert [version(), version()] == [("one", 1), ("one", 1)]

    events.store_event(entry(DagsterEventType.RUN_START))
    assert [version(), version()] == [("one", 1), ("one", 0)]
    events.store_event(made("two"))
    assert [version(), version()] == [("two", 1), ("two", 0)]

    events.store_event(entry(DagsterEventType.RUN_SUCCESS))
    assert [version(), version()] == [("two", 1), ("two", 1)]
