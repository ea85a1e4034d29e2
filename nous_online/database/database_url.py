"""The URL of a database: read once, before libpq does, whose words about a bad one quote it with the password in it."""

from __future__ import annotations

import re

import psycopg
from psycopg.conninfo import conninfo_to_dict

from nous_online.core.errors import Unavailable

FORM = "postgresql://user:password@host:port/database"
BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
HOST_AND_PORT = re.compile(r"\A(\[[^\]]*+\]|[^:\[\]]*)(:[0-9]*)?")


def require_readable(url: str) -> None:
    """Raise `Unavailable` for a URL that libpq could not read, naming the part that is wrong and not what it holds."""
    found = fault_of(url)
    if found:
        raise Unavailable(f"can't connect to PostgreSQL: {found}; mend NOUS_DATABASE_URL, or run `nous up`")


def fault_of(url: str) -> str | None:
    """Return what is wrong with a URL, read as libpq reads it; None where nothing is."""
    scheme, is_url, rest = url.partition("://")
    if is_url and scheme not in ("postgresql", "postgres"):
        return "its URL does not begin with postgresql://"
    if is_url and (found := fault_of_parts(rest)):
        return found
    try:
        conninfo_to_dict(url)
    except psycopg.Error:
        return (
            f"its URL can't be read; it has the form {FORM}, with % and two digits for what is neither letter nor digit"
        )
    return None


def fault_of_parts(rest: str) -> str | None:
    """Return what is wrong between `://` and the end: libpq looks for user and password before the first slash."""
    head, _, tail = rest.partition("/")
    credentials, has_credentials, hosts = head.partition("@") if "@" in head else ("", "", head)
    if "@" in hosts:
        return "the password in its URL has an @; write it as %40"
    if not has_credentials and "@" in tail.partition("?")[0]:
        return "the password in its URL has a /; write it as %2F"
    user, _, password = credentials.partition(":")
    hosts, _, asked = hosts.partition("?")
    database, _, parameters = tail.partition("?")
    parts = {"user": user, "password": password, "host": hosts, "database": database, "parameters": asked + parameters}
    for name, text in parts.items():
        if BAD_ESCAPE.search(text):
            return f"the {name} in its URL has a % without two hexadecimal digits after it; write it as %25"
    if not all(HOST_AND_PORT.fullmatch(host) for host in hosts.split(",")):
        return "the port in its URL is not a number"
    return None


def without_password(text: str, url: str) -> str:
    """Return what was said about a URL that can be read, without its password, which another part may equal."""
    parts = conninfo_to_dict(url)
    password = str(parts.pop("password", None) or "")
    return text if not password or password in map(str, parts.values()) else text.replace(password, "…")
