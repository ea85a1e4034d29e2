"""Files to import, and what became of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg

from nous_online.heart import Heart
from nous_online.interfaces.imports.importing import ImportReport, import_history


def written(path: Path, *records: object) -> Path:
    """Write records, and texts as they stand, a line each."""
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def facts_of(owner: psycopg.Connection, columns: str = "content") -> list[tuple]:
    return owner.execute(f"select {columns} from heart.facts order by learned_at, content").fetchall()  # noqa: S608 (columns a test names)


def import_file(heart: Heart, path: Path, **options: Any) -> ImportReport:
    """Import a JSONL file, whatever is in it."""
    return import_history(heart, [path], format="jsonl", **options)


def numbers(report: ImportReport) -> list[int]:
    return [note.number for note in report.bad]
