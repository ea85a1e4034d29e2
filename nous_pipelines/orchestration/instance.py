"""Dagster's own house: its home folder, its database beside the memories, its settings; and its interface, alone in the
background or in front together with the REST API, always on 127.0.0.1."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http import HTTPStatus
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg.sql import SQL, Identifier

from nous_online import processes
from nous_online.core.errors import Unavailable
from nous_online.core.files import tighten
from nous_online.core.settings import settings
from nous_online.database import postgres
from nous_online.database.connection import connect, open_url, prepare
from nous_online.database.schema import lock_schema
from nous_online.database.statements import statements
from nous_online.interfaces.cli.command_line import EXTRAS
from nous_online.interfaces.request_checks import interface_token, with_token
from nous_online.processes import Program, child_folder, python_module

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
            with connect(memories_url) as connection, suppress(psycopg.errors.DuplicateDatabase):
                connection.execute(SQL(INSTANCE["create_database"]).format(Identifier(name)))
        if is_embedded and owner != postgres.DAGSTER_LOGIN:
            with connect(urlunsplit(parts._replace(path=f"/{name}"))) as connection, connection.transaction():
                lock_schema(connection)
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
    with connect(memories_url, role="nous_night") as connection:
        found = connection.execute(INSTANCE["find_database"], [dagster_name(memories_url)]).fetchone()
    return found[0] if found else None


@contextmanager
def dagster_instance() -> Iterator[DagsterInstance]:
    """Yield the Dagster instance every run is recorded in."""
    from dagster import DagsterInstance

    prepare_dagster()
    with DagsterInstance.get() as instance:
        yield instance


# --- the interface ---

HOST = "127.0.0.1"
PORT = 3000
LOCATION = "nous_pipelines.definitions"
READY_TIMEOUT_S = 90.0
NAME = "dagster"


def command(port: int, *, read_only: bool = False) -> list[str]:
    """Return how to start the interface and the daemon."""
    options = ["--port", str(port), *(["--read-only"] if read_only else [])]
    return python_module("nous_pipelines.orchestration.interface_server", *options)


def start_interface(home: Path) -> Program:
    """Start the interface in the background, unless it runs; `wait_for` tells when it answers."""
    program, known = dagster_program(PORT, token=interface_token()), processes.running(NAME, home=home)
    if known is None:
        processes.start(NAME, program.command, home=home, environment=program.environment)
        return program
    running_at, token = address(port_of(known.cmdline())), known.environ().get("NOUS_TOKEN", "")
    return replace(program, address=running_at, token=token, entrance=with_token(f"{running_at}/", token))


@contextmanager
def database_up() -> Generator[str]:
    """Start the embedded server where it is the one to use, yield the URL, and stop it if it was started for this."""
    home = settings().home or postgres.default_home()
    is_ours = settings().database_url is None and postgres.running(home) is None
    url = open_url()
    try:
        prepare(url)
        yield url
    finally:
        if is_ours:
            postgres.stop(home)


def dagster_program(port: int, *, token: str, read_only: bool = False) -> Program:
    """Return Dagster's interface and daemon as a program to run, at `port` or another that is free."""
    prepare_dagster()
    found = free_port(port)
    return Program(
        "Dagster",
        command(found, read_only=read_only),
        address(found),
        "/server_info",
        child_folder(),
        token,
        with_token(f"{address(found)}/", token),
    )


def api_program(port: int, *, token: str) -> Program:
    """Return the REST API, which asks for the token in place of keys, as a program to run, at `port` or a free one."""
    from nous_online.interfaces.api.application import command as api_command

    found = free_port(port)
    return Program("API", api_command(found), address(found), "/ready", child_folder(), token)


def console_program(port: int, *, token: str, read_only: bool = False) -> Program:
    """Return the console as a program to run, at `port` or another that is free."""
    from nous_online.interfaces.console.console_server import ALIVE
    from nous_online.interfaces.console.console_server import command as console_command

    found = free_port(port)
    entrance = with_token(f"{address(found)}/", token)
    command_line = console_command(found, read_only=read_only)
    return Program("Console", command_line, address(found), ALIVE, child_folder(), token, entrance)


def address(port: int) -> str:
    """Return where a program answers."""
    return f"http://{HOST}:{port}"


def has_api() -> bool:
    """Tell whether the extra `api` is installed."""
    return all(find_spec(module) for module in EXTRAS["api"])


def wait_for(program: Program, *, home: Path) -> None:
    """Wait until the interface answers; raise `Unavailable` when it ends or stays silent."""
    ends_at = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < ends_at:
        if processes.running(NAME, home=home) is None:
            break
        if program.asked() == HTTPStatus.OK:
            return
        time.sleep(0.2)
    raise Unavailable(f"the interface did not come up at {program.address}; see {home / 'background' / f'{NAME}.log'}")


def port_of(arguments: list[str]) -> int:
    """Return the port a running interface was started with."""
    return int(arguments[arguments.index("--port") + 1])


def free_port(wanted: int) -> int:
    """Return `wanted` if it is free, else another one that is."""
    for port in (wanted, 0):
        with socket.socket() as candidate:
            # what was just closed lingers for a minute, and is free all the same
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind((HOST, port))
            except OSError:
                continue
            return candidate.getsockname()[1]
    raise Unavailable(f"no port is free on {HOST}")
