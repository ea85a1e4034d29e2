"""Erasing an agent, or a part of it, from its batches: what was saved of them here, and what the API still holds."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from nous_online.core.errors import InvalidInput, Unavailable, Unsupported
from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.language.claude.anthropic_api import cancel_batch, delete_batch, get_batch
from nous_online.language.claude.client import Claude, claude_of
from nous_online.language.claude.replies import LLMError
from nous_online.memories.erasure import Erasure
from nous_pipelines.batches.batch_rows import (
    BatchRow,
    about,
    agent_folder,
    given_up,
    results_path,
    results_root,
    set_state,
    unfinished,
)
from nous_pipelines.batches.collecting import KEPT_FOR

DEADLINE_S = 10.0  # for each answer about a batch, and for it to end
PAUSE_S = 0.5


def erase_batches(erasure: Erasure, home: Path) -> Counter[str]:
    """Remove an agent's saved results, and cancel and delete its batches remotely; return how many of which.

    A batch that can't be reached is named with what is left of it; raises `Unavailable` when a file can't be removed.
    """
    with closing(Database(erasure.url, role="nous_night", max_connections=1)) as database:
        root, since = results_root(home, database), datetime.now(UTC) - KEPT_FOR
        rows = [*unfinished(database, [erasure.agent_id]), *given_up(database, erasure.agent_id, since=since)]
        if erasure.ids is None:
            found = remove_results(agent_folder(root, erasure.agent_id), erasure)
        else:
            asking = about(database, erasure.agent_id, sorted(erasure.ids))
            found = remove_files([results_path(root, row) for row in asking], erasure)
            rows = [row for row in rows if row.id in {each.id for each in asking}]
        for row in rows:
            found[erased_remotely(database, row, is_dry_run=erasure.is_dry_run)] += 1
    return found


def remove_results(folder: Path, erasure: Erasure) -> Counter[str]:
    """Remove the folder with an agent's results and return how many there were."""
    saved = [path for path in folder.glob("*") if path.is_file()]
    if saved and not erasure.is_dry_run:
        try:
            shutil.rmtree(folder)
        except OSError as error:
            raise Unavailable(f"{folder} can't be removed ({error}); remove it, then erase again") from error
    return +Counter({"results of batches": len(saved)})


def remove_files(paths: Sequence[Path], erasure: Erasure) -> Counter[str]:
    """Remove the results of some batches and return how many there were."""
    saved = [path for path in paths if path.is_file()]
    for path in saved if not erasure.is_dry_run else ():
        try:
            path.unlink()
        except OSError as error:
            raise Unavailable(f"{path} can't be removed ({error}); remove it, then erase again") from error
    return +Counter({"results of batches": len(saved)})


def erased_remotely(database: Database, row: BatchRow, *, is_dry_run: bool) -> str:
    """Cancel and delete one batch where the API keeps it, and return what became of it in words."""
    if row.batch_id is None:
        return "batches that may have been sent and whose id is unknown"
    if is_dry_run:
        return "batches kept by the API"
    try:
        claude = claude_of(settings())
        claude.open()
        is_deleted = let_go(claude, row.batch_id)
    except (LLMError, InvalidInput, Unsupported):
        return f"batch {row.batch_id} could not be reached: the API keeps it for 29 days"
    if not is_deleted:
        return f"batch {row.batch_id} was cancelled but had not ended: delete it, or the API keeps it for 29 days"
    if row.is_open:
        set_state(database, "set_failed", row.id, error="what it asks about was erased")
    set_state(database, "set_deleted", row.id)
    return "batches deleted from the API"


def let_go(claude: Claude, batch_id: str) -> bool:
    """Delete a batch, cancelling it before if need be; false when that does not end it within seconds."""
    if not get_batch(claude, batch_id, deadline_s=DEADLINE_S).is_ended:
        cancel_batch(claude, batch_id, deadline_s=DEADLINE_S)
        ends_at = time.monotonic() + DEADLINE_S
        while not get_batch(claude, batch_id, deadline_s=DEADLINE_S).is_ended:
            if time.monotonic() > ends_at:
                return False
            time.sleep(PAUSE_S)
    delete_batch(claude, batch_id, deadline_s=DEADLINE_S)
    return True
