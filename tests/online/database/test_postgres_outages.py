"""An open memory over an embedded server that dies: it starts again, or the reason is told; stopped, it stays so."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from conftest import ScriptedJudge, WordEmbedder
from postgres_homes import kill, lives, scratch, wait_for

from nous_online.core.errors import Unavailable
from nous_online.database import postgres
from nous_online.database.connection import Database
from nous_online.heart import Heart


@pytest.fixture
def home(ready_home: Path) -> Path:
    return ready_home


def opened(home: Path) -> Heart:
    database = Database(postgres.ensure(home).dsn(), max_connections=2)
    return Heart.open(
        "aria", database=database, embedder=WordEmbedder(), judge=ScriptedJudge(), works_in_background=False
    )


def end_server(home: Path) -> None:
    """Kill the server, and wait for those it served: a call that they still take is cut off in its midst."""
    server = postgres.running(home)
    assert server is not None
    served = [child.pid for child in psutil.Process(server.pid).children()]
    kill(server.pid)
    wait_for(lambda: not any(map(lives, served)))


def test_an_open_memory_starts_its_dead_server_again_within_the_call(home: Path) -> None:
    heart = opened(home)
    heart.learn("Tea helps")
    end_server(home)

    found = heart.recall("tea", deadline_s=20)

    assert [answer.content for answer in found] == ["Tea helps"]
    assert heart.learn("Tea helps").action == "confirmed"
    heart.agent.database.close()


def test_a_server_that_can_not_start_again_is_told_with_its_reason_and_found_once_it_can(home: Path) -> None:
    heart = opened(home)
    configuration = home / "pgdata" / "postgresql.conf"
    good = configuration.read_text()
    configuration.write_text(good + "\nshared_buffers = plenty\n")
    end_server(home)

    with pytest.raises(Unavailable, match=r'(?s)can\'t connect to PostgreSQL: .*"shared_buffers": "plenty"') as refused:
        heart.learn("Tea helps", deadline_s=4)
    configuration.write_text(good)

    assert "max_connections" not in str(refused.value)
    assert heart.learn("Tea helps", deadline_s=20).action == "stored"
    heart.agent.database.close()


@pytest.mark.parametrize("had_died", [False, True])
def test_a_server_that_was_stopped_stays_stopped_however_often_it_is_called(home: Path, *, had_died: bool) -> None:
    heart = opened(home)
    if had_died:
        end_server(home)
    postgres.stop(home)

    began = time.monotonic()
    with pytest.raises(Unavailable, match="was stopped; start it: `nous up`"):
        heart.count(deadline_s=30)
    assert time.monotonic() - began < 10
    time.sleep(0.5)
    was_up = postgres.running(home)
    postgres.ensure(home)

    assert was_up is None
    assert heart.count(deadline_s=20) == {}
    heart.agent.database.close()


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 120 MB to keep a home on."""
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    with scratch() as directory:
        place = directory / "disk"
        place.mkdir(mode=0o711)
        options = ["-t", "tmpfs", "-o", "size=120m,mode=711"]
        if subprocess.run(["mount", *options, "tmpfs", place], check=False).returncode:
            pytest.skip("this machine does not allow to mount a file system")
        yield place
        postgres.stop(place / "home")
        subprocess.run(["umount", place], check=True)


def test_a_full_disk_is_called_one_and_once_it_is_freed_the_same_memory_goes_on(small_disk: Path) -> None:
    heart = opened(small_disk / "home")
    heart.learn("Tea helps")
    end_server(small_disk / "home")
    free, filler = os.statvfs(small_disk), small_disk / "filler"
    filler.write_bytes(b"x" * (free.f_bavail * free.f_frsize))

    with pytest.raises(Unavailable, match="The disk is full: free some space"):
        heart.recall("tea", deadline_s=4)
    filler.unlink()

    assert [answer.content for answer in heart.recall("tea", deadline_s=20)] == ["Tea helps"]
    heart.agent.database.close()
