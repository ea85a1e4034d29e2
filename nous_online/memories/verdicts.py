"""The verdict cache: judgements stored by the content of a pair, so that no judge reads the same pair twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from psycopg import Connection

from nous_online.core.domain import Neighbour, NewFact
from nous_online.database.statements import statements
from nous_online.language.pairs.judging import Judgement
from nous_online.memories.learning import pair_hash, statement_digest

BLOCKS = statements("nous_online.memories", "verdicts.sql")


def keep_readings(
    connection: Connection,
    agent_id: str,
    new: NewFact,
    near: Sequence[Neighbour],
    judgements: Mapping[UUID, Judgement],
    *,
    space_id: str,
) -> None:
    """Store the built-in judge's verdicts on a new fact and its neighbours, so that no night reads the pairs again.

    On a connection in pipeline mode this waits for nothing.
    """
    # A night reads every pair with the earlier statement first, so only verdicts in that order can serve it.
    read = [(near.fact, judgements[near.fact.id]) for near in near if near.fact.id in judgements]
    found = [(known, judgement) for known, judgement in read if judgement.later == "b"]
    if not found:
        return
    said = statement_digest(new.content, new.subject)
    hashes = [
        pair_hash(statement_digest(known.content, known.subject), said, space_id, is_ordered=True) for known, _ in found
    ]
    judged = [judgement for _, judgement in found]
    keys, by = [(agent_id, each) for each in hashes], judged[0]
    store_verdicts(connection, keys, judged, model=by.model, prompt_version=by.prompt_version)


def store_verdicts(
    connection: Connection,
    keys: Sequence[tuple[str, str]],
    judgements: Sequence[Judgement],
    *,
    model: str,
    prompt_version: str,
) -> None:
    """Store a judgement for each agent and hash of a pair; what is stored already stays."""
    columns = {
        "model": model,
        "prompt_version": prompt_version,
        "agent_ids": [agent_id for agent_id, _ in keys],
        "pair_hashes": [pair_hash for _, pair_hash in keys],
        "verdicts": [judgement.verdict.value for judgement in judgements],
        "confidences": [judgement.confidence for judgement in judgements],
        "slots": [judgement.slot for judgement in judgements],
        "laters": [judgement.later for judgement in judgements],
        "reasons": [judgement.reason for judgement in judgements],
        "input_tokens": [judgement.input_tokens for judgement in judgements],
        "output_tokens": [judgement.output_tokens for judgement in judgements],
        "costs_usd": [judgement.cost_usd for judgement in judgements],
    }
    connection.execute(BLOCKS["keep_verdicts"], columns)
