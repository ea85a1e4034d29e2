"""The rows of batches in the database, from the intent to send until the results are imported and deleted remotely."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from nous_online.core.errors import InvalidInput, Unavailable, Unsupported
from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.database.statements import statements
from nous_online.language.claude.anthropic_api import cancel_batch, delete_batch, get_batch
from nous_online.language.claude.client import Claude, claude_of
from nous_online.language.claude.judge import CANARIES
from nous_online.language.claude.pair_prompt import PROMPT_VERSION
from nous_online.language.claude.replies import LLMError
from nous_online.language.pairs.judging import Judgement
from nous_online.memories.erasure import Erasure
from nous_online.memories.store import store_verdicts
from nous_pipelines.batches.batch_requests import BatchDraft, PairReference, PriorAttempts, prefix

SQL = statements("nous_pipelines.batches", "batches.sql")
CANARY_NAMES = [canary.name for canary in CANARIES]
OPEN = ("intent", "submitted", "ended")
FOLDER = "batches"
"""The folder of results, under the home of Nous."""
ENDING = ".jsonl"
KEPT_FOR = timedelta(days=29)
"""How long the Anthropic API keeps the results of a batch."""


@dataclass(frozen=True)
class BatchRow:
    """One batch of pairs; `request` has what is needed to import its answers, and no word of a memory."""

    id: UUID
    agent_id: str
    night: date
    model: str
    prompt_version: str
    state: str
    batch_id: str | None
    custom_ids: tuple[str, ...]
    request: Mapping[str, Any]
    raw_sha256: str | None
    request_count: int
    failed_count: int
    estimated_usd: float
    cost_usd: float
    error: str | None
    created_at: datetime

    @property
    def is_open(self) -> bool:
        """Whether its results have not been imported yet."""
        return self.state in OPEN

    @property
    def references(self) -> Sequence[PairReference]:
        """Its pairs, as ids and hashes."""
        return self.request.get("pairs", ())

    @property
    def questions(self) -> list[list[str]]:
        """The pair hashes of each question, in order."""
        found: dict[int, list[str]] = {}
        for reference in self.references:
            found.setdefault(reference[-1], []).append(reference[0])
        return list(found.values())

    @property
    def pair_count(self) -> int:
        """The number of pairs it asks about."""
        return self.request.get("pair_count", 0)

    @property
    def account(self) -> str | None:
        """The account it was sent from; None in rows of versions that did not store it."""
        return self.request.get("account")

    @property
    def canaries(self) -> Sequence[str]:
        """The names of the canaries sent with it, in order; another version may have sent others."""
        return self.request.get("canaries", CANARY_NAMES)

    @property
    def prefix(self) -> str:
        """The prefix of its custom ids."""
        return prefix(self.id)


# --- before sending ---


def hold_batches(connection: Connection, agent_id: str) -> None:
    """Take the lock for sending batches of an agent until the transaction ends, waiting for another sender."""
    connection.execute(SQL["hold_batches"], {"agent_id": agent_id})


def open_pairs(connection: Connection, agent_id: str) -> set[str]:
    """Return the hashes of an agent's pairs in open batches."""
    return {row[0] for row in connection.execute(SQL["open_pairs"], {"agent_id": agent_id})}


def answered_pairs(
    connection: Connection, agent_id: str, hashes: Sequence[str], models: Sequence[str]
) -> dict[tuple[str, str], str]:
    """Return the verdicts of these models about pairs, by hash and model."""
    key = {"agent_id": agent_id, "prompt_version": PROMPT_VERSION}
    found = connection.execute(SQL["answered_pairs"], {**key, "models": list(models), "pair_hashes": list(hashes)})
    return {(pair_hash, model): verdict for pair_hash, model, verdict in found}


def spent(connection: Connection, agent_id: str, night: date) -> float:
    """Return the cost of a night for an agent so far plus the estimate of its open batches, in US dollars."""
    row = connection.execute(SQL["spent"], {"agent_id": agent_id, "night": night}).fetchone()
    return row[0] if row else 0.0


def prior_attempts(connection: Connection, agent_id: str) -> PriorAttempts:
    """Return the pairs that earlier batches of an agent left undecided, with the reasons."""
    return Counter(
        connection.execute(SQL["tried"], {"agent_id": agent_id, "prompt_version": PROMPT_VERSION}).fetchall()
    )


# --- from intent to import ---


def store_intent(connection: Connection, row_id: UUID, night: date, draft: BatchDraft, *, account: str) -> None:
    """Store the batch that is about to be sent, and the account it is sent from (see `Claude.account`)."""
    references = [[*pair.reference, number] for number, question in enumerate(draft.questions) for pair in question]
    connection.execute(
        SQL["store_intent"],
        {
            "id": row_id,
            "agent_id": draft.agent_id,
            "night": night,
            "model": draft.model,
            "prompt_version": PROMPT_VERSION,
            "custom_ids": [custom_id for custom_id, _ in draft.named(row_id)],
            "request": Jsonb(
                {"pairs": references, "pair_count": len(references), "account": account, "canaries": CANARY_NAMES}
            ),
            "request_count": len(draft.requests),
            "estimated_usd": draft.estimated_usd,
        },
    )


def set_state(database: Database, block: str, row: UUID, **values: Any) -> bool:
    """Move a batch to its next state; return False, having changed nothing, if another process did before."""
    with database.transaction() as connection:
        return connection.execute(SQL[block], {"id": row, **values}).rowcount == 1


def is_open(database: Database, row: UUID) -> bool:
    """Return whether a batch is still open, as the database has it now."""
    with database.transaction() as connection:
        return connection.execute(SQL["is_open"], {"id": row}).fetchone() is not None


def import_verdicts(
    connection: Connection, row: BatchRow, judgements: Mapping[str, Judgement], values: Mapping[str, Any]
) -> bool:
    """Store the verdicts of a batch and `values` in its row; return False, storing nothing, if that was done before."""
    if connection.execute(SQL["set_imported"], {"id": row.id, **values}).fetchone() is None:
        return False
    keys = [(row.agent_id, pair_hash) for pair_hash in judgements]
    verdicts = list(judgements.values())
    store_verdicts(connection, keys, verdicts, model=row.model, prompt_version=row.prompt_version)
    return True


# --- queries ---


def unfinished(database: Database, agent_ids: Sequence[str] = ()) -> list[BatchRow]:
    """Return the batches that still need a step, of some agents or all, oldest first."""
    return database.rows(BatchRow, SQL["unfinished"], {"agent_ids": list(agent_ids)})


def given_up(database: Database, agent_id: str, *, since: datetime) -> list[BatchRow]:
    """Return the failed batches of an agent that the API may still keep, oldest first."""
    return database.rows(BatchRow, SQL["given_up"], {"agent_id": agent_id, "since": since})


def about(database: Database, agent_id: str, ids: Sequence[str]) -> list[BatchRow]:
    """Return the batches of an agent that ask about any of these memories, oldest first."""
    return database.rows(BatchRow, SQL["about"], {"agent_id": agent_id, "ids": list(ids)})


def recent(database: Database, agent_ids: Sequence[str] = (), *, limit: int) -> list[BatchRow]:
    """Return every open batch, then the latest others, `limit` in all unless more are open."""
    return database.rows(BatchRow, SQL["recent"], {"agent_ids": list(agent_ids), "limit": limit})


def last_imported(connection: Connection, model: str) -> list[tuple[list[str], list[str]]]:
    """Return wrong canaries and unknown result types of the latest two batches of a model, latest first."""
    parameters = {"model": model, "prompt_version": PROMPT_VERSION}
    return [(wrong or [], types or []) for wrong, types in connection.execute(SQL["last_imported"], parameters)]


def known_batches(connection: Connection, batch_ids: Iterable[str]) -> set[str]:
    """Return which of these batch ids already belong to a row."""
    return {row[0] for row in connection.execute(SQL["known_batches"], {"batch_ids": list(batch_ids)})}


def current_facts(connection: Connection, agent_id: str, ids: Iterable[str]) -> list[tuple[Any, ...]]:
    """Return the present rows of facts in the columns that a judge reads."""
    return connection.execute(SQL["current_facts"], {"agent_id": agent_id, "ids": sorted(set(ids))}).fetchall()


# --- files of raw results: a folder for each database and agent, deleted after a month ---


def results_root(home: Path, database: Database) -> Path:
    """Return the folder of the results of a database's batches."""
    with database.transaction() as connection:
        row = connection.execute(SQL["identity"]).fetchone()
    return home / FOLDER / str(row[0] if row else "unknown")


def agent_folder(root: Path, agent_id: str) -> Path:
    """Return the folder of one agent, named by a hash, since a name may have characters that file systems forbid."""
    return root / hashlib.sha256(agent_id.encode()).hexdigest()[:32]


def results_path(root: Path, row: BatchRow) -> Path:
    """Return the file of one batch and make its folder; raise `Unavailable` when that is not possible."""
    folder = agent_folder(root, row.agent_id)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"{folder} can't be made ({error}); mend it, or set NOUS_HOME to another folder") from error
    return folder / f"{row.id}{ENDING}"


def is_whole(path: Path, sha256: str | None) -> bool:
    """Return whether a file exists with this checksum."""
    if sha256 is None or not path.is_file():
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


def old_results(home: Path, *, kept_days: int, now: datetime) -> Sequence[Path]:
    """Return the complete and partial files of results that were written more than `kept_days` ago."""
    until = (now - timedelta(days=kept_days)).timestamp()
    return [path for path in sorted((home / FOLDER).glob(f"*/*/*{ENDING}*")) if path.stat().st_mtime < until]


# --- erasing ---

DEADLINE_S = 10.0  # for each answer about a batch, and for it to end
PAUSE_S = 0.5


def erase_batches(erasure: Erasure, home: Path) -> Counter[str]:
    """Remove an agent's saved results, and cancel and delete its batches at the API; return counts by outcome.

    A batch that can't be reached has an outcome of its own; raises `Unavailable` when a file can't be removed.
    """
    with closing(Database(erasure.url, role="nous_night", max_connections=1)) as database:
        root, since = results_root(home, database), datetime.now(UTC) - KEPT_FOR
        rows = [*unfinished(database, [erasure.agent_id]), *given_up(database, erasure.agent_id, since=since)]
        if erasure.ids is None:
            folder = agent_folder(root, erasure.agent_id)
            found = remove_files([*folder.glob("*")], erasure)
            if not erasure.is_dry_run:
                with suppress(OSError):  # there is none, or a batch has just been collected into it
                    folder.rmdir()
        else:
            asking = about(database, erasure.agent_id, sorted(erasure.ids))
            found = remove_files([results_path(root, row) for row in asking], erasure)
            rows = [row for row in rows if row.id in {each.id for each in asking}]
        for row in rows:
            found[erased_remotely(database, row, is_dry_run=erasure.is_dry_run)] += 1
    return found


def remove_files(paths: Sequence[Path], erasure: Erasure) -> Counter[str]:
    """Remove files of results and return their number."""
    saved = [path for path in paths if path.is_file()]
    for path in saved if not erasure.is_dry_run else ():
        try:
            path.unlink()
        except OSError as error:
            raise Unavailable(f"{path} can't be removed ({error}); remove it, then erase again") from error
    return +Counter({"results of batches": len(saved)})


def erased_remotely(database: Database, row: BatchRow, *, is_dry_run: bool) -> str:
    """Cancel and delete one batch at the API, and return the outcome in words."""
    if row.batch_id is None:
        return "batches that may have been sent and whose id is unknown"
    if is_dry_run:
        return "batches kept by the API"
    try:
        claude = claude_of(settings())
        claude.open()
        is_deleted = delete_remotely(claude, row.batch_id)
    except (LLMError, InvalidInput, Unsupported):
        return f"batch {row.batch_id} could not be reached: the API keeps it for 29 days"
    if not is_deleted:
        return f"batch {row.batch_id} was cancelled but had not ended: delete it, or the API keeps it for 29 days"
    if row.is_open:
        set_state(database, "set_failed", row.id, error="what it asks about was erased")
    set_state(database, "set_deleted", row.id)
    return "batches deleted from the API"


def delete_remotely(claude: Claude, batch_id: str) -> bool:
    """Delete a batch, cancelling it before if it runs; return False if it has not ended within `DEADLINE_S`.

    The API refuses to delete a batch that is still in progress.
    """
    if not get_batch(claude, batch_id, deadline_s=DEADLINE_S).is_ended:
        cancel_batch(claude, batch_id, deadline_s=DEADLINE_S)
        ends_at = time.monotonic() + DEADLINE_S
        while not get_batch(claude, batch_id, deadline_s=DEADLINE_S).is_ended:
            if time.monotonic() > ends_at:
                return False
            time.sleep(PAUSE_S)
    delete_batch(claude, batch_id, deadline_s=DEADLINE_S)
    return True
