"""Trust follows the channel: what came from a page can't take the place of what the user said, through any door."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import psycopg
import pytest
from api_client import app_over, bearer, client_of, key_of
from cli_runs import pointed_at, typed
from conftest import WordEmbedder
from mcp_visits import call, door_to, values
from starlette.testclient import TestClient

from nous_online.core.errors import Forbidden, InvalidInput, NotFound
from nous_online.core.policy import LearnPolicy
from nous_online.core.rights import WITHOUT_KEY, Rights
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.api.application import Access
from nous_online.language.minilm import LocalMiniLM
from nous_online.language.pairs.judging import OfflineJudge

HONEST = "Invoices are paid to the account DE89 3704 0044 0532 0130 00"
PLANTED = "Invoices are paid to the account DE02 1203 0000 0000 2020 51"
QUESTION = "To which account are invoices paid?"
Planting: TypeAlias = Callable[[Heart, TestClient], None]


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


def test_what_is_said_to_come_from_an_episode_names_one_of_the_agent_and_is_trusted_as_that_is(heart: Heart) -> None:
    page = heart.record_episode("The mill closed, says a page", source_kind="web")
    theirs = Heart.open("ben", database=heart.agent.database, embedder=heart.agent.embedder, works_in_background=False)
    of_ben = theirs.record_episode("The mill is open").id
    drawn: dict[str, Any] = {"source_kind": "episode"}

    learned = heart.learn("The mill closed", source_episode_id=page.id, **drawn).memory
    censor = heart.add_censor("sending grain to the mill", "It closed", learned_from_episode_id=page.id, **drawn)

    assert (learned.trust, learned.source_episode_id, censor.trust) == (20, page.id, 20)
    for unknown in (of_ben, uuid4()):
        for kind in ({}, drawn):
            with pytest.raises(NotFound, match=f"no episode {unknown}"):
                heart.learn("The mill is open", source_episode_id=unknown, **kind)
            with pytest.raises(NotFound, match=f"no episode {unknown}"):
                heart.learn_deferred([("The mill is open", {"source_episode_id": unknown, **kind})])
            with pytest.raises(NotFound, match=f"no episode {unknown}"):
                heart.add_censor("sending grain", "It closed", learned_from_episode_id=unknown, **kind)
    with pytest.raises(InvalidInput, match="needs source_episode_id"):
        heart.learn("The mill is open", **drawn)
    with pytest.raises(InvalidInput, match="needs learned_from_episode_id"):
        heart.add_censor("sending grain", "It closed", **drawn)
    assert heart.count() == {"active": 1}


@pytest.mark.parametrize(
    ("source_kind", "trust"), [("web", 20), ("tool", 30), ("agent", 50), ("import", 50), ("user", 60), ("operator", 80)]
)
def test_unless_told_trust_is_that_of_the_source(heart: Heart, source_kind: str, trust: int) -> None:
    told: dict[str, Any] = {"source_kind": source_kind}

    assert heart.learn("Cats like fish", **told).memory.trust == trust
    assert heart.record_episode("The mill closed", **told).trust == trust
    assert heart.add_censor("pushing to main", "Use a branch", **told).trust == trust
    assert heart.store_procedure("Deploy", kind="workflow", steps=["test", "build"], **told).trust == trust


def test_a_policy_says_otherwise_how_far_a_source_is_trusted(database: Database, embedder: WordEmbedder) -> None:
    table = (*LearnPolicy.source_trust[1:], ("web", 5))
    heart = Heart.open(
        "aria",
        database=database,
        embedder=embedder,
        policy=LearnPolicy(source_trust=table),
        works_in_background=False,
    )

    assert heart.learn("Cats like fish", source_kind="web").memory.trust == 5


def test_a_program_that_opens_the_heart_says_any_trust_itself(heart: Heart) -> None:
    learned = heart.learn("Cats like fish", source_kind="web", trust=100, is_pinned=True, scope="system").memory

    assert (learned.trust, learned.is_pinned, learned.scope) == (100, True, "system")


def through_heart(heart: Heart, rest: TestClient) -> None:
    heart.learn(PLANTED, source_kind="web", source="https://example.invalid")


def through_mcp(heart: Heart, rest: TestClient) -> None:
    values(call(door_to(heart), "remember", content=PLANTED, source_kind="tool", source="a web page"))


def through_mcp_by_default(heart: Heart, rest: TestClient) -> None:
    values(call(door_to(heart), "remember", content=PLANTED))


def through_rest(heart: Heart, rest: TestClient) -> None:
    answer = rest.post("/facts", json={"content": PLANTED, "source_kind": "tool"})
    assert answer.status_code == 200, answer.text


PLANTINGS = [through_heart, through_mcp, through_mcp_by_default, through_rest]


@pytest.mark.parametrize("plant", PLANTINGS)
def test_what_a_page_or_an_agent_says_stands_beside_what_the_user_said_and_says_so(
    aria: Heart, rest: TestClient, plant: Planting
) -> None:
    honest = aria.learn(HONEST, source_kind="user").memory

    plant(aria, rest)

    found = aria.recall(QUESTION)
    assert [answer.content for answer in found] == [HONEST, PLANTED]
    assert {answer.memory.contradiction_status for answer in found} == {"open"}
    (contradiction,) = aria.contradictions()
    assert honest.id in (contradiction.memory_a, contradiction.memory_b)
    assert aria.count() == {"active": 2}


def test_what_a_page_repeats_lends_the_users_word_neither_trust_nor_a_later_date(aria: Heart) -> None:
    known = aria.learn(PLANTED, source_kind="web", learned_at="2026-05-01T00:00:00Z").memory

    repeated = aria.learn(PLANTED, source_kind="web", learned_at="2026-05-02T00:00:00Z").memory
    aria.learn(HONEST, source_kind="user", learned_at="2026-05-03T00:00:00Z")
    late = aria.learn(PLANTED, source_kind="web", learned_at="2026-05-04T00:00:00Z")

    assert (repeated.id, repeated.trust) == (known.id, 20)
    assert aria.get(known.id).state == "superseded"
    assert (late.action, len(late.contradicts)) == ("stored", 1)
    assert aria.recall(QUESTION)[0].content == HONEST


def test_what_is_pinned_gives_way_to_no_later_word_that_is_not(aria: Heart) -> None:
    pinned = aria.learn(HONEST, is_pinned=True).memory

    learned = aria.learn(PLANTED)

    assert (learned.action, [near.fact.id for near in learned.contradicts]) == ("stored", [pinned.id])
    assert aria.learn("Invoices are paid to the account DE99 1", is_pinned=True).action == "superseded"


# --- what keys may claim ---


@pytest.mark.parametrize(
    ("claim", "limit"),
    [
        ({"trust": 61}, "trust 61 is more than 60, the most that key"),
        ({"is_pinned": True}, "a memory can't be pinned by key"),
        ({"scope": "system"}, "scope 'system' is not for key"),
        ({"source_kind": "operator"}, "source_kind 'operator' is not what key"),
    ],
)
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/facts", {"content": HONEST}),
        ("/episodes/record", {"detail": HONEST}),
        ("/episodes", {"title": HONEST}),
        ("/censors", {"trigger": "paying by hand", "reason": "use the portal"}),
        ("/procedures", {"name": "Pay", "goals": ["paid"]}),
    ],
)
def test_a_key_may_claim_no_more_than_it_was_made_for(
    rest: TestClient, owner: psycopg.Connection, path: str, body: dict[str, Any], claim: dict[str, Any], limit: str
) -> None:
    answer = rest.post(path, json={**body, **claim})

    assert (answer.status_code, answer.json()["type"]) == (403, "urn:nous:problem:forbidden")
    assert limit in answer.json()["detail"]
    assert owner.execute("select count(*) from heart.memories").fetchone() == (0,)


def test_a_key_made_for_more_may_claim_it(rest: TestClient, database: Database) -> None:
    more = bearer(key_of(database, "aria", max_trust=90, may_pin=True))
    admin = bearer(key_of(database, "*"), **{"X-Nous-Agent": "aria"})

    pinned = rest.post("/facts", json={"content": HONEST, "trust": 90, "is_pinned": True}, headers=more)
    told = rest.post("/facts", json={"content": "Cats like fish", "source_kind": "operator"}, headers=admin)

    assert (pinned.json()["memory"]["trust"], pinned.json()["memory"]["is_pinned"]) == (90, True)
    assert told.json()["memory"]["trust"] == 80


def test_without_a_key_nobody_is_more_than_a_user(database_url: str, minilm: LocalMiniLM, aria: Heart) -> None:
    app = app_over(database_url, minilm, access=Access(requires_keys=False))
    with client_of(app, {"X-Nous-Agent": "aria"}) as client:
        refused = client.post("/facts", json={"content": HONEST, "trust": 61})
        user = client.post("/facts", json={"content": HONEST, "source_kind": "user"})
    values(call(door_to(aria), "remember", content="Cats like fish", source_kind="user"))

    assert refused.status_code == 403
    assert user.json()["memory"]["trust"] == 60
    assert aria.recall("cats")[0].memory.trust == 60


def test_said_by_the_user_is_capped_by_what_a_key_may_claim(aria: Heart) -> None:
    crawler = aria.limited_to(Rights(max_trust=20, may_pin=False, is_operator=False, holder="key 1"))

    learned = crawler.learn(HONEST, source_kind="user").memory

    assert (learned.source_kind, learned.trust) == ("user", 20)


def test_confirming_by_id_lends_no_more_trust_than_the_caller_has(aria: Heart) -> None:
    known = aria.learn(HONEST, trust=90, learned_at="2026-05-01T00:00:00Z").memory

    confirmed = aria.limited_to(WITHOUT_KEY).confirm_fact(known.id)

    assert (confirmed.confirmation_count, confirmed.last_confirmed_at) == (1, known.learned_at)


def test_nobody_changes_what_is_trusted_more_than_it_may_claim(aria: Heart) -> None:
    caller = aria.limited_to(WITHOUT_KEY)
    episode = aria.start_episode("The audit", trust=90)
    honest, pinned = aria.learn(HONEST, trust=90).memory, aria.learn("Cats like fish", is_pinned=True).memory
    other = aria.learn("Dogs like bones", trust=60).memory
    attempts: list[Callable[[], object]] = [
        lambda: caller.update_episode(episode.id, append="Ben: pay to DE02"),
        lambda: caller.close_episode(episode.id, summary="Nothing was found"),
        lambda: caller.undo(honest.id, reason="it is wrong"),
        lambda: caller.undo(pinned.id, reason="it is wrong"),
        lambda: caller.forget(honest.id, reason="it is wrong"),
        lambda: caller.forget(pinned.id, reason="it is wrong"),
        lambda: caller.unpin(pinned.id),
        lambda: caller.pin(other.id),
        lambda: caller.update(honest.id, subject="nothing"),
        lambda: caller.supersede_fact(honest.id, other.id),
        lambda: caller.supersede_fact(pinned.id, other.id),
    ]

    for attempt in attempts:
        with pytest.raises(Forbidden):
            attempt()

    assert [aria.get(fact.id) for fact in (honest, pinned, other)] == [honest, pinned, other]
    assert aria.get_episode(episode.id) == episode


def test_a_caller_still_updates_what_stands_as_firm_as_it(aria: Heart) -> None:
    caller = aria.limited_to(WITHOUT_KEY)
    episode = caller.start_episode("The audit")
    old, new = caller.learn("Cats like fish").memory, caller.learn("Dogs like bones").memory

    caller.update_episode(episode.id, append="Ben: all is well")
    retired = caller.supersede_fact(old.id, new.id)
    caller.undo(retired.id, reason="both hold")

    assert (retired.state, aria.get(old.id).state) == ("superseded", "active")
    assert caller.close_episode(episode.id).detail == "Ben: all is well"


def test_keys_are_made_listed_and_rotated_with_what_they_may(
    database_url: str, database: Database, heart: Heart, tmp_path: Path, embedder: WordEmbedder
) -> None:
    of_aria = ("--agent", "aria")
    with pointed_at(database_url, tmp_path):
        made = typed("key", "create", *of_aria, "--max-trust", 40, "--may-pin", "--name", "crawler", "--json").json
        usual = typed("key", "create", *of_aria, "--json").json
        admin = typed("key", "create", "--admin", "--read-only", "--json").json
        before = typed("key", "list", *of_aria).out
        with client_of(app_over(database_url, embedder)) as client:
            calls = [client.get("/censors", headers=bearer(made["key"])) for _ in range(2)]
        rotated = typed("key", "rotate", made["id"], *of_aria, "--json").json
        listed = typed("key", "list", *of_aria, "--json").json["keys"]
        again = typed("key", "rotate", made["id"], *of_aria)

    assert [(each["max_trust"], each["may_pin"], each["is_read_only"]) for each in (made, usual, admin, rotated)] == [
        (40, True, False), (60, False, False), (100, True, True), (40, True, False),
    ]  # fmt: skip
    assert "claim trust 40, pin" in before
    assert before.count("never") == 2
    assert [each.status_code for each in calls] == [200, 200]
    assert [(each["id"], each["revoked_at"] is None, each["last_used_at"] is None) for each in listed] == [
        (made["id"], False, False), (usual["id"], True, True), (rotated["id"], True, True),
    ]  # fmt: skip
    assert (again.code, "was revoked at" in again.err) == (1, True)
    with client_of(app_over(database_url, embedder)) as client:
        answers = [client.get("/censors", headers=bearer(each["key"])) for each in (made, rotated)]
    assert [each.status_code for each in answers] == [401, 200]


# --- who may only read ---


def test_a_key_that_may_only_read_changes_nothing(rest: TestClient, database: Database, aria: Heart) -> None:
    aria.learn(HONEST)
    reader = bearer(key_of(database, "aria", is_read_only=True))

    read = rest.post("/recall", json={"query": QUESTION}, headers=reader)
    refused = [
        rest.post("/facts", json={"content": PLANTED}, headers=reader),
        rest.put("/sessions/s/focus", json={"task": "pay"}, headers=reader),
        rest.post("/consolidate", json={"dry_run": True}, headers=bearer(key_of(database, "*", is_read_only=True))),
    ]

    assert [each["text"] for each in read.json()["memories"]] == [HONEST]
    assert rest.get("/contradictions", headers=reader).status_code == 200
    assert [(each.status_code, "may only read" in each.json()["detail"]) for each in refused] == [(403, True)] * 3
    assert aria.count() == {"active": 1}
