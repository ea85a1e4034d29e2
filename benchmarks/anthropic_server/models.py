"""The models the local server knows, one of each kind of life: active, about to retire, retired."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

THINKING = ("adaptive", "between_tools", "disabled", "enabled")


@dataclass(frozen=True)
class Model:
    """A model as its catalogue describes it; `aliases` are other names it answers to."""

    id: str
    line: str
    created_at: datetime
    lifecycle: str = "active"
    aliases: tuple[str, ...] = ()
    deprecated_at: datetime | None = None
    retires_at: datetime | None = None
    max_input_tokens: int = 1_000_000
    max_tokens: int = 128_000
    has_batches: bool = True
    has_structured_outputs: bool = True
    least_cached_tokens: int = 1024
    """A prompt whose marked part is shorter than this is never cached."""
    thinks: bool = True
    """Whether it thinks before it answers when a request says nothing of thinking."""
    thinking: tuple[str, ...] = ("adaptive", "disabled")
    """What `thinking.type` may be."""

    def as_json(self) -> dict[str, Any]:
        """Return the model as the API describes it."""
        return {
            "type": "model",
            "id": self.id,
            "display_name": self.id.replace("-", " ").title(),
            "line": self.line,
            "created_at": self.created_at.isoformat(),
            "lifecycle": self.lifecycle,
            "deprecated_at": self.deprecated_at and self.deprecated_at.isoformat(),
            "retires_at": self.retires_at and self.retires_at.isoformat(),
            "max_input_tokens": self.max_input_tokens,
            "max_tokens": self.max_tokens,
            "capabilities": capabilities(self),
        }


def capabilities(model: Model) -> dict[str, Any]:
    """Return what a model supports; only batches and structured outputs differ here."""
    yes, no = {"supported": True}, {"supported": False}
    thinking = {name: {"supported": name in model.thinking} for name in THINKING}
    return {
        "batch": {"supported": model.has_batches},
        "structured_outputs": {"supported": model.has_structured_outputs},
        "citations": yes,
        "code_execution": no,
        "image_input": yes,
        "pdf_input": yes,
        "context_management": no,
        "server_tools": no | {"code_execution": no, "web_search": no},
        "effort": yes | dict.fromkeys(("low", "medium", "high", "xhigh", "max"), yes),
        "thinking": yes | {"types": thinking},
    }


def released(year: int, month: int, day: int) -> datetime:
    """Return midnight UTC of a date."""
    return datetime(year, month, day, tzinfo=UTC)


MODELS = (
    Model("claude-haiku-5-5", "haiku", released(2026, 10, 7), least_cached_tokens=512),
    Model("claude-sonnet-5-5", "sonnet", released(2026, 9, 15), thinking=("adaptive", "between_tools")),
    Model("claude-opus-5-5", "opus", released(2026, 8, 20), least_cached_tokens=512),
    Model(
        "claude-haiku-4-5-20251001",
        "haiku",
        released(2025, 10, 1),
        aliases=("claude-haiku-4-5",),
        max_input_tokens=200_000,
        max_tokens=64_000,
        thinks=False,
        thinking=("enabled", "disabled"),
        least_cached_tokens=4096,
    ),
    Model(
        "claude-sonnet-4-5-20250929",
        "sonnet",
        released(2025, 9, 29),
        lifecycle="deprecated",
        aliases=("claude-sonnet-4-5",),
        deprecated_at=released(2026, 9, 1),
        retires_at=released(2026, 11, 30),
        max_input_tokens=200_000,
        max_tokens=64_000,
        thinks=False,
        thinking=("enabled", "disabled"),
    ),
    Model(
        "claude-opus-4-20250514",
        "opus",
        released(2025, 5, 14),
        lifecycle="retired",
        aliases=("claude-opus-4-0",),
        deprecated_at=released(2026, 4, 15),
        retires_at=released(2026, 6, 15),
        has_structured_outputs=False,
        max_input_tokens=200_000,
        max_tokens=32_000,
        thinks=False,
        thinking=("enabled", "disabled"),
    ),
)
"""The newest first, as the API lists them. How they think and when they retire follows Anthropic's pages of November
2026 and the SDK; days of release and deprecation are approximate."""
