"""What we write is for the account that runs us alone: snapshots, reports, logs and histories hold memories."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

PRIVATE_UMASK = 0o077
OURS = ("background", "batches", "dagster", "history.jsonl", "hooks.log", "run", "snapshots")
"""What lies in a home and holds memories, or words of them; the embedded server keeps its own folders closed."""


def keep_private() -> None:
    """Let this process, and all it starts, make files that nobody else can read: called by every entry point."""
    os.umask(PRIVATE_UMASK)


def tighten(home: Path) -> None:
    """Close what an earlier version left open in a home; what belongs to somebody else stays as it is."""
    for path in readable_by_others(home):
        if path != home:
            with suppress(OSError):
                path.chmod(0o700 if path.is_dir() else 0o600)


def readable_by_others(home: Path) -> Iterator[Path]:
    """Yield what other users could list, read or write: the home, and what lies in it that is ours."""
    for path in (home, *(home / name for name in OURS)):
        with suppress(OSError):
            found = path.lstat().st_mode
            if not stat.S_ISLNK(found) and found & 0o066:
                yield path
