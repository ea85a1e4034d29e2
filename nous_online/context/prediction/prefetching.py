"""Predicting what a session will want, and keeping it ready for the context that is assembled next."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from psycopg import Connection

from nous_online.context.prediction.features import ERRORS
from nous_online.context.prediction.predicting import Outlook, PredictionRequest, nearness_of, outlook, see
from nous_online.context.prediction.prediction_answer import Prediction
from nous_online.context.prediction.ready_vectors import keep_warm
from nous_online.context.prediction.scorer import Nearness, expected_share
from nous_online.context.signals import Signals, file_words
from nous_online.core.deadline import Deadline
from nous_online.core.errors import NousError
from nous_online.language.minilm import Vectors
from nous_online.memories.agent import Agent
from nous_online.recall.ranking import RecallPolicy
from nous_online.recall.recall import Cue, Recalled, recall

logger = logging.getLogger(__name__)
EMBEDDING_SHARE = 0.5
"""Most of the time left that embedding may take: without a vector the statistics still answer."""
NEAREST = 100
"""Memories taken in for their words and meaning: of the shares prefetched on traces, 20 lose half of what they add."""


def predict(
    agent: Agent, signals: Signals, wanted: PredictionRequest, deadline: Deadline, *, is_now: bool
) -> Prediction:
    """Return what sessions like this one used and what is near to its words, and leave these ready for its context.

    What the session sees now is written down, for those to come; of another moment nothing is.
    """
    texts = cues_of(signals)
    vectors = embedded(agent, texts, deadline) if texts else None
    with agent.transaction(deadline) as connection:
        near = {} if vectors is None else nearest(connection, agent, wanted, texts, vectors)
        found = outlook(connection, agent.id, signals, wanted, near)
        if is_now:
            see(connection, agent.id, signals, wanted.session_id, wanted.at)
    if vectors is not None:
        keep_warm(agent, wanted.session_id, texts, vectors)
    return Prediction(wanted.session_id, found.memories, confidence_of(found))


def cues_of(signals: Signals) -> list[str]:
    """Return the texts that are searched for: the task, the file, the latest errors and the branch, in words."""
    told = [signals.task, signals.current_file and file_words(signals.current_file), *signals.recent_errors[:ERRORS]]
    branch = signals.branch and file_words(signals.branch)
    return list(dict.fromkeys(text for text in (*told, branch) if text))


def embedded(agent: Agent, texts: Sequence[str], deadline: Deadline) -> Vectors | None:
    """Return the vectors of what is searched for; None when the embedder fails or takes too long."""
    try:
        return agent.embed(texts, Deadline(deadline.remaining() * EMBEDDING_SHARE))
    except NousError as error:
        deadline.remaining()
        logger.warning("the embedder failed, so nothing is predicted by meaning: %s", error)
        return None


def nearest(
    connection: Connection, agent: Agent, wanted: PredictionRequest, texts: Sequence[str], vectors: Vectors
) -> dict[bytes, Nearness]:
    """Return the memories nearest to any of the texts, and how near they are to the nearest of these."""
    found: list[Recalled] = []
    for text, vector in zip(texts, vectors, strict=True):
        cue = Cue(
            query=text,
            embedding=vector,
            limit=NEAREST // len(texts),
            user_id=wanted.user_id,
            project_id=wanted.project_id,
        )
        found += recall(connection, agent.id, cue, space=agent.embedder.space, policy=RecallPolicy()).answers
    return nearness_of(found)


def confidence_of(found: Outlook) -> float:
    """Return the share of what the session will want that is expected to be among the memories."""
    return round(expected_share([each.confidence for each in found.memories], found.expected), 4)
