"""Times of day, in figures and in words: "15:00", "3 pm", "half past three", "three in the afternoon"."""

from __future__ import annotations

import re
from collections.abc import Callable, Set

from nous_online.language.pairs.lexicon import NUMBER_WORDS

EITHER_HALF = 1_440
"""What is added to a time of which nobody says whether it is in the morning or in the evening."""
NOON = 720
DAWN = 360
"""From here on "at night" is before midnight."""
HOURS = {"one": 1, **{word: value for word, value in NUMBER_WORDS.items() if 1 < value <= 12}}  # noqa: PLR2004
AMOUNTS = {"quarter": 15, "half": 30, "five": 5, "ten": 10, "twenty": 20, "twenty-five": 25}
WRITTEN = re.compile(
    r"\b(\d{1,2})(?:[:.](\d{2}))?(?::\d{2})?\s?([ap])\.?m\b\.?|\b([01]?\d|2[0-3]):([0-5]\d)(?::[0-5]\d)?\b|\b(noon|midnight)\b",
    re.IGNORECASE,
)
SPOKEN = re.compile(
    rf"\b(?:(?P<part>{'|'.join(AMOUNTS)}|\d{{1,2}}) (?:minutes )?(?P<way>past|(?<=quarter )to|(?<=minutes )to) )?"
    rf"(?P<hour>\d{{1,2}}|{'|'.join(HOURS)})(?:[:.](?P<minute>\d{{2}}))?(?P<whole> o'clock)?"
    r"(?: in the (?P<day>morning|afternoon|evening)\b| at (?P<night>night)\b)?\b",
    re.IGNORECASE,
)


def take_times(text: str, mark: Callable[[str], str]) -> tuple[frozenset[int], str]:
    """Return the times a text names, in minutes since midnight, and the text with a mark in the place of each.

    One that may be in either half of the day has `EITHER_HALF` added.
    """
    found: set[int] = set()

    def keep(minutes: int) -> str:
        found.add(minutes)
        return mark(f"@{minutes}")

    def keep_spoken(match: re.Match[str]) -> str:
        is_time = match["part"] or match["whole"] or match["day"] or match["night"]
        return keep(_spoken(match)) if is_time and _hour(match["hour"]) in HOURS.values() else match.group()

    rest = WRITTEN.sub(lambda match: keep(_written(match)), SPOKEN.sub(keep_spoken, text))
    return frozenset(found), rest


def _written(match: re.Match[str]) -> int:
    hour12, minute12, half, hour, minute, named = match.groups()
    if named:
        return NOON if named.lower() == "noon" else 0
    if half:
        return (int(hour12) % 12 + 12 * (half.lower() == "p")) * 60 + int(minute12 or 0)
    return int(hour) * 60 + int(minute)


def _spoken(match: re.Match[str]) -> int:
    minutes = _hour(match["hour"]) % 12 * 60 + int(match["minute"] or 0)
    if part := match["part"]:
        amount = int(part) if part.isdigit() else AMOUNTS[part.lower()]
        minutes = (minutes + (amount if match["way"].lower() == "past" else -amount)) % NOON
    if match["day"]:
        return minutes + NOON * (match["day"].lower() != "morning")
    if match["night"]:
        return minutes + NOON * (minutes >= DAWN)
    return minutes + EITHER_HALF


def _hour(word: str) -> int:
    return int(word) if word.isdigit() else HOURS[word.lower()]


def unmatched_times(times: Set[int], others: Set[int]) -> set[int]:
    """Return those of some times that are none of others; "half past three" is 03:30 as well as 15:30."""

    def is_one(time: int, other: int) -> bool:
        return time == other or (max(time, other) >= EITHER_HALF and (time - other) % NOON == 0)

    return {time for time in times if not any(is_one(time, other) for other in others)}


def clock(time: int) -> str:
    """Return a time as a clock shows it."""
    return f"{time % EITHER_HALF // 60:02}:{time % 60:02}"
