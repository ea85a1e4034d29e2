"""What a night would ask Claude, in figures: for the dry run, the asset's metadata and the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any

from pydantic import TypeAdapter

from nous_online.core.errors import InvalidInput
from nous_online.database.connection import Database
from nous_pipelines.batches.batch_requests import Models
from nous_pipelines.batches.sending import AgentQuestions, Estimate, estimate_for


@dataclass(frozen=True)
class OfAgent:
    """What is open for one agent: pairs without a verdict, and what becomes of them tonight."""

    agent_id: str
    pairs_open: int
    on_their_way: int
    pairs: int
    requests: int
    estimated_usd: float
    held_back: int
    too_long: int

    @classmethod
    def of(cls, estimate: Estimate) -> OfAgent:
        """Count what an estimate holds."""
        asked = estimate.to_ask
        return cls(
            estimate.agent_id,
            pairs_open=estimate.open_count,
            on_their_way=estimate.on_their_way,
            pairs=asked.pair_count,
            requests=asked.request_count,
            estimated_usd=asked.estimated_usd,
            held_back=asked.held_back,
            too_long=asked.too_long,
        )


COUNTED = ("pairs_open", "on_their_way", "pairs", "requests", "estimated_usd", "held_back", "too_long")


@dataclass(frozen=True)
class PlannedQuestions:
    """What a night asks `model`, agent by agent; nobody where there is no key. `obstacle` says why it can't."""

    model: str = ""
    agents: tuple[OfAgent, ...] = field(default=())
    obstacle: str = ""

    @property
    def figures(self) -> dict[str, Any]:
        """The sums over all agents."""
        if not self.model:
            return {}
        sums = {name: sum(getattr(each, name) for each in self.agents) for name in COUNTED}
        return {"model": self.model, **sums, **({"obstacle": self.obstacle} if self.obstacle else {})}

    def as_dict(self) -> dict[str, Any]:
        """Return this as plain JSON values."""
        return asdict(self)


PLANNED_QUESTIONS = TypeAdapter(PlannedQuestions)
"""Reads back what `as_dict` wrote."""


def asking_of(database: Database, wanted: Iterable[AgentQuestions], *, night: date, models: Models) -> PlannedQuestions:
    """Return what a night would ask; a model without a price is told as an obstacle."""
    found: list[OfAgent] = []
    try:
        for each in wanted:
            found.append(OfAgent.of(estimate_for(database, each, night=night, models=models)))
    except InvalidInput as error:
        return PlannedQuestions(models.judge, tuple(found), str(error))
    return PlannedQuestions(models.judge, tuple(found))


def in_words(figures: Mapping[str, Any], *, is_dry_run: bool) -> str:
    """Return what a night asks in a sentence; nothing when there is nothing to say."""
    if not figures.get("pairs_open"):
        return ""
    verb = "would be sent" if is_dry_run else "were to be sent"
    parts = [
        f"{figures['pairs_open']} pairs wait for {figures['model']}",
        f"{figures['requests']} requests {verb}, for at most {figures['estimated_usd']:.2f} USD",
        f"{figures['on_their_way']} are on their way" if figures["on_their_way"] else "",
        f"{figures['held_back']} are held back by max_cost_usd" if figures["held_back"] else "",
        f"{figures['too_long']} are too long to be asked about" if figures["too_long"] else "",
        figures.get("obstacle", ""),
    ]
    return "; ".join(filter(None, parts))
