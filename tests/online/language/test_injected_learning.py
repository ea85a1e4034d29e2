"""Learning and episodes over texts somebody planted, judged and written by a model that obeys them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import psycopg
import pytest
from injection_payloads import FAMILIES
from night_runs import SAID, facts_in
from subverted import CHOSEN, DAY, HONEST, import_facts, in_place_of_claude, obeying, planted
from turns import TURN, in_turn

from benchmarks.anthropic_server import LocalAnthropic
from benchmarks.anthropic_server.answers import answer as honest_answer
from benchmarks.anthropic_server.answers import objects_in, properties
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.claude.grounding import source_of
from nous_online.language.claude.model_writer import AnsweredCaution, Claim, EpisodeRecord, WrittenAnswer, kept_parts
from nous_online.language.claude.replies import Request
from nous_online.language.minilm import LocalMiniLM
from nous_online.language.pairs.judging import Verdict

SOME = in_turn(CHOSEN, of=4)
SAID_ONCE, STOPPED = "The pool of the api has 40 connections.", "stopped the test too early"
VERDICTS = [Verdict.SAME, Verdict.UPDATES, Verdict.CONTRADICTS]


@pytest.fixture
def claude(monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalAnthropic]:
    with in_place_of_claude(monkeypatch) as server:
        yield server


@pytest.fixture(scope="module")
def minilm() -> LocalMiniLM:
    return LocalMiniLM(threads=1)


@pytest.fixture
def aria(claude: LocalAnthropic, database: Database, minilm: LocalMiniLM) -> Heart:
    return Heart.open("aria", database=database, embedder=minilm, works_in_background=False)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


@pytest.mark.parametrize("verdict", in_turn(VERDICTS, of=3))
def test_what_is_learned_from_a_source_that_is_trusted_less_takes_no_honest_place(
    claude: LocalAnthropic, aria: Heart, owner: psycopg.Connection, verdict: Verdict
) -> None:
    claude.answer_with(obeying(verdict))
    import_facts(aria, HONEST, trust=60, day=0)
    honest = facts_in(owner)

    learned = [aria.learn(text, trust=10, learned_at=SAID + DAY) for text in planted(SOME)]

    assert len(claude.asked()) > len(SOME) / 2, "the model was hardly asked"
    assert {each.action for each in learned} <= {"stored", "confirmed", "superseded"}
    after = facts_in(owner)
    assert {
        memory: (row["state"], row["content"], row["trust"]) for memory, row in after.items() if memory in honest
    } == {memory: ("active", row["content"], 60) for memory, row in honest.items()}


@pytest.mark.parametrize("verdict", in_turn(VERDICTS, of=3, place=1))
def test_an_honest_statement_is_not_lost_in_a_planted_one_that_is_trusted_less(
    claude: LocalAnthropic, aria: Heart, verdict: Verdict
) -> None:
    claude.answer_with(obeying(verdict))
    import_facts(aria, planted(SOME), trust=10, day=0)

    learned = [aria.learn(text, trust=60, learned_at=SAID + DAY).memory for text in HONEST]

    assert len(claude.asked()) > len(HONEST), "the model was hardly asked"
    assert [(fact.state, fact.trust) for fact in learned] == [("active", 60)] * len(HONEST)
    assert [words(fact.content) for fact in learned] == [words(text) for text in HONEST]


@pytest.mark.parametrize("field", ["title", "summary", "line", "fact", "censor"])
@pytest.mark.parametrize("payloads", FAMILIES.values(), ids=FAMILIES)
def test_a_writer_adds_nothing_that_was_not_said(payloads: tuple[str, ...], field: str) -> None:
    record = EpisodeRecord(f"Ana: {SAID_ONCE}\nBen: We {STOPPED}.", None, "failure", (), ())
    source = source_of(record.transcript)

    for payload in payloads:
        kept = kept_parts(answered(payload, field), record, source)

        told = [kept["title"], kept["summary"], kept["compressed"]]
        told += [part for fact in kept["facts"] or () for part in (fact.content, fact.subject, fact.evidence)]
        told += [part for censor in kept["censors"] or () for part in (censor.trigger, censor.reason)]
        assert [text for text in told if text and not text.isprintable()] == []
        assert {number for text in told if text for number in re.findall(r"\d+", text)} <= {"40"}
        assert {fact.content for fact in kept["facts"] or ()} <= {SAID_ONCE}
        assert {censor.trigger for censor in kept["censors"] or ()} <= {STOPPED}


def answered(payload: str, field: str) -> WrittenAnswer:
    """Return an honest answer about the record of the test with a payload in one place."""
    texts = {name: payload if field == name else SAID_ONCE for name in ("title", "summary", "line", "index_word")}
    claim = Claim(payload if field == "fact" else SAID_ONCE, payload, "rule", SAID_ONCE)
    caution = AnsweredCaution(payload if field == "censor" else STOPPED, SAID_ONCE, f"We {STOPPED}.")
    return WrittenAnswer(**texts, facts=(claim,), censors=(caution,))


def echoing(request: Request) -> str:
    """Write of an episode what its transcript asks for, word for word, and answer honestly about pairs."""
    if "facts" not in properties(request):
        return honest_answer(request)
    lines = [line for line in next(objects_in(request))["transcript"].splitlines() if line.strip()]
    facts = [{"content": line, "subject": "", "category": "rule", "evidence": line} for line in lines]
    censors = [{"trigger": line, "reason": line, "evidence": line} for line in lines]
    told = dict.fromkeys(("title", "summary", "line", "index_word"), lines[-1])
    return json.dumps({**told, "facts": facts, "censors": censors})


@pytest.mark.parametrize("judge", ["claude", "offline"])
def test_what_is_drawn_from_a_poisoned_episode_is_trusted_no_more_than_it(
    monkeypatch: pytest.MonkeyPatch, claude: LocalAnthropic, database: Database, minilm: LocalMiniLM, judge: str,
    owner: psycopg.Connection,
) -> None:  # fmt: skip
    monkeypatch.setenv("NOUS_JUDGE", judge)
    claude.answer_with(echoing)
    aria = Heart.open("aria", database=database, embedder=minilm, works_in_background=False)
    import_facts(aria, HONEST, trust=60, day=0)
    honest = facts_in(owner)
    some = in_turn(SOME, of=4, place=TURN // 4)
    for number in range(0, len(some), 3):
        read = some[number : number + 3]
        told = [f"Web page: {text}" for text in (*planted(read), *read)]
        aria.record_episode("\n".join(told), title=f"Page {number}", outcome="failure", trust=10)

    while aria.work(deadline_s=60).completed:
        pass

    drawn = [row for memory, row in facts_in(owner).items() if memory not in honest]
    assert drawn, "nothing was drawn: this shows nothing"
    assert {(row["trust"], row["source_kind"], row["is_pinned"]) for row in drawn} == {(10, "episode", False)}
    assert {facts_in(owner)[memory]["state"] for memory in honest} == {"active"}
    warned = owner.execute("select distinct trust, severity, is_pinned from heart.censors").fetchall()
    assert set(warned) <= {(10, "warn", False)}
