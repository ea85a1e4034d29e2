"""How large a context may be, and how it is divided among its tiers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from nous_online.context.context_answer import TIERS, Tier
from nous_online.core.policy import ContextPolicy

DEBUGGING = frozenset({"debug", "debugging"})


def usual_budget(frame: str | None, policy: ContextPolicy) -> int:
    """Return the budget of a frame in tokens, the usual one for a frame that has none of its own."""
    return dict(policy.budgets).get((frame or "").casefold(), policy.budget)


def rooms(budget: int, *, frame: str | None, policy: ContextPolicy) -> Mapping[Tier, int]:
    """Return how many of the budget's tokens each tier may use before any flows down; what rounding leaves is added."""
    is_debugging = (frame or "").casefold() in DEBUGGING
    shares = policy.debugging_shares if is_debugging else policy.shares
    own = [int(budget * share) for share in shares]
    own[1] += budget - sum(own)
    return cast("Mapping[Tier, int]", dict(zip(TIERS, own, strict=True)))
