"""The question about a new statement and its candidates for a language model: one prompt, one schema, one parser.

A question holds one new statement and all its candidates, so that each is read once. Instructions are in `system`
alone. The statements are JSON strings of ASCII without `<`, inside an element with a random name, so that no memory can
close it and pass for instructions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Literal, NoReturn, cast

from nous_online.core.validation import visible
from nous_online.language.claude.replies import (
    Failure,
    LLMError,
    Request,
    fields,
    json_request,
    object_of,
    unrepeated,
)
from nous_online.language.pairs.judging import JudgedStatement, Pair, Verdict

PROMPT_VERSION = "pairs-2"
MAX_TOKENS = 400
"""Tokens of one verdict; a slot and a reason take about 120, in the most expensive script three times as many."""
LONGEST_PAIR = 12_000
"""Bytes of UTF-8 of both statements; a longer pair is about documents, and asking costs more than it saves."""
MOST_TOGETHER = 20  # pairs of one question, as many as a new fact has candidates
LONGEST_TOGETHER = 24_000  # bytes of all statements of one question, as UTF-8
LONGEST_ANSWER = 4_000
LONGEST_REASON = 200
LONGEST_SLOT = 200

SYSTEM = files("nous_online.language.claude").joinpath("pair_prompt.txt").read_text("utf-8")
VERDICT = object_of(
    number={"type": "integer", "description": "That of the pair in the list."},
    slot={
        "anyOf": [{"type": "string"}, {"type": "null"}],
        "description": "What both speak about, in a few words; null when they share no slot.",
    },
    later={
        "anyOf": [{"type": "string", "enum": ["a", "b"]}, {"type": "null"}],
        "description": "Which was stated later, by stated_at; null when that is unknown.",
    },
    reason={"type": "string", "description": "One plain sentence, at most 25 words, on one line."},
    verdict={"type": "string", "enum": [verdict.value for verdict in Verdict]},
    confidence={"type": "number", "description": "From 0 to 1."},
)
SCHEMA = object_of(verdicts={"type": "array", "items": VERDICT})
"""The schema of an answer, reason before verdict; the parser checks lengths and ranges, since no server does."""


@dataclass(frozen=True)
class PairAnswer:
    """A model's answer about one pair in one order; `later` names a statement by its letter in that order."""

    verdict: Verdict
    confidence: float
    slot: str | None
    later: Literal["a", "b"] | None
    reason: str


def together(pairs: Sequence[Pair]) -> list[list[int]]:
    """Return the pairs of each question, by index: those that share the newer statement, as many as fit.

    A pair longer than `LONGEST_PAIR` is in none.
    """
    questions: list[list[int]] = []
    last: dict[JudgedStatement, int] = {}
    sizes: list[int] = []
    for place, pair in enumerate(pairs):
        size, size_of_b, number = len(pair.a.text.encode()), len(pair.b.text.encode()), last.get(pair.b)
        if size + size_of_b > LONGEST_PAIR:
            continue
        is_full = number is not None and (
            len(questions[number]) == MOST_TOGETHER or sizes[number] + size > LONGEST_TOGETHER
        )
        if number is None or is_full:
            number = last[pair.b] = len(questions)
            questions.append([])
            sizes.append(size_of_b)
        questions[number].append(place)
        sizes[number] += size
    return questions


def pairs_request(pairs: Sequence[Pair], *, model: str, max_tokens: int = MAX_TOKENS) -> Request:
    """Return the request that asks `model` about pairs that share `b`, under a nonce of its own.

    `max_tokens` is for each pair. Words, subjects and times are sent; trust, similarity, sources and ids are not.
    """
    return json_request(
        model, system=SYSTEM, data=("pairs", shown(pairs)), schema=SCHEMA, max_tokens=max_tokens * len(pairs)
    )


def shown(pairs: Sequence[Pair]) -> str:
    """Return pairs as one line of ASCII JSON without angle brackets, with the shared statement once."""

    def statement_of(statement: JudgedStatement) -> dict[str, Any]:
        stated_at = statement.stated_at.isoformat() if statement.stated_at else None
        subject = {"subject": visible(statement.subject)} if statement.subject else {}
        return {"text": visible(statement.text), **subject, "stated_at": stated_at}

    numbered = [{"number": number, **statement_of(pair.a)} for number, pair in enumerate(pairs, start=1)]
    shown = json.dumps({"a": numbered, "b": statement_of(pairs[0].b)}, ensure_ascii=True)
    return shown.replace("<", "\\u003c").replace(">", "\\u003e")


def read_answers(text: str) -> Mapping[int, PairAnswer | LLMError]:
    """Return the answer about each number, or an error where its entry does not fit the schema.

    Raises `LLMError` of kind MALFORMED when the whole answer does not. A long reason is cut; nothing else is repaired.
    No message quotes the answer, which may hold words of a memory.
    """
    if len(text) > LONGEST_ANSWER * MOST_TOGETHER:
        raise malformed(f"it has {len(text)} characters")
    try:
        parsed: object = json.loads(text, object_pairs_hook=unrepeated, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise malformed("it is not one JSON object without repeated keys") from None
    entries = _object(parsed, ("verdicts",))["verdicts"]
    if not isinstance(entries, list):
        raise malformed("its verdicts are not a list")
    found: dict[int, PairAnswer | LLMError] = {}
    for entry in cast("list[object]", entries):
        number = fields(entry).get("number")
        if isinstance(number, int) and not isinstance(number, bool):
            found[number] = malformed("it names its number twice") if number in found else _read(entry)
    return found


def answer_to(number: int, answers: Mapping[int, PairAnswer | LLMError]) -> PairAnswer | LLMError:
    """Return the answer about a number, or an error where there is none."""
    return answers.get(number) or malformed("it says nothing of it")


def _read(entry: object) -> PairAnswer | LLMError:
    try:
        answer = _object(entry, VERDICT["required"])
        verdict, confidence, later = answer["verdict"], answer["confidence"], answer["later"]
        if not isinstance(verdict, str) or verdict not in set(Verdict):
            raise malformed(f"its verdict is none of {', '.join(Verdict)}")
        if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
            raise malformed("its confidence is not a number from 0 to 1")
        slot = None if answer["slot"] is None else _line("slot", answer["slot"], at_most=LONGEST_SLOT)
        if later not in ("a", "b", None):
            raise malformed("what it names as the later one is not a, b or null")
        reason = _line("reason", answer["reason"], at_most=LONGEST_ANSWER)[:LONGEST_REASON].rstrip()
    except LLMError as error:
        return error
    return PairAnswer(Verdict(verdict), float(confidence), slot, later, reason)


def _object(value: object, keys: Sequence[str]) -> dict[str, object]:
    if not isinstance(value, dict):
        raise malformed(f"it is a {type(value).__name__}, not an object")
    found = cast("dict[str, object]", value)
    if set(found) != set(keys):
        raise malformed(f"its keys are not {', '.join(keys)}")
    return found


def malformed(why: str) -> LLMError:
    """Return the error for an answer that does not fit the schema."""
    return LLMError(f"the answer about a pair can't be read: {why}; the pair stays undecided", Failure.MALFORMED)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _line(name: str, value: object, *, at_most: int) -> str:
    """Return a text that is safe to print: one line, not empty, at most `at_most` characters, all printable."""
    if not isinstance(value, str) or not value.strip() or len(value) > at_most:
        raise malformed(f"its {name} is not a text of 1 to {at_most} characters")
    if not value.isprintable():
        raise malformed(f"its {name} holds characters that can't be printed")
    return value.strip()
