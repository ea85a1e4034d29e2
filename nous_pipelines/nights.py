"""A night is a date: everything before its end counts, nothing after."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

from nous_online.core.errors import InvalidInput

FIRST_NIGHT = date(2020, 1, 1)
"""The first night that can be run; earlier histories are not expected to be imported."""


def end_of(night: date) -> datetime:
    """Return the moment a night ends: midnight UTC after its date."""
    return datetime.combine(night + timedelta(days=1), time(), UTC)


def parse_night(text: str) -> date:
    """Read a night such as 2026-11-20; raise `InvalidInput` for anything else, or a date before the first night."""
    try:
        night = date.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(f"not a night: {text!r} (want a date such as 2026-11-20)") from error
    if night < FIRST_NIGHT:
        raise InvalidInput(f"night {night} is before the first one, {FIRST_NIGHT}")
    return night


def nights_between(first: date, last: date) -> Iterator[date]:
    """Return the nights from `first` to `last`, both included; raise `InvalidInput` when they are swapped."""
    if last < first:
        raise InvalidInput(f"the last night {last} lies before the first one {first}; swap them")
    return (first + timedelta(days=offset) for offset in range((last - first).days + 1))


def last_night(now: datetime) -> date:
    """Return the last night that is over."""
    return (now.astimezone(UTC) - timedelta(days=1)).date()
