"""Chats as the APIs of language models have them, `messages` of a role and a content, become episodes."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from import_files import facts_of, written
from test_cli import Answer, environment, nous  # noqa: F401 (fixtures)

from nous_online.heart import Heart
from nous_online.interfaces.imports.importing import import_history

ASKED = {"role": "user", "content": "I moved to Lisbon last week."}
ANSWERED = {"role": "assistant", "content": "How do you like it there?"}
MOVING = {"id": "chat-7", "date": "2026-05-02", "messages": [ASKED, ANSWERED]}


def episodes_of(owner: psycopg.Connection, columns: str = "detail") -> list[tuple]:
    return owner.execute(f"select {columns} from heart.episodes order by started_at").fetchall()  # noqa: S608 (columns a test names)


def test_a_line_with_messages_is_one_episode_beside_the_facts_and_dialogues_of_the_file(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    dialogue = {"turns": [ANSWERED]}
    path = written(tmp_path / "chats.jsonl", MOVING, {"content": "Ada sails."}, dialogue)

    report = import_history(heart, [path])
    again = import_history(heart, [path])

    assert (report.source, report.episodes, report.stored, report.bad) == ("chats", 1, 2, [])
    assert (again.episodes, again.stored, again.already_known, again.bad) == (0, 0, 3, [])
    assert episodes_of(owner, "detail, started_at, ended_at, session_id, participants, state") == [
        (
            "user: I moved to Lisbon last week.\nassistant: How do you like it there?",
            *[datetime(2026, 5, 2, tzinfo=UTC)] * 2, "chat-7", ["user", "assistant"], "closed",
        )
    ]  # fmt: skip
    assert sorted(facts_of(owner)) == [("Ada sails.",), ("How do you like it there?",)]


def test_only_what_user_and_assistant_say_in_words_is_told(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    parts = [
        {"type": "text", "text": "What is on this picture?"},
        {"type": "image_url", "image_url": {"url": "data:,"}},
        {"type": "text", "text": "The key is OPENAI_API_KEY=sk-proj-Zx81kQmV0pLr7TnB3wYc"},
    ]
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": parts},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "look"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "a boat"},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "a ship"}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "A boat."}]},
        {"role": "assistant", "content": []},
    ]

    report = import_history(heart, [written(tmp_path / "chats.jsonl", {"messages": messages})])

    assert (report.bad, dict(report.skipped)) == ([], {"lines that look as if they hold a credential": 1})
    assert episodes_of(owner) == [
        (
            "user: What is on this picture?\n[a line was left out: it looks as if it holds a credential]\n"
            "assistant: A boat.",
        )
    ]


@pytest.mark.parametrize("name", ["date", "created_at", "timestamp", "created"])
@pytest.mark.parametrize("moment", ["2026-05-02T09:30:00Z", 1777714200])
def test_a_chat_is_dated_by_any_of_the_usual_names(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path, name: str, moment: object
):
    import_history(heart, [written(tmp_path / "chats.jsonl", {name: moment, "messages": [ASKED]})])

    said_at = datetime(2026, 5, 2, 9, 30, tzinfo=UTC)
    assert episodes_of(owner, "started_at, ended_at") == [(said_at, said_at)]


@pytest.mark.parametrize("name", ["id", "conversation_id", "session_id"])
def test_a_chat_is_known_again_by_its_id_and_one_that_grew_is_reported(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path, name: str
):
    def imported(*messages: object, date: str) -> tuple[int, int, list[str]]:
        chat = {name: 7, "date": date, "messages": messages}
        report = import_history(heart, [written(tmp_path / "chats.jsonl", chat)])
        return report.episodes, report.already_known, [note.message for note in report.bad]

    assert imported(ASKED, ANSWERED, date="2026-05-02") == (1, 0, [])
    assert imported(ASKED, ANSWERED, date="2026-05-03") == (0, 1, [])
    episodes, _, (problem,) = imported(ASKED, ANSWERED, ASKED, date="2026-05-04")
    assert (episodes, "used before for another text" in problem) == (0, True)
    assert episodes_of(owner, "session_id, source") == [("7", "chat:7")]


def test_chats_without_id_and_date_are_stored_once_in_the_order_of_their_lines(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    path = written(tmp_path / "chats.jsonl", *({"messages": [each, each]} for each in (ASKED, ANSWERED)))

    reports = [import_history(heart, [path]) for _ in range(2)]

    assert [(report.episodes, report.already_known, report.bad) for report in reports] == [(2, 0, []), (0, 2, [])]
    assert [detail.partition(":")[0] for (detail,) in episodes_of(owner)] == ["user", "assistant"]


def test_a_chat_whose_messages_are_dated_goes_on_where_the_last_import_ended(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    messages = [{**ASKED, "timestamp": f"2026-05-02T{hour}:00:00Z"} for hour in ("09", "10", "13")]
    chat = {"id": "c", "title": "Moving", "started_at": "2026-05-01", "messages": messages}

    first = import_history(heart, [written(tmp_path / "chats.jsonl", {**chat, "messages": messages[:1]})])
    second = import_history(heart, [written(tmp_path / "chats.jsonl", chat)])

    assert (first.episodes, second.episodes, second.already_known, second.bad) == (1, 2, 1, [])
    assert episodes_of(owner, "title, extract(hour from started_at)::int") == [
        ("Moving", 9),
        ("Moving", 10),
        ("Moving", 13),
    ]


def test_a_chat_says_whose_it_is_and_a_recall_finds_it_by_its_id(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    told = {
        **MOVING,
        "tags": ["moving"],
        "session_id": 3,
        "started_at": "2026-05-01",
        "ended_at": "2026-05-02",
        "model": "m",
        "user_id": None,
    }
    asked = {"kind": "recall", "query": "Where is Lisbon?", "at": "2026-05-06", "cited": ["chat-7"]}

    report = import_history(heart, [written(tmp_path / "chats.jsonl", told, asked)])

    assert (report.bad, report.skipped, report.ignored_fields) == ([], {}, {"model"})
    assert episodes_of(owner, "tags, session_id, duration_seconds") == [(["moving"], "3", 24 * 60 * 60)]
    assert owner.execute("select cited_count from heart.usage").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "content",
    [MOVING, MOVING["messages"], [MOVING], {"conversations": [MOVING]}, {"model": "m", "messages": [ASKED, ANSWERED]}],
    ids=["a chat", "its messages", "a list of chats", "conversations", "a request"],
)
def test_a_json_file_is_a_chat_its_messages_or_a_list_of_chats(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path, content: object
):
    path = tmp_path / "chats.json"
    path.write_text(json.dumps(content, indent=2), "utf-8")

    report = import_history(heart, [path])
    again = import_history(heart, [path])

    assert (report.source, report.episodes, report.lines, report.bad) == ("chats", 1, 1, [])
    assert (again.episodes, again.already_known, again.bad) == (0, 1, [])
    assert episodes_of(owner) == [("user: I moved to Lisbon last week.\nassistant: How do you like it there?",)]


def test_lines_that_are_messages_are_one_chat_beside_the_facts_of_the_file(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    path = written(tmp_path / "log.jsonl", ASKED, {"content": "Ada sails."}, ANSWERED)

    report = import_history(heart, [path])
    again = import_history(heart, [path])

    assert (report.episodes, report.stored, report.lines, report.bad, report.ignored_fields) == (1, 1, 3, [], set())
    assert (again.episodes, again.stored, again.already_known) == (0, 0, 2)
    assert episodes_of(owner) == [("user: I moved to Lisbon last week.\nassistant: How do you like it there?",)]
    assert facts_of(owner) == [("Ada sails.",)]


def test_of_messages_beside_a_line_that_cannot_be_read_nothing_is_stored(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    report = import_history(heart, [written(tmp_path / "log.jsonl", ASKED, "{broken", ANSWERED)])

    assert ([note.number for note in report.bad], episodes_of(owner), facts_of(owner)) == ([2, 3], [], [])
    assert "is stored once every line can be read" in report.bad[1].message


def test_what_is_no_chat_in_a_list_of_them_is_read_as_a_line_is(heart: Heart, tmp_path: Path):
    path = tmp_path / "chats.json"
    path.write_text(json.dumps([MOVING, {"content": "Ada sails."}, 5, {"content": "Ada sails."}]), "utf-8")

    reports = [import_history(heart, [path]) for _ in range(2)]

    assert [(each.episodes, each.stored, each.already_known) for each in reports] == [(1, 2, 0), (0, 0, 3)]
    assert [(note.place, "no content" in note.message) for note in reports[0].bad] == [("chat 3", True)]


def test_of_messages_that_are_cut_off_nothing_is_stored(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    path = tmp_path / "chat.json"
    path.write_text(json.dumps([ASKED, ANSWERED])[:-20], "utf-8")

    report = import_history(heart, [path], format="chats")

    assert (report.episodes, len(report.bad), episodes_of(owner)) == (0, 1, [])


def test_chats_are_bad_or_silent_by_their_lines(heart: Heart, tmp_path: Path):
    bad = {
        '{"messages": "hello"}': "messages must be a list, got str",
        '{"messages": ["hello"]}': "message 0 needs a role",
        '{"messages": [{"role": "bot", "content": "x"}]}': "one of user, assistant, system, developer, tool, function",
        '{"messages": [{"role": "user", "content": 7}]}': "the content of message 0 must be text or a list of parts",
        '{"date": "soon", "messages": []}': "date 'soon' is no date",
        '{"id": 1.5, "messages": []}': "id must be text",
        '{"agent": "", "messages": []}': "agent_id is empty",
        "{}": "a chat `messages`, a dialogue `turns`",
    }

    report = import_history(heart, [written(tmp_path / "chats.jsonl", *bad, {"messages": []}, MOVING)])

    assert [note.number for note in report.bad] == list(range(1, len(bad) + 1))
    for note, message in zip(report.bad, bad.values(), strict=True):
        assert message in note.message
    assert (report.episodes, dict(report.skipped)) == (1, {"dialogues in which nothing is said": 1})


def test_a_dry_run_of_chats_counts_them_and_says_whose_they_are(
    nous: Callable[..., Answer],  # noqa: F811
    owner: psycopg.Connection,
    tmp_path: Path,
):
    path = str(written(tmp_path / "chats.jsonl", {**MOVING, "title": "Moving", "user_id": "ada"}))

    dry, done = nous("import", path, "--dry-run"), nous("import", path)

    assert dry.out.startswith("would import  1 episodes, from 1 lines")
    assert "2026-05-02  Moving" in dry.out
    for answer in (dry, done):
        assert "1 memory of user ada: nous recall … --user ada" in answer.out
    assert episodes_of(owner, "title, user_id") == [("Moving", "ada")]
