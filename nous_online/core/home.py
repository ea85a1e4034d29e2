"""Where Nous keeps its files, and how they stay private to its account; hooks need it, so it imports little."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from nous_online.core.errors import Unavailable

SHELTER = Path("/var/lib/nous")  # root's default home, and where root puts what the account could not reach otherwise
PRIVATE_UMASK = 0o077
OURS = ("background", "batches", "dagster", "history.jsonl", "hooks.log", "run", "snapshots")
"""What lies in a home and holds memories, or words of them; the embedded server keeps its own folders closed."""


def is_root() -> bool:
    """Say whether this process has root's powers; never on Windows."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def default_home() -> Path:
    """Return NOUS_HOME if it is set, else /var/lib/nous for root, else the user's data directory."""
    if configured := os.environ.get("NOUS_HOME"):
        return Path(configured)
    if is_root():
        return SHELTER
    import platformdirs

    return platformdirs.user_data_path("nous", appauthor=False)


def make_directory(path: Path) -> None:
    """Create `path` and its missing parents; never changes one that exists. Raises `Unavailable`."""
    mode = 0o711 if is_root() else 0o700  # root's server runs under another account, which must pass through
    missing = [each for each in (path, *path.parents) if not each.exists()]
    try:
        for each in reversed(missing):
            each.mkdir(exist_ok=True)
            each.chmod(mode)
    except OSError as error:
        raise Unavailable(
            f"Cannot create the directory {path} ({error.strerror}); name a writable one (NOUS_HOME)."
        ) from error


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
