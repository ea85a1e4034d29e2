"""How a model is asked to answer at once: each family has its own way of leaving out the thinking before an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ROOM_FOR_THINKING = 2_000
"""Tokens: thinking counts towards `max_tokens`, and a model that can't do without it would be cut off in the middle."""
OFF = {"thinking": {"type": "disabled"}}
OFF_BUT_BETWEEN_TOOLS = {"thinking": {"type": "between_tools"}}
NEVER_ON: Mapping[str, Any] = {}
FAMILIES: Mapping[str, Mapping[str, Any]] = {
    "claude-haiku-5-5": OFF,
    "claude-sonnet-5-5": OFF_BUT_BETWEEN_TOOLS,
    "claude-sonnet-5": OFF,
    "claude-haiku-4": NEVER_ON,
    "claude-sonnet-4": NEVER_ON,
    "claude-opus-4": NEVER_ON,
}
"""What to send so that a model of a family does not think; those not named here think, or may."""


def without_thinking(model: str, *, max_tokens: int) -> dict[str, Any]:
    """Return the parameters that make `model` answer at once, `max_tokens` among them.

    A model that can't be told so, or is not known here, gets room to think on top. Which family takes which setting:
    Anthropic's migration guides for Haiku 5.5 and Sonnet 5.5, October 2026.
    """
    known = [family for family in FAMILIES if model.startswith(family)]
    if not known:
        return {"max_tokens": max_tokens + ROOM_FOR_THINKING}
    return {"max_tokens": max_tokens, **FAMILIES[max(known, key=len)]}
