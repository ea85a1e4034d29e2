"""Errors of the database driver as ours: the driver's texts may quote rows, hosts and passwords not for the caller."""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import PoolTimeout

from nous_online.core.errors import DeadlineExceeded, InvalidInput, NousError, Refused, Unavailable, Unsupported

TRANSLATIONS: Sequence[tuple[tuple[type[psycopg.Error], ...], type[NousError], str]] = (
    (
        (PoolTimeout,),
        DeadlineExceeded,
        "no connection became free within {seconds:g} s; raise max_connections, or ask for less at once",
    ),
    (
        (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable),
        DeadlineExceeded,
        "the call did not end within {seconds:g} s; raise deadline_s or ask for less",
    ),
    (
        (psycopg.errors.DiskFull,),
        Unavailable,
        "the database can't be written to: the disk is full, free some space; nothing was stored",
    ),
    (
        (psycopg.errors.ReadOnlySqlTransaction,),
        Unavailable,
        "the database can't be written to: it is read-only, or a standby; nothing was stored",
    ),
    (
        (
            psycopg.errors.UndefinedTable,
            psycopg.errors.UndefinedColumn,
            psycopg.errors.UndefinedFunction,
            psycopg.errors.UndefinedObject,
            psycopg.errors.InvalidSchemaName,
        ),
        Unsupported,
        "the schema is incomplete ({name}); restore it, or run `nous doctor`",
    ),
    (
        (psycopg.errors.InsufficientPrivilege,),
        Refused,
        "the database user may not do this; open the agent as itself, or the database once as its owner",
    ),
    ((psycopg.IntegrityError,), Refused, "a rule of the schema forbids it ({name}); nothing was stored"),
    ((psycopg.DataError,), InvalidInput, "the database can't hold a value ({name}); nothing was stored"),
)
TROUBLES = (
    (("Connection refused", "No such file or directory"), "nothing listens at its address"),
    (("authentication failed", "no password supplied", "authentication method"), "it does not take this password"),
    (("failed to resolve", "could not translate host name"), "nobody knows its host"),
    (("timeout", "timed out"), "it does not answer"),
    (("too many clients", "connection slots"), "all its connections are taken"),
    (("permission denied to set role",), "its user may not act as an agent; open the database once as its owner"),
    (("No space left",), "the disk is full, free some space"),
    (("starting up", "shutting down", "recovery"), "it is starting or ending"),
    (("closed", "reset", "Broken pipe", "terminating"), "the connection was closed"),
)
"""Words of libpq about a failed connection, and ours for them (it has no codes for these); the first match counts."""
ABSENT = (("database ", "it has no such database"), ("role ", "it has no such user"))
FORM = "postgresql://user:password@host:port/database"
BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})|%00")
HOST_AND_PORT = re.compile(r"\A(\[[^\]]*+\]|[^:\[\]]*)(:[0-9]*)?")


def connection_failure(error: psycopg.Error) -> str:
    """Return in our words why a connection could not be made or broke."""
    said = str(error)
    for signs, words in TROUBLES:
        if any(sign in said for sign in signs):
            return words
    return next((words for thing, words in ABSENT if thing in said and "does not exist" in said), "it refuses")


@contextmanager
def driver_errors_translated(timeout_s: float) -> Generator[None]:
    """Raise driver errors of this block as ours, with how to fix them; the original stays as `__cause__`."""
    try:
        yield
    except psycopg.Error as error:
        name = type(error).__name__
        if isinstance(error, psycopg.DataError) and "NUL" in str(error):
            name = "a text holds a NUL character"
        elif type(error) is psycopg.errors.IntegrityConstraintViolation:  # the class our own triggers raise
            name = error.diag.message_primary or name
        for raised, ours, template in TRANSLATIONS:
            if isinstance(error, raised):
                raise ours(template.format(name=name, seconds=timeout_s)) from error
        # Only the server sends an SQLSTATE; libpq's own errors have none, and are about the connection.
        why = type(error).__name__ if error.sqlstate else connection_failure(error)
        raise Unavailable(f"the database failed ({why}); nothing was stored unless it was being committed") from error


# --- URLs: checked before libpq reads them, because its message about a bad one quotes the password ---


def require_readable(url: str) -> None:
    """Raise `Unavailable` for a URL that libpq could not read, naming the part that is wrong but never its value."""
    found = url_error(url)
    if found:
        raise Unavailable(f"can't connect to PostgreSQL: {found}; mend NOUS_DATABASE_URL, or run `nous up`")


def url_error(url: str) -> str | None:
    """Return what is wrong with a URL, parsed as libpq does; None for a valid one."""
    scheme, is_url, rest = url.partition("://")
    if is_url and scheme not in ("postgresql", "postgres"):
        return "its URL does not begin with postgresql://"
    if is_url and (found := url_part_error(rest)):
        return found
    try:
        conninfo_to_dict(url)
    except psycopg.Error:
        return (
            f"its URL can't be read; it has the form {FORM}, with % and two digits for what is neither letter nor digit"
        )
    return None


def url_part_error(rest: str) -> str | None:
    """Return what is wrong in the part of a URL after `://`; None for a valid one."""
    head, _, tail = rest.partition("/")  # libpq looks for user and password before the first slash
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
    """Return a text about a valid URL without the password of that URL."""
    parts = conninfo_to_dict(url)
    password = str(parts.pop("password", None) or "")
    # A password that equals the user or the database hides nothing, and cutting it out would garble the text.
    return text if not password or password in map(str, parts.values()) else text.replace(password, "…")
