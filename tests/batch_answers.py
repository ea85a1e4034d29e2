"""What the local server says in tests of batches: right to every canary, and to a pair what the test wrote down."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from nous_online.claude.pair_prompt import pair_request
from nous_online.claude.replies import Request
from nous_online.claude.verdicts import CANARIES, Canary
from nous_pipelines.demo.anthropic_server.answers import objects_in

Texts = tuple[str, str]
MODEL = "claude-haiku-5-5"
PREFERRED = ("compatible", "unsure", "updates", "same", "contradicts")


def shown_texts(request: Request) -> Texts:
    """Return both statements of a request, in the order it shows them."""
    pair = next(each for each in objects_in(request) if {"a", "b"} <= set(each))
    return pair["a"]["text"], pair["b"]["text"]


def answer_json(verdict: str, *, later: str | None = None, confidence: float = 0.95, **changes: Any) -> str:
    """Return an answer in the form that is asked for."""
    said = {"slot": None, "later": later, "reason": "So says the test.", "verdict": verdict, "confidence": confidence}
    return json.dumps({**said, **changes})


def later_shown(request: Request) -> str | None:
    """Return which statement of a request says it was stated later."""
    pair = next(each for each in objects_in(request) if {"a", "b"} <= set(each))
    moments = [pair[side]["stated_at"] for side in ("a", "b")]
    if None in moments or moments[0] == moments[1]:
        return None
    return "a" if moments[0] > moments[1] else "b"


def known_answer(request: Request) -> str | None:
    """Return a right answer to the canary a request asks about; None when it asks about none."""
    asked = (*shown_texts(request), later_shown(request))
    return RIGHT.get(asked)


def asked_by(canary: Canary) -> tuple[str, str, str | None]:
    request = pair_request(canary.pair, model=MODEL)
    return (*shown_texts(request), later_shown(request))


RIGHT = {
    asked_by(canary): next(verdict for verdict in PREFERRED if verdict in set(canary.allowed)) for canary in CANARIES
}
"""A right answer to each canary."""


def is_canary(request: Request) -> bool:
    """Tell whether a request asks about a canary."""
    return known_answer(request) is not None


def answering(verdicts: Mapping[Texts, str], *, otherwise: str = "unsure") -> Callable[[Request], str]:
    """Return what answers canaries rightly, and pairs of texts in either order as they are written down."""

    def answer(request: Request) -> str:
        first, second = shown_texts(request)
        told = verdicts.get((first, second)) or verdicts.get((second, first)) or otherwise
        return answer_json(known_answer(request) or told, later=later_shown(request))

    return answer
