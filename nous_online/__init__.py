"""Long-term memory for AI agents: learn, recall, episodes, procedures, censors, working memory, context."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nous_online.core.domain import Censor, Episode, Fact, Learned, Near, Procedure, Statement
    from nous_online.core.errors import NousError
    from nous_online.database.connection import Database
    from nous_online.heart import Heart
    from nous_online.interfaces.adapters.wrapping import close_conversations, wrap
    from nous_online.memories.agent import Event, Subscription
    from nous_online.memories.checking import Activation, CensorCheck
    from nous_online.memories.contradictions import Contradiction
    from nous_online.memories.decisions import Decision
    from nous_online.memories.doubts import Doubt
    from nous_online.memories.memory_verbs import Forgotten
    from nous_online.memories.sessions import WorkingMemory
    from nous_online.memories.source_undo import SourceUndone
    from nous_online.recall.recall import Recall, Recalled

# Names are fetched when they are first used, so that `import nous_online` costs nothing.
HOMES = {
    "Activation": "nous_online.memories.checking",
    "CensorCheck": "nous_online.memories.checking",
    "Censor": "nous_online.core.domain",
    "Contradiction": "nous_online.memories.contradictions",
    "Database": "nous_online.database.connection",
    "Decision": "nous_online.memories.decisions",
    "Doubt": "nous_online.memories.doubts",
    "Episode": "nous_online.core.domain",
    "Event": "nous_online.memories.agent",
    "Fact": "nous_online.core.domain",
    "Forgotten": "nous_online.memories.memory_verbs",
    "Heart": "nous_online.heart",
    "Learned": "nous_online.core.domain",
    "Near": "nous_online.core.domain",
    "NousError": "nous_online.core.errors",
    "Procedure": "nous_online.core.domain",
    "Recall": "nous_online.recall.recall",
    "Recalled": "nous_online.recall.recall",
    "SourceUndone": "nous_online.memories.source_undo",
    "Statement": "nous_online.core.domain",
    "Subscription": "nous_online.memories.agent",
    "WorkingMemory": "nous_online.memories.sessions",
    "close_conversations": "nous_online.interfaces.adapters.wrapping",
    "wrap": "nous_online.interfaces.adapters.wrapping",
}

__all__ = [
    "Activation",
    "Censor",
    "CensorCheck",
    "Contradiction",
    "Database",
    "Decision",
    "Doubt",
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
    "close_conversations",
    "wrap",
]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        message = f"module 'nous_online' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
