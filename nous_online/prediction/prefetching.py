"""Predicting what a session will want, and keeping it ready for the context that is assembled next."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from psycopg import Connection

from nous_online.agent import Agent
from nous_online.deadline import Deadline
from nous_online.embedding import Vectors
from nous_online.errors import NousError
from nous_online.prediction.answer import Predicted, Prediction
from nous_online.prediction.odds import nearness_chance
from nous_online.prediction.predicting import Outlook, Wanted, outlook, see
from nous_online.prediction.warm import Foreseen, keep_warm, words_of
from nous_online.ranking import RecallPolicy
from nous_online.recall import Cue, recall
from nous_online.signals import Signals

logger = logging.getLogger(__name__)
EMBEDDING_SHARE = 0.5
"""Most of the time left that embedding may take: without a vector the statistics still answer."""
NEAREST = 20
"""Memories taken in for their meaning."""


def predict(agent: Agent, signals: Signals, wanted: Wanted, deadline: Deadline) -> Prediction:
    """Return what sessions like this one used, write down what it sees, and keep the answer for its next context.

    Where it sees what none saw before, memories near to its words come in as well.
    """
    vector = vector_of(agent, words_of(signals), deadline)
    with agent.transaction(deadline) as connection:
        known = outlook(connection, agent.id, signals, wanted)
        near = nearest(connection, agent, signals, wanted, vector) if known.is_new and vector is not None else []
        see(connection, agent.id, signals, wanted.session_id, wanted.at)
    memories = merged(known.memories, near)[: wanted.limit]
    keep_warm(agent, wanted.session_id, Foreseen(signals, wanted.user_id, wanted.project_id, memories, vector))
    return Prediction(wanted.session_id, memories, confidence_of(memories, known))


def vector_of(agent: Agent, words: str | None, deadline: Deadline) -> Vectors | None:
    """Return the vector of the signals' words; None where there are none, or the embedder fails or takes too long."""
    if words is None:
        return None
    try:
        (vector,) = agent.embed([words], Deadline(deadline.remaining() * EMBEDDING_SHARE))
    except NousError as error:
        deadline.remaining()
        logger.warning("the embedder failed, so nothing is predicted by meaning: %s", error)
        return None
    return vector


def nearest(connection: Connection, agent: Agent, signals: Signals, wanted: Wanted, vector: Vectors) -> list[Predicted]:
    """Return the memories nearest to the signals' words."""
    cue = Cue(
        query=words_of(signals) or "",
        embedding=vector,
        limit=min(NEAREST, wanted.limit),
        user_id=wanted.user_id,
        project_id=wanted.project_id,
    )
    found = recall(connection, agent.id, cue, space=agent.embedder.space, policy=RecallPolicy())
    return [
        Predicted(each.id, each.memory.kind, nearness_chance(each.memory.dense), ("near to what is being done",))
        for each in found.answers
        if each.memory.learned_at <= wanted.at
    ]


def merged(known: Iterable[Predicted], near: Iterable[Predicted]) -> tuple[Predicted, ...]:
    """Return both, the likeliest first; of a memory that is in both the higher confidence, and all reasons."""
    found = {each.memory_id: each for each in known}
    for each in near:
        other = found.get(each.memory_id, each)
        reasons = tuple(dict.fromkeys(other.reasons + each.reasons))
        found[each.memory_id] = replace(each, confidence=max(each.confidence, other.confidence), reasons=reasons)
    return tuple(sorted(found.values(), key=lambda each: -each.confidence))


def confidence_of(memories: Iterable[Predicted], known: Outlook) -> float:
    """Return the share of what the session will want that is expected to be among `memories`."""
    among = sum(each.confidence for each in memories)
    return round(min(among / max(known.expected, among), 1.0), 4) if among else 0.0
