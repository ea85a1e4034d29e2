"""What a key that may claim little trust can't change: by whatever verb, what is trusted more stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from api_client import app_over, bearer, client_of, key_of
from conftest import WordEmbedder
from mcp_visits import call, door_to, values

from nous_online.core.domain import FACT, Fact
from nous_online.core.errors import Forbidden, NotFound
from nous_online.core.rights import WITHOUT_KEY, Rights
from nous_online.database.changes import Cause, change_memory, version_of
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.memories import contradictions
from nous_online.memories.contradictions import Contradiction

CRAWLER = Rights(20, may_pin=False, is_operator=False, holder="key 1")
CAUSE = Cause("agent", "contradicted", "they can't both be so", datetime(2026, 5, 1, tzinfo=UTC))
VERSIONS = "select id, row_version from heart.memories order by id"


@pytest.fixture
def crawler(heart: Heart) -> Heart:
    return heart.limited_to(CRAWLER)


def told(heart: Heart, *texts: str, trust: int = 60) -> list[Fact]:
    return [heart.learn(text, trust=trust).memory for text in texts]


def opposed(heart: Heart, one: Fact, other: Fact) -> Contradiction:
    with heart.agent.database.transaction("aria") as connection:
        contradictions.open_between(connection, "aria", one, other, judgement={}, cause=CAUSE)
    return next(each for each in heart.contradictions() if {each.memory_a, each.memory_b} == {one.id, other.id})


def doubted(heart: Heart, later: Fact, earlier: Fact) -> None:
    with heart.agent.database.transaction("aria") as connection:
        read = version_of(FACT, heart.get_fact(later.id))
        change_memory(connection, "aria", read, {"perhaps_replaces": [str(earlier.id)]}, cause=CAUSE)


@pytest.mark.parametrize("trust", [60, 80])
def test_a_key_changes_by_no_verb_what_is_trusted_more(
    heart: Heart, crawler: Heart, owner: psycopg.Connection, trust: int
) -> None:
    honest, other, third, gone = told(heart, "Tom sings", "Ana paints", "Ben digs", "Eva rows", trust=trust)
    heart.forget(gone.id)
    replaced, hidden = told(heart, "Ida swims", "Max naps", trust=20)
    for each in (replaced, hidden):
        heart.supersede_fact(each.id, honest.id)
    heart.forget(hidden.id)
    doubted(heart, other, third)
    heart.confirm_fact(third.id)
    repeat = heart.statements(third.id)[1].id
    censor = heart.add_censor("ring the bell", "it is late", trust=trust)
    (fired,) = heart.check_censors("ring the bell")
    recipe = heart.store_procedure("Bake", steps=["knead", "bake"], trust=20, is_pinned=True)
    attempts: list[Callable[[], object]] = [
        lambda: crawler.supersede_fact(honest.id, other.id),
        lambda: crawler.supersede_fact(honest.id, other.id, is_same=True),
        lambda: crawler.keep_both(other.id, third.id),
        lambda: crawler.split(repeat),
        lambda: crawler.undo(honest.id),
        lambda: crawler.undo(replaced.id),
        lambda: crawler.forget(honest.id),
        lambda: crawler.restore(gone.id),
        lambda: crawler.restore(hidden.id, is_active=True),
        lambda: crawler.update(honest.id, subject="nobody"),
        lambda: crawler.unpin(recipe.id),
        lambda: crawler.store_procedure("Bake", steps=["burn"], trust=20),
        lambda: crawler.add_censor("ring the bell", "never", severity="block"),
        lambda: crawler.update_censor(censor.id, severity="warn"),
        lambda: crawler.report_false_positive(censor.id, activation_id=fired.id),
        lambda: crawler.forget(censor.id),
    ]

    before = owner.execute(VERSIONS).fetchall()
    for attempt in attempts:
        with pytest.raises(Forbidden):
            attempt()

    assert owner.execute(VERSIONS).fetchall() == before


@pytest.mark.parametrize("ruling", ["keep", "both_valid", "merged", "same"])
def test_a_key_only_proposes_how_to_decide_between_two_that_are_trusted_more(
    heart: Heart, crawler: Heart, ruling: str
) -> None:
    one, other, both = told(heart, "Tom sings", "Ana paints", "Tom and Ana do both")
    found = opposed(heart, one, other)
    facts = [heart.get_fact(each.id) for each in (one, other)]
    said: dict[str, dict[str, Any]] = {
        "keep": {"keep": one.id},
        "merged": {"resolution": "merged", "merged_into": both.id},
    }

    ruled = crawler.resolve_contradiction(found.id, **said.get(ruling, {"resolution": ruling}))

    assert (ruled.status, ruled.proposed is not None) == ("open", True)
    assert [heart.get_fact(each.id) for each in (one, other)] == facts
    decided = heart.limited_to(WITHOUT_KEY).resolve_contradiction(found.id, keep=one.id)
    assert (decided.status, heart.get_fact(other.id).state) == ("resolved", "superseded")


@pytest.mark.parametrize("by_ruling", [False, True])
def test_a_key_takes_back_nothing_by_which_more_trust_replaced_its_word(
    heart: Heart, crawler: Heart, *, by_ruling: bool
) -> None:
    (planted,), (honest,) = told(heart, "Tom sings", trust=20), told(heart, "Ana paints")
    doubted(heart, planted, honest)
    if by_ruling:
        heart.resolve_contradiction(opposed(heart, planted, honest).id, keep=honest.id)
    else:
        heart.supersede_fact(planted.id, honest.id)

    for attempt in (lambda: crawler.undo(planted.id), lambda: crawler.keep_both(planted.id, honest.id)):
        with pytest.raises(Forbidden):
            attempt()

    assert heart.get_fact(planted.id).state == "superseded"


def test_a_key_still_changes_what_is_trusted_as_it_is(heart: Heart, crawler: Heart, owner: psycopg.Connection) -> None:
    (own, new), (honest,) = told(crawler, "Tom sings", "Tom hums", trust=20), told(heart, "Ana paints")

    assert crawler.supersede_fact(own.id, new.id).state == "superseded"
    crawler.undo(own.id)
    crawler.supersede_fact(own.id, honest.id)

    assert heart.get_fact(own.id).superseded_by == honest.id
    context = owner.execute("select context from heart.facts where id = %s", [honest.id]).fetchone()
    assert context == (None,)  # what it replaced by hand would be told with it


def test_a_key_that_repeats_what_is_trusted_more_gives_it_no_key(heart: Heart, crawler: Heart) -> None:
    (honest,) = told(heart, "Tom sings")

    repeated = crawler.learn("Tom sings", key="tom/hobby")

    assert (repeated.action, heart.get_fact(honest.id).key) == ("confirmed", None)
    assert heart.learn("Tom sings", key="tom/hobby").memory.key == "tom/hobby"


def test_what_a_source_said_is_undone_as_far_as_the_key_may(heart: Heart, crawler: Heart) -> None:
    honest = heart.learn("Tom sings", trust=60, source="mail").memory
    own = heart.learn("Ana paints", trust=20, source="mail").memory

    done = crawler.undo_source("mail")

    assert (done.undone, list(done.refused)) == ((own.id,), [honest.id])


# --- absolute ---


def test_what_is_absolute_takes_a_caller_who_may_speak_for_the_user(heart: Heart, crawler: Heart) -> None:
    own = crawler.add_censor("ring the bell", "it is late", severity="block")
    person = heart.limited_to(WITHOUT_KEY)

    with pytest.raises(Forbidden, match="severity 'absolute' is not for key 1 to set"):
        crawler.add_censor("open the gate", "it is late", severity="absolute")
    with pytest.raises(Forbidden, match="'absolute'"):
        crawler.update_censor(own.id, severity="absolute")
    assert person.update_censor(own.id, severity="absolute").severity == "absolute"
    with pytest.raises(Forbidden, match="'absolute'"):
        crawler.update_censor(own.id, severity="warn")
    assert person.add_censor("open the gate", "it is late", severity="absolute").severity == "absolute"


def test_a_censor_of_more_trust_that_is_as_strict_is_returned(heart: Heart, crawler: Heart) -> None:
    known = heart.add_censor("ring the bell", "it is late", severity="block", trust=60)

    assert crawler.add_censor("ring the bell", "never", severity="warn") == known


# --- the doors ---


def test_rest_and_mcp_hold_a_key_to_it(
    heart: Heart, database: Database, database_url: str, embedder: WordEmbedder
) -> None:
    one, other = told(heart, "Tom sings", "Ana paints", trust=80)
    found = opposed(heart, one, other)
    key = bearer(key_of(database, "aria", max_trust=20))
    with client_of(app_over(database_url, embedder), key) as client:
        refused = [
            client.post(f"/facts/{one.id}/supersede", json={"new_id": str(other.id)}),
            client.post(f"/facts/{one.id}/supersede", json={"new_id": str(other.id), "is_same": True}),
            client.post("/censors", json={"trigger": "ring", "reason": "late", "severity": "absolute"}),
        ]
        ruled = client.post(f"/contradictions/{found.id}/resolve", json={"keep": str(one.id)})
    answer = values(call(door_to(heart), "resolve_contradiction", contradiction_id=str(found.id), keep=str(one.id)))

    assert [each.status_code for each in refused] == [403] * 3
    assert ruled.json()["proposed"]["resolution"] in {"a_wins", "b_wins"}
    assert answer["status"] == "proposed"
    assert [heart.get_fact(each.id).state for each in (one, other)] == ["active", "active"]


# --- one customer's fact and another's ---

MARTA: dict[str, Any] = {"user_id": "marta", "project_id": "shop"}


@pytest.mark.parametrize(
    ("reach", "is_found"),
    [
        (MARTA, True),
        ({"project_id": "shop"}, True),
        ({"project_id": "shop", "scope": "project"}, True),
        ({}, True),
        ({"scope": "system"}, True),
        ({**MARTA, "user_id": "tom"}, False),
        ({**MARTA, "project_id": "yard"}, False),
        ({"project_id": "yard", "scope": "project"}, False),
    ],
)
def test_a_fact_gives_way_to_one_that_whoever_recalls_it_can_recall(
    heart: Heart, owner: psycopg.Connection, reach: dict[str, Any], *, is_found: bool
) -> None:
    old, rival = (heart.learn(text, **MARTA).memory for text in ("Tom sings", "Tom hums"))
    new = heart.learn("Ana paints", **reach).memory
    found = opposed(heart, old, rival)

    if not is_found:
        unknown = f"no fact {old.id} of the same scope, user and project to replace"
        for is_same in (False, True):
            with pytest.raises(NotFound, match=unknown):
                heart.supersede_fact(old.id, new.id, is_same=is_same)
        with pytest.raises(NotFound, match="of the same scope, user and project to replace"):
            heart.resolve_contradiction(found.id, "merged", merged_into=new.id)
        assert heart.get_fact(old.id).state == "active"
        return
    heart.supersede_fact(old.id, new.id)

    (context,) = owner.execute("select context from heart.facts where id = %s", [new.id]).fetchall()
    assert new.id in [each.id for each in heart.recall("Ana paints", **MARTA)]
    assert context == (old.content if reach == MARTA else None,)  # others would read in it what was Marta's


def test_a_wider_fact_does_not_give_way_to_one_that_fewer_recall(heart: Heart) -> None:
    wide, narrow = heart.learn("Tom sings").memory, heart.learn("Ana paints", **MARTA).memory

    found = opposed(heart, wide, narrow)

    with pytest.raises(NotFound, match="of the same scope, user and project"):
        heart.supersede_fact(wide.id, narrow.id)
    with pytest.raises(NotFound, match="of the same scope, user and project"):
        heart.resolve_contradiction(found.id, keep=narrow.id)
    assert heart.resolve_contradiction(found.id, keep=wide.id).status == "resolved"
