"""Costs of language models: sums over the metered requests, by night, purpose, model, agent and way.

Imported by every start of the command line (for `nous cost`), so it imports nothing heavy.
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
"""Agents with their own sum in the metadata of a run: the ones with the highest costs."""

SHORT = (1_000_000, "M"), (1_000, "k")


class Dimension(StrEnum):
    """A dimension by which costs can be grouped."""

    NIGHT = "night"
    PURPOSE = "purpose"
    MODEL = "model"
    AGENT = "agent"
    WAY = "way"


@dataclass(frozen=True)
class Cost:
    """The cost of some requests to language models, including failed ones; dimensions summed over are None."""

    night: date | None
    """The night of the requests, or their day in UTC if they were made outside of a night."""
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
    """Upper bound for the cost of those under way."""

    @property
    def tokens(self) -> int:
        """All tokens, including those read from and written to the cache."""
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
    """Return the costs from one night to another grouped by dimensions, night by night, highest first.

    With `nights_only` requests made outside of nights are left out.
    """
    values = {"first": first, "last": last, "agent_ids": list(agent_ids), "nights_only": nights_only, "by": list(by)}
    return database.rows(Cost, SQL["costs"], values, timeout_s=TIMEOUT_S)


def cost_metadata(database: Database, night: date, *, agent_ids: Sequence[str] = ()) -> dict[str, Any]:
    """Return the costs of a night by purpose and agent, and of its open requests, in US dollars, as metadata."""

    def costs(by: Dimension) -> list[Cost]:
        return costs_of(database, [by], first=night, last=night, agent_ids=agent_ids, nights_only=True)

    purposes = costs(Dimension.PURPOSE)
    return {
        "cost_by_purpose": {str(cost.purpose): cost.usd for cost in purposes},
        "cost_by_agent": {str(cost.agent_id): cost.usd for cost in costs(Dimension.AGENT)[:DEAREST]},
        "cost_expected_usd": sum(cost.expected_usd for cost in purposes),
    }


def usd_in_words(amount: float) -> str:
    """Return an amount of US dollars as text, with four decimals below one dollar."""
    if amount == 0 or amount >= 1:
        return f"{amount:,.2f} USD"
    return f"{amount:.4f} USD" if amount >= LEAST_USD else f"under {LEAST_USD} USD"


def cost_in_words(cost: Cost) -> str:
    """Return in words the cost, the number of requests and tokens, and what is still to come."""
    requests = "one request" if cost.requests == 1 else f"{cost.requests:,} requests"
    spent = f"{usd_in_words(cost.usd)} for {requests} and {cost.tokens:,} tokens"
    failed = f", {cost.failed:,} failed" if cost.failed else ""
    expected = (
        f"; {cost.under_way:,} under way, {usd_in_words(cost.expected_usd)} at the most" if cost.under_way else ""
    )
    return spent + failed + expected


def short(value: float) -> str:
    """Return a number in few characters: 1.2k, 3.4M."""
    for size, letter in SHORT:
        if abs(value) >= size:
            return f"{value / size:.1f}".removesuffix(".0") + letter
    return f"{value:.2f}".rstrip("0").rstrip(".")
