"""Homes for embedded servers in tests, and other processes to share them with."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.sql import SQL, Identifier, Literal

from nous_online.database import postgres
from nous_online.database.postgres import Server

ENSURE = """
import json, sys
from pathlib import Path
import psycopg
from nous_online.database import postgres
server = postgres.ensure(Path(sys.argv[1]))
with psycopg.connect(server.dsn()) as connection:
    assert connection.execute("select '[3,4]'::vector <-> '[0,0]'").fetchone() == (5,)
print(json.dumps([server.pid, server.port]), flush=True)
"""


@contextmanager
def scratch() -> Iterator[Path]:
    """A directory that any account can pass through; it goes afterwards, with every server below it."""
    memory = Path("/dev/shm")  # noqa: S108 - three times as fast as a busy disk, and nothing here shall last
    in_memory = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**30
    place = Path(tempfile.mkdtemp(prefix="nous-test-", dir=memory if in_memory else None)).resolve()
    place.chmod(0o711)
    try:
        yield place
    finally:
        for record in place.rglob("server.json"):
            _discard(record.parent)
        shutil.rmtree(place)


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


def client(script: str, home: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script, str(home)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def answer(process: subprocess.Popen[str]) -> list[int]:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return json.loads(out)


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
