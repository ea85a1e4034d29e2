"""Long-term memory for AI agents: learn, recall, episodes, procedures, censors, working memory, context."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nous_online.attention import WorkingMemory
    from nous_online.checking import Activation, CensorCheck
    from nous_online.contradictions import Contradiction
    from nous_online.database import Database
    from nous_online.decisions import Decision
    from nous_online.domain import Censor, Episode, Fact, Learned, Near, Procedure, Statement
    from nous_online.errors import NousError
    from nous_online.heart import Heart
    from nous_online.memories import Forgotten
    from nous_online.outbox import Event, Subscription
    from nous_online.recall import Recalled
    from nous_online.recalling import Recall
    from nous_online.source_undo import SourceUndone

# Names are fetched when they are first used, so that `import nous_online` costs nothing.
HOMES = {
    "Activation": "nous_online.checking",
    "CensorCheck": "nous_online.checking",
    "Censor": "nous_online.domain",
    "Contradiction": "nous_online.contradictions",
    "Database": "nous_online.database",
    "Decision": "nous_online.decisions",
    "Episode": "nous_online.domain",
    "Event": "nous_online.outbox",
    "Fact": "nous_online.domain",
    "Forgotten": "nous_online.memories",
    "Heart": "nous_online.heart",
    "Learned": "nous_online.domain",
    "Near": "nous_online.domain",
    "NousError": "nous_online.errors",
    "Procedure": "nous_online.domain",
    "Recall": "nous_online.recalling",
    "Recalled": "nous_online.recall",
    "SourceUndone": "nous_online.source_undo",
    "Statement": "nous_online.domain",
    "Subscription": "nous_online.outbox",
    "WorkingMemory": "nous_online.attention",
}

__all__ = [
    "Activation",
    "Censor",
    "CensorCheck",
    "Contradiction",
    "Database",
    "Decision",
    "Episode",
    "Event",
    "Fact",
    "Forgotten",
    "Heart",
    "Learned",
    "Near",
    "NousError",
    "Procedure",
    "Recall",
    "Recalled",
    "SourceUndone",
    "Statement",
    "Subscription",
    "WorkingMemory",
]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        message = f"module 'nous_online' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
