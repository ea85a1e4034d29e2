"""The embedded server in use, and what it says when it cannot run: real processes, each on a directory of its own."""

from __future__ import annotations

import resource
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import filelock
import psutil
import psycopg
import pytest
from postgres_homes import lives, one, remember, scratch, twin_client, wait_for
from stopwatch import stopwatch
from twins import Say, Twin

from nous_online.core.errors import DeadlineExceeded, InvalidInput, Unavailable
from nous_online.database import postgres
from nous_online.database.postgres import Server


@pytest.fixture
def home(ready_home: Path) -> Path:
    return ready_home


@pytest.fixture
def fresh() -> Iterator[Path]:
    """A home that is not there yet."""
    with scratch() as place:
        yield place / "home"


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    """One server for the tests that leave it as they found it."""
    with scratch() as place:
        yield postgres.ensure(place)


def test_a_fresh_home_gets_a_durable_server_with_pgvector(shared: Server) -> None:
    settings = ("fsync", "synchronous_commit", "full_page_writes", "data_checksums", "jit", "timezone")
    found = [one(shared, f"show {setting}") for setting in settings]

    assert found == ["on", "on", "on", "on", "off", "UTC"]
    assert one(shared, "show listen_addresses") == "127.0.0.1"
    assert one(shared, "show unix_socket_directories") == shared.host == str(postgres.data_directory(shared.home))
    assert one(shared, "show server_version") == shared.version
    assert one(shared, "select extversion >= '0.8' from pg_extension where extname = 'vector'") is True
    assert psutil.Process(shared.pid).name().startswith("postgres")


def test_the_record_is_readable_by_its_owner_alone(shared: Server) -> None:
    for name in ("server.json", "server.pgpass"):
        assert stat.S_IMODE((shared.home / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(postgres.data_directory(shared.home).stat().st_mode) == 0o700


def test_a_wrong_password_is_refused(shared: Server) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(shared.dsn(), password="guess")  # noqa: S106 (a wrong one)


def test_a_second_call_reuses_the_server_within_a_quarter_second(shared: Server) -> None:
    took_s = stopwatch()

    again = postgres.ensure(shared.home)

    assert took_s() < 0.25
    assert again == shared == postgres.running(shared.home)


def test_variables_meant_for_another_server_do_not_disturb(shared: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGSSLMODE": "require", "PGOPTIONS": "-c nonsense=1", "PGPORT": "1", "PGUSER": "x"}.items():
        monkeypatch.setenv(name, value)

    assert postgres.ensure(shared.home) == shared


@pytest.mark.parametrize(
    "query",
    [
        "select 'zanzibar'::int",
        "selec 'zanzibar'",
        "do $$ begin raise warning 'zanzibar'; end $$",
        "do $$ begin raise exception 'broken' using detail = 'zanzibar'; end $$",
    ],
)
def test_the_text_of_a_memory_never_lands_in_the_log(shared: Server, query: str) -> None:
    with suppress(psycopg.Error), psycopg.connect(shared.dsn()) as connection:
        connection.execute(query.encode())

    log = (shared.home / "server.log").read_text()
    assert "ready to accept connections" in log
    assert "zanzibar" not in log


def test_nothing_runs_where_nothing_was_started(fresh: Path) -> None:
    assert postgres.running(fresh) is None
    assert postgres.stop(fresh) is False
    assert not fresh.exists()


def test_a_stopped_server_is_gone_and_comes_back_with_its_data_and_port(home: Path) -> None:
    first = postgres.ensure(home)
    remember(first, "kept over a stop")

    assert postgres.stop(home) is True
    assert postgres.stop(home) is False
    assert postgres.running(home) is None
    wait_for(lambda: not lives(first.pid))  # for a moment the kernel still takes it down

    second = postgres.ensure(home)
    assert second.dsn() == first.dsn()
    assert one(second, "select text from kept") == "kept over a stop"


def test_a_server_that_is_stopping_is_waited_for_and_started_again(home: Path) -> None:
    first = postgres.ensure(home)
    last_session = psycopg.connect(first.dsn())
    psutil.Process(first.pid).terminate()  # a "smart" shutdown: no new sessions, and the end when the last one leaves
    wait_for(lambda: postgres.running(home) is None)

    with ThreadPoolExecutor() as pool:
        second = pool.submit(postgres.ensure, home)
        time.sleep(0.2)
        assert not second.done()
        last_session.close()

    assert second.result().pid != first.pid
    wait_for(lambda: not lives(first.pid))  # for a moment the kernel still takes it down


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

    assert second.pid != first.pid
    assert one(second, "show data_directory") == str(copy / "pgdata")
    assert postgres.running(home) == first


def test_a_port_where_other_data_answer_is_not_ours(home: Path) -> None:
    first = postgres.ensure(home)
    copy = home.with_name("copy")
    subprocess.run(["cp", "-a", home, copy], check=True)
    second = postgres.ensure(copy)
    pid_file = copy / "pgdata" / "postmaster.pid"
    truth = pid_file.read_text()

    pid_file.write_text(truth.replace(f"\n{second.port}\n", f"\n{first.port}\n"))
    misled = postgres.running(copy)
    pid_file.write_text(truth)

    assert misled is None
    assert postgres.running(copy) == second


def test_four_processes_on_a_fresh_and_then_an_existing_home_share_one_server(fresh: Path) -> None:
    first = [client.end() for client in [twin_client(fresh) for _ in range(4)]]
    postgres.stop(fresh)
    second = [client.end() for client in [twin_client(fresh) for _ in range(4)]]

    assert [(code, len(said)) for code, said in (*first, *second)] == [(0, 1)] * 8
    assert len({said[0] for _, said in first}) == len({said[0] for _, said in second}) == 1
    assert first[0][1] != second[0][1]
    assert list(fresh.glob("pgdata*")) == [fresh / "pgdata"]


def test_a_damaged_record_is_reported_and_nothing_is_touched(fresh: Path) -> None:
    fresh.mkdir()
    (fresh / "server.json").write_text('{"port": 1')

    with pytest.raises(Unavailable, match=r"server\.json is damaged .* restore it"):
        postgres.ensure(fresh)
    assert [path.name for path in fresh.iterdir()] == ["server.json"]
    (fresh / "server.json").unlink()


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


def test_a_disk_that_takes_no_more_is_explained_and_healed(fresh: Path) -> None:
    def cramped(say: Say) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, 2**20))
        with pytest.raises(Unavailable) as refused:
            postgres.ensure(fresh)
        say(str(refused.value))

    code, said = Twin(cramped).end()

    assert (code, len(said)) == (0, 1)
    assert said[0].startswith("initdb")
    assert "The end of" in said[0]
    assert one(postgres.ensure(fresh), "select 1") == 1


def test_waiting_for_another_process_ends_by_the_deadline(fresh: Path) -> None:
    fresh.mkdir()
    took_s = stopwatch()

    with filelock.FileLock(fresh / ".lock"), pytest.raises(DeadlineExceeded, match="Another process"):
        postgres.ensure(fresh, timeout_s=0.3)

    assert took_s() < 2


def test_a_frozen_server_ends_by_the_deadline(home: Path) -> None:
    server = postgres.ensure(home)
    psutil.Process(server.pid).suspend()
    took_s = stopwatch()

    try:
        with pytest.raises(DeadlineExceeded, match="is late"):
            postgres.ensure(home, timeout_s=1)
    finally:
        psutil.Process(server.pid).resume()

    assert took_s() < 10
    assert postgres.ensure(home) == server


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(InvalidInput, match="is not a directory"):
        postgres.ensure(tmp_path / "file")


def test_a_home_may_have_blanks_quotes_and_letters_of_any_script(fresh: Path) -> None:
    server = postgres.ensure(fresh.with_name("O'Neill's höme 家"))

    assert one(server, "select 1") == 1
    assert postgres.running(server.home) == server


@pytest.mark.parametrize("name", ['a"b', "a$(touch b)", "a`b`", "a\nb", r"a\\b"])
def test_a_home_that_a_shell_would_misread_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="name another one"):
        postgres.ensure(tmp_path / name)

    assert not list(tmp_path.iterdir())


def test_a_password_is_shown_neither_with_the_server_nor_in_its_url(shared: Server) -> None:
    assert shared.password not in repr(shared)
    assert shared.password not in shared.dsn()


def test_the_home_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOUS_HOME", "/srv/elsewhere")
    assert postgres.default_home() == Path("/srv/elsewhere")

    monkeypatch.setenv("NOUS_HOME", "")
    assert postgres.default_home().name == "nous"


def test_a_database_name_is_quoted_in_the_dsn() -> None:
    server = Server(Path("/h ö"), "127.0.0.1", 5, "nous", "pw", "18.4", 1)
    asked = "host=127.0.0.1&port=5&passfile=/h%20%C3%B6/server.pgpass&require_auth=scram-sha-256"

    assert server.dsn() == f"postgresql://nous@/nous?{asked}"
    assert server.dsn("a/b c") == f"postgresql://nous@/a%2Fb%20c?{asked}"
