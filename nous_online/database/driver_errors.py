"""What the driver says, in our own words: its own may quote rows, names and hosts that are not for the caller."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import psycopg
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
"""What libpq says of a connection that could not be made or broke, and what we say of it."""
ABSENT = (("database ", "it has no such database"), ("role ", "it has no such user"))


def trouble_of(error: psycopg.Error) -> str:
    """Return in our words why a connection failed."""
    said = str(error)
    for signs, words in TROUBLES:
        if any(sign in said for sign in signs):
            return words
    return next((words for thing, words in ABSENT if thing in said and "does not exist" in said), "it refuses")


def name_of(error: psycopg.Error) -> str:
    """Return the driver's name of an error, or the words of our own triggers: they raise under a code of their own."""
    if isinstance(error, psycopg.DataError) and "NUL" in str(error):
        return "a text holds a NUL character"
    is_ours = type(error) is psycopg.errors.IntegrityConstraintViolation
    return (is_ours and error.diag.message_primary) or type(error).__name__


@contextmanager
def translated(timeout_s: float) -> Generator[None]:
    """Turn driver errors into ours, with what to do about them; the driver's own words stay the cause of ours."""
    try:
        yield
    except psycopg.Error as error:
        for raised, ours, template in TRANSLATIONS:
            if isinstance(error, raised):
                raise ours(template.format(name=name_of(error), seconds=timeout_s)) from error
        why = type(error).__name__ if error.sqlstate else trouble_of(error)
        raise Unavailable(f"the database failed ({why}); nothing was stored unless it was being committed") from error
