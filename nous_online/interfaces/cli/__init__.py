"""The command line: `nous`. This package is imported for every hook of a coding agent, so commands load late."""

from __future__ import annotations

import gc
import sys

GC_THRESHOLD = 50_000
"""New objects before a garbage collection. Importing Dagster makes a million objects that stay: with Python's default
of 700, collections take a sixth of that time."""


def main() -> None:
    """Run the command line of this process; a hook runs without the rest of it, which takes too long to load."""
    gc.set_threshold(GC_THRESHOLD)
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"} & set(sys.argv):
        from nous_online.interfaces.hooks.hook import answer

        answer(sys.argv[2:])
    from nous_online.interfaces.cli import command_line

    command_line.main()
