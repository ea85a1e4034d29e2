"""SQL from `.sql` files: named blocks, read once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

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
