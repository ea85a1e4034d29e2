"""Connections that somebody opens and leaves: they hold nobody else up, and are closed."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack, suppress

import httpx
import pytest
from api_client import app_over, served
from conftest import WordEmbedder

from nous_online.interfaces import request_checks

OPENED = 2 * request_checks.MOST_CONNECTIONS
BEGUN = b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: "


def is_open(connection: socket.socket) -> bool:
    """Tell whether the server has closed a connection it never answered."""
    connection.settimeout(0)
    with suppress(BlockingIOError):
        try:
            return connection.recv(1) != b""
        except ConnectionError:
            return False
    return True


@pytest.mark.parametrize("sent", [b"", BEGUN])
def test_who_opens_many_connections_shuts_nobody_out(
    database_url: str, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(request_checks, "HEADERS_S", 60.0)
    with served(app_over(database_url, embedder)) as address, ExitStack() as held:
        host, _, port = address.removeprefix("http://").partition(":")
        opened, statuses = list[socket.socket](), list[int]()
        for number in range(OPENED):
            opened.append(held.enter_context(socket.create_connection((host, int(port)), timeout=20)))
            opened[-1].sendall(sent)
            if number % 50 == 0:
                statuses.append(httpx.get(f"{address}/health", timeout=20).status_code)

        statuses.append(httpx.get(f"{address}/health", timeout=20).status_code)
        left = [is_open(each) for each in opened]

    assert set(statuses) == {200}
    assert sum(left) <= request_checks.MOST_CONNECTIONS
    assert left == sorted(left)  # those that waited longest were closed


def test_a_connection_that_trickles_its_headers_ends_all_the_same(
    database_url: str, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_checks, "HEADERS_S", 0.5)
    with served(app_over(database_url, embedder)) as address:
        host, _, port = address.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=20) as slow:
            slow.sendall(BEGUN)
            began = time.monotonic()
            while is_open(slow):
                with suppress(ConnectionError):
                    slow.settimeout(5)
                    slow.sendall(b"x")
                time.sleep(0.05)
                assert time.monotonic() - began < 15


def test_a_connection_between_two_requests_waits_no_longer_than_one_at_its_start(
    database_url: str, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_checks, "HEADERS_S", 0.5)
    with served(app_over(database_url, embedder)) as address:
        host, _, port = address.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), timeout=20) as idle:
            idle.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b" 200 OK" in idle.recv(4096)
            while idle.recv(4096):
                pass
