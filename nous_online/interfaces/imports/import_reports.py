"""What an import did, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LineNote:
    """What was wrong with one record of a file."""

    number: int
    message: str
    file: str = ""
    """The file's name, where several were imported."""
    unit: str = "line"
    """What is counted in it: lines, conversations, memories."""

    @property
    def place(self) -> str:
        """Where it stands, in words."""
        return f"{self.file} {self.unit} {self.number}".strip()


@dataclass(frozen=True)
class ImportReport:
    """What an import did; `stored`, `episodes` and `already_known` count memories, of which a record may hold many."""

    source: str
    lines: int
    """How many lines, or conversations or memories where those are what a file holds."""
    stored: int
    episodes: int
    recalls_replayed: int
    already_known: int
    bad_count: int
    bad: tuple[LineNote, ...]
    """The first thousand bad lines."""
    skipped: tuple[tuple[str, int], ...]
    """What was left out although nothing is wrong with it: the reason, and how many."""
    ignored_fields: tuple[str, ...]
    files: int = 1
    is_dry_run: bool = False
    """Whether nothing was stored: the counts say what would have been."""
    of_users: tuple[tuple[str, int], ...] = ()
    """Whose memories they are, where they belong to users, and how many: recall finds these for that user alone."""
    examples: tuple[str, ...] = ()
    """Of a dry run: the first ten, a line each."""

    @property
    def is_resumed(self) -> bool:
        """Whether an earlier run had already stored some of it."""
        return self.already_known > 0

    @property
    def is_useful(self) -> bool:
        """Whether anything in the file was good."""
        return bool(self.stored or self.episodes or self.recalls_replayed or self.already_known)


@dataclass(frozen=True)
class ImportProgress:
    """How far an import has come; everything up to `lines` is stored."""

    lines: int
    bytes_read: int
    total_bytes: int
    stored: int
    already_known: int
    bad_count: int
