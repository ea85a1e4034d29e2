"""The verbs over HTTP, each with its answer."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote
from uuid import UUID

import pytest
from api_client import PROBLEM, app_over, client_of
from conftest import ScriptedJudge, WordEmbedder
from starlette.testclient import TestClient

from nous_online.heart import Heart
from nous_online.interfaces.api.application import Access
from nous_online.language.pairs.judging import Verdict

NOBODY = "5fd041e4-f919-4ffc-b3b4-c33d70428cd1"
BLUE, GREEN = "The deploy colour is blue", "The deploy colour is green"


@pytest.fixture
def client(database_url: str, heart: Heart, embedder: WordEmbedder, judge: ScriptedJudge) -> Iterator[TestClient]:
    """A client of agent `aria`, whose heart the test has too."""
    judge.verdicts[BLUE, GREEN] = Verdict.CONTRADICTS
    app = app_over(database_url, embedder, access=Access(requires_keys=False), judge=judge)
    with client_of(app, {"X-Nous-Agent": "aria"}) as client:
        yield client


def test_learning_answers_with_the_memory_and_why(client: TestClient, heart: Heart) -> None:
    answer = client.post("/facts", json={"content": "Deploys need two approvals", "tags": ["process"]})

    assert answer.status_code == 200, answer.text
    assert answer.json()["action"] == "stored"
    assert heart.get(answer.json()["memory"]["id"]).tags == ["process"]


def test_learning_says_what_is_replaced_by_id_or_by_key(client: TestClient, heart: Heart) -> None:
    old = client.post("/facts", json={"content": "Ada keeps a boat in the old harbour"}).json()["memory"]
    new = client.post("/facts", json={"content": "Ada keeps a boat in the new harbour", "replaces": [old["id"]]}).json()
    again = client.post("/facts", json={"content": "It is sold", "replaces": [old["id"]]})
    unknown = client.post("/facts", json={"content": "It is sold", "replaces": [NOBODY]})
    known = client.post("/facts", json={"content": "The load is nine", "key": "crane/load"}).json()
    keyed = client.post("/facts", json={"content": "It lifts twelve", "key": "crane/load"}).json()

    assert (new["action"], heart.get(old["id"]).superseded_by) == ("superseded", UUID(new["memory"]["id"]))
    assert (known["memory"]["key"], keyed["action"]) == ("crane/load", "superseded")
    assert str(heart.get(known["memory"]["id"]).superseded_by) == keyed["memory"]["id"]
    assert [answer.status_code for answer in (again, unknown)] == [409, 404]


def test_a_retry_with_the_same_key_learns_once(client: TestClient, heart: Heart) -> None:
    once = {"headers": {"Idempotency-Key": "k-1"}, "json": {"content": "Deploys need two approvals"}}

    first, second = client.post("/facts", **once).json(), client.post("/facts", **once).json()
    other = client.post("/facts", **{**once, "json": {"content": "Deploys need one"}})

    assert first["memory"]["id"] == second["memory"]["id"]
    assert heart.count() == {"active": 1}
    assert (other.status_code, other.json()["type"]) == (409, "urn:nous:problem:conflict")


def test_recall_and_feedback_count_as_usage(client: TestClient) -> None:
    client.post("/facts", json={"content": "The staging database is Postgres"})

    found = client.post("/recall", json={"query": "staging database", "limit": 3}).json()
    place = f"/recalls/{found['recall_id']}/feedback"
    said = client.post(place, json={"cited": [found["memories"][0]["id"]]})
    again = client.post(place, json={"cited": [found["memories"][0]["id"]]})

    assert found["memories"][0]["text"] == "The staging database is Postgres"
    assert found["memories"][0]["score"] == found["memories"][0]["parts"]["score"]
    assert (said.json(), again.json()) == ({"cited": 1, "ignored": 0}, {"cited": 0, "ignored": 0})


def test_a_plain_date_is_its_beginning(client: TestClient, heart: Heart) -> None:
    heart.learn("The tent is green", learned_at="2026-05-01T09:00:00Z")

    before, after = (
        client.post("/recall", json={"query": "tent", "as_of": day}).json()["memories"]
        for day in ("2026-05-01", "2026-05-02")
    )

    assert (len(before), len(after)) == (0, 1)


def test_an_unknown_path_is_told_where_the_known_ones_are(client: TestClient) -> None:
    answer = client.get("/doubt")

    assert answer.status_code == 404
    assert answer.json()["detail"] == "'/doubt' is not a path of this interface; /openapi.json lists them"


def test_doubts_are_listed_with_both_facts_and_decided(client: TestClient, heart: Heart, judge: ScriptedJudge) -> None:
    judge.change = 0.9
    earlier = heart.learn("the pager is with Ana", source="Ana").memory
    later = heart.learn("Ben took over the pager duty").memory

    (doubt,) = client.get("/doubts").json()["doubts"]
    settled = client.post(f"/facts/{doubt['earlier']['id']}/supersede", json={"new_id": doubt["later"]["id"]})

    assert (doubt["earlier"]["id"], doubt["later"]["id"]) == (str(earlier.id), str(later.id))
    assert doubt["earlier"]["source"] == "Ana"
    assert settled.status_code == 200
    assert client.get("/doubts").json()["doubts"] == heart.doubts() == []
    (decided,) = client.get("/doubts", params={"status": "resolved"}).json()["doubts"]
    assert (decided["earlier"]["id"], decided["resolution"]) == (str(earlier.id), "b_wins")


def test_what_a_recall_did_not_return_is_not_found(client: TestClient) -> None:
    recall_id = client.post("/recall", json={"query": "anything"}).json()["recall_id"]

    assert client.post(f"/recalls/{recall_id}/feedback", json={"cited": [NOBODY]}).status_code == 404
    assert client.post(f"/recalls/{NOBODY}/feedback", json={}).status_code == 404


def test_a_context_keeps_to_its_budget_and_names_its_tiers(client: TestClient, heart: Heart) -> None:
    heart.learn("Deploys need two approvals", is_pinned=True)
    signals = {"current_file": "src/auth/login.ts", "recent_errors": ["TypeError"], "activity": "debugging"}

    found = client.post("/context/assemble", json={"budget": 2000, "query": "deploys", "signals": signals}).json()

    assert "Deploys need two approvals" in found["context"]
    assert found["token_count"] <= 2000
    assert list(found["tiers"]) == ["tier1", "tier2", "tier3", "tier4"]
    assert [*found["tiers"].values()] == [
        found["tokens"].get(tier, 0) for tier in ("critical", "relevant", "background", "index")
    ]
    assert found["lines"][0]["reason"]


def test_a_prediction_starts_from_the_file_that_was_opened(client: TestClient) -> None:
    found = client.post("/context/predict", json={"file_opened": "src/auth/login.ts", "session_id": "s-1"})

    assert found.json() == {"session_id": "s-1", "predicted_memories": [], "confidence": 0.0}


def test_an_episode_lives_from_start_to_close(client: TestClient) -> None:
    begun = client.post("/episodes", json={"title": "Migrate staging", "session_id": "s-1"}).json()
    place = f"/episodes/{begun['id']}"

    told = client.patch(
        place, json={"append": "The dump took 40 minutes.", "artifacts": [{"kind": "pr", "reference": "7"}]}
    )
    closed = client.post(f"{place}/close", json={"outcome": "success"})

    assert (told.json()["detail"], told.json()["state"]) == ("The dump took 40 minutes.", "open")
    assert (closed.json()["outcome"], closed.json()["state"]) == ("success", "closed")
    assert client.get(place).json()["id"] == begun["id"]


def test_an_episode_that_is_over_is_recorded_with_its_duration(client: TestClient) -> None:
    body = {"detail": "We moved staging.", "started_at": "2026-05-01T09:00:00+02:00", "duration_seconds": 600}

    found = client.post("/episodes/record", json=body)

    assert found.json()["duration_seconds"] == 600
    assert found.json()["ended_at"] == "2026-05-01T07:10:00Z"


def test_censors_are_added_checked_and_reported(client: TestClient) -> None:
    body = {"trigger": "git push origin main", "reason": "use a branch", "severity": "block", "is_literal": True}
    censor = client.post("/censors", json=body).json()

    blocked = client.post("/censors/check", json={"action": "git push origin main"}).json()
    allowed = client.post("/censors/check", json={"action": "read the paper"}).json()
    wrong = client.post(
        f"/censors/{censor['id']}/false-positive",
        json={"note": "a sandbox", "activation_id": blocked["activations"][0]["id"]},
    ).json()
    again = client.post(f"/censors/{censor['id']}/false-positive", json={})
    passed = client.post("/censors/check", json={"action": "git push origin main"}).json()

    assert (blocked["is_blocked"], blocked["is_allowed"], blocked["severity"]) == (True, False, "block")
    assert (again.status_code, passed["activations"]) == (409, [])
    assert (allowed["is_blocked"], allowed["activations"]) == (False, [])
    assert wrong["false_positive_count"] == 1
    assert [each["id"] for each in client.get("/censors").json()["censors"]] == [censor["id"]]


def test_procedures_are_stored_activated_and_judged(client: TestClient) -> None:
    body = {"name": "deploy", "kind": "workflow", "steps": ["test", {"name": "build", "detail": "docker build ."}]}
    stored = client.post("/procedures", json=body).json()
    place = f"/procedures/{stored['id']}"

    client.post(f"{place}/activate", json={"session_id": "s-1"})
    client.post(f"{place}/outcome", json={"is_success": True})
    found = client.get(place).json()

    assert stored["compressed"] == "deploy: test→build"
    assert (found["activation_count"], found["success_count"]) == (1, 1)


def test_working_memory_is_focused_loaded_and_ended(client: TestClient) -> None:
    fact = client.post("/facts", json={"content": "The dump takes 40 minutes"}).json()["memory"]["id"]
    client.put("/sessions/s-1/focus", json={"task": "migrate staging", "capacity": 5})
    client.post("/sessions/s-1/load", json={"memory_ids": [fact], "note": "ask Ada first"})

    held = client.get("/sessions/s-1").json()
    ended = client.post("/sessions/s-1/end", json={"outcome": "success"}).json()

    assert (held["task"], len(held["items"])) == ("migrate staging", 2)
    assert ended["released"] == [fact]
    assert "ask Ada first" in ended["episode"]["detail"]


def test_a_session_and_a_decision_may_have_a_slash_in_their_names(client: TestClient) -> None:
    for name in ("web/marta", "a/threads", "one/focus", "x/", "/y"):
        path = f"/sessions/{quote(name, safe='')}"
        client.put(f"{path}/focus", json={"task": name})
        client.post(f"{path}/threads", json={"text": "call back"})
        closed = client.post(f"{path}/threads/close", json={"thread": 0})

        assert closed.status_code == 200, closed.text
        assert client.get(path).json()["task"] == name
        assert client.post(f"{path}/end", json={}).status_code == 200
    client.post("/decisions", json={"title": "Use Postgres", "reference": "adr/0012"})
    assert client.get("/decisions/adr%2F0012").json()["reference"] == "adr/0012"
    assert client.post("/decisions/adr%2F0012/resolve", json={"status": "succeeded"}).status_code == 200


@pytest.mark.parametrize(
    ("claim", "option"),
    [({"source_kind": "operator"}, "--admin"), ({"trust": 70}, "--max-trust 70"), ({"is_pinned": True}, "--may-pin")],
)
def test_who_claims_too_much_is_told_which_key_may(client: TestClient, claim: dict[str, object], option: str) -> None:
    answer = client.post("/facts", json={"content": "The bus is late", **claim})

    assert answer.status_code == 403
    assert answer.json()["detail"].endswith(f"use a key that may (`nous key create {option}`), or ask an operator")


def test_what_was_said_for_a_fact_is_listed_and_split_off(client: TestClient, heart: Heart) -> None:
    fact = client.post("/facts", json={"content": BLUE, "source": "mail"}).json()["memory"]["id"]
    client.post("/facts", json={"content": BLUE.upper(), "source": "chat"})

    said = client.get(f"/facts/{fact}/statements").json()
    first, again = said["statements"]
    split = client.post(f"/statements/{again['id']}/split", json={"reason": "shouted"})
    refused = client.post(f"/statements/{first['id']}/split", json={})

    assert [(each["content"], each["source"], each["reason"]) for each in said["statements"]] == [
        (BLUE, "mail", "first"),
        (BLUE.upper(), "chat", "repeat"),
    ]
    assert said["unrecorded_count"] == 0
    assert (split.status_code, split.json()["content"]) == (200, BLUE.upper())
    assert (refused.status_code, refused.headers["content-type"]) == (409, PROBLEM)
    assert heart.get(fact).confirmation_count == 0


@pytest.mark.parametrize(("resolution", "loser"), [("a_wins", "memory_b"), ("b_wins", "memory_a")])
def test_a_contradiction_is_listed_and_decided(client: TestClient, heart: Heart, resolution: str, loser: str) -> None:
    for content in (BLUE, GREEN):
        client.post("/facts", json={"content": content, "subject": "deploy colour"})
    (found,) = client.get("/contradictions").json()["contradictions"]

    ruled = client.post(f"/contradictions/{found['id']}/resolve", json={"resolution": resolution, "note": "asked Ada"})

    assert (ruled.json()["status"], ruled.json()["note"]) == ("resolved", "asked Ada")
    assert heart.get(found[loser]).state == "superseded"
    assert client.get("/contradictions").json() == {"contradictions": []}
    assert len(client.get("/contradictions", params={"status": "any"}).json()["contradictions"]) == 1


def test_a_contradiction_is_decided_by_naming_the_fact_to_keep_and_tells_both_texts(client: TestClient) -> None:
    for content in (BLUE, GREEN):
        client.post("/facts", json={"content": content, "subject": "deploy colour"})
    (found,) = client.get("/contradictions").json()["contradictions"]
    place = f"/contradictions/{found['id']}/resolve"

    refused = [client.post(place, json=body).status_code for body in ({}, {"keep": NOBODY})]
    both = client.post(place, json={"keep": found["memory_b"], "resolution": "b_wins"})
    ruled = client.post(place, json={"keep": found["memory_b"]}).json()

    assert (refused, both.status_code) == ([422, 422], 422)
    assert (ruled["status"], ruled["resolution"]) == ("resolved", "b_wins")
    assert {ruled["a"]["content"], ruled["b"]["content"]} == {BLUE, GREEN}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", f"/episodes/{NOBODY}", None),
        ("POST", f"/episodes/{NOBODY}/close", {}),
        ("POST", f"/censors/{NOBODY}/false-positive", {}),
        ("GET", f"/procedures/{NOBODY}", None),
        ("POST", f"/contradictions/{NOBODY}/resolve", {"resolution": "a_wins"}),
        ("GET", f"/facts/{NOBODY}/statements", None),
        ("POST", f"/statements/{NOBODY}/split", {}),
        ("POST", "/sessions/nowhere/end", {}),
        ("GET", "/nowhere", None),
    ],
)
def test_what_is_not_there_is_a_404_problem(client: TestClient, method: str, path: str, body: object) -> None:
    answer = client.request(method, path, json=body)

    assert (answer.status_code, answer.headers["content-type"]) == (404, PROBLEM)
    assert (answer.json()["status"], answer.json()["title"]) == (404, "Not found")


def test_a_memory_is_forgotten_restored_and_corrected_by_its_id_and_pinned_by_no_stranger(
    client: TestClient, heart: Heart
) -> None:
    fact = heart.learn("It is 4711").memory
    place = f"/memories/{fact.id}"

    forgotten = client.post(f"{place}/forget", json={"reason": "the lock was changed"})
    gone = heart.get(fact.id)
    restored = client.post(f"{place}/restore", json={})
    pinned = client.post(f"{place}/pin", json={"reason": "keep it"})
    corrected = client.patch(place, json={"subject": "gate code", "tags": ["home"], "category": None})

    assert (forgotten.status_code, forgotten.json()["merged"]) == (200, []), forgotten.text
    assert gone.is_forgotten
    assert restored.json()["memory"]["state"] == "active"
    assert (pinned.status_code, heart.get(fact.id).is_pinned) == (403, False)  # without a key nobody pins
    assert (corrected.json()["memory"]["subject"], heart.get(fact.id).tags) == ("gate code", ["home"])


def test_what_can_not_be_done_to_a_memory_is_told_as_a_problem(client: TestClient, heart: Heart) -> None:
    place = f"/memories/{heart.learn('It is 4711').memory.id}"

    unknown = client.post(f"/memories/{NOBODY}/forget", json={"reason": "x"})
    without_reason = client.post(f"{place}/forget", json={})
    text = client.patch(place, json={"content": "It is 4712"})
    nothing = client.patch(place, json={})

    assert [each.status_code for each in (unknown, without_reason, text, nothing)] == [404, 422, 422, 422]
