"""A batch without a night around it: pairs of an agent's facts, a client of the local server, and what is stored."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import anthropic  # noqa: F401 (a process that is forked from one which has it has it too)
import polars as pl
import psycopg
from batch_answers import MODEL

from nous_online.database.connection import Database
from nous_online.language.claude.client import Claude
from nous_pipelines.batches.batch_requests import Models, questions_of
from nous_pipelines.batches.batch_rows import SQL
from nous_pipelines.batches.collecting import Collected, collect
from nous_pipelines.batches.second_judge import AgentQuestions, Sender, SentBatches
from nous_pipelines.phases.asking import STATEMENT_SCHEMA, with_hashes
from nous_pipelines.phases.neighbours import FOUND

NIGHT = date(2026, 6, 1)
MODELS = Models(MODEL, "claude-sonnet-5-5")
NINE, AT_NINE = "The office opens at nine.", "At nine the office opens."
FISH, CATS = "Cats like fish.", "Fish, cats like."
VERDICTS = {(NINE, AT_NINE): "same", (FISH, CATS): "same", (AT_NINE, FISH): "compatible"}


def wanted_of(database: Database, agent_id: str = "aria", *, limit_usd: float = 5.0) -> AgentQuestions:
    """Return each fact of an agent with the next one learned, as pairs its night wants to know about."""
    with database.transaction(agent_id) as connection:
        ids = [
            row[0]
            for row in connection.execute(
                "select id::text from heart.facts where agent_id = %s order by learned_at", [agent_id]
            )
        ]
        facts = pl.DataFrame(
            connection.execute(SQL["current_facts"], {"agent_id": agent_id, "ids": ids}).fetchall(),
            schema=STATEMENT_SCHEMA,
            orient="row",
        )
    said = [datetime(2026, 5, 1, tzinfo=UTC) + timedelta(days=day) for day in range(len(ids) + 1)]
    rows = [
        (agent_id, left, right, 0.95, False, True, said[place], said[place + 1])
        for place, (left, right) in enumerate(pairwise(ids))
    ]
    return AgentQuestions(
        agent_id, questions_of(with_hashes(pl.DataFrame(rows, schema=FOUND, orient="row"), facts), facts), limit_usd
    )


def client_at(url: str) -> Claude:
    """Return a client that is open: what a night asks with has time to load its package."""
    claude = Claude("a-key", base_url=url)
    claude.open()
    return claude


def send_all(database: Database, url: str, *agent_ids: str, limit_usd: float = 5.0, night: date = NIGHT) -> SentBatches:
    """Send what is open for agents."""
    wanted = [wanted_of(database, agent_id, limit_usd=limit_usd) for agent_id in agent_ids or ("aria",)]
    return Sender(database, client_at(url), night, MODELS).send(wanted)


def bring_home(database: Database, url: str, root: Path, *, after: timedelta = timedelta()) -> Collected:
    """Look at open batches once, some time later."""
    return collect(database, client_at(url), root, now=datetime.now(UTC) + after, seconds=30)


def rows_in(owner: psycopg.Connection) -> list[dict[str, Any]]:
    """Return every row about a batch, the oldest first."""
    query = "select to_jsonb(r) from heart.llm_requests r where is_batch order by created_at, id"
    return [row[0] for row in owner.execute(query)]


def states(owner: psycopg.Connection) -> list[str]:
    return [row["state"] for row in rows_in(owner)]


def verdicts_in(owner: psycopg.Connection, *, models: Sequence[str] = (MODEL,)) -> list[str]:
    """Return the verdicts of models, sorted."""
    query = "select verdict from heart.judgements where model = any(%s) order by verdict"
    return [row[0] for row in owner.execute(query, [list(models)])]
