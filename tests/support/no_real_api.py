"""No test reaches the network: every key is taken away, and a connection to anywhere but this machine is an error."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from nous_online.core.settings import settings

LOCAL_NAMES = {"", "localhost", "ip6-localhost"}


class ReachedOut(AssertionError):
    """A test tried to leave this machine."""


@dataclass
class Guard:
    """The address that is left for the API, where nothing listens, and who tried to connect to another machine."""

    address: str
    attempts: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Raise `ReachedOut` if anything was tried since the last look; clients wrap what they catch and go on."""
        attempts, self.attempts = self.attempts, []
        if attempts:
            raise ReachedOut(f"this test wanted to reach {', '.join(attempts)}; let it ask a server on 127.0.0.1")

    def only_to_loopback(self, connect: Any) -> Any:
        """Return a way to connect that reaches this machine alone."""

        def guarded(connecting: socket.socket, address: Any) -> Any:
            if connecting.family in {socket.AF_INET, socket.AF_INET6} and not is_loopback(address[0]):
                self.attempts.append(f"{address[0]}:{address[1]}")
                connecting.close()  # its maker expects an OSError, and would leave it open
                raise ReachedOut(f"a test wanted to connect to {address}")
            return connect(connecting, address)

        return guarded


@contextmanager
def no_real_api(empty: Path) -> Generator[Guard]:
    """Take away what could reach the real API, in this process and those it starts.

    The port of the address that is left is held, so that nobody else listens there. A proxy goes too: one on this
    machine would lead out. `empty` is a folder in which the SDK finds no profile.
    """
    with socket.socket() as held, pytest.MonkeyPatch.context() as patch:
        held.bind(("127.0.0.1", 0))
        guard = Guard(f"http://127.0.0.1:{held.getsockname()[1]}")
        for name in filter(leads_out, list(os.environ)):
            patch.delenv(name)
        patch.setenv("ANTHROPIC_BASE_URL", guard.address)
        patch.setenv("ANTHROPIC_CONFIG_DIR", str(empty))
        for verb in ("connect", "connect_ex"):
            patch.setattr(socket.socket, verb, guard.only_to_loopback(getattr(socket.socket, verb)))
        settings.cache_clear()
        yield guard
    settings.cache_clear()


def leads_out(variable: str) -> bool:
    """Whether a variable of the environment holds a key, an address or a proxy for what a test must not reach."""
    return variable.startswith("ANTHROPIC_") or variable.lower() in {"http_proxy", "https_proxy", "all_proxy"}


def is_loopback(host: str) -> bool:
    """Whether a host is this machine; a name is only where it says so."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host in LOCAL_NAMES
