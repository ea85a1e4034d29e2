"""The embedded server after every kind of kill: clients, postmasters, backends and initdb, all of them real."""

from __future__ import annotations

import ctypes
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
from postgres_homes import kill, lives, one, remember, scratch, twin_client, wait_for
from turns import in_turn
from twins import Say, Twin

from nous_online.database import postgres


@pytest.fixture
def home(ready_home: Path) -> Path:
    return ready_home


@pytest.fixture
def fresh() -> Iterator[Path]:
    """A home that is not there yet."""
    with scratch() as place:
        yield place / "home"


def test_a_killed_client_leaves_the_server_to_the_next(home: Path) -> None:
    program = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom nous_online.database import postgres\n"
        "print(postgres.ensure(Path(sys.argv[1])).pid, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)"
    )

    killed = subprocess.run([sys.executable, "-W", "error", "-c", program, home], capture_output=True, check=False)

    assert (killed.returncode, killed.stderr) == (-signal.SIGKILL, b"")
    assert postgres.ensure(home).pid == int(killed.stdout)


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


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets a process adopt a dead server")
def test_a_dead_postmaster_that_nobody_reaps_is_replaced(home: Path) -> None:
    def adopt(say: Say) -> None:
        ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: we inherit the postmaster, and do not reap it
        first = postgres.ensure(home)
        os.kill(first.pid, signal.SIGKILL)
        wait_for(lambda: not lives(first.pid))
        say(postgres.running(home))
        second = postgres.ensure(home)
        say((psutil.Process(first.pid).status(), one(second, "select 1"), first.pid == second.pid))
        say(postgres.stop(home))

    assert Twin(adopt).end() == (0, [None, (psutil.STATUS_ZOMBIE, 1, False), True])


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


@pytest.mark.parametrize("sign", in_turn(["pgdata", "pgdata/global/pg_control", "pgdata/postmaster.pid"], of=3))
def test_a_client_killed_while_it_makes_the_data_is_healed(fresh: Path, sign: str) -> None:
    client = twin_client(fresh)
    wait_for((fresh / sign).exists)
    client.process.kill()
    assert client.end() == (-signal.SIGKILL, [])
    assert not (fresh / "server.json").exists()

    server = postgres.ensure(fresh)

    assert one(server, "select '[1]'::vector::text") == "[1]"
    time.sleep(0.3)  # an initdb left alive would go on writing
    assert one(server, "select 1") == 1
    assert not list(fresh.glob("*.password"))


def test_a_client_killed_while_it_starts_existing_data_is_healed(home: Path) -> None:
    remember(postgres.ensure(home), "kept")
    postgres.stop(home)
    client = twin_client(home)
    wait_for((home / "pgdata" / "postmaster.pid").exists)
    client.process.kill()
    client.end()

    assert one(postgres.ensure(home), "select text from kept") == "kept"


@pytest.mark.parametrize("delay_s", in_turn([0.1, 0.3, 0.6], of=3, place=1))
def test_a_client_interrupted_at_any_moment_is_healed(fresh: Path, delay_s: float) -> None:
    client = twin_client(fresh)
    time.sleep(delay_s)
    os.kill(client.process.pid or 0, signal.SIGINT)
    client.end(timeout_s=20)

    assert one(postgres.ensure(fresh), "select 1") == 1


def test_a_half_made_directory_is_renamed_and_kept(fresh: Path, caplog: pytest.LogCaptureFixture) -> None:
    (fresh / "pgdata").mkdir(parents=True)
    (fresh / "pgdata" / "precious").write_text("bytes")

    with caplog.at_level(logging.WARNING):
        server = postgres.ensure(fresh)

    aside = list(fresh.glob("pgdata.half-made-*"))
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
