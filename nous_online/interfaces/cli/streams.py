"""The standard streams of a command: any text can be written, and a reader who leaves early is no error."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TextIO

from nous_online.interfaces.cli.output import unwritten


def settle() -> None:
    """Make the streams take any text, and those that were closed take it nowhere."""
    sys.stdout = sys.stdout or nowhere()
    sys.stderr = sys.stderr or nowhere()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:
            reconfigure(errors="backslashreplace")  # a memory may hold what the terminal can't show


def nowhere() -> TextIO:
    """Return a stream that takes everything and keeps nothing."""
    return Path(os.devnull).open("w", encoding="utf-8")


def flushed(code: str | int | None) -> str | int | None:
    """Write what is still to be written, and return the exit code: another one where that failed."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # what Python still holds would be tried again, and fail again, when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or unwritten(error)
    return code
