"""The commands about one memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from click.testing import Result
from conftest import ScriptedJudge
from typer.testing import CliRunner

from nous_online import heart as hearts
from nous_online.core.settings import settings
from nous_online.database.changes import Cause
from nous_online.heart import Heart
from nous_online.interfaces.cli.command_line import application
from nous_online.memories.contradictions import open_between


@pytest.fixture
def nous(database_url: str, heart: Heart, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Result]]:
    """The command line over the database of `heart`, with its embedder."""
    monkeypatch.setenv("NOUS_DATABASE_URL", database_url)
    monkeypatch.setenv("NOUS_AGENT", "aria")
    monkeypatch.setattr(hearts, "default_embedder", lambda: heart.agent.embedder)
    settings.cache_clear()
    yield lambda *arguments: CliRunner().invoke(application(), arguments)
    settings.cache_clear()


def test_a_memory_is_forgotten_and_restored_by_its_id(nous: Callable[..., Result], heart: Heart) -> None:
    fact = heart.learn("The gate code is 4711").memory

    forgotten = nous("forget", str(fact.id), "--reason", "the lock was changed")
    state = heart.get(fact.id).state
    restored = nous("restore", str(fact.id), "--json")

    assert (forgotten.exit_code, restored.exit_code) == (0, 0), forgotten.output
    assert "The gate code is 4711" in forgotten.stdout
    assert state == "archived"
    assert json.loads(restored.stdout)["state"] == heart.get(fact.id).state == "active"


def test_a_restored_fact_that_was_learned_again_meanwhile_counts_for_the_other(
    nous: Callable[..., Result], heart: Heart
) -> None:
    fact, tea = heart.learn("The gate code is 4711").memory, heart.learn("Tea helps").memory
    for each in (fact, tea):
        heart.forget(each.id, reason="by mistake")
    of_ada = heart.learn("Tea helps", user_id="ada").memory
    again = heart.learn("the gate code is 4711.").memory

    restored, alone = nous("restore", str(fact.id)), nous("restore", str(tea.id))

    assert (restored.exit_code, alone.exit_code) == (0, 0), restored.output
    assert f"in its place: the gate code is 4711. ({again.id}, active)" in restored.stdout
    assert {each.id for each in heart.recall("gate code 4711")} == {again.id, tea.id}
    assert {each.fact_id for each in heart.statements(again.id)} == {fact.id, again.id}
    assert heart.get(tea.id).state == heart.get(of_ada.id).state == "active"
    heart.undo(fact.id)
    assert heart.get(again.id) == replace(again, row_version=heart.get(again.id).row_version)
    assert heart.get(fact.id).state == "active"


def test_a_restored_fact_stays_beside_the_one_learned_meanwhile_where_that_is_asked_for_or_it_is_pinned(
    nous: Callable[..., Result], heart: Heart
) -> None:
    fact, pinned = heart.learn("The gate code is 4711").memory, heart.learn("Tea helps", is_pinned=True).memory
    for each in (fact, pinned):
        heart.forget(each.id, reason="by mistake")
        heart.learn(each.content)

    asked, kept = nous("restore", str(fact.id), "--active"), nous("restore", str(pinned.id))

    assert [each.stdout.count("says the same and is active too") for each in (asked, kept)] == [1, 1]
    assert heart.get(fact.id).state == heart.get(pinned.id).state == "active"


def test_of_a_forgotten_fact_the_episode_is_named_that_may_still_tell_it(
    nous: Callable[..., Result], heart: Heart
) -> None:
    episode = heart.record_episode("fact: the gate code is 4711")
    heart.work()
    (drawn,) = heart.list_memories(kinds=["fact"])

    said = nous("forget", str(drawn.id), "--reason", "the lock was changed").output

    assert str(episode.id)[:13] in said
    assert "may still tell it" in said


def test_the_history_names_who_decided_and_when(
    nous: Callable[..., Result], heart: Heart, judge: ScriptedJudge
) -> None:
    judge.change = 0.9
    fact = heart.learn("The gate code is 4711").memory
    earlier = heart.learn("the pager is with Ana", learned_at="2026-05-01T00:00:00Z").memory
    later = heart.learn("Ben took over the pager duty", learned_at="2026-06-01T00:00:00Z").memory
    began = datetime.now(UTC)

    nous("pin", str(fact.id))
    nous("resolve", str(later.id), "b_wins")
    heart.unpin(fact.id)

    assert [each.actor for each in heart.history(fact.id)] == ["agent", "operator", "agent"]
    (superseded, learned) = heart.history(earlier.id)
    assert (superseded.action, superseded.actor, learned.actor) == ("superseded", "operator", "agent")
    assert superseded.effective_at >= began


def test_a_recall_that_finds_nothing_says_where_it_did_not_look(nous: Callable[..., Result], heart: Heart) -> None:
    for n in range(3):
        heart.learn(f"The tent number {n} is green", project_id="camping", scope="project")
    heart.learn("The cat is ill", user_id="ana")

    missed = nous("recall", "tent")
    found = nous("recall", "tent number 1 is green", "--project", "camping")

    assert "nothing was found" in missed.stdout
    assert "not looked at: 3 in project camping, 1 of user ana; name them with --project and --user" in missed.stderr
    assert "in project camping" not in found.stderr


def test_a_recall_says_who_said_what(nous: Callable[..., Result], heart: Heart) -> None:
    heart.learn("The cat is ill", user_id="ana", source="a letter", learned_at="2026-05-01T09:00:00Z")

    told = nous("recall", "the cat is ill", "--user", "ana").stdout

    assert "said 2026-05-01 09:00, source a letter, user ana" in " ".join(told.split())


def test_who_states_a_fact_and_how_far_it_is_trusted_can_be_typed(nous: Callable[..., Result]) -> None:
    typed = [
        nous("learn", "The shop opens at nine", "--source-kind", "operator", "--json"),
        nous("learn", "The yard is locked at night", "--trust", "90", "--json"),
    ]

    told = [json.loads(each.stdout)["memory"] for each in typed]
    assert [(each["source_kind"], each["trust"]) for each in told] == [("operator", 80), ("agent", 90)]


def test_what_is_forgotten_or_restored_already_is_said_to_be(nous: Callable[..., Result], heart: Heart) -> None:
    fact = heart.learn("The gate code is 4711").memory

    first, second = (nous("forget", str(fact.id), "--reason", "the lock was changed").stdout for _ in range(2))
    back, again = (nous("restore", str(fact.id)).stdout for _ in range(2))

    assert [each.partition("  ")[0] for each in (first, second, back, again)] == [
        "forgotten", "forgotten already", "restored", "nothing to restore",
    ]  # fmt: skip


def test_a_split_says_how_to_join_the_two_again(nous: Callable[..., Result], heart: Heart) -> None:
    fact = heart.learn("The gate code is 4711").memory
    heart.learn("The gate code is 4711.")
    statement = heart.statements(fact.id)[-1]

    split = nous("split", str(statement.id))

    joined = nous(*split.stderr.strip().removeprefix("join them again: nous ").split())
    assert joined.stdout.startswith("taken back  split")


def test_the_earlier_side_of_a_contradiction_stands_first_with_its_day(
    nous: Callable[..., Result], heart: Heart
) -> None:
    told = (("Ana sits in Oslo", "2026-06-01"), ("The desk of Ana stands in Lima", "2026-05-01"))
    later, earlier = (heart.learn(text, learned_at=f"{day}T00:00:00Z").memory for text, day in told)
    cause = Cause("agent", "contradicted", "one seat", datetime.now(UTC))
    with heart.agent.database.transaction("aria") as connection:
        open_between(connection, "aria", earlier, later, judgement={}, cause=cause)

    lines = nous("contradictions").stdout.splitlines()[1:3]

    assert lines == [
        f"  b  {earlier.content}  2026-05-01  {earlier.id}",
        f"  a  {later.content}  2026-06-01  {later.id}",
    ]


def test_forgetting_without_a_reason_is_wrong_usage(nous: Callable[..., Result], heart: Heart) -> None:
    fact = heart.learn("The gate code is 4711").memory

    refused = nous("forget", str(fact.id))

    assert refused.exit_code == 2
    assert heart.get(fact.id) == fact


def test_a_memory_is_pinned_unpinned_and_corrected(nous: Callable[..., Result], heart: Heart) -> None:
    fact = heart.learn("It is 4711", tags=["old"], category="secret").memory

    nous("pin", str(fact.id), "--reason", "keep it")
    pinned = heart.get(fact.id)
    nous("unpin", str(fact.id))
    nous("update", str(fact.id), "--subject", "gate code", "--tag", "home", "--tag", "gate", "--category", "")
    corrected = heart.get(fact.id)

    assert (pinned.is_pinned, corrected.is_pinned) == (True, False)
    assert (corrected.subject, corrected.tags, corrected.category) == ("gate code", ["home", "gate"], None)
    assert [each.action for each in heart.history(fact.id)] == ["changed", "unpinned", "pinned", "learned"]


def test_what_is_told_for_a_project_is_found_by_its_other_users(nous: Callable[..., Result]) -> None:
    told = nous("learn", "The tent is booked for July", "--project", "camping", "--user", "cleo", "--scope", "project")

    found = nous("recall", "tent", "--project", "camping", "--user", "ben", "--json")

    assert told.exit_code == 0, told.output
    assert [each["memory"]["content"] for each in json.loads(found.stdout)["memories"]] == [
        "The tent is booked for July"
    ]


def test_a_dry_run_of_erasing_a_user_says_that_the_words_of_others_stay(
    nous: Callable[..., Result], heart: Heart
) -> None:
    heart.learn("Ada likes tea", user_id="ada")

    planned = nous("erase", "aria", "--user", "ada", "--dry-run")

    assert planned.exit_code == 0, planned.output
    assert "what others said about ada is theirs and stays" in planned.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["learn", ""],
        ["learn", "The kiln is hot", "--valid-from", "2026-02-01", "--valid-to", "2026-01-01"],
        ["learn", "The kiln is hot", "--replaces", str(UUID(int=7))],
        ["censor", "add", "", "why"],
        ["censor", "add", "*", "why", "--literal"],
        ["webhook", "add", "ftp://kiln.example.org/"],
        ["patterns", "/no/such/folder"],
        ["workflows", "--project", "x" * 2000],
        ["import", "/no/such/file.jsonl"],
    ],
)
def test_what_is_not_learned_begins_no_agent(nous: Callable[..., Result], arguments: list[str]) -> None:
    refused = nous(*arguments, "--agent", "ghost", "--json")

    assert refused.exit_code == 1, refused.output
    assert json.loads(refused.stdout)["error"]["kind"] in {"InvalidInput", "NotFound"}
    assert "ghost" not in nous("agents").output
