"""What a whole night makes of use: weights, what is forgotten, censors and procedures; and that it can be undone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from night_runs import SAID, options, remember, store_in_time

from nous_online.core.errors import Refused
from nous_pipelines.orchestration.dagster_classes import unrecorded
from nous_pipelines.orchestration.running import run_night
from nous_pipelines.plan.undo import Selection, undo

pytestmark = pytest.mark.integration


@pytest.fixture
def tonight():
    """The night in which recalls of this test count: they are logged when they happen."""
    return datetime.now(UTC).date()


@pytest.fixture
def run(database_url, tmp_path, tonight):
    """Run tonight for this test's database, with fields of the policy."""

    def run_it(**policy):
        with unrecorded() as instance:
            return run_night(tonight, options(database_url, tmp_path, policy=policy), instance=instance)

    return run_it


def states(owner, table):
    return dict(owner.execute(f"select id, state from heart.{table}").fetchall())  # noqa: S608 (a name of this file)


def weights(owner):
    return dict(owner.execute("select content, rank_weight from heart.facts").fetchall())


def used(heart, query, *, cite=(), ignore=(), limit=3):
    """Recall something, and say which of the answers was of use."""
    found = heart.recall(query, types=["fact"], limit=limit)
    by_text = {answer.content: answer.id for answer in found}
    if cite:
        heart.cite(found.id, [by_text[text] for text in cite])
    if ignore:
        heart.ignore(found.id, [by_text[text] for text in ignore])


def test_use_moves_weights_retires_a_censor_and_has_a_procedure_reviewed_and_a_second_run_changes_nothing(
    heart, run, owner
):
    """What was cited rises and what was ignored sinks; the censor cries wolf, the procedure fails."""
    remember(heart, "Deploys need two reviewers.", "Reviewers sit in Lisbon.", "Cats like fish.")
    for _ in range(3):
        used(
            heart,
            "reviewers of deploys",
            cite=["Deploys need two reviewers."],
            ignore=["Reviewers sit in Lisbon."],
        )
    censor = heart.add_censor("deploy", "nobody is there", is_literal=True)
    for number in range(3):
        heart.check_censors(f"deploy release {number}")
        heart.report_false_positive(censor.id)
    procedure = heart.store_procedure("deploy", core_tools=["git"])
    for _ in range(5):
        heart.record_procedure_failure(procedure.id)

    first = run()
    after = weights(owner)
    second = run()

    assert first.is_success, first.failures
    assert after["Deploys need two reviewers."] > 1 > after["Reviewers sit in Lisbon."]
    assert states(owner, "censors") == {censor.id: "archived"}
    assert states(owner, "procedures") == {procedure.id: "review"}
    assert heart.list_procedures()[0].review_reason == "worked in only 0 of 5 uses, less than 40%"
    assert second.is_success, second.failures
    assert weights(owner) == after


def test_facts_imported_today_are_not_yet_unused_however_old_they_are(heart, run, owner):
    remember(heart, "Nobody ever asks this.", "Backups run at two.")
    used(heart, "Backups run at two.", cite=["Backups run at two."], limit=1)

    outcome = run(unused_return_share=1, unused_asked_days=1)

    assert outcome.is_success, outcome.failures
    assert {*states(owner, "facts").values()} == {"active"}


def test_superseded_facts_past_their_grace_and_unused_ones_are_archived_and_come_back(
    heart, run, owner, night_database, tonight
):
    remember(heart, "Standup is at nine.", "Standup is at ten.", "Nobody ever asks this.", "Backups run at two.")
    store_in_time(owner)
    old, new, unused, backups = (row[0] for row in owner.execute("select id from heart.facts order by learned_at"))
    heart.supersede_fact(old, new, at=SAID + timedelta(days=3))
    used(heart, "Standup is at ten.", cite=["Standup is at ten."], limit=1)
    used(heart, "Backups run at two.", cite=["Backups run at two."], limit=1)

    outcome = run(unused_return_share=1, unused_asked_days=1)
    archived = states(owner, "facts")

    assert outcome.is_success, outcome.failures
    undo(night_database, Selection(night=tonight), reason="a test")
    assert (archived[old], archived[unused], archived[new], archived[backups]) == (
        "archived", "archived", "active", "active",
    )  # fmt: skip
    assert (states(owner, "facts")[old], states(owner, "facts")[unused]) == ("superseded", "active")


def test_undoing_a_superseded_fact_that_a_night_archived_says_what_makes_it_active(heart, run, owner):
    remember(heart, "Standup is at nine.", "Standup is at ten.")
    store_in_time(owner)
    old, new = (row[0] for row in owner.execute("select id from heart.facts order by learned_at"))
    heart.supersede_fact(old, new, at=SAID + timedelta(days=3))
    assert run().is_success
    assert states(owner, "facts")[old] == "archived"

    with pytest.raises(Refused, match=f"which leaves it superseded: .*`nous restore {old} --active` makes it active"):
        heart.undo(old)

    assert heart.restore(old, is_active=True).state == "active"
