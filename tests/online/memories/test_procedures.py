"""Procedures on the real database: kept under their name, loaded, judged by how they went."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from nous_online.core.errors import Conflict, InvalidInput, NotFound, Refused
from nous_online.database.changes import Cause
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories import procedures
from nous_online.memories.procedures import ProcedureDetails, new_procedure

MAY = datetime(2026, 5, 1, tzinfo=UTC)
JUNE = datetime(2026, 6, 1, tzinfo=UTC)
CAUSE = Cause("agent", "flagged", "a test", effective_at=JUNE)
DECISION: ProcedureDetails = {
    "domain": "architecture",
    "goals": ["Make informed technical choices"],
    "core_patterns": ["Query similar past decisions", "Evaluate at least 2 options"],
    "core_tools": ["brain.query"],
    "core_concepts": ["Parallel bundles"],
    "implementation_notes": ["Check the guardrails before committing"],
}


def events(owner: psycopg.Connection) -> list[tuple[Any, ...]]:
    return owner.execute(
        "select action, from_state, to_state, version_after, actor from lifecycle.events "
        "where memory_kind = 'procedure' order by id"
    ).fetchall()


def test_everything_said_about_a_procedure_is_kept(heart: Heart, owner: psycopg.Connection) -> None:
    other, decision_id = heart.store_procedure("Weekly review", goals=["look back"]), uuid4()

    procedure = heart.store_procedure(
        "Architecture Decision", **DECISION, trigger="a choice is due", related_procedures=[other.id],
        related_decision_ids=[str(decision_id)], censors=["no-rewrite"], tags=["design"], encoded_frame="decision",
        encoded_censors=["no-friday-deploys"], source="handbook", source_kind="user", trust=70, is_pinned=True,
        learned_at=MAY, scope="project", user_id="u", project_id="p",
    )  # fmt: skip

    assert heart.get_procedure(procedure.id) == procedure
    for name, value in DECISION.items():
        assert getattr(procedure, name) == value, name
    assert (procedure.related_procedures, procedure.related_decision_ids) == ([other.id], [decision_id])
    assert (procedure.censors, procedure.tags, procedure.trigger) == (["no-rewrite"], ["design"], "a choice is due")
    assert (procedure.encoded_frame, procedure.encoded_censors) == ("decision", ["no-friday-deploys"])
    assert (procedure.trust, procedure.is_pinned, procedure.learned_at) == (70, True, MAY)
    assert (procedure.scope, procedure.user_id, procedure.project_id) == ("project", "u", "p")
    assert events(owner)[-1] == ("learned", "new", "active", 1, "agent")
    vector = owner.execute("select count(*) from heart.procedures where embedding_space_id = 'words-64'").fetchone()
    assert vector == (2,)


def test_a_procedure_told_nothing_else_is_neutral(heart: Heart) -> None:
    procedure = heart.store_procedure("Rest", goals=["recover"])

    assert (procedure.kind, procedure.encoded_frame, procedure.encoded_censors) == ("k_line", None, None)
    assert (procedure.activation_count, procedure.success_count, procedure.failure_count) == (0, 0, 0)
    assert procedure.effectiveness is None


@pytest.mark.parametrize(
    ("name", "details", "hint"),
    [
        ("deploy", {"kind": "workflow", "steps": ["test", "build", "stage"]}, "deploy: test→build→stage"),
        (
            "deploy",
            {"kind": "workflow", "steps": [{"name": "test", "detail": "make test"}, "build"]},
            "deploy: test→build",
        ),
        ("endpoint", {"kind": "pattern", "template": {"route": "/{x}", "check": "zod"}}, "endpoint: route→check"),
        ("Decide", {"goals": ["choose"], "core_patterns": ["ask", "weigh"]}, "Decide: ask; weigh"),
        ("Decide", {"implementation_notes": ["write it down"]}, "Decide: write it down"),
        ("Decide", {"goals": ["choose"], "hint": "think, then choose"}, "think, then choose"),
        ("Walk", {"goals": ["x" * 200]}, f"Walk: {'x' * 113}…"),
    ],
)
def test_a_hint_is_one_line_and_derived_unless_told(name: str, details: Any, hint: str) -> None:
    assert new_procedure(name, details).content["compressed"] == hint


@pytest.mark.parametrize(
    ("name", "details", "said"),
    [
        ("deploy", {"kind": "workflow", "goals": ["ship"]}, "has no steps"),
        ("deploy", {"steps": []}, "workflow 'deploy' has no steps; give some"),
        ("endpoint", {"kind": "pattern", "steps": ["a"]}, "has no template"),
        ("nothing", {}, "at least one"),
        ("nothing", {"kind": "k_line", "steps": ["a"]}, "at least one"),
        ("deploy", {"kind": "recipe", "goals": ["x"]}, "k_line, workflow, pattern"),
        ("deploy", {"kind": "workflow", "steps": "test"}, "steps must be a list"),
        ("deploy", {"kind": "workflow", "steps": [{"title": "test"}]}, "a step must be a name"),
        ("deploy", {"kind": "workflow", "steps": [{"detail": "make"}]}, "name of a step"),
        ("deploy", {"kind": "workflow", "steps": ["x"] * 101}, "101 entries"),
        ("endpoint", {"kind": "pattern", "template": ["a"]}, "JSON object"),
        ("endpoint", {"kind": "pattern", "template": {"a": float("nan")}}, "JSON"),
        ("endpoint", {"kind": "pattern", "template": {"a": object()}}, "JSON"),
        ("endpoint", {"kind": "pattern", "template": {"a": "\ud800"}}, "surrogate"),
        ("endpoint", {"kind": "pattern", "template": {"a": "x" * 40_000}}, "template has"),
        ("  ", {"goals": ["x"]}, "name is empty"),
        ("n" * 501, {"goals": ["x"]}, "name has 501"),
        ("deploy", {"goals": ["x" * 5000]}, "a line of goals"),
        ("deploy", {"goals": [""]}, "a line of goals is empty"),
        ("deploy", {"goals": ["x"], "hint": "a\nb"}, "one line"),
        ("deploy", {"goals": ["x"], "related_procedures": ["deploy"]}, "UUID"),
        ("deploy", {"goals": ["x"], "colour": "red"}, "colour"),
    ],
)
def test_what_cannot_be_a_procedure_is_refused(name: str, details: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        new_procedure(name, details)


def test_a_template_with_a_nul_is_refused_and_nothing_stored(heart: Heart) -> None:
    with pytest.raises(InvalidInput):
        heart.store_procedure("endpoint", kind="pattern", template={"a": "\x00"})

    assert heart.list_procedures() == []


def test_a_procedure_told_again_changes_nothing(heart: Heart) -> None:
    first = heart.store_procedure("Architecture Decision", **DECISION)

    assert heart.store_procedure("Architecture  Decision ", **DECISION) == first


def test_a_procedure_told_otherwise_is_a_new_version_that_keeps_its_counts(
    heart: Heart, owner: psycopg.Connection
) -> None:
    first = heart.store_procedure("deploy", kind="workflow", steps=["test", "build"])
    heart.record_procedure_success(first.id)

    revised = heart.store_procedure("deploy", kind="workflow", steps=["test", "build", "stage"])

    assert (revised.id, revised.row_version, revised.success_count) == (first.id, 3, 1)
    assert (revised.steps, revised.compressed) == (["test", "build", "stage"], "deploy: test→build→stage")
    event = owner.execute("select before, after from lifecycle.events where action = 'revised'").fetchone()
    assert event is not None
    assert (event[0]["steps"], event[0]["compressed"]) == (["test", "build"], "deploy: test→build")
    assert event[0]["embedding"] != event[1]["embedding"]


def test_a_new_content_ends_a_review(heart: Heart, database: Database) -> None:
    procedure = heart.store_procedure("deploy", kind="workflow", steps=["build"])
    with database.transaction("aria") as connection:
        procedures.flag_for_review(connection, "aria", procedure_ids=[procedure.id], reason="it fails", cause=CAUSE)

    unchanged = heart.store_procedure("deploy", kind="workflow", steps=["build"])
    revised = heart.store_procedure("deploy", kind="workflow", steps=["test", "build"])

    assert (unchanged.state, unchanged.review_reason) == ("review", "it fails")
    assert (revised.state, revised.review_reason) == ("active", None)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"kind": "workflow", "steps": ["a"]}, "a k_line"),
        ({"goals": ["choose"], "scope": "project", "project_id": "p"}, "others to see"),
        ({"goals": ["choose"], "user_id": "u2"}, "others to see"),
        ({"goals": ["obey me"], "trust": 10}, "trusted 50"),
    ],
)
def test_a_name_is_not_taken_away_from_another_procedure(heart: Heart, other: ProcedureDetails, said: str) -> None:
    known = heart.store_procedure("Decide", goals=["choose"])

    with pytest.raises(Refused, match=said):
        heart.store_procedure("Decide", **other)

    assert heart.get_procedure(known.id) == known


def test_told_again_trust_and_pin_only_rise(heart: Heart) -> None:
    heart.store_procedure("Decide", goals=["choose"])

    raised = heart.store_procedure("Decide", goals=["choose"], trust=80, is_pinned=True)
    again = heart.store_procedure("Decide", goals=["choose"])

    assert (raised.trust, raised.is_pinned, again.trust, again.is_pinned) == (80, True, 80, True)


def test_the_name_of_an_archived_procedure_is_free(heart: Heart, database: Database) -> None:
    archived = heart.store_procedure("Decide", goals=["choose"])
    archive(heart, database, archived.id)

    assert heart.store_procedure("Decide", goals=["choose"]).id != archived.id


def archive(heart: Heart, database: Database, procedure_id: Any) -> None:
    from nous_online.core.domain import PROCEDURE
    from nous_online.database.changes import change_memory, version_of

    known = heart.get_procedure(procedure_id)
    with database.transaction("aria") as connection:
        values = {"state": "archived", "archived_at": MAY.isoformat()}
        change_memory(connection, "aria", version_of(PROCEDURE, known), values, cause=CAUSE)


def test_a_retry_with_the_same_key_returns_the_first_answer(heart: Heart) -> None:
    first = heart.store_procedure("Decide", goals=["choose"], idempotency_key="k")
    heart.store_procedure("Decide", goals=["choose well"])

    retried = heart.store_procedure("Decide", goals=["choose"], idempotency_key="k")

    assert (retried.id, retried.goals) == (first.id, ["choose well"])
    with pytest.raises(Conflict, match="'k'"):
        heart.store_procedure("Decide", goals=["guess"], idempotency_key="k")


def test_a_related_procedure_must_be_there(heart: Heart) -> None:
    stranger = uuid4()

    with pytest.raises(NotFound, match=str(stranger)):
        heart.store_procedure("Decide", goals=["choose"], related_procedures=[stranger])


def test_two_who_store_one_name_at_once_make_one_procedure(heart: Heart) -> None:
    with ThreadPoolExecutor(4) as pool:
        stored = list(pool.map(lambda number: heart.store_procedure("Decide", goals=[f"g{number}"]), range(8)))

    assert len({procedure.id for procedure in stored}) == 1
    assert len(heart.list_procedures()) == 1


def test_outcomes_are_counted_exactly_under_concurrency(heart: Heart) -> None:
    procedure = heart.store_procedure("Decide", goals=["choose"])

    with ThreadPoolExecutor(6) as pool:
        for number in range(24):
            record = heart.record_procedure_failure if number % 4 == 0 else heart.record_procedure_success
            pool.submit(record, procedure.id)

    counted = heart.get_procedure(procedure.id)
    assert (counted.success_count, counted.failure_count) == (18, 6)
    assert counted.effectiveness == 0.75


def test_an_outcome_says_why(heart: Heart, owner: psycopg.Connection) -> None:
    procedure = heart.store_procedure("Decide", goals=["choose"])

    heart.record_procedure_failure(procedure.id, at=JUNE, note="the tests were skipped")
    heart.record_procedure_success(procedure.id)

    said = owner.execute("select action, reason from lifecycle.events where version_after > 1 order by id").fetchall()
    assert said == [("failed", "the tests were skipped"), ("succeeded", "it worked")]


def test_an_outcome_of_an_unknown_procedure_is_not_found(heart: Heart) -> None:
    with pytest.raises(NotFound):
        heart.record_procedure_success(uuid4())


def test_procedures_of_a_domain_or_by_id_are_flagged_once(heart: Heart, database: Database) -> None:
    ops = heart.store_procedure("deploy", kind="workflow", steps=["build"], domain="ops")
    design = heart.store_procedure("Decide", goals=["choose"], domain="design")
    heart.store_procedure("Rest", goals=["recover"])

    with database.transaction("aria") as connection:
        flag = {"procedure_ids": [design.id], "domain": "ops", "reason": "drift", "cause": CAUSE}
        counts = [procedures.flag_for_review(connection, "aria", **flag) for _ in range(2)]

    assert counts == [2, 0]
    assert {each.id for each in heart.list_procedures(state="review")} == {ops.id, design.id}
    assert heart.get_procedure(ops.id).review_reason == "drift"


def test_what_worked_best_is_listed_first(heart: Heart) -> None:
    names = {"once": (1, 0), "proven": (6, 1), "new": (0, 0), "poor": (1, 4)}
    for name, (successes, failures) in names.items():
        procedure = heart.store_procedure(name, goals=["x"], domain="ops")
        for _ in range(successes):
            heart.record_procedure_success(procedure.id)
        for _ in range(failures):
            heart.record_procedure_failure(procedure.id)
    heart.store_procedure("elsewhere", goals=["x"], domain="garden")

    assert [each.name for each in heart.list_procedures(domain="ops")] == ["proven", "once", "new", "poor"]


def test_related_procedures_are_the_named_then_the_domain_then_the_near(heart: Heart, database: Database) -> None:
    goals = ["ship the release of the shop"]
    near = heart.store_procedure("ship release", goals=goals)
    heart.store_procedure("water the roses", goals=["growing"])
    of_domain = heart.store_procedure("rotate keys", goals=["safety"], domain="ops")
    named = heart.store_procedure("Rest", goals=["recover"])
    gone = heart.store_procedure("old deploy", goals=goals, domain="ops")
    archive(heart, database, gone.id)
    naming = heart.store_procedure("deploy", goals=goals, domain="ops", related_procedures=[named.id])

    assert [each.id for each in heart.related_procedures(naming.id)] == [named.id, of_domain.id, near.id]
    assert [each.id for each in heart.related_procedures(named.id)] == [naming.id]
    assert len(heart.related_procedures(naming.id, limit=1)) == 1


def test_no_procedure_of_another_agent_is_seen(heart: Heart, database: Database) -> None:
    ben = Heart.open("ben", database=database, embedder=heart.agent.embedder, judge=heart.agent.judge)
    theirs = ben.store_procedure("Decide", goals=["choose"], domain="d")
    mine = heart.store_procedure("Decide", goals=["choose"], domain="d")

    assert (mine.id != theirs.id, heart.related_procedures(mine.id)) == (True, [])
    for ask in (heart.get_procedure, heart.record_procedure_success, heart.related_procedures):
        with pytest.raises(NotFound):
            ask(theirs.id)
