"""Whatever a memory says, a model is shown it as data, and no answer reaches a terminal as it came."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from injection_payloads import FAMILIES, PAYLOADS
from turns import in_turn

from nous_online.core.validation import visible
from nous_online.language.claude import model_writer, pair_prompt
from nous_online.language.claude.model_writer import EpisodeRecord, write_request
from nous_online.language.claude.pair_prompt import PairAnswer, answer_to, pairs_request, read_answers
from nous_online.language.claude.replies import Failure, LLMError, Request
from nous_online.language.pairs.judging import JudgedStatement, OfflineJudge, Pair, Verdict
from nous_online.memories.facts import new_fact

MODEL = "claude-haiku-5-5"
MAY = datetime(2026, 5, 1, tzinfo=UTC)
HONEST = JudgedStatement("The staging database listens on port 5432.", subject="staging database", stated_at=MAY)
ENCLOSED = re.compile(r"\A<(?P<element>[a-z]+-[0-9a-f]{16})>\n(?P<line>.*)\n</(?P=element)>\Z", re.DOTALL)

families = pytest.mark.parametrize("payloads", FAMILIES.values(), ids=FAMILIES)


def pairs_with(payload: str) -> list[Pair]:
    """Return the pairs in which a payload is the one statement, the other, both, or what a statement is filed under."""
    planted = JudgedStatement(payload, subject=None, stated_at=MAY)
    filed = JudgedStatement("Backups run at two.", subject=payload[:500], stated_at=None)
    return [
        Pair(a=one, b=other, similarity=0.9)
        for one, other in ((planted, HONEST), (HONEST, planted), (planted, planted), (filed, HONEST), (HONEST, filed))
    ]


def said(request: Request) -> tuple[str, Any]:
    """Return the name of the element a request shows its texts in, and the JSON inside; fails where more is said."""
    (message,) = request["messages"]
    found = ENCLOSED.match(message["content"])
    assert message["role"] == "user"
    assert found, f"more is said than one element: {message['content']!r:.300}"
    return found["element"], json.loads(found["line"])


def told(statement: JudgedStatement) -> dict[str, str | None]:
    subject = {"subject": visible(statement.subject)} if statement.subject else {}
    stated_at = statement.stated_at and statement.stated_at.isoformat()
    return {"text": visible(statement.text), **subject, "stated_at": stated_at}


def around(request: Request) -> dict[str, Any]:
    """Return all of a request but for what it shows."""
    return {name: value for name, value in request.items() if name != "messages"}


def test_there_are_hundreds_of_payloads_that_can_all_be_learned() -> None:
    learned = [new_fact(payload, {}, now=MAY).content for payload in PAYLOADS]

    assert learned == list(PAYLOADS)
    assert len(set(PAYLOADS)) == len(PAYLOADS) >= 200


@families
def test_a_judge_is_shown_what_a_person_sees_of_statements_and_nothing_beside_them(payloads: Sequence[str]) -> None:
    for pair in (pair for payload in payloads for pair in pairs_with(payload)):
        element, shown = said(pairs_request([pair], model=MODEL))

        assert shown == {"a": [{"number": 1, **told(pair.a)}], "b": told(pair.b)}
        assert not any(element in f"{each.text} {each.subject}" for each in (pair.a, pair.b))


@families
def test_no_statement_can_close_its_element_or_hide_a_character(payloads: Sequence[str]) -> None:
    for pair in (pair for payload in payloads for pair in pairs_with(payload)):
        content = pairs_request([pair], model=MODEL)["messages"][0]["content"]

        assert content.isascii()
        assert (content.count("<"), content.count(">"), content.count("\n")) == (2, 2, 2)
        assert content.replace("\n", "").isprintable()


@families
def test_no_statement_changes_the_instructions_or_any_parameter_of_a_request(payloads: Sequence[str]) -> None:
    innocent = around(pairs_request([Pair(HONEST, HONEST, 1.0)], model=MODEL))

    requests = [pairs_request([pair], model=MODEL) for payload in payloads for pair in pairs_with(payload)]

    assert [around(request) for request in requests] == [innocent] * len(requests)
    assert innocent["system"] == [{"type": "text", "text": pair_prompt.SYSTEM, "cache_control": {"type": "ephemeral"}}]


def test_no_two_requests_share_a_nonce() -> None:
    pair = Pair(HONEST, HONEST, 1.0)

    elements = {said(pairs_request([pair], model=MODEL))[0] for _ in range(500)}

    assert len(elements) == 500


@families
def test_a_payload_for_an_answer_is_malformed_or_an_answer_like_any_other(payloads: Sequence[str]) -> None:
    answers = [answer for payload in payloads if (answer := read(payload)) is not None]

    assert [answer for answer in answers if not is_harmless(answer)] == []


@families
@pytest.mark.parametrize("field", ["reason", "slot"])
def test_a_payload_inside_an_answer_never_reaches_a_terminal_with_control_characters(
    payloads: Sequence[str], field: str
) -> None:
    answers = [answer for payload in payloads if (answer := read(answered(**{field: payload}))) is not None]

    assert [answer for answer in answers if not is_harmless(answer)] == []


@families
@pytest.mark.parametrize("field", ["verdict", "later", "confidence"])
def test_a_payload_where_a_verdict_an_order_or_a_number_belongs_is_malformed(
    payloads: Sequence[str], field: str
) -> None:
    assert [payload for payload in payloads if read(answered(**{field: payload})) is not None] == []


@families
def test_a_payload_behind_an_answer_spoils_it(payloads: Sequence[str]) -> None:
    whole = answered()
    assert read(whole) is not None

    read_nonetheless = [payload for payload in payloads if payload.strip() and read(whole + payload) is not None]

    assert read_nonetheless == []


@families
def test_what_the_built_in_judge_says_of_a_payload_can_be_shown_as_it_is(payloads: Sequence[str]) -> None:
    some = in_turn(payloads, of=4)
    pairs = [Pair(HONEST, replace(HONEST, text=f"{HONEST.text} {payload}"), 0.95) for payload in some]
    pairs += [Pair(JudgedStatement(payload), HONEST, 0.95) for payload in some]

    told = [text for each in OfflineJudge().judge(pairs) for text in (each.reason, each.slot or "none")]

    assert [text for text in told if not text.isprintable() or len(text) > 1000] == []


def answered(**changes: Any) -> str:
    """Return an answer about a pair as a model gives it, with parts replaced."""
    usual = {"slot": None, "later": "b", "reason": "Both say so.", "verdict": "same", "confidence": 0.9}
    return json.dumps({"verdicts": [{"number": 1, **usual, **changes}]})


def read(text: str) -> PairAnswer | None:
    """Return what is read of an answer, None when it is malformed and the error itself can be shown in a log."""
    try:
        found = answer_to(1, read_answers(text))
    except LLMError as error:
        found = error
    if isinstance(found, PairAnswer):
        return found
    assert found.kind is Failure.MALFORMED
    assert str(found).isprintable()
    return None


def is_harmless(answer: PairAnswer) -> bool:
    """Tell whether an answer is within its bounds and can be shown as it is."""
    texts = [answer.reason, answer.slot or "none"]
    return (
        isinstance(answer.verdict, Verdict)
        and 0 <= answer.confidence <= 1
        and answer.later in ("a", "b", None)
        and all(text and text.isprintable() and len(text) <= 200 for text in texts)
    )


RECORDS: dict[str, Callable[[str], EpisodeRecord]] = {
    "transcript": lambda payload: EpisodeRecord(f"Ana: hello\n{payload}\nBen: bye", None, None, (), ()),
    "title": lambda payload: EpisodeRecord("Ana: hello", payload, "failure", (), ()),
    "participant": lambda payload: EpisodeRecord("Ana: hello", None, None, ("Ana", payload), ()),
    "lesson": lambda payload: EpisodeRecord("Ana: hello", None, "failure", (), (payload, "test first")),
    "outcome": lambda payload: EpisodeRecord("Ana: hello", None, payload, (), ()),
}


@families
@pytest.mark.parametrize("record_with", RECORDS.values(), ids=RECORDS)
def test_a_writer_is_shown_what_a_person_sees_of_the_record_and_nothing_beside_it(
    payloads: Sequence[str], record_with: Callable[[str], EpisodeRecord]
) -> None:
    innocent = around(write_request(EpisodeRecord("Ana: hello", None, None, (), ()), model=MODEL))
    assert innocent["system"][0]["text"] == model_writer.SYSTEM

    for payload in payloads:
        record = record_with(payload)
        request = write_request(record, model=MODEL)
        element, shown = said(request)

        assert shown == {
            name: visible(value) if isinstance(value, str) else [*map(visible, value)]
            for name, value in vars(record).items()
            if value
        }
        assert element not in payload
        assert around(request) == innocent
        assert request["messages"][0]["content"].count("<") == request["messages"][0]["content"].count(">") == 2
