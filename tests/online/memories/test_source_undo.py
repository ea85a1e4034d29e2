"""Taking back all that one source said: latest first, all of a memory or nothing, and what stays says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from api_client import app_over, bearer, client_of, key_of
from import_files import import_file, written

from nous_online.core.domain import Fact
from nous_online.core.errors import NotFound
from nous_online.heart import Heart
from nous_online.language.pairs.judging import Verdict

PAGE = "wiki.example.org"
OLD, NEW = "The port is 5432", "The port is 6000"
TEA, TEA_AGAIN = "Ana drinks tea in the morning", "In the mornings Ana drinks tea"


@pytest.fixture
def told(heart: Heart, judge) -> dict[str, UUID]:
    """What a forged page said, between things that others said; names of facts with their ids."""
    judge.verdicts |= {(OLD, NEW): Verdict.UPDATES, (TEA, TEA_AGAIN): Verdict.SAME}
    page: dict[str, Any] = {"source": PAGE}
    ids = {"old": heart.learn(OLD, subject="port").memory.id, "tea": heart.learn(TEA, source="chat").memory.id}
    heart.learn(TEA, source="mail", tags=["breakfast"])
    heart.learn(TEA, tags=["drinks"], **page)
    ids["new"] = heart.learn(NEW, subject="port", **page).memory.id
    ids["shared"] = heart.learn("The gate is green", **page).memory.id
    heart.learn("The gate is green", source="chat")
    ids["alone"] = heart.learn("Pay to DE02 1203", **page).memory.id
    heart.learn("Pay to DE02 1203", **page)
    ids["censor"] = heart.add_censor("paying to DE89 3704", "it was closed", **page).id
    heart.learn(TEA, source="diary", tags=["morning"])
    return ids


def states(heart: Heart, ids: dict[str, UUID]) -> dict[str, str]:
    return {name: heart.get(memory_id).state for name, memory_id in ids.items()}


def test_what_a_source_began_is_archived_and_what_it_confirmed_loses_that(heart: Heart, told: dict[str, UUID]) -> None:
    assert states(heart, told)["old"] == "superseded"

    done = heart.undo_source(PAGE, reason="the page was forged")

    assert done.undone == (told["censor"], told["alone"], told["new"], told["tea"])
    assert set(done.refused) == {told["shared"]}
    assert "was said by others too, once" in done.refused[told["shared"]]
    assert states(heart, told) == {
        "old": "active", "tea": "active", "new": "archived", "shared": "active", "alone": "archived",
        "censor": "archived",
    }  # fmt: skip
    tea = heart.get_fact(told["tea"])
    assert (tea.confirmation_count, tea.sources, tea.tags) == (2, ["mail", "diary"], ["breakfast", "morning"])
    assert [(each.source, each.taken_back_at is None) for each in heart.statements(tea.id)] == [
        ("chat", True), ("mail", True), (PAGE, False), ("diary", True),
    ]  # fmt: skip
    assert "DE02" not in heart.assemble_context(query="Where do I pay to?").text
    assert {event.reason for event in heart.history(told["alone"])[:2]} == {"the page was forged"}


def test_taking_a_source_back_again_finds_only_what_was_refused(heart: Heart, told: dict[str, UUID]) -> None:
    heart.undo_source(PAGE, reason="forged")

    assert heart.undo_source(PAGE, reason="forged").undone == ()
    heart.restore(told["alone"])
    assert heart.get(told["alone"]).state == "active"
    with pytest.raises(NotFound, match="nothing that source 'another page' told agent 'aria' is left to undo"):
        heart.undo_source("another page", reason="forged")


def test_words_by_which_a_source_confirmed_a_fact_become_no_fact_of_their_own(heart: Heart, judge) -> None:
    judge.verdicts[TEA, TEA_AGAIN] = Verdict.SAME
    known = heart.learn(TEA, source="chat").memory
    assert heart.learn(TEA_AGAIN, source=PAGE).memory.id == known.id

    heart.undo_source(PAGE, reason="forged")

    assert heart.count() == {"active": 1}
    assert [(each.reason, each.taken_back_at is None) for each in heart.statements(known.id)] == [
        ("first", True), ("reworded", False),
    ]  # fmt: skip


def test_what_was_drawn_from_an_episode_of_the_source_goes_with_it(heart: Heart) -> None:
    episode = heart.record_episode("fact: The mill closed in May.", source=PAGE)
    assert heart.work().completed == 1
    (drawn,) = drawn_from(heart, episode.id)

    done = heart.undo_source(PAGE)

    assert set(done.undone) == {episode.id, drawn.id}
    assert heart.history(drawn.id)[0].reason == "the agent took it back"
    assert (heart.get(episode.id).state, heart.get(drawn.id).state) == ("archived", "archived")


def drawn_from(heart: Heart, episode_id: UUID) -> list[Fact]:
    found = [each.memory for each in heart.recall("mill May", types="fact")]
    return [
        each for each in map(heart.get_fact, (memory.id for memory in found)) if each.source_episode_id == episode_id
    ]


def test_an_import_is_taken_back_by_its_name(heart: Heart, owner: psycopg.Connection, tmp_path: Path) -> None:
    lines = [{"content": "Cats like fish", "source": "Ada"}, {"kind": "episode", "detail": "The mill closed."}]
    import_file(heart, written(tmp_path / "a.jsonl", *lines), source="old notes")
    kept = heart.learn("Dogs like bones", source="Ada").memory

    done = heart.undo_source("old notes", reason="the wrong person's")

    assert len(done.undone) == 2
    assert heart.get(kept.id).state == "active"
    rows = owner.execute("select state from heart.facts where content = 'Cats like fish'").fetchall()
    assert rows == [("archived",)]


@pytest.mark.parametrize("is_of_earlier_version", [False, True])
def test_an_import_is_told_from_one_whose_name_goes_on(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path, *, is_of_earlier_version: bool
) -> None:
    long_id = "wall/" + "x" * 300
    for name, lines in {
        "slack": [{"content": "Cats like fish", "id": "1"}, {"content": "Owls see by night", "id": long_id}],
        "slack:general": [{"content": "Dogs like bones", "id": "2"}],
    }.items():
        import_file(heart, written(tmp_path / "a.jsonl", *lines), source=name)
    if is_of_earlier_version:  # which named the import in the key alone, where that was short
        owner.execute("update heart.requests set verb = 'import'")
        owner.commit()

    heart.undo_source("slack")

    rows = dict(owner.execute("select content, state from heart.facts").fetchall())
    assert rows["Cats like fish"] == "archived"
    if not is_of_earlier_version:
        assert (rows["Owls see by night"], rows["Dogs like bones"]) == ("archived", "active")
        assert len(heart.undo_source("slack:general").undone) == 1
    again = import_file(
        heart, written(tmp_path / "b.jsonl", {"content": "Owls see by night", "id": long_id}), source="slack"
    )
    assert again.stored == 0


def test_what_was_drawn_from_imported_chats_goes_with_them_and_what_others_said_stays_and_is_named(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
) -> None:
    detail = "fact: The mill closed in May.\nfact: The gate is green.\nfact: Ana drinks tea."
    heart.learn("Ana drinks tea.", source="chat")
    chat = {"kind": "episode", "detail": detail, "source": "chat:7"}
    import_file(heart, written(tmp_path / "a.jsonl", chat), source="old notes")
    heart.work()
    heart.learn("The gate is green.", source="chat")
    ids = dict(owner.execute("select full_text, id from heart.memories").fetchall())
    mill, gate, tea = (ids[text] for text in ("The mill closed in May.", "The gate is green.", "Ana drinks tea."))

    done = heart.undo_source("old notes")
    again = heart.undo_source("old notes")

    assert set(done.undone) == {ids[detail], mill, tea}
    assert set(done.refused) == set(again.refused) == {gate}
    assert "was said by others too, once" in done.refused[gate]
    assert (heart.get(mill).state, heart.get(gate).state) == ("archived", "active")
    assert [each.source for each in heart.statements(tea) if each.taken_back_at is None] == ["chat"]
    assert [heart.restore(each).state for each in (ids[detail], mill)] == ["closed", "active"]


def test_what_was_merged_into_a_fact_of_the_source_goes_with_it_at_once(heart: Heart) -> None:
    texts = ("The mill closed in May", "In May the mill closed", "The mill shut")
    heart.learn_deferred([(text, {"source": PAGE}) for text in texts])
    kept, merged, replaced = sorted(each.id for each in heart.list_memories())
    heart.supersede_fact(merged, kept, is_same=True)
    heart.supersede_fact(replaced, kept)

    done = heart.undo_source(PAGE)

    assert (set(done.undone), done.refused) == ({kept, merged, replaced}, {})
    assert heart.count() == {"archived": 3}


def test_over_rest_what_an_agents_key_may_not_change_stays_and_says_so(
    heart: Heart, told: dict[str, UUID], database_url: str
) -> None:
    body = {"source": PAGE, "reason": "forged"}
    heart.pin(told["new"])
    key = bearer(key_of(heart.agent.database, "aria"))

    with client_of(app_over(database_url, heart.agent.embedder), key) as client:
        answer = client.post("/sources/undo", json=body).json()
        missing = client.post("/sources/undo", json={**body, "source": "nobody"})

    refused = {each["memory_id"]: each["reason"] for each in answer["refused"]}
    assert answer["undone"] == [str(told[name]) for name in ("censor", "alone", "tea")]
    assert set(refused) == {str(told["new"]), str(told["shared"])}
    assert "is pinned" in refused[str(told["new"])]
    assert missing.status_code == 404
