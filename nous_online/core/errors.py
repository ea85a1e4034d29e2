"""Everything Nous raises on purpose: one tree, one subclass per thing a caller would do differently.

Each message names the thing, the value and the fix.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nous_online.core.domain import EmbeddingSpace


class NousError(Exception):
    """Base of all errors that Nous raises on purpose; nothing is half-written when one is raised."""


class InvalidInput(NousError, ValueError):
    """An argument is not valid; fix it and call again."""


class NotFound(NousError, LookupError):
    """The named agent, memory, night or proposal does not exist here."""


class Unavailable(NousError):
    """A database, embedder or judge can't be reached now; the same call may work later."""


class DeadlineExceeded(Unavailable, TimeoutError):
    """The call did not end by its deadline; it may be retried, with the same idempotency key."""


class Unsupported(NousError):
    """The server or its pgvector is too old, or the schema does not fit this version of the code."""


class NotIsolated(NousError):
    """One agent could see or change rows of another; the owner of the database closes the gaps the message names."""


class Conflict(NousError):
    """Another call changed what this one depends on; read it again, then decide."""


class Stale(Conflict):
    """A memory changed since it was read; reading it again and retrying usually succeeds."""


class Moved(Conflict):
    """The agent was re-embedded for another space than this process embeds for; open it with that space's embedder."""

    def __init__(self, message: str, space: EmbeddingSpace) -> None:
        super().__init__(message)
        self.space = space


class Refused(NousError):
    """A rule forbids the change; the message says which rule and what would have to change first."""


class QuotaExceeded(Refused):
    """The agent has as many memories as its policy allows; purge or erase some, or raise the limit in the message."""


class Forbidden(Refused):
    """The caller's key has no right to do this; the message names the limit; use a key with more rights."""
