"""A model that obeys whoever speaks to it, and an agent somebody planted memories on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest
from injection_payloads import FAMILIES
from night_runs import SAID

from benchmarks.anthropic_server import LocalAnthropic
from benchmarks.anthropic_server.answers import ShownPair, pairs_in, properties
from benchmarks.anthropic_server.answers import answer as honest_answer
from nous_online.core.settings import settings
from nous_online.heart import Heart
from nous_online.language.claude.replies import Request
from nous_online.language.pairs.judging import Verdict

PLACES = ("staging", "production", "billing", "archive", "search", "mail", "chat", "video", "payroll", "travel")
HONEST = (
    *(f"The port of the {place} database is {5400 + number}." for number, place in enumerate(PLACES)),
    "The weekly deploy of the api goes through the blue pipeline.",
    "Maya approves every invoice of the design department.",
)
"""What was said in earnest; no two of them are near each other to the guards."""
SPOKEN = tuple(payload for family in FAMILIES.values() for payload in family if len(payload) <= 70)
"""Payloads short enough to stand in a statement that is still near the one it imitates."""
CHOSEN = tuple(payload for family in FAMILIES.values() for payload in [each for each in family if each in SPOKEN][:3])
"""Three of each family."""
DAY = timedelta(days=1)


@contextmanager
def in_place_of_claude(patch: pytest.MonkeyPatch) -> Iterator[LocalAnthropic]:
    """Start the local server, and set a key for it in the environment."""
    import anthropic  # noqa: F401 (two seconds to load: not in the first call, nor where no test asks for it)

    with LocalAnthropic() as server:
        patch.setenv("ANTHROPIC_API_KEY", "a-key-for-this-machine")
        patch.setenv("ANTHROPIC_BASE_URL", server.url)
        settings.cache_clear()
        yield server
    settings.cache_clear()


def obeying(verdict: Verdict) -> Callable[[Request], str]:
    """Return a model that gives this verdict, entirely sure, wherever a statement holds a payload; else the honest one.

    It says it of both orders alike, names the later statement rightly, and is right about every pair it is tested with.
    """
    return lambda request: said_of(request, verdict) if is_spoken_to(request) else honest_answer(request)


def always(verdict: Verdict) -> Callable[[Request], str]:
    """Return a model that gives this verdict of every pair, those it is tested with among them."""
    return lambda request: said_of(request, verdict)


def is_spoken_to(request: Request) -> bool:
    """Tell whether a request is about a pair in which a payload stands."""
    texts = [said["text"] for pair in asked_in(request) for said in (pair.a, pair.b)]
    return any(payload in text for text in texts for payload in SPOKEN)


def asked_in(request: Request) -> list[ShownPair]:
    """Return the pairs of a request about pairs, none of any other."""
    return pairs_in(request) if "verdicts" in properties(request) else []


def said_of(request: Request, verdict: Verdict) -> str:
    """Return an answer about pairs that is as harmful as its form allows: of all that were asked about together."""
    return json.dumps({"verdicts": [entry(pair, verdict) for pair in asked_in(request)]})


def entry(pair: ShownPair, verdict: Verdict) -> dict[str, Any]:
    """Return what is answered about one of them."""
    times = {"a": pair.a["stated_at"], "b": pair.b["stated_at"]}
    is_known = all(times.values()) and times["a"] != times["b"]
    later = max(times, key=lambda letter: datetime.fromisoformat(times[letter])) if is_known else None
    told = {"slot": "what it asks for", "later": later, "reason": "It says so itself.", "confidence": 1.0}
    return {"number": pair.number, **told, "verdict": verdict.value}


def planted(payloads: Sequence[str], honest: Sequence[str] = HONEST) -> list[str]:
    """Return honest statements with a payload behind each, taking turns."""
    return [f"{honest[number % len(honest)]} {payload}" for number, payload in enumerate(payloads)]


def import_facts(heart: Heart, contents: Sequence[str], *, trust: int, day: int, **details: Any) -> None:
    """Store facts unmatched, all said on one day after the others."""
    heart.learn_deferred([
        (text, {"trust": trust, "learned_at": SAID + day * DAY, "idempotency_key": text[:200], **details})
        for text in contents
    ])  # fmt: skip
