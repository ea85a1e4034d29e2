"""Files of other programs that an install writes: shown as a diff first, written at once or not at all."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass
from pathlib import Path

from nous_online.core.errors import InvalidInput


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
