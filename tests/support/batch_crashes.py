"""Sending and bringing home in a process of its own, which a test may kill at any of its numbered steps."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from batch_life import bring_home, send_all
from forks import forked

from nous_online.database.connection import Database
from nous_pipelines import failpoints


def work(database_url: str, api_url: str, root: str, point: str) -> None:
    """Send what is open and bring home what has ended, and die at a step."""
    failpoints.on_reach = lambda name: os.kill(os.getpid(), signal.SIGKILL) if name == point else None
    database = Database(database_url, role="nous_night", max_connections=1)
    send_all(database, api_url)
    bring_home(database, api_url, Path(root))
    database.close()


def killed_at(point: str, *, database_url: str, api_url: str, root: Path) -> int | None:
    """Work in another process until it dies at a step, and return its exit code."""
    return forked(work, database_url, api_url, str(root), point, timeout_s=120)
