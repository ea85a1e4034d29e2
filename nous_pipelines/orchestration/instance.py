"""Dagster's own house: its home folder, its database beside the memories, and its settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg.sql import SQL, Identifier

from nous_online.core.errors import Unavailable
from nous_online.core.privacy import tighten
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.connection import connected, open_url
from nous_online.database.statements import statements

if TYPE_CHECKING:
    from dagster import DagsterInstance

INSTANCE = statements("nous_pipelines.orchestration", "instance.sql")
STATEMENT_TIMEOUT_MS, POOL_RECYCLE_S, MAX_OVERFLOW = 60_000, 3600, 8
"""Unless told to keep some, Dagster opens a connection for every event it stores: 440 in a night, 2 s of its 5."""


def home_folder() -> Path:
    """Return where Nous keeps its files."""
    return (settings().home or postgres.default_home()).expanduser().absolute()


def prepare_dagster() -> Path:
    """Set the variables Dagster reads, make its database if need be, and return its home.

    What the user set already stays as it is. Raises `Unavailable` when home or database can't be made.
    """
    home = home_folder() / "dagster"
    tighten(home_folder())
    try:
        write_settings(home / "dagster.yaml")
    except OSError as error:
        raise Unavailable(
            f"{home} can't be written to ({error}); mend it, or set NOUS_HOME to another folder"
        ) from error
    os.environ.setdefault("DAGSTER_HOME", str(home))
    if "NOUS_DAGSTER_DB_URL" not in os.environ:
        os.environ["NOUS_DAGSTER_DB_URL"] = dagster_url(open_url())
    return home


def write_settings(target: Path) -> None:
    """Put Dagster's settings, as this version has them, where Dagster looks for them."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    written = files("nous_pipelines.orchestration").joinpath("dagster.yaml").read_text("utf-8")
    if not target.exists() or target.read_text("utf-8") != written:
        target.write_text(written, "utf-8")


def dagster_url(memories_url: str) -> str:
    """Return the URL of Dagster's database on the server of the memories, making the database if it is absent."""
    parts = urlsplit(memories_url)
    name = f"{parts.path.lstrip('/') or 'nous'}_dagster"
    try:
        with connected(memories_url) as connection:
            if connection.execute(INSTANCE["find_database"], [name]).fetchone() is None:
                connection.execute(SQL(INSTANCE["create_database"]).format(Identifier(name)))
    except psycopg.errors.DuplicateDatabase:
        pass  # another process was quicker
    except psycopg.Error as error:
        message = (
            f"database {name!r} for Dagster can't be made ({str(error).strip()}); make it, or set NOUS_DAGSTER_DB_URL"
        )
        raise Unavailable(message) from error
    return urlunsplit(("postgresql+psycopg2", parts.netloc, f"/{name}", parts.query, ""))


@contextmanager
def dagster_instance() -> Iterator[DagsterInstance]:
    """Yield the Dagster instance every run is recorded in."""
    from dagster import DagsterInstance

    prepare_dagster()
    with DagsterInstance.get() as instance:
        instance.optimize_for_webserver(
            statement_timeout=STATEMENT_TIMEOUT_MS, pool_recycle=POOL_RECYCLE_S, max_overflow=MAX_OVERFLOW
        )
        yield instance
