"""What tests of the local Anthropic API share: a clock that stands, a client that does not retry, a question."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import anthropic

from benchmarks.anthropic_server import LocalAnthropic

HAIKU = "claude-haiku-5-5"
NOW = datetime(2026, 11, 22, 3, tzinfo=UTC)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


def client_of(local: LocalAnthropic) -> anthropic.Anthropic:
    return anthropic.Anthropic(api_key="any", base_url=local.url, max_retries=0, timeout=5)


def question(text: str = "Is it so?", **more: Any) -> dict[str, Any]:
    request = {"model": HAIKU, "max_tokens": 50, "thinking": {"type": "disabled"}}
    return request | {"messages": [{"role": "user", "content": text}]} | more
