"""How large a context may be, and how it is divided among its tiers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from nous_online.context.context_answer import TIERS, Tier
from nous_online.core.errors import InvalidInput
from nous_online.core.policy import ContextPolicy

DEBUGGING = frozenset({"debug", "debugging"})


def checked_budget(value: object, *, frame: str | None, policy: ContextPolicy) -> int:
    """Return the budget in tokens: the one that was told, else that of the frame, else the usual one.

    Any budget from 1 on is kept; one too small for a line gives an empty context. Raises `InvalidInput` otherwise.
    """
    if value is None:
        return dict(policy.budgets).get((frame or "").casefold(), policy.budget)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= policy.most_budget:
        message = f"budget must be a whole number of tokens from 1 to {policy.most_budget:,}, got {value!r}"
        raise InvalidInput(f"{message}; leave it out for the usual {policy.budget:,}")
    return value


def rooms(budget: int, *, frame: str | None, policy: ContextPolicy) -> Mapping[Tier, int]:
    """Return how many of the budget's tokens each tier may use before any flows down; what rounding leaves is added."""
    is_debugging = (frame or "").casefold() in DEBUGGING
    shares = policy.debugging_shares if is_debugging else policy.shares
    own = [int(budget * share) for share in shares]
    own[1] += budget - sum(own)
    return cast("Mapping[Tier, int]", dict(zip(TIERS, own, strict=True)))
