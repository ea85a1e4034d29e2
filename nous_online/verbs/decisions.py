"""Recording and resolving decisions, and the events that go out and come in."""

from __future__ import annotations

from nous_online.verbs import Verbs


class DecisionVerbs(Verbs):
    """What an agent does with its decisions and events."""
