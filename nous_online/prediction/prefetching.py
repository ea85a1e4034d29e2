"""Predicting what a session will want, and keeping it ready for the context that is assembled next."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from nous_online.agent import Agent
from nous_online.deadline import Deadline
from nous_online.prediction.answer import Prediction
from nous_online.prediction.predicting import foreseen, see
from nous_online.signals import Signals


@dataclass(frozen=True)
class Wanted:
    """What a prediction is asked for, checked."""

    signals: Signals
    session_id: str | None
    limit: int
    user_id: str | None
    project_id: str | None
    at: datetime


def predict(agent: Agent, wanted: Wanted, deadline: Deadline) -> Prediction:
    """Write down what the session sees, and return what sessions like it used."""
    session_id = wanted.session_id or str(uuid4())
    asking = {
        "session_id": session_id,
        "at": wanted.at,
        "user_id": wanted.user_id,
        "project_id": wanted.project_id,
    }
    with agent.transaction(deadline) as connection:
        memories, confidence = foreseen(connection, agent.id, wanted.signals, asking, limit=wanted.limit)
        see(connection, agent.id, wanted.signals, session_id, wanted.at)
    return Prediction(session_id, tuple(memories), round(confidence, 4))
