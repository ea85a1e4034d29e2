"""The console: every page answers, every button does what it says, and nobody else's page or program is let in."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest
from api_client import key_of
from conftest import ScriptedJudge, WordEmbedder
from lived_agents import live
from night_runs import NIGHT
from starlette.testclient import TestClient

from nous_online.core.errors import NotFound
from nous_online.database.changes import Cause
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.api.hearts import Hearts
from nous_online.interfaces.console.console_server import application
from nous_online.interfaces.console.rendering import ConsoleState, found
from nous_online.language.pairs.judging import Verdict
from nous_online.memories import contradictions
from nous_online.memories.contradictions import Contradiction

TOKEN = "a-token-of-this-start"  # noqa: S105 (a test's)
HOST = "http://127.0.0.1:8430"
MAY, JUNE = (datetime(2026, month, 1, tzinfo=UTC) for month in (5, 6))
FORGED = "The <script>alert('forged')</script> & \"quoted\" boat"
TURNED = "pay to \u202eevil.gro\u202c now \u200bquietly"


@pytest.fixture
def console(database_url: str, embedder: WordEmbedder, judge: ScriptedJudge) -> Iterator[TestClient]:
    """A browser in which the console of agent `aria` was opened."""
    with browser(database_url, embedder, judge) as client:
        yield opened(client)


def browser(url: str, embedder: WordEmbedder, judge: ScriptedJudge, *, read_only: bool = False) -> TestClient:
    hearts = Hearts(opened_by=lambda: Database(url), embedder=embedder, judge=judge, works_in_background=False)
    app = application(ConsoleState(hearts, "aria", TOKEN, read_only))
    return TestClient(app, base_url=HOST, follow_redirects=False)


def opened(client: TestClient) -> TestClient:
    assert client.get(f"/?token={TOKEN}").status_code == 200
    return client


def shown(client: TestClient, path: str, status: int = 200) -> str:
    """Return a page that is whole, closed to other pages, and free of scripts but the console's own."""
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert re.findall(r"<script[^>]*>", answer.text) == ['<script src="/console.js" defer>']
    assert "<h1" in answer.text
    assert "<main" in answer.text
    assert answer.text.rstrip().endswith("</html>")
    return answer.text


def pressed(client: TestClient, page: str, action: str, **told: str) -> httpx.Response:
    """Send the form of a page with this action, as a browser does."""
    (form,) = re.findall(rf'<form method="post" action="{re.escape(action)}">(.+?)</form>', client.get(page).text, re.S)
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))
    own = {"Origin": HOST, "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"}
    return client.post(action, data={**fields, **told}, headers=own)


def led_to(answer: httpx.Response) -> str:
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def disputed(heart: Heart, one: str, other: str, **details: Any) -> Contradiction:
    pair = [heart.learn(text, learned_at=at, **details).memory for text, at in ((one, MAY), (other, JUNE))]
    first, second = sorted(pair, key=lambda fact: fact.id)
    with heart.agent.database.transaction("aria") as connection:
        cause = Cause("agent", "contradicted", "they can't both be so", MAY)
        contradictions.open_between(connection, "aria", first, second, judgement={"reason": "one seat"}, cause=cause)
    return next(each for each in heart.contradictions() if first.id in (each.memory_a, each.memory_b))


def test_every_page_shows_what_a_life_left_behind(
    heart: Heart, judge: Any, database_url: str, console: TestClient, tmp_path: Path
) -> None:
    live(heart, judge, database_url, tmp_path)
    forged = heart.learn(FORGED, subject=FORGED, source=FORGED, user_id="<b>eve</b>").memory
    turned = heart.learn(TURNED, source="<i>").memory

    listed = shown(console, "/")
    everything = shown(console, "/?state=any")
    ids = set(re.findall(r'href="/memories/([0-9a-f-]{36})"', everything))
    pages = {each: shown(console, f"/memories/{each}") for each in ids}

    assert (
        html.escape(FORGED, quote=True).replace("&#x27;", "&#39;").replace("&quot;", "&#34;") in pages[str(forged.id)]
    )
    assert "<b>eve" not in pages[str(forged.id)] + listed
    assert "\u202e" not in pages[str(turned.id)] + listed
    assert all(f"U+{code}</span>" in pages[str(turned.id)] for code in ("202E", "202C", "200B"))
    assert {kind for kind in ("fact", "episode", "procedure", "censor") if f">{kind} " in everything} == {
        "fact", "episode", "procedure", "censor",
    }  # fmt: skip
    assert "the boat is fast" in shown(console, "/?q=how+fast+is+the+boat")
    assert "retry uploads" not in shown(console, "/?kind=fact")
    assert "retry uploads" in shown(console, "/?kind=procedure")
    assert re.findall(r"/memories/[^\"]+", shown(console, f"/?source={FORGED[:12]}&user=%3Cb%3Eeve%3C/b%3E")) == [
        f"/memories/{forged.id}"
    ]
    assert "No memory fits" in shown(console, "/?until=1999-12-31")
    assert f"/nights/{NIGHT}" in shown(console, "/nights")
    night = shown(console, f"/nights/{NIGHT}")
    assert "undone" in night
    assert f"nous undo --night {NIGHT} --agent aria" in night
    assert NIGHT.isoformat() in night
    asked = shown(console, "/ask?q=how+fast+is+the+boat&budget=400")
    assert "the boat is fast" in asked
    assert "of 400 tokens" in asked


@pytest.mark.parametrize(
    "path",
    ["/?state=lost", "/?since=soon", "/?until=9999-12-31", "/?before=x", "/?user=%00", "/ask?q=boat&budget=many"],
)
def test_an_address_that_asks_for_what_can_not_be_says_so(console: TestClient, path: str) -> None:
    assert "Not done" in shown(console, path, 422)


@pytest.mark.parametrize(
    "path", [f"/memories/{UUID(int=1)}", "/memories/1", "/nights/1999-01-01", "/nights/soon", "/else"]
)
def test_what_is_not_there_is_not_found_on_a_page(console: TestClient, path: str) -> None:
    assert "Not found" in shown(console, path, 404)


def test_the_list_goes_on_where_a_page_ended(heart: Heart, console: TestClient) -> None:
    heart.learn_deferred([(f"Ship {number} sails", {"learned_at": MAY}) for number in range(120)])
    seen, further = [], "/?kind=fact"

    while further:
        page = shown(console, further)
        seen += re.findall(r"Ship \d+ sails", page)
        further = next((html.unescape(each) for each in re.findall(r'rel="next" href="([^"]+)"', page)), None)

    assert len(seen) == len(set(seen)) == 120


def test_each_button_does_what_it_says(heart: Heart, judge: ScriptedJudge, console: TestClient) -> None:
    said = ("the office opens at nine", "the office opens at nine now")
    judge.verdicts |= dict.fromkeys((said, said[::-1]), Verdict.SAME)
    fact = heart.learn(said[0], learned_at=MAY).memory
    own = f"/memories/{fact.id}"

    assert led_to(pressed(console, own, f"{own}/forget", why="it was sold")) == f"{own}?done=forget"
    assert heart.get_fact(fact.id).is_forgotten
    assert heart.history(fact.id)[0].reason == "it was sold"
    assert "Forgotten." in shown(console, f"{own}?done=forget")
    led_to(pressed(console, own, f"{own}/restore"))
    led_to(pressed(console, own, f"{own}/pin"))
    assert heart.get_fact(fact.id).state == "active"
    assert heart.get_fact(fact.id).is_pinned
    led_to(pressed(console, own, f"{own}/undo"))
    assert not heart.get_fact(fact.id).is_pinned

    led_to(pressed(console, own, f"{own}/pin"))
    led_to(pressed(console, own, f"{own}/unpin"))
    assert not heart.get_fact(fact.id).is_pinned
    stale = heart.history(fact.id)[1].id
    assert pressed(console, own, f"{own}/undo", event=str(stale)).status_code == 409

    assert heart.learn(said[1], learned_at=JUNE).action == "confirmed"
    statement = heart.statements(fact.id)[1]
    place = led_to(pressed(console, own, f"/statements/{statement.id}/split"))
    apart = UUID(place.removeprefix("/memories/").partition("?")[0])
    assert heart.get_fact(apart).content == said[1]
    led_to(pressed(console, f"/memories/{apart}", f"/memories/{apart}/undo"))
    assert heart.get_fact(apart).superseded_by == fact.id


def test_the_inbox_settles_what_waits_for_a_person(heart: Heart, judge: ScriptedJudge, console: TestClient) -> None:
    judge.change = 0.9
    earlier = heart.learn("the pager is with Ana", learned_at=MAY).memory
    later = heart.learn("Ben took over the pager duty", learned_at=JUNE).memory
    judge.change = 0.0
    first = disputed(heart, "Ana sits in Lima", "The desk of Ana stands in Oslo")
    second = disputed(heart, "Ships leave at dawn", "No vessel departs before noon")

    page = shown(console, "/inbox")
    assert page.index("Ana sits in Lima") < page.index("The desk of Ana")
    assert "one seat" in page
    assert (
        led_to(pressed(console, "/inbox", f"/contradictions/{first.id}", resolution="b_wins")) == "/inbox?done=decide"
    )
    assert pressed(console, "/inbox", f"/contradictions/{second.id}", resolution="none").status_code == 422
    led_to(pressed(console, "/inbox", f"/contradictions/{second.id}", resolution="both_valid", why="both were seen"))
    led_to(pressed(console, "/inbox", "/doubts"))

    ruled = {each.id: each for each in heart.contradictions(status="resolved")}
    assert heart.get_fact(first.memory_a).superseded_by == first.memory_b
    assert (ruled[second.id].resolution, ruled[second.id].note) == ("both_valid", "both were seen")
    assert heart.get_fact(earlier.id).superseded_by == later.id
    assert "Nothing contradicts itself" in shown(console, "/inbox")
    assert "Nothing is in doubt" in shown(console, "/inbox")


def confirmed(client: TestClient, action: str, **told: str) -> httpx.Response:
    """Press a button of the inbox that asks first, and then that of the page which asks."""
    asking = pressed(client, "/inbox", action, **told)
    assert asking.status_code == 200, asking.text
    assert "autofocus>Yes, both hold in all" in asking.text
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', asking.text))
    return client.post(action, data=fields, headers={"Origin": HOST, "Sec-Fetch-Site": "same-origin"})


def test_both_hold_is_decided_at_once_for_all_of_one_source_and_for_all_of_one_subject_once_confirmed(
    heart: Heart, console: TestClient
) -> None:
    of_sources = [
        disputed(heart, f"Desk {n} is in Lima", f"The place of desk {n} is Oslo", source="desks.md") for n in range(3)
    ]
    of_subject = [
        disputed(heart, f"Ship {n} leaves at dawn", f"No vessel {n} departs early", subject="Ships") for n in range(2)
    ]
    page = shown(console, "/inbox")
    address = f"/contradictions/{of_sources[0].id}"

    assert "Both hold, in all 3 from this one source …" in page
    assert "Both hold, in all 2 about this subject …" in page
    asking = pressed(console, "/inbox", address, resolution="sources", why="two rooms")
    assert "Do both hold, in all 3 from this one source?" in asking.text
    assert "The place of desk 2 is Oslo" in asking.text
    assert len(heart.contradictions()) == 5
    assert led_to(confirmed(console, address, resolution="sources", why="two rooms")) == "/inbox?done=hold"
    left = [each.id for each in heart.contradictions()]
    assert sorted(left) == sorted(each.id for each in of_subject)
    led_to(confirmed(console, f"/contradictions/{of_subject[1].id}", resolution="subject"))

    ruled = heart.contradictions(status="resolved")
    assert {each.note for each in ruled} == {"two rooms", "decided in the console"}
    assert {each.resolution for each in ruled} == {"both_valid"}
    assert len(ruled) == len(of_sources) + len(of_subject)
    assert "Nothing contradicts itself" in shown(console, "/inbox?done=hold")


def test_nothing_is_offered_for_all_of_one_source_that_the_whole_inbox_came_from(
    heart: Heart, console: TestClient
) -> None:
    for n in range(2):
        disputed(heart, f"Desk {n} is in Lima", f"The place of desk {n} is Oslo", source="desks.md")

    assert "Both hold, in all" not in shown(console, "/inbox")


def test_what_came_to_wait_since_a_person_was_asked_is_asked_of_again(heart: Heart, console: TestClient) -> None:
    first = disputed(heart, "Desk 1 is in Lima", "The place of desk 1 is Oslo", subject="Desks")
    disputed(heart, "Desk 2 is in Lima", "The place of desk 2 is Oslo", subject="Desks")
    address, two = f"/contradictions/{first.id}", {"resolution": "subject", "sure": "2"}
    disputed(heart, "Desk 3 is in Lima", "The place of desk 3 is Oslo", subject="Desks")

    assert "in all 3 about this subject?" in pressed(console, "/inbox", address, **two).text
    assert len(heart.contradictions()) == 3


def test_a_sentence_of_the_persons_own_takes_the_place_of_both_sides(
    heart: Heart, judge: ScriptedJudge, console: TestClient
) -> None:
    sides, own = ("Ana sits in Lima", "The desk of Ana stands in Oslo"), "Ana worked in Lima, and since May in Oslo"
    found = disputed(heart, *sides, user_id="ana")
    address, gone = f"/contradictions/{found.id}", f"/contradictions/{found.memory_a}"
    for side in sides:  # a sentence that denies what it replaces opens no new question
        judge.verdicts |= dict.fromkeys(((side, own), (own, side)), Verdict.CONTRADICTS)

    assert pressed(console, "/inbox", address, resolution="merged", text=" ").status_code == 422
    (token, *_) = re.findall(r'name="form" value="([^"]+)"', shown(console, "/inbox"))
    assert console.post(gone, data={"form": token, "resolution": "merged", "text": own}).status_code == 409
    assert own not in [each.content for each in heart.recall("where does Ana work?", user_id="ana")]
    assert led_to(pressed(console, "/inbox", address, resolution="merged", text=own)) == "/inbox?done=merge"

    [new] = [each for each in heart.recall("where does Ana work?", user_id="ana") if each.content == own]
    assert heart.get_fact(new.id).user_id == "ana"
    assert {heart.get_fact(each).superseded_by for each in (found.memory_a, found.memory_b)} == {new.id}
    assert [each.resolution for each in heart.contradictions(status="resolved")] == ["merged"]
    assert "Nothing contradicts itself" in shown(console, "/inbox")


@pytest.mark.parametrize("is_pinned", [False, True])
def test_a_sentence_of_the_persons_own_takes_the_place_of_what_users_said_and_of_what_is_pinned(
    heart: Heart, console: TestClient, *, is_pinned: bool
) -> None:
    found = disputed(heart, "Ana sits in Lima", "The desk of Ana stands in Oslo", source_kind="user", trust=90)
    if is_pinned:
        heart.pin(found.memory_a)
    own = "Ana works at two desks"

    led_to(pressed(console, "/inbox", f"/contradictions/{found.id}", resolution="merged", text=own))

    [new] = [each for each in heart.recall("where does Ana work?") if each.content == own]
    assert (new.memory.source_kind, new.memory.trust) == ("operator", 90)
    assert {heart.get_fact(each).superseded_by for each in (found.memory_a, found.memory_b)} == {new.id}
    assert heart.contradictions() == []


def test_a_sentence_that_was_refused_is_still_there_to_be_sent_again(heart: Heart, console: TestClient) -> None:
    found = disputed(heart, "Ana sits in Lima", "The desk of Ana stands in Oslo")
    address = f"/contradictions/{found.id}"

    refused = pressed(
        console, "/inbox", address, resolution="merged", text='Ana has a "\x00" desk', why="both were seen"
    )
    fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', refused.text))
    own = {"Origin": HOST, "Sec-Fetch-Site": "same-origin"}
    again = console.post(address, data={**fields, "text": "Ana has two desks"}, headers=own)

    assert refused.status_code == 422
    assert 'name="text" maxlength="4000" dir="auto" value="Ana has a &#34;' in refused.text
    assert led_to(again) == "/inbox?done=merge"
    assert [each.note for each in heart.contradictions(status="resolved")] == ["both were seen"]


def test_what_a_user_said_in_a_project_is_found_where_both_are_named_and_shown_with_them(
    heart: Heart, console: TestClient
) -> None:
    for place in range(4):
        heart.learn(f"The shop sells helmet {place}", user_id=f"u{place % 2}", project_id="a-shop")
    heart.learn("The bike of Tom has a battery of 500 Wh", user_id="tom", project_id="velo")
    disputed(heart, "Ana sits in Lima", "The desk of Ana stands in Oslo", user_id="ana", project_id="velo")

    missed = shown(console, "/?q=battery&user=tom")
    found = shown(console, "/?q=battery&user=tom&project=velo")
    listed = shown(console, "/?project=velo&about=&user=tom")

    assert "Not looked at: <bdi>1 in project velo of user tom, 2 in project a-shop of user u0" in missed
    assert "500 Wh" not in missed
    assert "500 Wh" in found
    assert len(re.findall(r'class="told"', listed)) == 1
    for page in (found, listed):
        assert "· for <bdi>tom</bdi> · in <bdi>velo</bdi>" in page
    assert "· for <bdi>ana</bdi> · in <bdi>velo</bdi>" in shown(console, "/inbox")


def test_the_page_about_the_system_says_of_which_agents_no_night_has_counted_the_memories(
    heart: Heart, console: TestClient, database: Database, embedder: WordEmbedder
) -> None:
    with Heart.open("ben", database=database, embedder=embedder, works_in_background=False) as ben:
        ben.learn("the boat is fast")

    page = shown(console, "/system")

    assert re.search(r">ben</th><td class=\"num\">not counted by a night yet<", page), page
    assert "about 0" not in page


def test_a_doubt_is_settled_without_replacing_anything_and_opened_again(
    heart: Heart, judge: ScriptedJudge, console: TestClient
) -> None:
    judge.change = 0.9
    earlier = heart.learn("the pager is with Ana", learned_at=MAY).memory
    later = heart.learn("Ben took over the pager duty", learned_at=JUNE).memory
    assert later.perhaps_replaces == [earlier.id]

    assert led_to(pressed(console, "/inbox", "/doubts", act="keep")) == "/inbox?done=keep"

    assert "Nothing is in doubt" in shown(console, "/inbox?done=keep")
    assert heart.get_fact(later.id).perhaps_replaces == []
    assert [heart.get_fact(each).state for each in (earlier.id, later.id)] == ["active", "active"]
    assert [each.put_before for each in heart.recall("who has the pager?")] == [None, None]
    with pytest.raises(NotFound, match=f"fact {later.id} is not in doubt to replace {earlier.id}"):
        heart.keep_both(later.id, earlier.id)
    heart.undo(later.id, reason="it was a change after all")
    assert heart.get_fact(later.id).perhaps_replaces == [earlier.id]


def test_a_night_that_changed_nothing_says_so_in_the_list(
    heart: Heart, owner: psycopg.Connection, console: TestClient
) -> None:
    heart.learn("the boat is fast")
    owner.execute("insert into lifecycle.health (agent_id, night, figures) values ('aria', %s, %s)", [NIGHT, "{}"])

    listed = shown(console, "/nights")

    assert "nothing changed" in listed
    assert ">0<" not in listed


def test_two_that_say_the_same_are_merged_from_the_inbox(heart: Heart, console: TestClient) -> None:
    found = disputed(heart, "Ana sits in Lima", "The desk of Ana stands in Lima")

    assert led_to(pressed(console, "/inbox", f"/contradictions/{found.id}", resolution="same")) == "/inbox?done=decide"

    assert [each.resolution for each in heart.contradictions(status="resolved")] == ["merged"]
    assert {heart.get_fact(each).succession for each in (found.memory_a, found.memory_b)} == {None, "merged"}


def test_a_question_that_finds_nothing_says_where_it_did_not_look(heart: Heart, console: TestClient) -> None:
    heart.learn("The tent is green", project_id="camping")

    asked, listed, named = (shown(console, page) for page in ("/ask?q=tent", "/?q=tent", "/ask?q=tent&project=camping"))

    for page in (asked, listed):
        assert "Nothing was found" in page
        assert "1 in project camping" in page
        assert "The chance that the first" not in page
    assert "1 in project camping" not in named


def test_the_earlier_of_two_in_doubt_can_be_right(heart: Heart, judge: ScriptedJudge, console: TestClient) -> None:
    judge.change = 0.9
    earlier = heart.learn("the pager is with Ben", learned_at=MAY).memory
    later = heart.learn("Ana took over the pager duty", learned_at=JUNE).memory

    assert led_to(pressed(console, "/inbox", "/doubts", act="earlier")) == "/inbox?done=replace"

    assert heart.get_fact(later.id).superseded_by == earlier.id
    assert heart.get_fact(earlier.id).state == "active"
    assert [each.actor for each in heart.history(later.id)] == ["operator", "agent"]
    heart.pin(earlier.id)
    assert heart.history(earlier.id)[0].actor == "agent"
    heart.undo(later.id, reason="it was a change after all")
    assert "Nothing is in doubt" not in shown(console, "/inbox")


def test_a_doubt_about_two_that_say_the_same_is_settled_from_the_inbox(
    heart: Heart, judge: ScriptedJudge, console: TestClient
) -> None:
    judge.change = 0.9
    earlier = heart.learn("the pager is with Ben", learned_at=MAY).memory
    later = heart.learn("Ben took over the pager duty", learned_at=JUNE).memory

    assert led_to(pressed(console, "/inbox", "/doubts", act="same")) == "/inbox?done=join"

    assert (heart.get_fact(later.id).superseded_by, heart.get_fact(later.id).succession) == (earlier.id, "merged")
    assert "Nothing is in doubt" in shown(console, "/inbox?done=join")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://127.0.0.1:9999", "Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example:8430", "Origin": "http://evil.example:8430", "Sec-Fetch-Site": "same-origin"}, 421),
    ],
)
def test_no_other_page_presses_a_button(
    heart: Heart, console: TestClient, headers: dict[str, str], status: int
) -> None:
    fact = heart.learn("The boat is fast").memory
    page = console.get(f"/memories/{fact.id}").text
    token = re.findall(r'name="form" value="(\w+)"', page)[0]

    answer = console.post(f"/memories/{fact.id}/forget", data={"form": token}, headers=headers)

    assert answer.status_code == status
    assert not heart.get_fact(fact.id).is_forgotten


def test_nobody_gets_in_without_the_address_or_changes_what_is_only_shown(
    heart: Heart, database_url: str, embedder: WordEmbedder, judge: ScriptedJudge
) -> None:
    fact = heart.learn("The boat is fast").memory
    forget = f"/memories/{fact.id}/forget"

    with browser(database_url, embedder, judge) as client:
        refused = [client.get("/"), client.get("/?token=guess"), client.post(forget), client.get("/console.css")]
        assert client.get("/health").json() == {"status": "ok"}
        welcome = client.get(f"/?token={TOKEN}")
        without = [client.post(forget), client.post(forget, data={"form": "guess"}), client.get(forget)]
        large = client.post(forget, data={"why": "x" * 100_000})
    with browser(database_url, embedder, judge, read_only=True) as client:
        buttons = re.findall(r"<form method=\"post\"", shown(opened(client), f"/memories/{fact.id}"))
        only_shown = client.post(forget, data={"form": client.app.state.console.form_token})  # pyright: ignore

    assert [answer.status_code for answer in refused] == [401] * 4
    assert "boat" not in "".join(answer.text for answer in refused)
    assert "HttpOnly" in welcome.headers["set-cookie"]
    assert "SameSite=strict" in welcome.headers["set-cookie"]
    assert [answer.status_code for answer in without] == [403, 403, 405]
    assert (large.status_code, only_shown.status_code, buttons) == (413, 403, [])
    assert not heart.get_fact(fact.id).is_forgotten


def test_the_page_about_the_system_tells_what_needs_somebody_and_takes_keys_and_webhooks_back(
    heart: Heart, database: Database, console: TestClient, owner: psycopg.Connection
) -> None:
    disputed(heart, "Ana sits in Lima", "The desk of Ana stands in Oslo")
    key = key_of(database, "aria", name="<b>laptop</b>").split("_")[2]
    hook = heart.add_webhook("https://hooks.example.org/nous", "fact_learned").webhook
    owner.execute(
        "insert into heart.llm_requests (agent_id, purpose, model, state, input_tokens, cost_usd) "
        "values ('aria', 'judge', 'claude', 'imported', 1200, 0.25), ('ben', 'judge', 'secret', 'imported', 7, 9)"
    )

    page = shown(console, "/system")
    led_to(pressed(console, "/system", f"/keys/{key}/revoke"))
    led_to(pressed(console, "/system", f"/webhooks/{hook.id}/remove"))
    after = shown(console, "/system")

    assert "1 contradiction is open" in page
    assert "<code>nous contradictions</code>" in page
    assert "`" not in page
    assert "<b>laptop" not in page
    assert "1,200" in page
    assert "0.2500" in page
    assert "secret" not in page
    assert "revoked" in after
    assert "hooks.example.org" not in after


def test_a_page_that_only_shows_has_no_buttons_for_keys(
    heart: Heart, database: Database, database_url: str, embedder: WordEmbedder, judge: ScriptedJudge
) -> None:
    key_of(database, "aria")
    heart.add_webhook("https://hooks.example.org/nous")
    with browser(database_url, embedder, judge, read_only=True) as client:
        assert "<form method" not in shown(opened(client), "/system")


def test_an_agent_without_memories_has_pages_too(console: TestClient) -> None:
    for path, words in {
        "/": "remembers nothing yet",
        "/?q=boat": "Nothing was found",
        "/inbox": "Nothing is in doubt",
        "/nights": "No night has looked",
        "/ask?q=boat": "Nothing was found",
        "/system": "No language model was asked",
    }.items():
        assert words in shown(console, path)


def test_the_columns_of_an_answer_are_explained_and_named_on_a_phone(heart: Heart, console: TestClient) -> None:
    heart.learn("the pager is with Ana")

    page = shown(console, "/ask?q=who has the pager?")

    columns = ["score", "meaning", "words", "frame", "censors", "time", "rank"]
    explained = re.findall(r'<abbr title="([^"]{20,})">(\w+)</abbr>', page)
    assert [name for _, name in explained] == [*columns, "tier", "tokens"]
    assert re.findall(r"<dt>(\w+)</dt><dd>[^<]{20,}</dd>", page) == columns
    assert re.findall(r'data-label="(\w+)"', page)[: len(columns)] == columns
    assert "attr(data-label)" in console.get("/console.css").text


def test_what_a_night_found_is_told_by_its_date_and_not_by_a_moment_to_come() -> None:
    at_night = found(datetime(2026, 11, 27, tzinfo=UTC))
    by_day = found(datetime(2026, 11, 26, 9, 30, tzinfo=UTC))

    assert "in the night of" in at_night
    assert ">2026-11-26<" in at_night
    assert ">2026-11-26 09:30<" in by_day
