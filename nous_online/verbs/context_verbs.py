"""Assembling what an agent is shown before it acts."""

from __future__ import annotations

from typing import Unpack

from nous_online.context import assembling
from nous_online.context.context_answer import Context
from nous_online.core.details import AssemblyDetails
from nous_online.memories.agent import Verbs, across_moves


class ContextVerbs(Verbs):
    """What an agent is shown of its memories."""

    @across_moves
    def assemble_context(self, *, deadline_s: float | None = None, **details: Unpack[AssemblyDetails]) -> Context:
        """Return what is worth knowing now as a text within a budget of tokens, each line with the reason it is there.

        `budget` (8,000 unless told or known by the `frame`) is never exceeded, no memory appears twice, and open
        contradictions are shown as such. `query`, `signals` and the session say what it is about; without them it is
        what stands: what is pinned or in doubt, what happened last, what is most used. `cite` and `ignore` take its
        `recall_id`. Raises `InvalidInput`, `DeadlineExceeded` or `Unavailable`.
        """
        return assembling.assemble(self.agent, details, self.agent.deadline(deadline_s))
