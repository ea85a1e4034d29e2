"""Serving the interface: where it listens, whom it lets in, and how it stops."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from nous_online.api.application import Access, application
from nous_online.children import python_module
from nous_online.errors import InvalidInput
from nous_online.policy import ApiPolicy

HOST, PORT = "127.0.0.1", 8420
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})


def command(port: int) -> list[str]:
    """Return how to start the interface on this machine alone, without keys."""
    return python_module("nous_online.cli", "api", "--port", str(port), "--no-keys")


def is_loopback(host: str) -> bool:
    """Tell whether only programs of this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def access_at(host: str, *, requires_keys: bool, names: Sequence[str] = (), policy: ApiPolicy | None = None) -> Access:
    """Return who is let in at an address; raise `InvalidInput` where strangers could come in without a key.

    On loopback the server goes by the names of this machine, else a page in a browser could reach it by a name of its
    own (DNS rebinding); elsewhere by those that are named, or by any.
    """
    if not requires_keys and not is_loopback(host):
        message = f"--no-keys serves this machine alone, and {host!r} is more; leave --no-keys out, or --host"
        raise InvalidInput(message)
    own = LOOPBACK_NAMES | {host.lower()} if is_loopback(host) else frozenset[str]()
    known = own | {name.lower() for name in names}
    return Access(requires_keys=requires_keys, hosts=known or None, policy=policy or ApiPolicy())


def serve(access: Access, *, host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM; calls under way are finished first."""
    import uvicorn

    uvicorn.run(
        application(access=access),
        host=host.strip("[]"),
        port=port,
        log_level="info",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=access.policy.drain_s,
        ws="none",
    )
