"""What the local server says in tests of batches: right to every canary, and to a pair what the test wrote down."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.anthropic_server.answers import ShownPair, pairs_in
from nous_online.language.claude.judge import CANARIES, JudgeCanary
from nous_online.language.claude.pair_prompt import pairs_request
from nous_online.language.claude.replies import Request

Texts = tuple[str, str]
MODEL = "claude-haiku-5-5"
PREFERRED = ("compatible", "unsure", "updates", "same", "contradicts")


def shown_texts(request: Request) -> Texts:
    """Return both statements of the first pair of a request, in the order it shows them."""
    return texts_of(pairs_in(request)[0])


def texts_of(pair: ShownPair) -> Texts:
    """Return both statements of a pair."""
    return pair.a["text"], pair.b["text"]


def answer_json(verdict: str, **changes: Any) -> str:
    """Return an answer about one pair in the form that is asked for."""
    return json.dumps({"verdicts": [entry(1, verdict, **changes)]})


def entry(number: int, verdict: str, *, later: str | None = None, confidence: float = 0.95) -> dict[str, Any]:
    """Return what is answered about one of several pairs."""
    said = {"slot": None, "later": later, "reason": "So says the test.", "verdict": verdict, "confidence": confidence}
    return {"number": number, **said}


def later_shown(pair: ShownPair) -> str | None:
    """Return which statement of a pair says it was stated later."""
    moments = [each["stated_at"] for each in (pair.a, pair.b)]
    if None in moments or moments[0] == moments[1]:
        return None
    return "a" if moments[0] > moments[1] else "b"


def known_answer(request: Request) -> str | None:
    """Return a right answer to the canary a request asks about; None when it asks about none."""
    pair = pairs_in(request)[0]
    return RIGHT.get((*texts_of(pair), later_shown(pair)))


def asked_by(canary: JudgeCanary) -> tuple[str, str, str | None]:
    (pair,) = pairs_in(pairs_request([canary.pair], model=MODEL))
    return (*texts_of(pair), later_shown(pair))


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
        entries = [
            entry(
                pair.number,
                known_answer(request) or verdicts.get((a, b)) or verdicts.get((b, a)) or otherwise,
                later=later_shown(pair),
            )
            for pair in pairs_in(request)
            for a, b in [texts_of(pair)]
        ]
        return json.dumps({"verdicts": entries})

    return answer
