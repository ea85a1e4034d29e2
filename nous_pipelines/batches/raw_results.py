"""Where the results of batches lie as they came: apart for each database and agent, thrown away after a month."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from nous_online.core.errors import Unavailable
from nous_online.database.connection import Database
from nous_pipelines.batches.batch_rows import SQL, BatchRow

FOLDER = "batches"
"""Under the home of Nous."""
ENDING = ".jsonl"


def results_root(home: Path, database: Database) -> Path:
    """Return where the results of a database's batches lie."""
    with database.transaction() as connection:
        row = connection.execute(SQL["identity"]).fetchone()
    return home / FOLDER / str(row[0] if row else "unknown")


def agent_folder(root: Path, agent_id: str) -> Path:
    """Return where those of one agent lie: by a hash, since a name may hold what no file system takes."""
    return root / hashlib.sha256(agent_id.encode()).hexdigest()[:32]


def results_path(root: Path, row: BatchRow) -> Path:
    """Return the file of one batch, in a folder that is there; raise `Unavailable` when it can't be made."""
    folder = agent_folder(root, row.agent_id)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"{folder} can't be made ({error}); mend it, or set NOUS_HOME to another folder") from error
    return folder / f"{row.id}{ENDING}"


def is_whole(path: Path, sha256: str | None) -> bool:
    """Tell whether a file is there as it was saved."""
    if sha256 is None or not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


def old_results(home: Path, *, kept_days: int, now: datetime) -> Sequence[Path]:
    """Return the files of results, and what was begun of one, that were written more than so many days ago."""
    until = (now - timedelta(days=kept_days)).timestamp()
    return [path for path in sorted((home / FOLDER).glob(f"*/*/*{ENDING}*")) if path.stat().st_mtime < until]
