"""Long-term memory for AI agents: learn, recall, episodes, procedures, censors, working memory, context."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nous_online.database import Database
    from nous_online.domain import Fact, Learned
    from nous_online.errors import NousError
    from nous_online.heart import Heart
    from nous_online.recalling import Recall

# Names are fetched when they are first used, so that `import nous_online` costs nothing.
HOMES = {
    "Database": "nous_online.database",
    "Fact": "nous_online.domain",
    "Heart": "nous_online.heart",
    "Learned": "nous_online.domain",
    "NousError": "nous_online.errors",
    "Recall": "nous_online.recalling",
}

__all__ = ["Database", "Fact", "Heart", "Learned", "NousError", "Recall"]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        message = f"module 'nous_online' has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
