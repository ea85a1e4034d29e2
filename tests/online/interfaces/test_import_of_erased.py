"""What a person erased, forgot or undid does not come back with an import, which says so; unless it is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from conftest import WordEmbedder
from import_files import facts_of, written
from test_cli import Answer, environment, nous  # noqa: F401 (fixtures)

from nous_online.core.domain import EPISODE, FACT, Kind
from nous_online.core.errors import Refused
from nous_online.database.changes import Cause, change_memory, lock_memory, version_of
from nous_online.database.connection import Database
from nous_online.heart import Heart
from nous_online.interfaces.imports.importing import ImportOptions, ImportReport, import_history
from nous_online.memories.erasure import Part, erase_agent, erase_some
from nous_online.memories.tombstones import erased_at, find_erased

MAY = datetime(2026, 5, 1, tzinfo=UTC)
AGAIN = ImportOptions(is_again=True)
TOLD = "The tank holds forty litres"
CHAT = {
    "id": "chat-7", "date": "2026-05-02",
    "messages": [{"role": "user", "content": f"Look at this boat.\nfact: {TOLD}"}],
}  # fmt: skip
LINES = (CHAT, {"id": "f-1", "content": "Ada sails on Sundays."}, {"content": "Ben rows."})


@pytest.fixture
def erase(database_url: str, embedder: WordEmbedder) -> Callable[..., None]:
    def erased(*memory_ids: UUID, user: str | None = None) -> None:
        part = Part(memory_ids, user)
        erase_some(database_url, "aria", part, reason="asked for", erasers=[], embedder_of=lambda _: embedder)

    return erased


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path / "history.jsonl", *LINES)


def ids(owner: psycopg.Connection) -> dict[str, UUID]:
    """The ids of the memories of the history, by what they say."""
    rows = owner.execute("select case kind when 'episode' then kind else full_text end, id from heart.memories")
    return dict(rows.fetchall())


def change(heart: Heart, kind: Kind[Any], memory_id: UUID, values: dict[str, Any]) -> None:
    """Change a memory as a night does."""
    with heart.agent.transaction(heart.agent.deadline(None)) as connection:
        version = version_of(kind, lock_memory(connection, "aria", kind, memory_id))
        change_memory(connection, "aria", version, values, cause=Cause("agent", "aged", "it is old", MAY))


def counts(report: ImportReport) -> tuple[int, int, int, int, int]:
    return report.stored, report.episodes, report.already_known, report.erased_before, len(report.forgotten_before)


def test_a_chat_that_was_erased_stays_erased_with_all_that_was_drawn_from_it(
    heart: Heart, owner: psycopg.Connection, path: Path, erase: Callable[..., None]
) -> None:
    import_history(heart, [path])
    heart.work()
    erase(ids(owner)["episode"])

    same, other = import_history(heart, [path]), import_history(heart, [path], source="other")
    heart.work()

    assert counts(same) == (0, 0, 2, 1, 0)
    assert counts(other) == (2, 0, 0, 1, 0)
    assert "episode" not in ids(owner)
    assert TOLD not in ids(owner)


def test_it_comes_back_whole_where_that_is_asked_for_and_is_known_from_then_on(
    heart: Heart, owner: psycopg.Connection, path: Path, erase: Callable[..., None]
) -> None:
    import_history(heart, [path])
    heart.work()
    erase(ids(owner)["episode"])

    planned = import_history(heart, [path], options=ImportOptions(is_again=True, is_dry_run=True))
    again = import_history(heart, [path], options=AGAIN)
    heart.work()
    known = import_history(heart, [path])

    assert counts(planned) == counts(again) == (0, 1, 2, 0, 0)
    assert {"episode", TOLD} <= {*ids(owner)}
    assert counts(known) == (0, 0, 3, 0, 0)


@pytest.mark.parametrize("name", ["notes.md", "mem0.json", "facts.jsonl"])
def test_a_fact_of_any_format_stays_erased_under_its_id_and_in_its_words(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path, erase: Callable[..., None], name: str
) -> None:
    text = "Ada keeps her boat in Faro."
    files = {
        "notes.md": f"# Boats\n\n- {text}\n",
        "mem0.json": json.dumps({"results": [{"id": "a1", "memory": text, "hash": "x", "user_id": "ada"}]}),
        "facts.jsonl": json.dumps({"content": text}) + "\n",
    }
    (tmp_path / name).write_text(files[name], "utf-8")
    import_history(heart, [tmp_path / name])
    erase(*[fact_id for (fact_id,) in facts_of(owner, "id")])

    reports = [import_history(heart, [tmp_path / name], source=source) for source in (None, "other")]

    assert [counts(report) for report in reports] == [(0, 0, 0, 1, 0)] * 2
    assert facts_of(owner) == []


def test_what_was_corrected_under_the_id_of_what_was_erased_is_left_out_too(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path, erase: Callable[..., None]
) -> None:
    import_history(heart, [written(tmp_path / "facts.jsonl", {"id": "f-1", "content": "Ada's code is 4711."})])
    erase(*[fact_id for (fact_id,) in facts_of(owner, "id")])

    path = written(tmp_path / "facts.jsonl", {"id": "f-1", "content": "Ada's code is 4711, at the gate."})

    assert counts(import_history(heart, [path])) == (0, 0, 0, 1, 0)
    assert facts_of(owner) == []


def test_of_a_user_who_was_erased_only_what_was_said_since_comes_in(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path, erase: Callable[..., None]
) -> None:
    heart.learn("Ada likes tea", user_id="ada")
    erase(user="ada")
    ((erased_on,),) = owner.execute("select max(erased_at) from lifecycle.tombstones").fetchall()
    before, since = {"content": "Ada sails.", "user_id": "ada", "learned_at": "2026-05-01"}, {"user_id": "ada"}
    path = written(
        tmp_path / "facts.jsonl",
        before,
        {"content": "Ada rows.", "learned_at": erased_on.isoformat(), **since},
        {"content": "Ben sails.", "learned_at": "2026-05-01", "user_id": "ben"},
    )

    report = import_history(heart, [path])

    assert counts(report) == (2, 0, 0, 1, 0)
    assert sorted(facts_of(owner)) == [("Ada rows.",), ("Ben sails.",)]


def test_an_agent_that_was_erased_whole_begins_again_however_often(
    heart: Heart, path: Path, database_url: str, owner: psycopg.Connection, erase: Callable[..., None]
) -> None:
    for _ in range(2):
        import_history(heart, [path])
        heart.learn("Cid swims")
        erase_agent(database_url, "aria", reason="asked for")
        heart = Heart.open("aria", database=heart.agent.database, embedder=heart.agent.embedder)
    import_history(heart, [path])
    erase(ids(owner)["Ben rows."])
    erase_agent(database_url, "aria", reason="asked for")
    heart = Heart.open("aria", database=heart.agent.database, embedder=heart.agent.embedder)

    report = import_history(heart, [path])

    assert counts(report) == (1, 1, 0, 1, 0)
    assert "Ben rows." not in ids(owner)


def test_an_episode_that_was_condensed_before_it_was_erased_is_recognised_by_its_full_text(
    heart: Heart, owner: psycopg.Connection, path: Path, erase: Callable[..., None]
) -> None:
    import_history(heart, [path])
    heart.work()
    episode = ids(owner)["episode"]
    owner.execute(
        "insert into heart.cold_texts (agent_id, memory_id, tier, detail) "
        "select agent_id, id, 'raw', detail from heart.episodes"
    )
    change(heart, EPISODE, episode, {"detail": None, "compression_tier": "summary"})
    erase(episode)

    assert counts(import_history(heart, [path], source="other")) == (2, 0, 0, 1, 0)


def said(number: int, minute: int, text: str) -> dict[str, Any]:
    return {
        "type": "user", "uuid": f"m-{number}", "sessionId": "s-1", "timestamp": f"2026-05-04T12:{minute:02}:00Z",
        "message": {"role": "user", "content": text},
    }  # fmt: skip


def test_of_a_session_what_was_said_after_a_stretch_was_erased_is_imported(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path, erase: Callable[..., None]
) -> None:
    first = said(1, 0, "The gate code is 4711.")
    import_history(heart, [written(tmp_path / "s-1.jsonl", first)])
    erase(ids(owner)["episode"])
    owner.execute("update lifecycle.tombstones set erased_at = '2026-05-04T12:01:00Z'")

    report = import_history(heart, [written(tmp_path / "s-1.jsonl", first, said(2, 2, "Payments are retried."))])

    assert counts(report) == (0, 1, 0, 1, 0)
    assert owner.execute("select detail from heart.episodes").fetchall() == [("user: Payments are retried.",)]


def test_what_was_forgotten_or_undone_stays_so_and_is_named_under_any_source(
    heart: Heart, owner: psycopg.Connection, path: Path
) -> None:
    import_history(heart, [path])
    known = ids(owner)
    for text in ("episode", "Ada sails on Sundays."):
        heart.forget(known[text], reason="asked for")
    heart.undo(known["Ben rows."])

    same, other = import_history(heart, [path]), import_history(heart, [path], source="other")

    assert counts(same) == (0, 0, 0, 0, 3)
    assert set(same.forgotten_before) == {*known.values()}
    # What was undone was an import's mistake perhaps, and may be imported from elsewhere; what was forgotten may not.
    assert counts(other) == (1, 0, 0, 0, 2)
    assert set(other.forgotten_before) == {known["episode"], known["Ada sails on Sundays."]}


def test_what_was_forgotten_or_undone_is_restored_where_that_is_asked_for(
    heart: Heart, owner: psycopg.Connection, path: Path
) -> None:
    import_history(heart, [path])
    known = ids(owner)
    heart.forget(known["episode"], reason="asked for")
    heart.undo(known["Ben rows."])

    planned = import_history(heart, [path], options=ImportOptions(is_again=True, is_dry_run=True))
    states = [heart.get(known[each]).state for each in ("episode", "Ben rows.")]
    done = import_history(heart, [path], options=AGAIN)

    assert (planned.restored, states) == (2, ["archived", "archived"])
    assert (done.restored, done.already_known, done.forgotten_before) == (2, 1, [])
    assert [heart.get(known[each]).state for each in ("episode", "Ben rows.")] == ["closed", "active"]


def test_what_a_night_archived_is_known(heart: Heart, owner: psycopg.Connection, path: Path) -> None:
    import_history(heart, [path])
    for text in ("Ada sails on Sundays.", "Ben rows."):
        change(heart, FACT, ids(owner)[text], {"state": "archived", "archived_at": "2026-11-20T00:00:00Z"})

    assert counts(import_history(heart, [path])) == (0, 0, 3, 0, 0)


@pytest.mark.parametrize("way", ["erased", "forgotten"])
def test_the_writer_draws_no_fact_again_that_was_taken_out_after_the_chat_but_one_that_was_told_since(
    heart: Heart, owner: psycopg.Connection, path: Path, erase: Callable[..., None], way: str
) -> None:
    import_history(heart, [path])
    heart.work()
    fact_id = ids(owner)[TOLD]
    if way == "erased":
        erase(fact_id)
    else:
        heart.forget(fact_id, reason="asked for")

    import_history(heart, [path], source="other")
    heart.work()
    states = owner.execute("select state from heart.facts where content = %s", [TOLD]).fetchall()
    heart.record_episode(f"Look again.\nfact: {TOLD}")
    heart.work()

    assert states == ([] if way == "erased" else [("archived",)])
    assert heart.count()["active"] == 5  # with "Ada sails" and "Ben rows" of both sources


def test_facts_stored_in_bulk_are_refused_where_some_were_erased(
    heart: Heart, owner: psycopg.Connection, erase: Callable[..., None]
) -> None:
    entries = [("Ben rows", {"idempotency_key": "a"}), ("Ada sails", {"idempotency_key": "b"})]
    heart.learn_deferred(entries)
    erase(ids(owner)["Ada sails"])

    with pytest.raises(Refused, match="erased here before: 1, counted from 0; leave them out, or learn each"):
        heart.learn_deferred(entries)

    assert heart.learn("Ada sails", idempotency_key="b").action == "stored"
    assert heart.learn_deferred(entries) == 0


def test_an_agent_sees_its_own_hashes_alone(
    heart: Heart, database: Database, owner: psycopg.Connection, erase: Callable[..., None]
) -> None:
    erase(heart.learn("Ada sails").memory.id)

    with database.transaction("ben") as connection:
        assert connection.execute("select * from lifecycle.tombstones").fetchall() == []
        assert find_erased(connection, "aria", ["fact\nAda sails"]) == {}
    with database.transaction("aria") as connection:
        assert [*find_erased(connection, "aria", ["fact\nAda sails"])] == ["fact\nAda sails"]
        assert erased_at(connection, "aria", []) == []


def test_the_command_says_what_it_leaves_out_and_how_it_comes_back(
    nous: Callable[..., Answer],  # noqa: F811
    path: Path,
    tmp_path: Path,
) -> None:
    nous("import", str(path))
    listed = {each["text"]: each["id"] for each in nous("list", "--json").json["memories"]}
    nous("erase", "--memory", listed["Ada sails on Sundays."], "--yes")
    nous("forget", listed["Ben rows."], "--reason", "asked for")
    nous("export", str(tmp_path / "aria.jsonl"))

    again, planned = nous("import", str(path)), nous("import", str(path), "--dry-run", "--json").json
    back = nous("import", str(path), "--again")
    restored = nous("import", str(tmp_path / "aria.jsonl"), "--again")

    assert again.out.startswith("imported  1 already known, from 3 lines")
    assert "left out, erased here before: 1; --again brings it back" in again.err
    short = listed["Ben rows."][:13]
    assert f"left out, forgotten or undone here before: 1 ({short}); --again brings it back" in again.err
    assert (planned["erased_before"], planned["forgotten_before"]) == (1, [listed["Ben rows."]])
    assert back.out.startswith("imported  1 facts, 1 restored, 1 already known, from 3 lines")
    assert (restored.code, "--again means nothing for an export" in restored.err) == (1, True)
