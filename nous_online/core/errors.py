"""Everything Nous raises on purpose: one tree, one subclass per thing a caller would do differently.

Each message names the thing, the value and the fix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nous_online.core.domain import EmbeddingSpace


class NousError(Exception):
    """Any failure Nous foresaw; nothing was half-written when it is raised."""


class InvalidInput(NousError, ValueError):
    """The caller passed something that can't be stored or asked; mend the argument and call again."""


class NotFound(NousError, LookupError):
    """The named agent, memory, night or proposal does not exist here."""


class Unavailable(NousError):
    """A database, embedder or judge can't be reached now; the same call may work later."""


class DeadlineExceeded(Unavailable, TimeoutError):
    """The call did not end in its time; it may be retried, with the same idempotency key."""


class Unsupported(NousError):
    """The server or its pgvector is too old, or the schema does not fit this version of the code."""


class NotIsolated(NousError):
    """One agent could see or change what is another's; the owner of the database closes what the message names."""


class Conflict(NousError):
    """Somebody else changed what this call depends on; read again and decide anew."""


class Stale(Conflict):
    """A memory changed since it was read; looking again and deciding anew may well succeed."""


class Moved(Conflict):
    """The agent was re-embedded into another space than this process embeds for; open it with the embedder of that."""

    def __init__(self, message: str, space: EmbeddingSpace) -> None:
        super().__init__(message)
        self.space = space


class Refused(NousError):
    """A rule forbids the change; the message says which rule and what would have to change first."""


class QuotaExceeded(Refused):
    """The agent keeps as much as its policy lets it; purge or erase something, or raise the limit the message names."""


class Forbidden(Refused):
    """The caller's key may not do this; the message names the limit, and a key that may has to be used."""
