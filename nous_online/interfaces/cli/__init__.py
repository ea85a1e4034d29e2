"""The command line: `nous`."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nous_online.interfaces.cli.command_line import application

__all__ = ["application", "main"]

SELDOM = 50_000
"""So many new objects until garbage is looked for. Imports make a million that stay: with Python's 700, a sixth of
their time goes into that."""


def main() -> None:
    """Run the command line of this process; a hook of Claude Code's without the rest of it, which takes too long."""
    gc.set_threshold(SELDOM)
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & set(sys.argv):
        from nous_online.interfaces.hooks.hook import answer

        answer(sys.argv[2:])
    from nous_online.interfaces.cli import command_line

    command_line.main()


def __getattr__(name: str) -> Any:
    if name != "application":
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    from nous_online.interfaces.cli import command_line

    return command_line.application
