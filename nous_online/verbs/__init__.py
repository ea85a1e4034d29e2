"""The verbs of the heart, a file for each kind of memory: they start the clock and hand over to who acts."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from nous_online.agent import Agent
from nous_online.errors import Moved

P = ParamSpec("P")
V = TypeVar("V", bound="Verbs")
R = TypeVar("R")


class Verbs:
    """What every group of verbs works on."""

    agent: Agent


def across_moves(verb: Callable[Concatenate[V, P], R]) -> Callable[Concatenate[V, P], R]:
    """Let a verb that embeds go over to the space its agent has been moved to, and do it there in the time left.

    It raises `Moved`, having written nothing, where this process can't offer the embedder of that space.
    """

    @wraps(verb)
    def tried(self: V, *arguments: P.args, **details: P.kwargs) -> R:
        seconds: Any = details.get("deadline_s")
        deadline = self.agent.deadline(seconds)
        try:
            return verb(self, *arguments, **details)
        except Moved as moved:
            self.agent = self.agent.followed(moved)
            details["deadline_s"] = deadline.remaining()
            return verb(self, *arguments, **details)

    return tried
