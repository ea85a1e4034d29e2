"""Nobody is told the password of the embedded server: not who took its port, and not who knew it in an earlier life."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import psycopg2
import pytest
from postgres_homes import copy_home, kill, one, remember, scratch, wait_for

from nous_online.core.errors import Unavailable
from nous_online.database import postgres, postgres_home
from nous_online.database.postgres import Server

CLEARTEXT_PASSWORD = b"R" + struct.pack("!ii", 8, 3)  # AuthenticationCleartextPassword


@pytest.fixture
def home(ready_home: Path) -> Path:
    return ready_home


@pytest.fixture
def far_home(home_to_copy: Path) -> Iterator[Path]:
    """A home whose path is too long for a socket."""
    with scratch() as directory:
        yield copy_home(home_to_copy, directory / ("far" * 30) / "home")


class Thief:
    """Listens at a port that was a server's, and asks whoever comes for the password in clear text."""

    def __init__(self, port: int) -> None:
        self.heard: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._ask, daemon=True).start()

    def _ask(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with client:
                client.settimeout(2)
                started = client.recv(4096)
                if b"user\0" not in started:  # it asks for encryption first
                    client.sendall(b"N")
                    started = client.recv(4096)
                client.sendall(CLEARTEXT_PASSWORD)
                self.heard += [started, client.recv(4096)]

    def close(self) -> None:
        self._listener.close()


@pytest.mark.parametrize("connect", [psycopg.connect, psycopg2.connect])
def test_no_password_is_sent_to_whoever_took_the_port(far_home: Path, connect: object) -> None:
    server = postgres.ensure(far_home)
    assert server.host == "127.0.0.1"
    kill(server.pid)

    with closing(Thief(server.port)) as thief, pytest.raises(Exception, match="authentication method requirement"):
        connect(server.dsn())  # type: ignore[operator]
    wait_for(lambda: len(thief.heard) > 1)

    assert b"user\0nous" in thief.heard[0]
    assert thief.heard[1:] == [b""]


def test_nothing_dials_the_port_of_a_server_that_is_dead(far_home: Path) -> None:
    server = postgres.ensure(far_home)
    kill(server.pid)

    with closing(Thief(server.port)) as thief:
        url = postgres.live_url(server.dsn())

    assert thief.heard == []
    with psycopg.connect(url) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_a_socket_that_nobody_else_can_enter_is_the_way_in(home: Path) -> None:
    server = postgres.ensure(home)

    assert one(server, "select inet_server_addr()") is None
    assert server.host == str(home / "pgdata")
    assert "require_auth=scram-sha-256" in server.dsn()


def test_each_start_sets_a_new_password_and_the_same_url_goes_on(home: Path) -> None:
    first = postgres.ensure(home)
    remember(first, "kept")
    postgres.stop(home)

    second = postgres.ensure(home)

    assert second.password != first.password
    assert one(first, "select text from kept") == "kept"
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(first.dsn(), password=first.password)
    assert second.password not in (home / "server.log").read_text()


@pytest.mark.parametrize("holds", ["password", "next_password"])
def test_whichever_password_holds_after_a_kill_between_the_two_is_found(home: Path, holds: str) -> None:
    server = postgres.ensure(home)
    fields = json.loads((home / "server.json").read_text())
    fields |= {"password": "x", "next_password": "y", "pid": postgres.STARTING, holds: server.password}
    postgres_home.write_private(home / "server.json", json.dumps(fields))

    again = postgres.ensure(home)

    assert again.pid == server.pid
    assert one(again, "select 1") == 1
    assert json.loads((home / "server.json").read_text())["next_password"] == ""


def test_a_server_that_an_earlier_version_started_is_used_and_its_url_holds_no_password(home: Path) -> None:
    server = postgres.ensure(home)
    fields = json.loads((home / "server.json").read_text())
    del fields["next_password"]
    postgres_home.write_private(home / "server.json", json.dumps(fields))
    (home / "server.pgpass").unlink()

    again = postgres.ensure(home)

    assert again == server
    assert one(again, "select 1") == 1


def test_a_live_server_of_an_earlier_version_gets_the_logins_it_lacks(home: Path) -> None:
    server = postgres.ensure(home)
    with psycopg.connect(server.dsn(), autocommit=True) as owner:
        owner.execute("drop role nous_night_login, nous_operator_login, nous_dagster_login")
    fields = json.loads((home / "server.json").read_text())
    fields["login_password"] = fields.pop("login_passwords")[postgres.LOGIN]
    postgres_home.write_private(home / "server.json", json.dumps(fields))

    urls = [postgres.live_url(postgres.login_url(server.dsn(), login)) for login in postgres_home.LOGINS]

    for login, url in zip(postgres_home.LOGINS, urls, strict=True):
        with psycopg.connect(url) as connection:
            assert connection.execute("select session_user").fetchone() == (login,)
    assert {(home / name).stat().st_mode & 0o777 for name in ("server.json", "server.pgpass")} == {0o600}
    assert postgres.running(home) is not None


def test_the_url_of_a_server_that_was_stopped_starts_nothing(home: Path) -> None:
    server = postgres.ensure(home)
    postgres.stop(home)

    with pytest.raises(Unavailable, match="was stopped; start it: `nous up`"):
        postgres.live_url(server.dsn())

    assert postgres.running(home) is None


@pytest.mark.parametrize("url", ["postgresql://nous:x@db.example/nous", "postgresql://h/d?passfile=/etc/pgpass"])
def test_the_url_of_another_server_stays_as_it_is(url: str) -> None:
    assert postgres.live_url(url) == url


def test_a_live_server_is_found_without_a_connection(home: Path) -> None:
    server = postgres.ensure(home)

    assert postgres.live_url(server.dsn("other")) == server.dsn("other")
    assert isinstance(server, Server)
