"""Predicting what a session will want."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

from nous_online.context.context_answer import Prediction
from nous_online.context.predicting import PredictionRequest, predict
from nous_online.context.signals import checked_signals
from nous_online.core.details import AskedAt, AskedLimit, AskingProject, AskingSession, AskingUser, SignalsTold
from nous_online.core.validation import checked_limit, checked_moment, checked_optional
from nous_online.memories.agent import Verbs, across_moves


class PredictionVerbs(Verbs):
    """What an agent does to have its memories ready before it asks."""

    @across_moves
    def predict(  # noqa: PLR0913 (what is seen, and when, where and for whom)
        self,
        *,
        signals: SignalsTold,
        session_id: AskingSession = None,
        limit: AskedLimit = 50,
        user_id: AskingUser = None,
        project_id: AskingProject = None,
        at: AskedAt = None,
        deadline_s: float | None = None,
    ) -> Prediction:
        """Return the memories this session is likely to want, with how likely each is and why, and keep what it sees.

        Learned from what sessions with the same file, module, branch, error, hour, collaborator or activity used; what
        was never seen before falls back to memories near to its words. The next context of the session starts from it.
        With `at` it is asked of another moment, of which nothing is kept.
        Raises `InvalidInput`, `DeadlineExceeded` or `Unavailable`.
        """
        deadline = self.agent.deadline(deadline_s)
        told_at = checked_moment("at", at)
        wanted = PredictionRequest(
            session_id=checked_optional("session_id", session_id, max_characters=100) or str(uuid4()),
            at=told_at or datetime.now(UTC),
            limit=checked_limit(limit),
            user_id=checked_optional("user_id", user_id, max_characters=100),
            project_id=checked_optional("project_id", project_id, max_characters=100),
        )
        return predict(self.agent, checked_signals(signals), wanted, deadline, is_now=told_at is None)
