"""Where Nous keeps its files unless the environment names a place; hooks need it, so it imports little."""

from __future__ import annotations

import os
from pathlib import Path

from nous_online.core.errors import Unavailable

SHELTER = Path("/var/lib/nous")  # root's default home, and where root puts what the account could not reach otherwise


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
