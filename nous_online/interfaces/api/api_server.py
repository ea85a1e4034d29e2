"""Serving the interface: where it listens, whom it lets in, and how it stops."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any

from starlette.types import ASGIApp

from nous_online.core.errors import InvalidInput
from nous_online.core.policy import ApiPolicy
from nous_online.core.settings import settings
from nous_online.interfaces.api.application import Access, application
from nous_online.interfaces.audit import show_trail
from nous_online.interfaces.request_checks import LOOPBACK_NAMES, is_loopback
from nous_online.processes import python_module

HOST, PORT = "127.0.0.1", 8420


def command(port: int) -> list[str]:
    """Return how to start the interface on this machine alone, without keys."""
    return python_module("nous_online.interfaces.cli", "api", "--port", str(port), "--no-keys")


def access_at(
    host: str,
    *,
    requires_keys: bool,
    names: Sequence[str] = (),
    has_proxy: bool = False,
    policy: ApiPolicy | None = None,
) -> Access:
    """Return who is let in at an address; raise `InvalidInput` where strangers could come in without a key.

    On loopback the server goes by the names of this machine, else a page in a browser could reach it by a name of its
    own (DNS rebinding); elsewhere by those that are named, or by any.
    """
    if not requires_keys and not is_loopback(host):
        message = f"--no-keys serves this machine alone, and {host!r} is more; leave --no-keys out, or --host"
        raise InvalidInput(message)
    own = LOOPBACK_NAMES | {host.lower()} if is_loopback(host) else frozenset[str]()
    known = own | {name.lower() for name in names}
    told = settings().token
    return Access(
        requires_keys=requires_keys,
        token=None if told is None else told.get_secret_value(),
        hosts=known or None,
        opens_metrics=is_loopback(host) and not has_proxy,
        policy=policy or ApiPolicy(),
    )


def proxy_at(text: str) -> str:
    """Return the address, or network, of a proxy; raise `InvalidInput` for what is neither."""
    try:
        return str(ipaddress.ip_network(text.strip(), strict=False))
    except ValueError as error:
        message = f"not a valid address of a proxy: {text!r} (want one such as 127.0.0.1 or 10.0.0.0/8)"
        raise InvalidInput(message) from error


def serve(access: Access, *, host: str, port: int, proxy: str | None = None) -> None:
    """Serve until SIGINT or SIGTERM; calls under way are finished first."""
    import uvicorn

    show_trail()
    uvicorn.run(**configuration(application(access=access), access.policy, host=host, port=port, proxy=proxy))


def configuration(app: ASGIApp, policy: ApiPolicy, *, host: str, port: int, proxy: str | None) -> dict[str, Any]:
    """Return how uvicorn serves.

    It would believe any program of this machine that names another address as its own, and calls are counted by
    address: only `proxy` is believed.
    """
    from nous_online.interfaces.api.connections import BACKLOG, Connection

    return dict(  # noqa: C408 (these are arguments)
        app=app,
        http=Connection,
        backlog=BACKLOG,
        host=host.strip("[]"),
        port=port,
        log_level="info",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=policy.drain_s,
        proxy_headers=proxy is not None,
        forwarded_allow_ips=proxy,
        ws="none",
    )
