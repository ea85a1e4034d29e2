"""The embedded server after every kind of kill: clients, postmasters, backends and initdb, all of them real."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import psycopg
import pytest
from postgres_homes import ENSURE, answer, client, kill, lives, one, remember, scratch, wait_for

from nous_online.database import postgres


@pytest.fixture
def home() -> Iterator[Path]:
    with scratch() as place:
        yield place / "home"


def test_a_killed_client_leaves_the_server_to_the_next(home: Path) -> None:
    process = client(ENSURE + "import os, signal; os.kill(os.getpid(), signal.SIGKILL)", home)
    out, _ = process.communicate(timeout=60)

    assert process.returncode == -signal.SIGKILL
    assert [postgres.ensure(home).pid, postgres.ensure(home).port] == json.loads(out)


def test_a_killed_postmaster_is_replaced_and_nothing_committed_is_lost(home: Path) -> None:
    first = postgres.ensure(home)
    remember(first, "committed before the kill")
    busy = psycopg.connect(first.dsn(), autocommit=True)
    busy.execute("select pg_backend_pid()")

    kill(first.pid)
    second = postgres.ensure(home)

    assert second.pid != first.pid
    assert one(second, "select text from kept") == "committed before the kill"
    with pytest.raises(psycopg.OperationalError):
        busy.execute("select 1")
    busy.close()


def test_a_killed_backend_is_recovered_from_and_its_query_stays_out_of_the_log(home: Path) -> None:
    server = postgres.ensure(home)
    remember(server, "committed before the kill")
    victim = psycopg.connect(server.dsn(), autocommit=True)
    with ThreadPoolExecutor() as pool:
        query = pool.submit(victim.execute, "select 'zanzibar', pg_sleep(60)")
        wait_for(lambda: one(server, "select count(*) from pg_stat_activity where query ~ '^select .zanzi'") == 1)
        kill(victim.info.backend_pid)
        assert isinstance(query.exception(), psycopg.OperationalError)
    victim.close()

    again = postgres.ensure(home)

    assert again == server
    assert one(again, "select text from kept") == "committed before the kill"
    log = (home / "server.log").read_text()
    assert "was terminated by signal 9" in log
    assert "zanzibar" not in log


def test_an_orphaned_backend_never_shares_the_data_with_a_new_server(home: Path) -> None:
    first = postgres.ensure(home)
    orphan = psycopg.connect(first.dsn(), autocommit=True)
    pid = orphan.info.backend_pid
    psutil.Process(pid).suspend()  # so that it can't notice the end of its postmaster
    kill(first.pid)

    second = postgres.ensure(home)

    assert one(second, "select 1") == 1
    assert not lives(pid)
    orphan.close()


ZOMBIE = """
import ctypes, os, signal, sys, time
from pathlib import Path
import psutil, psycopg
from nous_online.database import postgres
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: we inherit the postmaster, and do not reap it
home = Path(sys.argv[1])
first = postgres.ensure(home)
os.kill(first.pid, signal.SIGKILL)
while psutil.Process(first.pid).status() != psutil.STATUS_ZOMBIE:
    time.sleep(0.01)
assert postgres.running(home) is None
second = postgres.ensure(home)
assert psutil.Process(first.pid).status() == psutil.STATUS_ZOMBIE
psycopg.connect(second.dsn()).close()
assert postgres.stop(home) is True
print([first.pid, second.pid])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt a dead server")
def test_a_dead_postmaster_that_nobody_reaps_is_replaced(home: Path) -> None:
    first, second = answer(client(ZOMBIE, home))

    assert first != second


def test_a_pid_that_now_belongs_to_another_program_is_not_taken_for_the_server(home: Path) -> None:
    first = postgres.ensure(home)
    data = postgres.data_directory(home)
    left_behind = (data / "postmaster.pid").read_text().splitlines()
    kill(first.pid)
    with subprocess.Popen(["sleep", "60"], user=data.stat().st_uid if os.geteuid() == 0 else None) as stranger:
        (data / "postmaster.pid").write_text("\n".join([str(stranger.pid), *left_behind[1:]]) + "\n")

        assert postgres.running(home) is None
        assert postgres.stop(home) is False
        second = postgres.ensure(home)

        assert one(second, "select 1") == 1
        assert stranger.poll() is None
        stranger.kill()


@pytest.mark.parametrize("sign", ["pgdata", "pgdata/global/pg_control", "pgdata/postmaster.pid"])
def test_a_client_killed_while_it_makes_the_data_is_healed(home: Path, sign: str) -> None:
    process = client(ENSURE, home)
    wait_for((home / sign).exists)
    process.kill()
    process.communicate()
    assert not (home / "server.json").exists()

    server = postgres.ensure(home)

    assert one(server, "select '[1]'::vector::text") == "[1]"
    time.sleep(0.3)  # an initdb left alive would go on writing
    assert one(server, "select 1") == 1
    assert not list(home.glob("*.password"))


def test_a_client_killed_while_it_starts_existing_data_is_healed(home: Path) -> None:
    remember(postgres.ensure(home), "kept")
    postgres.stop(home)
    process = client(ENSURE, home)
    wait_for((home / "pgdata" / "postmaster.pid").exists)
    process.kill()
    process.communicate()

    assert one(postgres.ensure(home), "select text from kept") == "kept"


@pytest.mark.parametrize("delay_s", [0.4, 0.6, 0.9])
def test_a_client_interrupted_at_any_moment_is_healed(home: Path, delay_s: float) -> None:
    process = client(ENSURE, home)
    time.sleep(delay_s)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)

    assert one(postgres.ensure(home), "select 1") == 1


def test_a_half_made_directory_is_renamed_and_kept(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    (home / "pgdata").mkdir(parents=True)
    (home / "pgdata" / "precious").write_text("bytes")

    with caplog.at_level(logging.WARNING):
        server = postgres.ensure(home)

    aside = list(home.glob("pgdata.half-made-*"))
    assert [(path / "precious").read_text() for path in aside] == ["bytes"]
    assert str(aside[0]) in caplog.text
    assert one(server, "select 1") == 1


def test_a_lost_record_sets_the_data_of_a_live_server_aside_unharmed(home: Path) -> None:
    first = postgres.ensure(home)
    (home / "server.json").unlink()

    second = postgres.ensure(home)

    assert not lives(first.pid)
    assert one(second, "select 1") == 1
    assert len(list(home.glob("pgdata.half-made-*/PG_VERSION"))) == 1
