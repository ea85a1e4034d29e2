"""What language models cost: sums over the metered requests, by night, purpose, model, agent and way.

`nous cost` is registered for every command line, so nothing here imports what a report needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from nous_online.database.statements import statements

if TYPE_CHECKING:
    from nous_online.database.connection import Database

SQL = statements("nous_pipelines.reports", "costs.sql")
TIMEOUT_S = 120.0
LEAST_USD = 0.0001
DEAREST = 20
"""How many agents the metadata of a run names."""

SHORT = (1_000_000, "M"), (1_000, "k")


class Dimension(StrEnum):
    """What a sum may be broken down by."""

    NIGHT = "night"
    PURPOSE = "purpose"
    MODEL = "model"
    AGENT = "agent"
    WAY = "way"


@dataclass(frozen=True)
class Cost:
    """What some requests to a language model cost, failed ones included; what they are summed over is None."""

    night: date | None
    """The night they were made in, or the day, in UTC, when it was outside of one."""
    purpose: str | None
    model: str | None
    agent_id: str | None
    way: str | None
    """`batch` or `online`."""
    requests: int
    failed: int
    under_way: int
    """Requests of batches that are not collected yet."""
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    usd: float
    expected_usd: float
    """What those under way will cost at the most."""

    @property
    def tokens(self) -> int:
        """All tokens, those read from the cache or written to it included."""
        return self.input_tokens + self.output_tokens + self.cache_read_tokens + self.cache_write_tokens


def costs_of(
    database: Database,
    by: Sequence[Dimension] = tuple(Dimension),
    *,
    first: date | None = None,
    last: date | None = None,
    agent_ids: Sequence[str] = (),
    nights_only: bool = False,
) -> list[Cost]:
    """Return what was spent from one night to another, broken down: night by night, the dearest first.

    With `nights_only` what agents asked outside of nights is left out.
    """
    values = {"first": first, "last": last, "agent_ids": list(agent_ids), "nights_only": nights_only, "by": list(by)}
    return database.rows(Cost, SQL["costs"], values, timeout_s=TIMEOUT_S)


def cost_metadata(database: Database, night: date, *, agent_ids: Sequence[str] = ()) -> dict[str, Any]:
    """Return what a night cost in US dollars by purpose and by agent, and what it may still, as metadata of a run."""

    def costs(by: Dimension) -> list[Cost]:
        return costs_of(database, [by], first=night, last=night, agent_ids=agent_ids, nights_only=True)

    purposes = costs(Dimension.PURPOSE)
    return {
        "cost_by_purpose": {str(cost.purpose): cost.usd for cost in purposes},
        "cost_by_agent": {str(cost.agent_id): cost.usd for cost in costs(Dimension.AGENT)[:DEAREST]},
        "cost_expected_usd": sum(cost.expected_usd for cost in purposes),
    }


def told_usd(amount: float) -> str:
    """Return an amount of US dollars for people; small ones with what makes them differ from nothing."""
    if amount == 0 or amount >= 1:
        return f"{amount:,.2f} USD"
    return f"{amount:.4f} USD" if amount >= LEAST_USD else f"under {LEAST_USD} USD"


def told_cost(cost: Cost) -> str:
    """Return in words what requests cost, how many there were, and what is still to come."""
    requests = "one request" if cost.requests == 1 else f"{cost.requests:,} requests"
    told = f"{told_usd(cost.usd)} for {requests} and {cost.tokens:,} tokens"
    failed = f", {cost.failed:,} failed" if cost.failed else ""
    expected = f"; {cost.under_way:,} under way, {told_usd(cost.expected_usd)} at the most" if cost.under_way else ""
    return told + failed + expected


def short(value: float) -> str:
    """Return a number in few characters: 1.2 k, 3.4 M."""
    for size, letter in SHORT:
        if abs(value) >= size:
            return f"{value / size:.1f}".removesuffix(".0") + letter
    return f"{value:.2f}".rstrip("0").rstrip(".")
