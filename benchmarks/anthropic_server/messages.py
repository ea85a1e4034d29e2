"""What the model says to one request, as the API wraps it: content, reason to stop, tokens."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime
from typing import Any

from benchmarks.anthropic_server.counting import CHARACTERS_A_TOKEN, PromptCache, tokens_in
from benchmarks.anthropic_server.models import Model
from benchmarks.anthropic_server.plays import Play
from nous_online.language.claude.replies import Request

THOUGHT = "Let me look at what is asked, word by word. " * 9
"""What a model thinks before it answers, unless it was told not to: about a hundred tokens."""


def message(
    request: Request, play: Play, model: Model, *, answer: Callable[[Request], str], cache: PromptCache, at: datetime
) -> dict[str, Any]:
    """Return the message that answers a request, cut where `max_tokens` or the play says so."""
    thought = THOUGHT if thinks(request, model) else ""
    text, stop_reason = said(request, play, answer=answer, spent=tokens_in(len(thought)))
    spoken = [{"type": "text", "text": text}] if text else []
    thinking = [{"type": "thinking", "thinking": "", "signature": "local"}] if thought else []
    counted = cache.count(request, model, at=at) | {
        "output_tokens": tokens_in(len(thought)) + tokens_in(len(text)),
        "output_tokens_details": {"thinking_tokens": tokens_in(len(thought))},
        "service_tier": "standard",
    }
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": model.id,
        "content": [*thinking, *spoken],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "stop_details": refusal(play) if stop_reason == "refusal" else None,
        "usage": counted | dict(play.usage),
    }


def said(request: Request, play: Play, *, answer: Callable[[Request], str], spent: int) -> tuple[str, str]:
    """Return the text of an answer that fits in what is left of `max_tokens`, and why it ended there."""
    if play.stop_reason == "refusal" and play.text is None:
        return "", "refusal"
    script = play.text if play.text is not None else answer
    text = script if isinstance(script, str) else script(request)
    room = max(0, request["max_tokens"] - spent)
    if tokens_in(len(text)) > room or play.stop_reason == "max_tokens":
        text, ended = text[: min(room * CHARACTERS_A_TOKEN, len(text) * 2 // 3)], "max_tokens"
        return text, play.stop_reason or ended
    return text, play.stop_reason or "end_turn"


def thinks(request: Request, model: Model) -> bool:
    """Whether a model thinks before it answers: one that does so by itself, unless it was told not to."""
    asked = (request.get("thinking") or {}).get("type")
    return asked == "adaptive" or (asked is None and model.thinks)


def refusal(play: Play) -> dict[str, Any]:
    """Return why a model declined."""
    return {"type": "refusal", "category": play.stop_category, "explanation": play.message}
