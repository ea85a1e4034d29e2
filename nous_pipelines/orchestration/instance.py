"""Dagster's own house: its home folder, its database beside the memories, and its settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg.sql import SQL, Identifier

from nous_online.core.errors import Unavailable
from nous_online.core.home import tighten
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.connection import connected, open_url
from nous_online.database.migrations import lock
from nous_online.database.statements import statements

if TYPE_CHECKING:
    from dagster import DagsterInstance

INSTANCE = statements("nous_pipelines.orchestration", "instance.sql")


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
    """Return the URL of Dagster's database on the server of the memories, making the database if it is absent.

    On the embedded server it belongs to the user who logs in for Dagster; one that an earlier version made is handed
    over. Raises `Unavailable` when it can't be made.
    """
    parts, name = urlsplit(memories_url), dagster_name(memories_url)
    is_embedded = postgres.login_url(memories_url, postgres.DAGSTER_LOGIN) != memories_url
    try:
        owner = owner_of_dagster(memories_url)
        if owner is None:
            with connected(memories_url) as connection, suppress(psycopg.errors.DuplicateDatabase):
                connection.execute(SQL(INSTANCE["create_database"]).format(Identifier(name)))
        if is_embedded and owner != postgres.DAGSTER_LOGIN:
            with connected(urlunsplit(parts._replace(path=f"/{name}"))) as connection, connection.transaction():
                lock(connection)
                connection.execute(INSTANCE["hand_over"])
    except psycopg.Error as error:
        message = (
            f"database {name!r} for Dagster can't be made ({str(error).strip()}); make it, or set NOUS_DAGSTER_DB_URL"
        )
        raise Unavailable(message) from error
    place = parts.netloc.replace(f"{parts.username}@", f"{postgres.DAGSTER_LOGIN}@") if is_embedded else parts.netloc
    return urlunsplit(("postgresql+psycopg2", place, f"/{name}", parts.query, ""))


def dagster_name(memories_url: str) -> str:
    """Return the name of Dagster's database beside that of the memories."""
    return f"{urlsplit(memories_url).path.lstrip('/') or 'nous'}_dagster"


def owner_of_dagster(memories_url: str) -> str | None:
    """Return who owns Dagster's database; None when there is none."""
    with connected(memories_url, role="nous_night") as connection:
        found = connection.execute(INSTANCE["find_database"], [dagster_name(memories_url)]).fetchone()
    return found[0] if found else None


@contextmanager
def dagster_instance() -> Iterator[DagsterInstance]:
    """Yield the Dagster instance every run is recorded in."""
    from dagster import DagsterInstance

    prepare_dagster()
    with DagsterInstance.get() as instance:
        yield instance
