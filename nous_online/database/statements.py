"""SQL from `.sql` files: named blocks, read once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import LiteralString, cast

BLOCK_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def statements(package: str, file_name: str) -> Mapping[str, LiteralString]:
    """Return the blocks of one `.sql` file of `package` by name.

    A block starts at a line `-- name: verb_object` and ends before the next one. The files ship with the
    package, so their text is as trusted as code: it is the one place where a string becomes a `LiteralString`.
    """
    parts = BLOCK_NAME.split(files(package).joinpath(file_name).read_text("utf-8"))
    return {name: cast(LiteralString, text.strip()) for name, text in zip(parts[1::2], parts[2::2], strict=True)}
