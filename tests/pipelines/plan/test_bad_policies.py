"""Nights that would do harm are stopped by their checks, and the report tells an operator what, why and what to do."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from night_runs import NIGHT, everything, options, remember

from nous_online.language.pairs.judging import Judgement, OfflineJudge, Verdict, later, slot_of_pair
from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_pipelines.orchestration.running import run_night
from nous_pipelines.reports.text_reports import markdown_of

CITIES = ("Oslo", "Lima", "Cairo", "Quito")
OFFICES = tuple(f"The {city} office is led by {name}." for city in CITIES for name in ("Mina", "Jo", "Ravi"))


@pytest.fixture(scope="module")
def instance():
    with unrecorded() as one:
        yield one


@pytest.fixture
def run(database_url, instance, tmp_path):
    """Run a night of this test's database under a policy."""

    def run_it(**policy):
        return run_night(NIGHT, options(database_url, tmp_path, policy=policy), instance=instance)

    return run_it


class Gullible(OfflineJudge):
    """Takes every pair for a repeat, and reads none of them."""

    answer = Verdict.SAME

    def judge(self, pairs):
        said = "so says the test"
        return [
            Judgement(self.answer, 0.99, said, slot_of_pair(pair), later(pair), self.name, self.prompt_version)
            for pair in pairs
        ]


class Restless(Gullible):
    """Takes every later statement for a new value."""

    answer = Verdict.UPDATES


def failed(outcome):
    return {failure.split(":")[0].removeprefix("check ") for failure in outcome.failures}


def test_a_judge_that_says_same_of_everything_is_stopped_and_the_report_says_why(heart, run, owner, monkeypatch):
    remember(heart, *OFFICES)
    before = everything(owner)
    monkeypatch.setattr("nous_pipelines.orchestration.resources.OfflineJudge", Gullible)

    outcome = run(candidate_similarity=0.7, neighbour_similarity=0.7, free_leaving_count=4)

    assert not outcome.is_success
    assert {"canaries", "blast_radius"} <= failed(outcome)
    assert any(
        each.startswith("check canaries: 11 of 13 pairs with known answers were judged wrongly")
        for each in outcome.failures
    )
    assert everything(owner) == before
    assert owner.execute("select count(*) from lifecycle.plans").fetchone() == (0,)
    told = markdown_of(outcome.report).replace("\\", "")  # without what keeps words from acting as Markdown
    assert "pairs with known answers were judged wrongly" in told
    assert "tonight's verdicts can't be believed" in told
    assert "max_leaving_share" in told


def test_merges_that_would_hide_what_was_used_wait_whatever_the_judge_says(heart, run, owner, monkeypatch):
    used = "The Lima office is led by Mina."
    remember(heart, used, "Mina likes Lima tea", "Mina flew to Lima")
    asked = heart.recall("Lima Mina office", limit=1, at=datetime(2026, 6, 1, 12, tzinfo=UTC))
    heart.cite(asked.id, [asked[0].id], at=datetime(2026, 6, 1, 13, tzinfo=UTC))
    remember(heart, *(office for office in OFFICES if office != used), trust=90)  # what is merged goes into these
    before = everything(owner)
    monkeypatch.setattr("nous_pipelines.orchestration.resources.OfflineJudge", Gullible)

    outcome = run(candidate_similarity=0.7, neighbour_similarity=0.7)

    assert "recall_does_not_regress" not in failed(outcome)
    assert outcome.report.waiting
    assert all(used in each.told for each in outcome.report.waiting)
    assert everything(owner) == before


def test_a_judge_that_finds_new_values_everywhere_is_stopped_by_the_canaries(heart, run, owner, monkeypatch):
    remember(heart, *OFFICES)
    before = everything(owner)
    monkeypatch.setattr("nous_pipelines.orchestration.resources.OfflineJudge", Restless)

    outcome = run(neighbour_similarity=0.7)

    assert "canaries" in failed(outcome)
    assert everything(owner) == before


def test_a_threshold_that_is_far_too_low_merges_nothing_that_differs(heart, run, owner):
    remember(heart, *OFFICES, *(f"The {city} office has {n} desks." for n, city in enumerate(CITIES, start=10)))

    outcome = run(candidate_similarity=0.7, neighbour_similarity=0.7)

    assert outcome.is_success, outcome.failures
    merged = owner.execute("select count(*) from lifecycle.proposals where kind = 'merge'").fetchone()
    assert merged == (0,)
