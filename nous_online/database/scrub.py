"""Rewriting what a database keeps on the disk, so that no deleted row is left in its files or its write-ahead log."""

from __future__ import annotations

from contextlib import closing, suppress
from urllib.parse import urlsplit, urlunsplit

from psycopg import Connection
from psycopg.errors import InsufficientPrivilege
from psycopg.sql import SQL, Identifier

from nous_online.database.connection import connect
from nous_online.database.driver_errors import driver_errors_translated
from nous_online.database.statements import statements

BLOCKS = statements("nous_online.database", "scrub.sql")
SCRUB_TIMEOUT_S = 4 * 3600.0  # a table of a million vectors is written anew in some minutes
NEEDS_SUPERUSER = (
    "the planner's statistics and the write-ahead log are a superuser's to rewrite: as one, VACUUM FULL pg_statistic,"
    " then pg_switch_wal() and CHECKPOINT until pg_wal holds no older segment; archives and standbys keep theirs"
)


def scrub(url: str) -> tuple[str, ...]:
    """Write tables anew, of Dagster's database too, empty the write-ahead log, and return what is left to do by hand.

    Each table is locked while it is written, and needs its size on the disk once more. The log is the whole server's;
    on a server where the owner of the database is no superuser it is left, and the answer says so.
    """
    with driver_errors_translated(SCRUB_TIMEOUT_S), closing(connect(url)) as connection:
        for (name,) in connection.execute(BLOCKS["find_dagster"]).fetchall():
            with closing(connect(urlunsplit(urlsplit(url)._replace(path=f"/{name}")))) as records:
                rewrite_tables(records)
        rewrite_tables(connection)
        if connection.execute(BLOCKS["is_superuser"]).fetchone() != (True,):
            return (NEEDS_SUPERUSER,)
        try:
            empty_log(connection)
        except InsufficientPrivilege:  # hosted servers forbid their superusers some of it
            return (NEEDS_SUPERUSER,)
    return ()


def rewrite_tables(connection: Connection) -> None:
    """Write every table of a database anew, with its indexes, and draw its statistics again."""
    for schema, table in connection.execute(BLOCKS["find_tables"]).fetchall():
        connection.execute(SQL(BLOCKS["rewrite_table"]).format(table=Identifier(schema, table)))
    with suppress(InsufficientPrivilege):
        connection.execute(BLOCKS["rewrite_statistics"])


def empty_log(connection: Connection) -> None:
    """Use up every segment of the write-ahead log there is, and have them removed instead of recycled."""
    connection.execute(BLOCKS["set_recycling"])
    try:
        connection.execute(BLOCKS["reload"])
        connection.execute(BLOCKS["checkpoint"])
        (count,) = connection.execute(BLOCKS["count_segments"]).fetchone() or (0,)
        for _ in range(count + 1):
            connection.execute(BLOCKS["leave_segment"])
        for _ in range(2):  # the first leaves the segment that holds its own beginning
            connection.execute(BLOCKS["checkpoint"])
    finally:
        connection.execute(BLOCKS["reset_recycling"])
        connection.execute(BLOCKS["reload"])
