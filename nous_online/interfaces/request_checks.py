"""What HTTP doors ask of a request: whom it means, whether a page of another site sent it, and what lets it in."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from urllib.parse import parse_qs, quote, urlsplit

from starlette.datastructures import Headers

from nous_online.core.settings import settings

LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
OWN_SITE = (None, "same-origin", "none")
"""What `Sec-Fetch-Site` says of our own pages, of an address that was typed, and of programs, which send none."""
TOKEN = "token"  # noqa: S105 (its name in a URL)
TOKEN_BYTES = 24


def is_loopback(host: str) -> bool:
    """Tell whether only programs of this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_of(value: str) -> str:
    """Return the name in a Host header, without the port."""
    name, colon, port = value.rpartition(":")
    return (name if colon and port.isdecimal() else value).lower()


def is_foreign(headers: Headers) -> bool:
    """Tell whether a browser sent a request for a page of another origin, as far as browsers say so of their own.

    A page of another port is of the same site but of another origin, and may be another user's.
    """
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower():
        return True
    return headers.get("sec-fetch-site") not in OWN_SITE


def bearer_of(headers: Headers) -> str:
    """Return the key a request carries; nothing where it carries none."""
    scheme, _, text = headers.get("authorization", "").partition(" ")
    return text.strip() if scheme.lower() == "bearer" else ""


def token_in(query: bytes) -> str:
    """Return the token a URL carries; nothing where it carries none."""
    return parse_qs(query.decode("latin-1")).get(TOKEN, [""])[-1]


def door_token() -> str:
    """Return what opens the doors that ask for no key: NOUS_TOKEN, or what is drawn for this start."""
    told = settings().token
    return secrets.token_urlsafe(TOKEN_BYTES) if told is None else told.get_secret_value()


def with_token(url: str, token: str) -> str:
    """Return an address that lets in whoever opens it."""
    return f"{url}?{TOKEN}={quote(token, safe='')}"


def is_same(given: str, secret: str) -> bool:
    """Compare a secret in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), secret.encode("utf-8"))
