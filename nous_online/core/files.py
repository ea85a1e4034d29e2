"""Files: the home folder, for its owner alone; and files of other programs, written at once or not at all."""

from __future__ import annotations

import difflib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nous_online.core.errors import InvalidInput, Unavailable

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


# --- files of other programs ---


@dataclass(frozen=True)
class FileChange:
    """What becomes of one file: None where there is none, before or after."""

    path: Path
    before: str | None
    after: str | None

    @property
    def is_changed(self) -> bool:
        """Whether anything is to be written."""
        return self.before != self.after

    @property
    def diff(self) -> str:
        """What changes, as a unified diff without the lines around it: they may hold somebody's tokens."""
        old, new = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
        lines = difflib.unified_diff(old, new, str(self.path), str(self.path), n=0)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def text_of_file(path: Path) -> str | None:
    """Return the text of a file, None where there is none."""
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} can't be read ({error}); mend it first: nothing was changed") from error


def put(path: Path, text: str, *, like: Path) -> None:
    """Put a text in the place of a file, with the rights of another, or none for anybody else."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = like.stat().st_mode & 0o777 if like.exists() else 0o600
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
