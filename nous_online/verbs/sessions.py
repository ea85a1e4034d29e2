"""Working memory: what a session is about, and what it holds."""

from __future__ import annotations

from nous_online.verbs import Verbs


class SessionVerbs(Verbs):
    """What an agent does with the working memory of a session."""
