"""The Python programs we start: they import nothing, and read nothing, from the folder somebody happens to stand in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from nous_online.core.home import make_directory
from nous_online.core.settings import settings
from nous_online.database import postgres

FOLDERS = ("NOUS_HOME", "NOUS_PRICES", "DAGSTER_HOME")
"""Variables that name a path, which a program in another folder would misread."""


def python_module(module: str, *arguments: str) -> list[str]:
    """Return how to run a module; `-P` keeps Python from looking for it, and what it imports, in the current folder."""
    return [sys.executable, "-P", "-m", module, *arguments]


def python_program(program: str, *arguments: str) -> list[str]:
    """Return how to run a program given as text, as little exposed to the current folder as a module."""
    return [sys.executable, "-P", "-c", program, *arguments]


def child_environment(**more: str) -> dict[str, str]:
    """Return the environment of a child: ours and `more`, with every path as it is meant from our current folder.

    PYTHONSAFEPATH says to what the child starts in turn what `-P` says to the child. An empty entry of PYTHONPATH
    means the current folder, so it goes.
    """
    given = {**os.environ, **more, "PYTHONSAFEPATH": "1"}
    absolute = {name: str(Path(given[name]).expanduser().absolute()) for name in FOLDERS if given.get(name)}
    entries = [str(Path(entry).absolute()) for entry in given.get("PYTHONPATH", "").split(os.pathsep) if entry]
    return {**given, **absolute, "PYTHONPATH": os.pathsep.join(entries)}


def child_folder() -> Path:
    """Return the folder a child works in: the home of Nous, made if need be, where no stranger puts a `.env`.

    Raises `Unavailable` when it can't be made.
    """
    home = (settings().home or postgres.default_home()).expanduser().absolute()
    make_directory(home)
    return home
