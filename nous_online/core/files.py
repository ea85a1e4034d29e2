"""The home directory, readable by its owner alone, and atomic changes of other programs' files."""

from __future__ import annotations

import difflib
import hashlib
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from nous_online.core.errors import InvalidInput, Unavailable

SHELTER = Path("/var/lib/nous")  # root's default home, and where root puts what the account could not reach otherwise
PRIVATE_UMASK = 0o077
DEMO_DIGITS = 8
OURS = ("background", "batches", "dagster", "history.jsonl", "hooks.log", "run", "snapshots")
"""Entries of a home that hold memories or quote them; the embedded server keeps its own folders closed."""


def is_root() -> bool:
    """Tell whether this process runs as root; never on Windows."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def default_home() -> Path:
    """Return NOUS_HOME if it is set, else /var/lib/nous for root, else the user's data directory."""
    if configured := os.environ.get("NOUS_HOME"):
        return Path(configured)
    if is_root():
        return SHELTER
    import platformdirs

    return platformdirs.user_data_path("nous", appauthor=False)


def demo_home(home: Path | None) -> Path:
    """Return the home of the demo below a home, or the default one: of each installation or clone another."""
    # Two clones of one user, above all of root, would otherwise stop and empty each other's demo.
    place = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256(os.fsencode(place)).hexdigest()[:DEMO_DIGITS]
    return (home or default_home()) / f"demo-{digest}"


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
    """Set the umask so that nobody else can read new files of this process and its children; for entry points."""
    os.umask(PRIVATE_UMASK)


def tighten(home: Path) -> None:
    """Remove other users' access to a home's entries, which an earlier version left; skip those we don't own."""
    for path in readable_by_others(home):
        if path != home:
            with suppress(OSError):
                path.chmod(0o700 if path.is_dir() else 0o600)


def readable_by_others(home: Path) -> Iterator[Path]:
    """Yield the home and those of its entries in `OURS` that other users could list, read or write."""
    for path in (home, *(home / name for name in OURS)):
        with suppress(OSError):
            found = path.lstat().st_mode
            if not stat.S_ISLNK(found) and found & 0o066:
                yield path


# --- files of other programs ---


@dataclass(frozen=True)
class FileChange:
    """A file's text before and after a change; None where the file does not exist."""

    path: Path
    before: str | None
    after: str | None

    @property
    def is_changed(self) -> bool:
        return self.before != self.after

    @property
    def diff(self) -> str:
        """The change as a unified diff without context lines, which may hold tokens of other programs."""
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
    """Replace a file's text atomically, with the mode of the file `like`, or 0600 where that does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path, mode=like.stat().st_mode & 0o777 if like.exists() else 0o600) as file:
        file.write(text.encode("utf-8"))


@contextmanager
def replacing(path: Path, *, mode: int = 0o600) -> Generator[BinaryIO]:
    """Yield a new file that replaces `path` once it is complete; of one that is not, nothing is left."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        # O_EXCL: never through a link that somebody left under that name.
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # before the rename, or a power cut could leave an empty file
        partial.replace(path)
    finally:
        with suppress(OSError):
            partial.unlink()
