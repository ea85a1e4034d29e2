"""A disk in memory for what tests write: nothing of it shall last, and a busy disk takes 3 ms to delete each file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

ROOM = 2**30
"""Bytes that have to be free."""


def memory_disk() -> Path | None:
    """Return the folder of a disk in memory that has room; None where there is none, as on a Mac."""
    disk = Path("/dev/shm")  # noqa: S108 (each user of it makes a folder of its own)
    return disk if os.access(disk, os.W_OK) and shutil.disk_usage(disk).free > ROOM else None


def may_run_programs(disk: Path) -> bool:
    """Tell whether a program on a disk may be started: containers often forbid it."""
    return not os.statvfs(disk).f_flag & os.ST_NOEXEC
