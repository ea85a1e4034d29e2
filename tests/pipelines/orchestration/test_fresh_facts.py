"""Contradictions between fresh facts: found once, whoever dies, changes or commits in between."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import dagster as dg
import psycopg
import pytest
from conftest import ScriptedJudge, WordEmbedder

from nous_online.core.details import FactDetails
from nous_online.core.errors import Unavailable
from nous_online.core.settings import settings
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.pairs.judging import Judgement, Pair, Verdict
from nous_pipelines.night_policy import NightPolicy
from nous_pipelines.orchestration.code_location import close_staff, fresh_facts, scan_in_words
from nous_pipelines.orchestration.fresh_facts import BATCH, Scanned, scan_fresh_facts

MAY = datetime(2026, 5, 1, tzinfo=UTC)
NINE = "The big office in Lima always opens its doors at nine"
TEN = "The big office in Lima always opens its doors at ten"
FAR_APART = ("Mara lives in Oslo", "Mara lives in Lima")
CATS = "Cats like fish more than most other animals do"


class Deciding(ScriptedJudge):
    """Gives one verdict on every pair, after doing something else once."""

    def __init__(
        self, verdict: Verdict = Verdict.CONTRADICTS, confidence: float = 0.9, first: Callable[[], object] | None = None
    ) -> None:
        super().__init__()
        self.verdict, self.confidence, self.first = verdict, confidence, first

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        self.asked.extend(pairs)
        first, self.first = self.first, None
        if first is not None and pairs:
            first()
        return [
            Judgement(self.verdict, self.confidence, "two opening times", None, None, self.name, self.prompt_version)
            for _ in pairs
        ]


@pytest.fixture
def night(database_url: str) -> Iterator[Database]:
    opened = Database(database_url, role="nous_night", max_connections=2)
    yield opened
    opened.close()


def remember(heart: Heart, *contents: str, days: int = 1, **details: Any) -> None:
    """Store facts as an import does, unmatched, so many days apart."""
    for place, content in enumerate(contents):
        heart.learn_deferred(
            [(content, cast("FactDetails", {"learned_at": MAY + timedelta(days=days * place), **details}))]
        )


def found(heart: Heart) -> list[set[str]]:
    """Return the two statements of each open contradiction."""
    return [{heart.get(each.memory_a).content, heart.get(each.memory_b).content} for each in heart.contradictions()]


def marks(owner: psycopg.Connection) -> dict[str, str]:
    return dict(owner.execute("select content, contradiction_status from heart.facts").fetchall())


def test_imported_facts_that_contradict_each_other_are_both_kept_and_say_so(
    heart: Heart, night: Database, owner: psycopg.Connection
) -> None:
    remember(heart, NINE, TEN, CATS)

    scanned = scan_fresh_facts(night, Deciding())

    (contradiction,) = heart.contradictions()
    assert scanned == Scanned(facts=3, pairs=1, opened=1)
    assert found(heart) == [{NINE, TEN}]
    assert contradiction.detected_at == MAY + timedelta(days=1)
    assert contradiction.judgement == {
        "model": "scripted",
        "verdict": "contradicts",
        "confidence": 0.9,
        "reason": "two opening times",
    }
    assert marks(owner) == {NINE: "open", TEN: "open", CATS: "none"}
    assert heart.count() == {"active": 3}


def test_facts_learned_online_are_looked_at_too_and_each_only_once(heart: Heart, night: Database) -> None:
    judge = Deciding()
    heart.learn(NINE)
    first = scan_fresh_facts(night, judge)
    heart.learn(TEN)
    second = scan_fresh_facts(night, judge)

    third = scan_fresh_facts(night, judge)

    assert [(each.facts, each.opened) for each in (first, second, third)] == [(1, 0), (1, 1), (0, 0)]
    assert len(judge.asked) == 1


def test_what_a_night_weighed_is_not_weighed_again_after_it(
    heart: Heart, night: Database, owner: psycopg.Connection
) -> None:
    remember(heart, NINE, TEN)
    owner.execute(
        """insert into lifecycle.health (agent_id, night, measured_at, figures)
           values ('aria', '2026-05-07', now() + interval '1 h', '{}')"""
    )
    after_the_night = scan_fresh_facts(night, Deciding())
    owner.execute("update lifecycle.health set measured_at = now() - interval '1 s'")
    remember(heart, TEN.replace("ten", "noon"))

    arrived_late = scan_fresh_facts(night, Deciding())

    assert (after_the_night.facts, after_the_night.opened) == (2, 0)
    assert arrived_late.opened == 2


@pytest.mark.parametrize(
    ("verdict", "confidence", "days", "opened"),
    [
        (Verdict.UPDATES, 0.9, 1, 0),
        (Verdict.UPDATES, 0.7, 1, 1),
        (Verdict.UPDATES, 0.9, 0, 1),
        (Verdict.SAME, 0.99, 1, 0),
        (Verdict.UNSURE, 0.5, 1, 0),
    ],
)
def test_only_an_update_of_known_order_is_left_to_the_night(
    heart: Heart, night: Database, verdict: Verdict, confidence: float, days: int, opened: int
) -> None:
    remember(heart, NINE, TEN, days=days)

    assert scan_fresh_facts(night, Deciding(verdict, confidence)).opened == opened
    assert heart.count() == {"active": 2}


def test_the_earlier_statement_is_shown_first_and_its_verdict_is_kept_for_the_night(
    heart: Heart, night: Database, owner: psycopg.Connection
) -> None:
    remember(heart, TEN, NINE)
    judge = Deciding()

    scan_fresh_facts(night, judge)

    assert [(pair.a.text, pair.b.text) for pair in judge.asked] == [(TEN, NINE)]
    kept = owner.execute("select agent_id, model, prompt_version, verdict from heart.judgements").fetchall()
    assert kept == [("aria", "scripted", "1", "contradicts")]


@pytest.mark.parametrize(("source", "days", "opened"), [("notes.md", 0, 0), ("notes.md", 1, 1), (None, 0, 1)])
def test_what_one_source_told_at_one_moment_is_no_contradiction(
    heart: Heart, night: Database, source: str | None, days: int, opened: int
) -> None:
    remember(heart, NINE, TEN, days=days, source=source)

    assert scan_fresh_facts(night, Deciding()).opened == opened

    assert len(heart.contradictions()) == opened


def test_values_of_one_slot_are_compared_though_their_words_are_far_apart(
    heart: Heart, night: Database, owner: psycopg.Connection
) -> None:
    remember(heart, *FAR_APART)
    judge = Deciding()

    scan_fresh_facts(night, judge)

    slots = owner.execute("select count(distinct slot), count(slot) from heart.facts").fetchone()
    (pair,) = judge.asked
    assert slots == (1, 2)
    assert pair.similarity < NightPolicy().neighbour_similarity


@pytest.mark.parametrize(
    "others", [{"user_id": "ben"}, {"scope": "system"}, {"subject": "Oslo"}, {"valid_to": MAY - timedelta(days=9)}]
)
def test_facts_of_other_places_subjects_and_times_are_not_compared(
    heart: Heart, night: Database, others: dict[str, Any]
) -> None:
    remember(heart, NINE, subject="Lima", valid_from=MAY - timedelta(days=9))
    remember(heart, TEN, **{"subject": "Lima", "valid_from": MAY - timedelta(days=20), "valid_to": None, **others})
    judge = Deciding()

    scanned = scan_fresh_facts(night, judge)

    assert (scanned.facts, judge.asked) == (2, [])


def test_a_fact_that_was_superseded_before_the_look_is_passed_over(heart: Heart, night: Database) -> None:
    old, new = (heart.learn(text).memory for text in (NINE, TEN))
    heart.supersede_fact(old.id, new.id, reason="corrected")
    judge = Deciding()

    assert scan_fresh_facts(night, judge) == Scanned(facts=2)
    assert judge.asked == []


def test_all_agents_are_looked_at_and_none_sees_what_is_anothers(
    heart: Heart, database: Database, night: Database, embedder: Any, judge: Any
) -> None:
    ben = Heart.open("ben", database=database, embedder=embedder, judge=judge, works_in_background=False)
    remember(heart, NINE, TEN)
    remember(ben, NINE)

    scanned = scan_fresh_facts(night, Deciding())

    assert (scanned.facts, scanned.opened) == (3, 1)
    assert ben.contradictions() == []


def test_more_facts_than_a_batch_are_looked_at_in_one_go(heart: Heart, night: Database) -> None:
    remember(heart, *(f"{CATS} on day {place} of the year {place * 7} and so on" for place in range(BATCH + 3)))

    assert scan_fresh_facts(night, Deciding(Verdict.COMPATIBLE)).facts == BATCH + 3


def test_a_judge_that_is_unavailable_delays_and_drops_nothing(heart: Heart, night: Database) -> None:
    def refuse() -> None:
        raise Unavailable("the judge is asleep")

    remember(heart, NINE, TEN)

    delayed = scan_fresh_facts(night, Deciding(first=refuse))
    again = scan_fresh_facts(night, Deciding())

    assert (delayed.facts, again.facts, again.opened) == (0, 2, 1)
    assert "the judge is asleep" in delayed.delayed["aria"]


def test_what_can_not_be_written_whole_leaves_nothing_and_is_done_again(
    heart: Heart, night: Database, owner: psycopg.Connection
) -> None:
    remember(heart, NINE, TEN)
    owner.execute("revoke update on heart.outbox_cursors from nous_night")
    failed = scan_fresh_facts(night, Deciding())
    before = (found(heart), marks(owner))
    owner.execute("grant update on heart.outbox_cursors to nous_night")

    scan_fresh_facts(night, Deciding())

    assert "may not do this" in failed.delayed["aria"]
    assert before == ([], {NINE: "none", TEN: "none"})
    assert found(heart) == [{NINE, TEN}]


KILLED = """
import os, signal, sys
from nous_online.database.connection import Database
from nous_pipelines.orchestration.fresh_facts import scan_fresh_facts

class Killing:
    name, prompt_version = "scripted", "1"

    def judge(self, pairs):
        os.kill(os.getpid(), signal.SIGKILL)

scan_fresh_facts(Database(sys.argv[1], role="nous_night"), Killing())
"""


def test_a_process_killed_while_it_looks_leaves_the_facts_to_the_next(
    heart: Heart, database_url: str, night: Database
) -> None:
    remember(heart, NINE, TEN)
    killed = subprocess.run([sys.executable, "-c", KILLED, database_url], capture_output=True, text=True, check=False)

    scanned = scan_fresh_facts(night, Deciding())

    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert (scanned.facts, found(heart)) == (2, [{NINE, TEN}])


def test_a_fact_committed_late_is_not_passed_over(heart: Heart, night: Database, owner: psycopg.Connection) -> None:
    remember(heart, NINE)
    with owner.transaction():
        owner.execute("select pg_current_xact_id()")
        remember(heart, TEN)
        early = scan_fresh_facts(night, Deciding())

    late = scan_fresh_facts(night, Deciding())

    assert (early.facts, late.facts) == (1, 1)
    assert found(heart) == [{NINE, TEN}]


def test_a_fact_confirmed_between_look_and_write_is_looked_at_again(
    heart: Heart, night: Database, owner: psycopg.Connection
) -> None:
    remember(heart, NINE, TEN)
    (known,) = owner.execute("select id from heart.facts where content = %s", [NINE]).fetchall()[0]
    judge = Deciding(first=lambda: heart.confirm_fact(known))

    scanned = scan_fresh_facts(night, judge)

    assert (scanned.opened, found(heart)) == (1, [{NINE, TEN}])
    assert heart.get(known).confirmation_count == 1


def test_two_who_look_at_once_open_a_contradiction_once(heart: Heart, night: Database) -> None:
    remember(heart, NINE, TEN)
    inner: list[Scanned] = []

    outer = scan_fresh_facts(night, Deciding(first=lambda: inner.append(scan_fresh_facts(night, Deciding()))))

    assert (inner[0].opened, outer.opened) == (1, 0)
    assert found(heart) == [{NINE, TEN}]


def test_what_a_person_took_apart_or_resolved_is_not_opened_again(
    heart: Heart, night: Database, owner: psycopg.Connection
) -> None:
    remember(heart, NINE, TEN)
    owner.execute(
        "insert into lifecycle.plans (hash, night, agent_ids, policy, counts, checks, run_id)"
        " values ('p', '2026-05-01', '{}', '{}', '{}', '[]', 'r')"
    )
    owner.execute(
        "insert into lifecycle.proposals (id, agent_id, night, plan_hash, kind, targets, read_set, changes, reason,"
        " state, decided_at) select gen_random_uuid(), 'aria', '2026-05-01', 'p', 'merge', array_agg(id), '[]', '[]',"
        " 'alike', 'undone', now() from heart.facts"
    )

    scanned = scan_fresh_facts(night, Deciding())

    assert (scanned.facts, scanned.opened, heart.contradictions()) == (2, 0, [])


def test_the_sensor_tells_what_it_found_and_who_has_to_wait(
    heart: Heart, database_url: str, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    monkeypatch.setattr("nous_online.queue.worker.default_embedder", WordEmbedder)
    settings.cache_clear()
    remember(heart, "The door is open", "The door is not open", days=0)

    with dg.DagsterInstance.ephemeral() as instance, dg.build_sensor_context(instance=instance) as context:
        said = [fresh_facts(context), fresh_facts(context)]
    close_staff()
    settings.cache_clear()

    assert [each.skip_message for each in said if isinstance(each, dg.SkipReason)] == [
        "2 fresh facts in 1 pairs, 1 contradictions opened",
        "no fresh facts",
    ]
    assert scan_in_words(Scanned(delayed={"ben": "asleep"})) == (
        "no fresh facts; the facts of agent 'ben' have to wait: asleep"
    )


def test_the_sensor_runs_from_the_start_twice_a_minute() -> None:
    assert fresh_facts.default_status is dg.DefaultSensorStatus.RUNNING
    assert fresh_facts.minimum_interval_seconds == 30
    assert not fresh_facts.has_jobs
