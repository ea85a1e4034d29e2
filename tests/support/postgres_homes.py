"""Homes for embedded servers in tests, and other processes to share them with."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
from memory_disk import memory_disk
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier, Literal
from twins import Say, Twin

from nous_online.database import postgres, postgres_home
from nous_online.database.postgres import Server


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory that any account can pass through; it goes afterwards, with every server below it."""
    place = Path(tempfile.mkdtemp(prefix="nous-test-", dir=memory_disk())).resolve()
    place.chmod(0o711)
    try:
        yield place
    finally:
        for record in place.rglob("server.json"):
            _discard(record.parent)
        shutil.rmtree(place)


@contextmanager
def made_home() -> Iterator[Path]:
    """A home whose server was made and has stopped, to be copied: making its data takes longer than all else."""
    with scratch() as place:
        postgres.ensure(place / "home")
        postgres.stop(place / "home")
        record = json.loads((place / "home" / "server.json").read_text("utf-8"))
        postgres_home.write_private(place / "home" / "server.json", json.dumps({**record, "port": 0}))
        yield place / "home"


def copy_home(home: Path, copy: Path) -> Path:
    """Copy a home with all that belongs to other accounts there."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cp", "-a", home, copy], check=True)
    return copy


def hasten(server: Server) -> None:
    """Have a server whose data nobody keeps write nothing out in time, and take passwords hashed once, not 4,096 times.

    A test connects four times; the passwords stay what they are.
    """
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as owner:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            owner.execute(SQL("alter system set {} = off").format(Identifier(setting)))
        owner.execute("select pg_reload_conf()")
        owner.execute("set scram_iterations = 1")
        for line in Path(conninfo_to_dict(server.dsn())["passfile"]).read_text("utf-8").splitlines():
            user, password = line.split(":")[-2:]
            owner.execute(SQL("alter role {} password {}").format(Identifier(user), Literal(password)))


def _discard(home: Path) -> None:
    """End the server at once: what is thrown away need not be written out first."""
    if server := postgres.running(home):
        psutil.Process(server.pid).send_signal(signal.SIGQUIT)
        wait_for(lambda: not lives(server.pid))


def twin_client(home: Path, *, before: Callable[[], object] = lambda: None) -> Twin:
    """Start a process that needs the server of a home, and says which one it got."""

    def ensure(say: Say) -> None:
        before()
        server = postgres.ensure(home)
        assert one(server, "select '[3,4]'::vector <-> '[0,0]'") == 5
        say((server.pid, server.port))

    return Twin(ensure)


def wait_for(condition: Callable[[], object], *, timeout_s: float = 20) -> None:
    until = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.002)


def one(server: Server, query: str) -> object:
    with psycopg.connect(server.dsn()) as connection:
        row = connection.execute(query).fetchone()
    return row[0] if row else None


def lives(pid: int) -> bool:
    """A zombie does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def kill(pid: int) -> None:
    """Kill without warning, and wait for the end."""
    psutil.Process(pid).kill()
    wait_for(lambda: not lives(pid))


def remember(server: Server, text: str) -> None:
    with psycopg.connect(server.dsn()) as connection:
        connection.execute("create table if not exists kept (text text)")
        connection.execute("insert into kept values (%s)", [text])
