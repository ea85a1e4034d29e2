"""A session is taken in as it goes: what was told before is passed over, and nothing is told twice or lost."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from conftest import ScriptedWriter
from import_files import written

from nous_online.heart import Heart
from nous_online.interfaces.hooks.hook_programs import complete, import_transcript
from nous_online.interfaces.imports.importing import import_history

NOW = datetime.now(UTC)
PROJECT = "atlas-1a2b3c4d"


def said(kind: str, minutes_ago: float, text: str, *, session: str = "s-1") -> dict[str, object]:
    """Return a line of a transcript."""
    moment = (NOW - timedelta(minutes=minutes_ago)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {
        "type": kind, "uuid": f"{kind}-{minutes_ago}", "parentUuid": None, "timestamp": moment, "sessionId": session,
        "cwd": "/srv/ada/atlas", "gitBranch": "main", "isSidechain": False, "message": {"role": kind, "content": text},
    }  # fmt: skip


BEFORE = (said("user", 30, "Why do payments fail?"), said("assistant", 29, "Retries are off."))
AFTER = (said("user", 10, "fact: Retries happen three times."), said("assistant", 9, "Noted."))


def details(owner: psycopg.Connection) -> list[str]:
    rows = owner.execute("select detail, project_id from heart.episodes order by started_at").fetchall()
    assert {project for _, project in rows} <= {PROJECT}
    return [detail for detail, _ in rows]


def append(path: Path, *lines: object) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(line)}\n" for line in lines)


def test_a_session_that_has_just_ended_is_taken_in_at_once(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    path = written(tmp_path / "s-1.jsonl", *BEFORE)

    report = import_transcript(heart, path, project_id=PROJECT)

    assert (report.episodes, report.skipped) == (1, {})
    assert details(owner) == ["user: Why do payments fail?\nassistant: Retries are off."]


def test_what_was_told_before_a_compaction_is_not_told_again_at_the_end(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    path = written(tmp_path / "s-1.jsonl", *BEFORE)
    import_transcript(heart, path, project_id=PROJECT)
    append(path, *AFTER)

    reports = [import_transcript(heart, path, project_id=PROJECT) for _ in range(2)]

    assert [(each.episodes, each.already_known, each.bad) for each in reports] == [(1, 1, []), (0, 2, [])]
    assert details(owner) == [
        "user: Why do payments fail?\nassistant: Retries are off.",
        "user: fact: Retries happen three times.\nassistant: Noted.",
    ]


def test_an_import_of_the_whole_history_afterwards_finds_everything_known(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    path = written(tmp_path / "s-1.jsonl", *BEFORE)
    import_transcript(heart, path, project_id=PROJECT)
    append(path, *AFTER)
    import_transcript(heart, path, project_id=PROJECT)

    report = import_history(heart, [tmp_path])

    assert (report.episodes, report.bad) == (0, [])
    assert len(details(owner)) == 2


def test_a_session_that_goes_on_in_a_copy_under_another_name_adds_what_is_new(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    import_transcript(heart, written(tmp_path / "s-1.jsonl", *BEFORE), project_id=PROJECT)
    copied = [{**line, "sessionId": "s-2"} for line in (*BEFORE, *AFTER)]

    report = import_transcript(heart, written(tmp_path / "s-2.jsonl", *copied), project_id=PROJECT)

    assert (report.episodes, report.already_known, report.bad) == (1, 1, [])
    assert len(details(owner)) == 2


def test_facts_drawn_from_a_session_belong_to_its_repository(
    heart: Heart, owner: psycopg.Connection, writer: ScriptedWriter, tmp_path: Path
):
    lines = (*BEFORE, {**said("user", 20, "x"), "message": {"content": "Listen:\nfact: Retries happen three times."}})
    import_transcript(heart, written(tmp_path / "s-1.jsonl", *lines), project_id=PROJECT)

    complete(heart)

    assert len(writer.told) == 1
    assert owner.execute("select content, project_id from heart.facts").fetchall() == [
        ("Retries happen three times.", PROJECT)
    ]


@pytest.mark.parametrize("text", ["", "not JSON\n", '{"type": "user"}\n'])
def test_a_transcript_that_holds_nothing_stores_nothing(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path, text: str
):
    path = tmp_path / "s-1.jsonl"
    path.write_text(text, "utf-8")

    assert import_transcript(heart, path, project_id=PROJECT).episodes == 0
    assert details(owner) == []


def test_a_session_of_another_client_is_told_by_its_content(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    moment = NOW.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    payload = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Why do payments fail?"}]}
    rollout = written(
        tmp_path / "rollout.jsonl",
        {
            "timestamp": moment,
            "type": "session_meta",
            "payload": {"id": "r-1", "timestamp": moment, "cwd": "/srv/atlas"},
        },
        {"timestamp": moment, "type": "response_item", "payload": payload},
    )
    session = written(
        tmp_path / "session.jsonl",
        {"sessionId": "g-1", "projectHash": "ab", "startTime": moment},
        {"id": "m1", "timestamp": moment, "type": "user", "content": "And refunds?"},
    )

    reports = [import_transcript(heart, path, project_id=PROJECT) for path in (rollout, session)]

    assert [(report.source, report.episodes) for report in reports] == [("codex", 1), ("gemini", 1)]
    assert sorted(details(owner)) == ["user: And refunds?", "user: Why do payments fail?"]
