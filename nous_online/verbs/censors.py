"""Adding and checking censors, and saying when one was wrong."""

from __future__ import annotations

from nous_online.verbs import Verbs


class CensorVerbs(Verbs):
    """What an agent does with censors."""
