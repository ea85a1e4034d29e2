"""The statements of a parsed module: a tenth of its nodes, and all that has a name of its own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """Yield every statement below a module or another statement, outer ones first."""
    for block in BLOCKS:
        for each in getattr(node, block, ()):
            yield each
            yield from statements_in(each)
