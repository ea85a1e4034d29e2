"""Predicting what a session will want, and keeping it ready for the context that is assembled next."""

from __future__ import annotations

import logging
from uuid import UUID

from psycopg import Connection

from nous_online.agent import Agent
from nous_online.deadline import Deadline
from nous_online.embedding import Vectors
from nous_online.errors import NousError
from nous_online.prediction.answer import Prediction
from nous_online.prediction.odds import Nearness
from nous_online.prediction.predicting import Outlook, Wanted, outlook, see
from nous_online.prediction.warm import Foreseen, keep_warm, words_of
from nous_online.ranking import RecallPolicy
from nous_online.recall import Cue, recall
from nous_online.signals import Signals

logger = logging.getLogger(__name__)
EMBEDDING_SHARE = 0.5
"""Most of the time left that embedding may take: without a vector the statistics still answer."""
NEAREST = 100
"""Memories taken in for their words and meaning: of the shares prefetched on traces, 20 lose half of what they add."""


def predict(agent: Agent, signals: Signals, wanted: Wanted, deadline: Deadline) -> Prediction:
    """Return what sessions like this one used and what is near to its words, and keep it for its next context.

    What the session sees is written down, for those to come.
    """
    vector = vector_of(agent, words_of(signals), deadline)
    with agent.transaction(deadline) as connection:
        near = {} if vector is None else nearest(connection, agent, signals, wanted, vector)
        found = outlook(connection, agent.id, signals, wanted, near)
        see(connection, agent.id, signals, wanted.session_id, wanted.at)
    keep_warm(agent, wanted.session_id, Foreseen(signals, wanted.user_id, wanted.project_id, found.memories, vector))
    return Prediction(wanted.session_id, found.memories, confidence_of(found))


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


def nearest(
    connection: Connection, agent: Agent, signals: Signals, wanted: Wanted, vector: Vectors
) -> dict[UUID, Nearness]:
    """Return the memories nearest to the signals' words, and how near they are."""
    cue = Cue(
        query=words_of(signals) or "",
        embedding=vector,
        limit=NEAREST,
        user_id=wanted.user_id,
        project_id=wanted.project_id,
    )
    found = recall(connection, agent.id, cue, space=agent.embedder.space, policy=RecallPolicy())
    return {each.id: Nearness(max(each.memory.lexical, 0.0), max(each.memory.dense, 0.0)) for each in found.answers}


def confidence_of(found: Outlook) -> float:
    """Return the share of what the session will want that is expected to be among the memories."""
    among = sum(each.confidence for each in found.memories)
    return round(min(among / found.expected, 1.0), 4) if found.memories else 0.0
