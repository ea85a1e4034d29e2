"""What the model says to one request, as the API wraps it, and its tokens by a fixed rule.

A token is four characters, rounded up, so that what is measured here can be compared. Counted are instructions,
conversation and schema. What stands up to the last mark for the cache is written to it the first time and read from it
when it comes again, for the same model, within five minutes (or the hour it was marked with); each reading starts the
time anew. What is shorter than the model's least is never cached. In a batch the items count one after the other.
"""

from __future__ import annotations

import hashlib
import json
import threading
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from benchmarks.anthropic_server.models import Model
from benchmarks.anthropic_server.plays import Play
from benchmarks.anthropic_server.refusals import blocks
from nous_online.language.claude.replies import Request

CHARACTERS_A_TOKEN = 4
KEPT = {"5m": timedelta(minutes=5), "1h": timedelta(hours=1)}


def tokens_in(characters: int) -> int:
    """Return how many tokens a text of so many characters has."""
    return -(-characters // CHARACTERS_A_TOKEN)


class PromptCache:
    """Which beginnings of prompts are remembered, and until when."""

    def __init__(self) -> None:
        self._until: dict[str, datetime] = {}
        self._lock = threading.Lock()

    def count(self, request: Request, model: Model, *, at: datetime) -> dict[str, Any]:
        """Return the tokens read for a request as the API reports them, and remember its beginning."""
        begin, rest, ttl = split(request)
        marked, other = tokens_in(len(begin)), tokens_in(len(rest))
        if marked < model.least_cached_tokens:
            return input_usage(tokens_in(len(begin) + len(rest)))
        key = hashlib.sha256(f"{model.id}\n{begin}".encode("utf-8", "surrogatepass")).hexdigest()
        with self._lock:
            is_known = self._until.get(key, at) > at
            self._until[key] = at + KEPT[ttl]
        return input_usage(other, read=marked) if is_known else input_usage(other, written=marked, ttl=ttl)


def split(request: Request) -> tuple[str, str, str]:
    """Return what stands up to the last mark for the cache, what comes after it, and how long it is kept."""
    schema = ((request.get("output_config") or {}).get("format") or {}).get("schema")
    begin, rest, ttl = "", json.dumps(schema) if schema else "", "5m"
    for block in blocks(request):
        rest += block["text"]
        if mark := block.get("cache_control"):
            begin, rest, ttl = begin + rest, "", mark.get("ttl", "5m")
    return begin, rest, ttl


def input_usage(tokens: int, *, read: int = 0, written: int = 0, ttl: str = "5m") -> dict[str, Any]:
    """Return the figures of what was read, in the API's words."""
    return {
        "input_tokens": tokens,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "cache_creation": {
            "ephemeral_5m_input_tokens": written if ttl == "5m" else 0,
            "ephemeral_1h_input_tokens": written if ttl == "1h" else 0,
        },
    }


# --- messages ---


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
