"""Who decides what contradicts itself: below operator, a ruling against more trust is a proposal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from api_client import app_over, bearer, client_of, key_of
from cli_runs import pointed_at, typed
from mcp_visits import call, door_to, said, values
from starlette.testclient import TestClient

from nous_online.core.errors import Forbidden, Refused
from nous_online.core.rights import WITHOUT_KEY
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.language.minilm import LocalMiniLM
from nous_online.language.pairs.judging import OfflineJudge
from nous_online.memories.contradictions import Contradiction, Resolution

HONEST = "Invoices are paid to the account DE89 3704 0044 0532 0130 00"
PLANTED = "Invoices are paid to the account DE02 1203 0000 0000 2020 51"
QUESTION = "To which account are invoices paid?"


@pytest.fixture(scope="module")
def minilm() -> LocalMiniLM:
    return LocalMiniLM(threads=1)


@pytest.fixture
def aria(database: Database, minilm: LocalMiniLM) -> Heart:
    return Heart.open("aria", database=database, embedder=minilm, judge=OfflineJudge(), works_in_background=False)


@pytest.fixture
def rest(database_url: str, database: Database, minilm: LocalMiniLM) -> Iterator[TestClient]:
    """A client with an ordinary key of agent `aria`."""
    with client_of(app_over(database_url, minilm, judge=OfflineJudge()), bearer(key_of(database, "aria"))) as client:
        yield client


@pytest.fixture
def contradiction(aria: Heart) -> Contradiction:
    """The user's word against a page's, left open."""
    aria.learn(HONEST, source_kind="user")
    aria.learn(PLANTED, source_kind="web")
    (found,) = aria.contradictions()
    return found


def sides(heart: Heart, found: Contradiction) -> tuple[Resolution, Resolution]:
    """Return how the planted one would win, and how the honest one would."""
    return ("a_wins", "b_wins") if heart.get(found.memory_a).content == PLANTED else ("b_wins", "a_wins")


def ruled_through_mcp(heart: Heart, rest: TestClient, found: UUID, resolution: str) -> None:
    answer = call(
        door_to(heart),
        "resolve_contradiction",
        contradiction_id=str(found),
        resolution=resolution,
        note="the page says so",
    )
    assert values(answer)["status"] == "proposed"
    assert "a person decides" in said(answer)


def ruled_through_rest(heart: Heart, rest: TestClient, found: UUID, resolution: str) -> None:
    answer = rest.post(
        f"/contradictions/{found}/resolve", json={"resolution": resolution, "note": "the page says so"}
    ).json()
    assert (answer["status"], answer["resolution"], answer["proposed"]["resolution"]) == ("open", None, resolution)


def ruled_through_heart(heart: Heart, rest: TestClient, found: UUID, resolution: Any) -> None:
    ruled = heart.limited_to(WITHOUT_KEY).resolve_contradiction(found, resolution, note="the page says so")
    assert (ruled.status, ruled.resolution) == ("open", None)


@pytest.mark.parametrize("is_both", [False, True])
@pytest.mark.parametrize("rule", [ruled_through_mcp, ruled_through_rest, ruled_through_heart])
def test_a_ruling_against_more_trust_is_a_proposal_that_changes_no_fact(
    aria: Heart, rest: TestClient, contradiction: Contradiction, rule: Callable[..., None], *, is_both: bool
) -> None:
    planted_wins, _ = sides(aria, contradiction)
    resolution = "both_valid" if is_both else planted_wins
    before = [aria.get(each) for each in (contradiction.memory_a, contradiction.memory_b)]

    rule(aria, rest, contradiction.id, resolution)

    (left,) = aria.contradictions()
    assert left.proposed is not None
    assert (left.proposed["resolution"], left.proposed["note"]) == (resolution, "the page says so")
    assert left.proposed["by"].startswith(("key ", "a caller without a key"))
    assert [aria.get(each) for each in (contradiction.memory_a, contradiction.memory_b)] == before
    assert aria.recall(QUESTION)[0].content == HONEST


def test_a_planted_fact_can_not_supersede_the_operators_pinned_one_by_a_ruling(aria: Heart) -> None:
    pinned = aria.learn(HONEST, source_kind="operator", trust=100, is_pinned=True).memory
    aria.learn(PLANTED, trust=20)
    (found,) = aria.contradictions()
    merged = aria.learn("Invoices are paid to either account", trust=60).memory
    planted_wins, _ = sides(aria, found)

    for told in ({"resolution": planted_wins}, {"resolution": "merged", "merged_into": str(merged.id)}):
        answer = values(call(door_to(aria), "resolve_contradiction", contradiction_id=str(found.id), **told))
        assert answer["status"] == "proposed"

    assert aria.get(pinned.id).state == "active"


def test_a_ruling_for_what_is_trusted_more_needs_no_person(aria: Heart, contradiction: Contradiction) -> None:
    _, honest_wins = sides(aria, contradiction)

    answer = call(
        door_to(aria), "resolve_contradiction", contradiction_id=str(contradiction.id), resolution=honest_wins
    )

    assert values(answer)["status"] == "resolved"
    assert [each.content for each in aria.recall(QUESTION)] == [HONEST]


@pytest.mark.parametrize("door", ["mcp", "rest", "cli"])
def test_every_door_merges_two_that_say_the_same(
    aria: Heart, rest: TestClient, contradiction: Contradiction, database_url: str, tmp_path: Path, door: str
) -> None:
    if door == "mcp":
        call(door_to(aria), "resolve_contradiction", contradiction_id=str(contradiction.id), resolution="same")
    elif door == "rest":
        rest.post(f"/contradictions/{contradiction.id}/resolve", json={"resolution": "same"}).raise_for_status()
    else:
        with pointed_at(database_url, tmp_path):
            assert typed("resolve", contradiction.id, "same", "--agent", "aria").out.startswith("resolved  merged")

    (found,) = aria.contradictions(status="resolved")
    facts = [aria.get_fact(each) for each in (found.memory_a, found.memory_b)]
    assert {(fact.content, fact.state, fact.succession) for fact in facts} == {
        (HONEST, "active", None), (PLANTED, "superseded", "merged"),
    }  # fmt: skip


def test_an_operator_decides_as_was_proposed_or_rejects_it(aria: Heart, contradiction: Contradiction) -> None:
    planted_wins, honest_wins = sides(aria, contradiction)
    agent = aria.limited_to(WITHOUT_KEY)
    agent.resolve_contradiction(contradiction.id, planted_wins, note="the page says so")

    with pytest.raises(Forbidden, match="only an operator"):
        agent.reject_ruling(contradiction.id)
    rejected = aria.reject_ruling(contradiction.id)
    with pytest.raises(Refused, match="nobody proposed"):
        aria.reject_ruling(contradiction.id)
    agent.resolve_contradiction(contradiction.id, "both_valid")
    resolved = aria.resolve_contradiction(contradiction.id, honest_wins)

    assert (rejected.status, rejected.proposed) == ("open", None)
    assert (resolved.status, resolved.resolution) == ("resolved", honest_wins)
    assert agent.resolve_contradiction(contradiction.id, honest_wins).status == "resolved"


def test_the_command_line_shows_what_is_proposed_rejects_it_and_decides(
    aria: Heart, contradiction: Contradiction, database_url: str, tmp_path: Path
) -> None:
    planted_wins, honest_wins = sides(aria, contradiction)
    aria.limited_to(WITHOUT_KEY).resolve_contradiction(contradiction.id, planted_wins, note="the page says so")
    of_aria = ("--agent", "aria")

    with pointed_at(database_url, tmp_path):
        listed = typed("contradictions", *of_aria)
        rejected = typed("resolve", contradiction.id, "--reject", *of_aria)
        undecided = [typed("resolve", contradiction.id, *words, *of_aria) for words in ((), ("--reject", "a_wins"))]
        left = typed("contradictions", *of_aria)
        decided = typed("resolve", contradiction.id, honest_wins, *of_aria)

    assert f"proposed  {planted_wins} by a caller without a key: the page says so" in listed.out
    assert rejected.out.startswith("rejected  still open")
    assert [each.code for each in undecided] == [1, 1]
    assert "proposed" not in left.out
    assert decided.out.startswith(f"resolved  {honest_wins}")


def test_an_administrators_key_decides_what_an_agents_only_proposes(
    aria: Heart, rest: TestClient, database: Database, contradiction: Contradiction
) -> None:
    planted_wins, _ = sides(aria, contradiction)
    admin = bearer(key_of(database, "*"), **{"X-Nous-Agent": "aria"})

    answer = rest.post(
        f"/contradictions/{contradiction.id}/resolve", json={"resolution": planted_wins}, headers=admin
    ).json()

    assert answer["status"] == "resolved"
    assert [each.content for each in aria.recall(QUESTION)] == [PLANTED]


def test_two_facts_that_say_the_same_give_way_together(aria: Heart) -> None:
    said = [
        "Our flour comes from Brandl, they deliver on Tuesdays",
        "Brandl supplies our flour, it comes every Tuesday",
    ]
    known = [aria.learn(each).memory for each in said]
    assert [each.state for each in known] == ["active", "active"]

    learned = aria.learn("Brandl doesn't deliver our flour on Tuesdays any more, they've switched to Thursdays")

    assert [aria.get_fact(each.id).state for each in known] == ["superseded", "superseded"]
    assert learned.contradicts == ()


def test_restoring_a_fact_that_another_had_superseded_says_what_holds_and_the_one_command_that_makes_it_active(
    aria: Heart, database_url: str, tmp_path: Path
) -> None:
    said = ("We use Supabase for auth", "The office is in Lyon", "Lunch is at noon")
    old, new, last = (aria.learn(each).memory for each in said)
    aria.supersede_fact(old.id, new.id, reason="by mistake")
    aria.supersede_fact(new.id, last.id)
    aria.forget(old.id)
    of_aria = ("--agent", "aria")

    with pointed_at(database_url, tmp_path):
        restored, again = (typed("restore", old.id, *of_aria) for _ in range(2))
        active = typed("restore", old.id, "--active", *of_aria)

    left = " ".join((restored.out + restored.err).split())
    assert restored.out.startswith("restored")
    assert "no recall finds it: it was superseded by agent (by mistake)" in left
    assert f"`nous restore {old.id} --active` makes it active again" in left
    assert f"in its place: Lunch is at noon ({str(last.id)[:8]}" in left
    assert "nothing to restore" in again.out
    assert "makes it active again" in " ".join((again.out + again.err).split())
    assert active.out.startswith("restored")
    assert [aria.get_fact(each.id).state for each in (old, new, last)] == ["active", "superseded", "active"]


def test_undo_says_so_where_it_passes_over_a_contradiction_that_was_found(
    aria: Heart, contradiction: Contradiction, database_url: str, tmp_path: Path
) -> None:
    earlier = next(
        each for each in (contradiction.memory_a, contradiction.memory_b) if aria.get(each).content == HONEST
    )

    with pointed_at(database_url, tmp_path):
        undone = typed("undo", earlier, "--agent", "aria")

    told = " ".join((undone.out + undone.err).split())
    assert undone.out.startswith("taken back  learned")
    assert "its last change was contradicted (" in told
    assert f"nous restore {str(earlier)[:8]}" in told


@pytest.mark.parametrize("resolution", ["both_valid", "a_wins"])
def test_undo_of_a_ruling_says_that_it_is_asked_again(
    aria: Heart, contradiction: Contradiction, database_url: str, tmp_path: Path, resolution: Resolution
) -> None:
    aria.resolve_contradiction(contradiction.id, resolution, note="two accounts")

    with pointed_at(database_url, tmp_path):
        undone = typed("undo", contradiction.memory_b, "--agent", "aria")

    action = "contradiction_resolved" if resolution == "both_valid" else "superseded"
    assert undone.out.startswith(f"taken back  {action}")
    assert f"asked again: nous resolve {str(contradiction.id)[:8]}" in " ".join((undone.out + undone.err).split())
    assert aria.contradictions() == [contradiction]
