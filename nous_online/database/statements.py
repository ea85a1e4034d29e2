"""SQL from `.sql` files: named blocks, read once; and their rows as dataclasses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar, cast

if TYPE_CHECKING:
    from psycopg import Connection

V = TypeVar("V")

BLOCK_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
COMMENT_LINE = re.compile(r"^[ \t]*--.*\n?", re.MULTILINE)


@cache
def statements(package: str, file_name: str) -> Mapping[str, LiteralString]:
    """Return the blocks of one `.sql` file of `package` by name.

    A block starts at a line `-- name: verb_object` and ends before the next one; its lines of comment are left out. The
    files ship with the package, so their text is as trusted as code: it is the one place where a string becomes a
    `LiteralString`.
    """
    parts = BLOCK_NAME.split(files(package).joinpath(file_name).read_text("utf-8"))
    # psycopg keeps what it parsed only of statements of up to 4,096 characters, and the server reads every one.
    return {
        name: cast(LiteralString, COMMENT_LINE.sub("", text).strip())
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def fetch(
    connection: Connection,
    value: type[V],
    statement: LiteralString,
    parameters: Mapping[str, Any],
    *,
    row: str | None = None,
    **parts: LiteralString,
) -> list[V]:
    """Return the rows of a statement as instances of `value`, its columns filled in by `fill_columns`."""
    from psycopg.rows import class_row  # here: what only names its statements, such as `nous --help`, loads no driver

    with connection.cursor(row_factory=class_row(value)) as cursor:
        return cursor.execute(fill_columns(statement, value, row, **parts), parameters).fetchall()


@cache
def fill_columns(statement: LiteralString, value: type[Any], row: str | None = None, **parts: LiteralString) -> bytes:
    """Return a statement with the columns of a dataclass (of table `row`) and other parts filled in.

    Cached: composing it takes as long as some queries.
    """
    from psycopg.sql import SQL, Identifier

    names = [field.name for field in fields(value)]
    columns = SQL(", ").join(Identifier(row, name) if row else Identifier(name) for name in names)
    return SQL(statement).format(columns=columns, **{name: SQL(part) for name, part in parts.items()}).as_bytes()
