"""The audit trail: a line of JSON on standard error for each call and each event of security; no bodies, no secrets."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

TRAIL = logging.getLogger("nous.audit")
REFUSALS = frozenset({401, 403, 421, 429})
"""Answers that are events of security: a key that is wrong or may not, a page that was led here, one call too many."""


def show_trail() -> None:
    """Show every line on standard error: called by what serves. Elsewhere only events of security are shown."""
    TRAIL.addHandler(logging.StreamHandler())
    TRAIL.setLevel(logging.INFO)
    TRAIL.propagate = False


def note_call(*, status: int, **told: Any) -> None:
    """Note a call and how it was answered; one that was refused as an event of security."""
    note(logging.WARNING if status in REFUSALS else logging.INFO, "call", status=status, **told)


def note_event(event: str, **told: Any) -> None:
    """Note an event of security, such as a key that was made."""
    note(logging.WARNING, event, **told)


def note(level: int, event: str, **told: Any) -> None:
    """Write one line; what callers chose stands in it escaped, so that nobody adds lines of their own."""
    if TRAIL.isEnabledFor(level):
        at, name = datetime.now(UTC).isoformat(timespec="milliseconds"), logging.getLevelName(level).lower()
        known = {name: value for name, value in told.items() if value is not None}
        TRAIL.log(level, "%s", json.dumps({"at": at, "level": name, "event": event, **known}))
