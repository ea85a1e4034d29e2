"""The batches as the database knows them: one row for each, from the wish to ask until what was answered is at home."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from nous_online.core.errors import Unavailable
from nous_online.database.connection import Database
from nous_online.database.statements import statements
from nous_online.language.claude.judge import CANARIES
from nous_online.language.claude.pair_prompt import PROMPT_VERSION
from nous_online.language.pairs.judging import Judgement
from nous_online.memories.verdicts import store_verdicts
from nous_pipelines.batches.batch_requests import Home, Sheet, Tried, prefix

SQL = statements("nous_pipelines.batches", "batches.sql")
CANARY_NAMES = [canary.name for canary in CANARIES]
OPEN = ("intent", "submitted", "ended")
FOLDER = "batches"
"""Under the home of Nous."""
ENDING = ".jsonl"


@dataclass(frozen=True)
class BatchRow:
    """One batch of pairs; `request` brings its answers home and holds no word of a memory."""

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
        """Whether its pairs are on their way."""
        return self.state in OPEN

    @property
    def homes(self) -> Sequence[Home]:
        """What brings its answers home."""
        return self.request.get("pairs", ())

    @property
    def questions(self) -> list[list[str]]:
        """The hashes of the pairs of each question, in their order."""
        found: dict[int, list[str]] = {}
        for home in self.homes:
            found.setdefault(home[-1], []).append(home[0])
        return list(found.values())

    @property
    def pair_count(self) -> int:
        """How many pairs it asked about."""
        return self.request.get("pair_count", 0)

    @property
    def account(self) -> str | None:
        """From which account it was sent; None in a row of a version that did not write it down."""
        return self.request.get("account")

    @property
    def canaries(self) -> Sequence[str]:
        """The names of the canaries that were sent with it, in their order, which another version may not know."""
        return self.request.get("canaries", CANARY_NAMES)

    @property
    def prefix(self) -> str:
        """What its custom ids begin with."""
        return prefix(self.id)


# --- what is known before anything is sent ---


def hold_batches(connection: Connection, agent_id: str) -> None:
    """Wait until nobody else sends for an agent, and let nobody until the transaction ends."""
    connection.execute(SQL["hold_batches"], {"agent_id": agent_id})


def open_pairs(connection: Connection, agent_id: str) -> set[str]:
    """Return the hashes of an agent's pairs that are on their way."""
    return {row[0] for row in connection.execute(SQL["open_pairs"], {"agent_id": agent_id})}


def answered_pairs(
    connection: Connection, agent_id: str, hashes: Sequence[str], models: Sequence[str]
) -> dict[tuple[str, str], str]:
    """Return the verdicts of these models about pairs, by hash and model."""
    key = {"agent_id": agent_id, "prompt_version": PROMPT_VERSION}
    found = connection.execute(SQL["answered_pairs"], {**key, "models": list(models), "pair_hashes": list(hashes)})
    return {(pair_hash, model): verdict for pair_hash, model, verdict in found}


def spent(connection: Connection, agent_id: str, night: date) -> float:
    """Return what a night cost an agent so far, and its open batches may yet, in US dollars."""
    row = connection.execute(SQL["spent"], {"agent_id": agent_id, "night": night}).fetchone()
    return row[0] if row else 0.0


def tried(connection: Connection, agent_id: str) -> Tried:
    """Return what earlier batches of an agent left unsettled, and why."""
    rows = connection.execute(SQL["tried"], {"agent_id": agent_id, "prompt_version": PROMPT_VERSION}).fetchall()
    return Tried.of(rows)


# --- from the wish to ask until everything is at home ---


def store_intent(connection: Connection, row_id: UUID, night: date, sheet: Sheet, *, account: str) -> None:
    """Write down what is about to be sent, and from which account (see `Claude.account`)."""
    homes = [[*pair.home, number] for number, question in enumerate(sheet.questions) for pair in question]
    connection.execute(
        SQL["store_intent"],
        {
            "id": row_id,
            "agent_id": sheet.agent_id,
            "night": night,
            "model": sheet.model,
            "prompt_version": PROMPT_VERSION,
            "custom_ids": [custom_id for custom_id, _ in sheet.named(row_id)],
            "request": Jsonb({"pairs": homes, "pair_count": len(homes), "account": account, "canaries": CANARY_NAMES}),
            "request_count": len(sheet.requests),
            "estimated_usd": sheet.estimated_usd,
        },
    )


def set_state(database: Database, block: str, row: UUID, **values: Any) -> bool:
    """Take a batch one step further; false, and nothing is changed, if somebody else did already."""
    with database.transaction() as connection:
        return connection.execute(SQL[block], {"id": row, **values}).rowcount == 1


def is_open(database: Database, row: UUID) -> bool:
    """Tell whether a batch is still on its way, as the database knows it now."""
    with database.transaction() as connection:
        return connection.execute(SQL["is_open"], {"id": row}).fetchone() is not None


def import_verdicts(
    connection: Connection, row: BatchRow, judgements: Mapping[str, Judgement], values: Mapping[str, Any]
) -> bool:
    """Store the verdicts of a batch and `values` of its row, at once; false, and nothing is, if somebody else has."""
    if connection.execute(SQL["set_imported"], {"id": row.id, **values}).fetchone() is None:
        return False
    keys = [(row.agent_id, pair_hash) for pair_hash in judgements]
    verdicts = list(judgements.values())
    store_verdicts(connection, keys, verdicts, model=row.model, prompt_version=row.prompt_version)
    return True


# --- looking back ---


def unfinished(database: Database, agent_ids: Sequence[str] = ()) -> list[BatchRow]:
    """Return the batches something is still to be done about, of some agents or all, the oldest first."""
    return database.rows(BatchRow, SQL["unfinished"], {"agent_ids": list(agent_ids)})


def given_up(database: Database, agent_id: str, *, since: datetime) -> list[BatchRow]:
    """Return the batches of an agent that failed and that the API may keep still, the oldest first."""
    return database.rows(BatchRow, SQL["given_up"], {"agent_id": agent_id, "since": since})


def about(database: Database, agent_id: str, ids: Sequence[str]) -> list[BatchRow]:
    """Return the batches of an agent that ask about one of some memories, the oldest first."""
    return database.rows(BatchRow, SQL["about"], {"agent_id": agent_id, "ids": list(ids)})


def recent(database: Database, agent_ids: Sequence[str] = (), *, limit: int) -> list[BatchRow]:
    """Return every open batch, then the latest others, `limit` in all unless more are open."""
    return database.rows(BatchRow, SQL["recent"], {"agent_ids": list(agent_ids), "limit": limit})


def last_imported(connection: Connection, model: str) -> list[tuple[list[str], list[str]]]:
    """Return of the latest two batches of a model which canaries were wrong, and which types of result unknown."""
    parameters = {"model": model, "prompt_version": PROMPT_VERSION}
    return [(wrong or [], types or []) for wrong, types in connection.execute(SQL["last_imported"], parameters)]


def known_batches(connection: Connection, batch_ids: Iterable[str]) -> set[str]:
    """Return which batches a row already names."""
    return {row[0] for row in connection.execute(SQL["known_batches"], {"batch_ids": list(batch_ids)})}


def facts_told(connection: Connection, agent_id: str, ids: Iterable[str]) -> list[tuple[Any, ...]]:
    """Return facts as they read now, in the columns a judge is told of."""
    return connection.execute(SQL["facts_told"], {"agent_id": agent_id, "ids": sorted(set(ids))}).fetchall()


# --- where the results lie as they came: apart for each database and agent, thrown away after a month ---


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
