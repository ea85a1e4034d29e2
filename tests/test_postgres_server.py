"""The embedded server under real use and real kills: every test runs real processes on a directory of its own."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock
import psutil
import psycopg
import pytest

from nous_online import postgres
from nous_online.errors import DeadlineExceeded, InvalidInput, Unavailable
from nous_online.postgres import Server

ENSURE = """
import json, sys
from pathlib import Path
import psycopg
from nous_online import postgres
server = postgres.ensure(Path(sys.argv[1]))
with psycopg.connect(server.dsn()) as connection:
    assert connection.execute("select '[3,4]'::vector <-> '[0,0]'").fetchone() == (5,)
print(json.dumps([server.pid, server.port]), flush=True)
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A home that any account can pass through, gone with its server afterwards."""
    place = _scratch()
    yield place / "home"
    _discard(place / "home")
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    """One server for the tests that leave it as they found it."""
    place = _scratch()
    yield postgres.ensure(place)
    _discard(place)
    shutil.rmtree(place)


def _scratch() -> Path:
    memory = Path("/dev/shm")  # noqa: S108 - three times as fast as a busy disk, and nothing here shall last
    in_memory = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**30
    place = Path(tempfile.mkdtemp(prefix="nous-test-", dir=memory if in_memory else None)).resolve()
    place.chmod(0o711)
    return place


def _discard(home: Path) -> None:
    """End the server at once: what is thrown away need not be written out first."""
    server = postgres.running(home) if (home / "server.json").is_file() else None
    if server:
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


def test_a_fresh_home_gets_a_durable_server_with_pgvector(shared: Server) -> None:
    settings = (
        "fsync",
        "synchronous_commit",
        "full_page_writes",
        "data_checksums",
        "jit",
        "timezone",
        "listen_addresses",
    )
    found = [one(shared, f"show {setting}") for setting in settings]

    assert found == ["on", "on", "on", "on", "off", "UTC", "127.0.0.1"]
    assert one(shared, "show server_version") == shared.version == "18.4"
    assert one(shared, "select extversion >= '0.8' from pg_extension where extname = 'vector'") is True
    assert psutil.Process(shared.pid).name().startswith("postgres")


def test_the_record_is_readable_by_its_owner_alone(shared: Server) -> None:
    assert stat.S_IMODE((shared.home / "server.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(postgres.data_directory(shared.home).stat().st_mode) == 0o700


def test_a_wrong_password_is_refused(shared: Server) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(shared.dsn().replace(shared.password, "guess"))


def test_a_second_call_reuses_the_server_within_a_quarter_second(shared: Server) -> None:
    started = time.perf_counter()

    again = postgres.ensure(shared.home)

    assert time.perf_counter() - started < 0.25
    assert again == shared == postgres.running(shared.home)


def test_variables_meant_for_another_server_do_not_disturb(shared: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGSSLMODE": "require", "PGOPTIONS": "-c nonsense=1", "PGPORT": "1", "PGUSER": "x"}.items():
        monkeypatch.setenv(name, value)

    assert postgres.ensure(shared.home) == shared


def test_the_text_of_a_memory_never_lands_in_the_log(shared: Server) -> None:
    for query in ("select 'zanzibar'::int", "selec 'zanzibar'", "do $$ begin raise warning 'zanzibar'; end $$"):
        with (
            psycopg.connect(shared.dsn()) as connection,
            pytest.raises(psycopg.Error) if "do" not in query else connection,
        ):
            connection.execute(query.encode())

    assert "zanzibar" not in (shared.home / "server.log").read_text()


def test_nothing_runs_where_nothing_was_started(home: Path) -> None:
    assert postgres.running(home) is None
    assert postgres.stop(home) is False
    assert not home.exists()


def test_a_stopped_server_is_gone_and_comes_back_with_its_data_and_port(home: Path) -> None:
    first = postgres.ensure(home)
    remember(first, "kept over a stop")

    assert postgres.stop(home) is True
    assert postgres.stop(home) is False
    assert postgres.running(home) is None
    assert not lives(first.pid)

    second = postgres.ensure(home)
    assert (second.port, second.password) == (first.port, first.password)
    assert one(second, "select text from kept") == "kept over a stop"


def test_a_taken_port_is_exchanged_for_a_free_one(home: Path) -> None:
    first = postgres.ensure(home)
    postgres.stop(home)

    with socket.create_server(("127.0.0.1", first.port)):
        second = postgres.ensure(home)

    assert second.port != first.port
    assert one(second, "select 1") == 1


def test_a_dropped_database_is_made_again(home: Path) -> None:
    server = postgres.ensure(home)
    with psycopg.connect(server.dsn("postgres"), autocommit=True) as connection:
        connection.execute("drop database nous")

    assert postgres.ensure(home) == server
    assert one(server, "select '[1]'::vector::text") == "[1]"


def test_a_copied_home_gets_a_server_of_its_own(home: Path) -> None:
    first = postgres.ensure(home)
    copy = home.with_name("copy")
    subprocess.run(["cp", "-a", home, copy], check=True)

    second = postgres.ensure(copy)

    try:
        assert second.pid != first.pid
        assert one(second, "show data_directory") == str(copy / "pgdata")
        assert postgres.running(home) == first
    finally:
        _discard(copy)


def test_four_processes_on_a_fresh_and_then_an_existing_home_share_one_server(home: Path) -> None:
    fresh = [answer(process) for process in [client(ENSURE, home) for _ in range(4)]]
    postgres.stop(home)
    existing = [answer(process) for process in [client(ENSURE, home) for _ in range(4)]]

    assert len({tuple(each) for each in fresh}) == 1
    assert len({tuple(each) for each in existing}) == 1
    assert fresh[0][0] != existing[0][0]
    assert list(home.glob("pgdata*")) == [home / "pgdata"]


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
from nous_online import postgres
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


@pytest.mark.parametrize("sign", ["pgdata", "pgdata/base/1", "pgdata/global/pg_control", "pgdata/postmaster.pid"])
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


def test_a_damaged_record_is_reported_and_nothing_is_touched(home: Path) -> None:
    home.mkdir()
    (home / "server.json").write_text('{"port": 1')

    with pytest.raises(Unavailable, match=r"server\.json is damaged .* restore it"):
        postgres.ensure(home)
    assert [path.name for path in home.iterdir()] == ["server.json"]
    (home / "server.json").unlink()


def test_data_that_is_not_there_is_reported_instead_of_begun_anew(home: Path) -> None:
    postgres.ensure(home)
    postgres.stop(home)
    (home / "pgdata").rename(home / "unmounted")

    with pytest.raises(Unavailable, match="mount or restore"):
        postgres.ensure(home)

    (home / "unmounted").rename(home / "pgdata")
    assert one(postgres.ensure(home), "select 1") == 1


def test_a_server_that_cannot_start_is_explained_by_its_log(home: Path) -> None:
    postgres.ensure(home)
    postgres.stop(home)
    configuration = postgres.data_directory(home) / "postgresql.conf"
    good = configuration.read_text()
    configuration.write_text(good + "\nshared_buffers = plenty\n")

    with pytest.raises(Unavailable, match='invalid value for parameter "shared_buffers": "plenty"'):
        postgres.ensure(home)

    configuration.write_text(good)
    assert one(postgres.ensure(home), "select 1") == 1


def test_a_disk_that_takes_no_more_is_explained_and_healed(home: Path) -> None:
    cramped = (
        "import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))\n"
    )
    _, err = (process := client(cramped + ENSURE, home)).communicate(timeout=60)

    assert process.returncode == 1
    assert "nous_online.errors.Unavailable: initdb" in err
    assert "The end of" in err
    assert one(postgres.ensure(home), "select 1") == 1


def test_waiting_for_another_process_ends_by_the_deadline(home: Path) -> None:
    home.mkdir()
    started = time.monotonic()

    with filelock.FileLock(home / ".lock"), pytest.raises(DeadlineExceeded, match="Another process"):
        postgres.ensure(home, timeout_s=0.3)

    assert time.monotonic() - started < 2


def test_a_frozen_server_ends_by_the_deadline(home: Path) -> None:
    server = postgres.ensure(home)
    psutil.Process(server.pid).suspend()
    started = time.monotonic()

    try:
        with pytest.raises(DeadlineExceeded, match="is late"):
            postgres.ensure(home, timeout_s=1)
    finally:
        psutil.Process(server.pid).resume()

    assert time.monotonic() - started < 10
    assert postgres.ensure(home) == server


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(InvalidInput, match="is not a directory"):
        postgres.ensure(tmp_path / "file")


def test_the_home_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOUS_HOME", "/srv/elsewhere")
    assert postgres.default_home() == Path("/srv/elsewhere")

    monkeypatch.setenv("NOUS_HOME", "")
    assert postgres.default_home().name == "nous"


def test_a_database_name_is_quoted_in_the_dsn() -> None:
    server = Server(Path("/h"), "127.0.0.1", 5, "nous", "pw", "18.4", 1)

    assert server.dsn() == "postgresql://nous:pw@127.0.0.1:5/nous"
    assert server.dsn("a/b c") == "postgresql://nous:pw@127.0.0.1:5/a%2Fb%20c"
