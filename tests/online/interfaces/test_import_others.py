"""What other programs remember: exports of claude.ai, mem0's server, Letta, LangGraph and MCP's memory server.

Each file is written here in the shape its program documents or writes.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from import_files import facts_of, written
from test_cli import Answer, environment, nous  # noqa: F401 (fixtures)

from nous_online.core.errors import InvalidInput
from nous_online.heart import Heart
from nous_online.interfaces.imports.importing import import_history


def episodes(owner: psycopg.Connection) -> list[dict[str, Any]]:
    rows = owner.execute("select to_jsonb(e) from heart.episodes e order by started_at").fetchall()
    return [row[0] for row in rows]


# --- claude.ai ---


def chat(name: str, minute: int, sender: str, text: str, parent: str | None = None) -> dict[str, object]:
    return {
        "uuid": name, "sender": sender, "created_at": f"2026-05-04T12:{minute:02}:00Z", "parent_message_uuid": parent,
        "text": text, "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}],
        "attachments": [], "files": [],
    }  # fmt: skip


CONVERSATION = {
    "uuid": "c-1", "name": "A trip to Porto", "created_at": "2026-05-04T12:00:00Z", "account": {"uuid": "u"},
    "chat_messages": [
        chat("a", 0, "human", "Where shall I go?"),
        chat("b", 1, "assistant", "To Lisbon.", "a"),
        {**chat("c", 2, "assistant", "To Porto.", "a"), "files": [{"file_name": "map.png"}]},
    ],
}  # fmt: skip
MEMORIES = {
    "conversations_memory": "**Work context**\n\nAda teaches ethics in Porto.\n\n*Interests*\n\n- chess\n- trains",
    "project_memories": {"p-1": "The book has seven parts."},
    "account_uuid": "u",
}


def test_an_export_of_claude_ai_becomes_episodes_and_facts(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    path = tmp_path / "data-2026-05-05.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("users.json", json.dumps([{"uuid": "u", "full_name": "Ada"}]))
        for name, rows in (("conversations.json", [CONVERSATION]), ("memories.json", [MEMORIES])):
            archive.writestr(zipfile.ZipInfo(name, (2026, 5, 5, 8, 0, 0)), json.dumps(rows))

    report = import_history(heart, [path])

    assert (report.source, report.episodes, report.stored, report.bad) == ("claude-ai", 1, 4, [])
    (episode,) = episodes(owner)
    assert episode["title"] == "A trip to Porto"
    assert episode["detail"].splitlines() == ["user: Where shall I go?", "assistant: To Porto.", "[attached: map.png]"]
    assert set(facts_of(owner, "content, subject, learned_at::date::text")) == {
        ("Ada teaches ethics in Porto.", "Work context", "2026-05-05"),
        ("chess", "Interests", "2026-05-05"),
        ("trains", "Interests", "2026-05-05"),
        ("The book has seven parts.", None, "2026-05-05"),
    }
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "conversations.json").write_text(json.dumps([CONVERSATION]), "utf-8")
    (folder / "users.json").write_text(json.dumps([{"uuid": "u", "full_name": "Ada"}]), "utf-8")
    again = import_history(heart, [folder])
    assert (again.already_known, dict(again.skipped)) == (1, {"files in no known format": 1})


# --- the graph of MCP's memory server ---

ADA = {"type": "entity", "name": "Ada_Lovelace", "entityType": "person"}
GRAPH = (
    {**ADA, "observations": ["Speaks French", "Ada Lovelace lives in Porto"]},
    {**ADA, "observations": ["Speaks French"]},
    {"type": "relation", "from": "Ada_Lovelace", "to": "Atlas", "relationType": "worksOn"},
)  # fmt: skip


@pytest.mark.parametrize(
    "relation",
    [
        {"type": "relation", "from_entity": "Ada", "to_entity": "Atlas", "relation_type": "works_on"},
        {"from_entity": "Ada", "to_entity": "Atlas", "relationType": "worksOn"},
    ],
)
def test_a_graph_is_read_in_the_names_of_a_fork(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path, relation: dict[str, str]
):
    entity = {"name": "Ada", "entity_type": "person", "observations": ["Ada speaks French"]}

    report = import_history(heart, [written(tmp_path / "memory.jsonl", relation, entity)])

    assert (report.source, report.bad) == ("mcp-memory", [])
    assert facts_of(owner, "content, category") == [("Ada works on Atlas", None), ("Ada speaks French", "person")]


@pytest.mark.parametrize("is_whole", [False, True])
def test_the_graph_of_the_memory_server_becomes_facts(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path, *, is_whole: bool
):
    path = tmp_path / ("memory.json" if is_whole else "memory.jsonl")
    if is_whole:
        path.write_text(json.dumps({"entities": GRAPH[:2], "relations": GRAPH[2:]}), "utf-8")
    else:
        written(path, *GRAPH)

    report = import_history(heart, [path])

    assert (report.source, report.stored, report.bad) == ("mcp-memory", 3, [])
    assert set(facts_of(owner, "content, subject, category")) == {
        ("Ada_Lovelace: Speaks French", "Ada_Lovelace", "person"),
        ("Ada Lovelace lives in Porto", "Ada_Lovelace", "person"),
        ("Ada_Lovelace works on Atlas", "Ada_Lovelace", None),
    }
    assert import_history(heart, [path]).already_known == 3


# --- LangGraph, Letta, mem0's server ---


def test_items_of_a_langgraph_store_become_facts_of_their_users(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    path = tmp_path / "store.json"
    moments = {"created_at": "2026-05-01T00:00:00Z", "updated_at": "2026-05-04T00:00:00Z"}
    profile = {"home": "Porto", "pets": ["cat", "dog"]}
    ada = {"namespace": ["memories", "ada"], **moments}
    items = [
        {**ada, "key": "1", "value": {"kind": "Memory", "content": {"content": "Likes tea."}}},
        {**ada, "key": "2", "value": {"kind": "Profile", "content": profile}},
        {"namespace": "rules.deploy", "key": "3", "value": {"text": "Deploys need two approvals."}, **moments},
        {"namespace": ["rules"], "key": "4", "value": {}, **moments},
    ]  # fmt: skip
    path.write_text(json.dumps({"items": items}), "utf-8")

    report = import_history(heart, [path])

    assert (report.source, report.stored, report.of_users) == ("langgraph", 3, {"ada": 2})
    assert [note.message for note in report.bad] == ["the memory has no text"]
    assert set(facts_of(owner, "content, user_id, category")) == {
        ("Likes tea.", "ada", None),
        ("home: Porto; pets: cat, dog", "ada", "Profile"),
        ("Deploys need two approvals.", None, None),
    }


@pytest.mark.parametrize("is_text", [False, True])
def test_an_agent_of_letta_becomes_facts_and_an_episode(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path, *, is_text: bool
):
    said = {
        "role": "user",
        "content": [{"type": "text", "text": '{"type": "user_message", "message": "Where shall I go?"}'}],
    }
    sent = {"function": {"name": "send_message", "arguments": '{"message": "To Porto."}'}}
    messages = [
        {
            "role": "system",
            "content": [{"type": "text", "text": "You are Evie."}],
            "created_at": "2026-05-04T11:00:00Z",
        },
        {"role": "user", "content": '{"type": "heartbeat", "reason": "x"}', "created_at": "2026-05-04T11:59:00Z"},
        {**said, "id": "message-1", "created_at": "2026-05-04T12:00:00Z"},
        {
            "role": "assistant",
            "content": "They want a trip.",
            "tool_calls": [sent],
            "created_at": "2026-05-04T12:01:00Z",
        },
    ]
    blocks = [{"label": "human", "value": "# Habits\n- Drinks tea\n- Takes trains", "limit": 5000}]
    exported = {
        "agents": [{"name": "evie", "agent_type": "memgpt", "llm_config": {}, "messages": messages}],
        "blocks": blocks,
    }
    path = tmp_path / "evie.af"
    path.write_text(json.dumps(json.dumps(exported) if is_text else exported), "utf-8")

    report = import_history(heart, [path])

    assert (report.source, report.stored, report.episodes, report.bad) == ("letta", 2, 1, [])
    assert set(facts_of(owner, "content, subject")) == {("Drinks tea", "Habits"), ("Takes trains", "Habits")}
    assert episodes(owner)[0]["detail"].splitlines() == ["user: Where shall I go?", "assistant: To Porto."]


@pytest.mark.parametrize("is_zip", [False, True])
def test_the_backup_of_mem0s_server_becomes_facts_of_its_user_without_what_was_deleted(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path, *, is_zip: bool
):
    memory = {"id": "m-1", "user_id": "0f", "app_id": "a-1", "content": "Ada prefers trains.",
              "metadata": {"mood": "calm"}, "state": "active", "created_at": "2026-05-04T00:00:00Z",
              "updated_at": None, "deleted_at": None,
              "category_ids": ["k-1"]}  # fmt: skip
    backup = {
        "user": {"id": "0f", "user_id": "ada"},
        "apps": [{"id": "a-1", "name": "cursor"}],
        "categories": [{"id": "k-1", "name": "travel"}],
        "memories": [memory, {**memory, "id": "m-2", "content": "Ada prefers planes.", "state": "deleted"}],
    }
    path = tmp_path / ("memories_export_ada.zip" if is_zip else "memories.json")
    if is_zip:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("memories.json", json.dumps(backup))
            archive.writestr("memories.jsonl.gz", b"")
    else:
        path.write_text(json.dumps(backup), "utf-8")

    report = import_history(heart, [path])

    assert (report.source, report.stored, report.of_users) == ("openmemory", 1, {"ada": 1})
    assert dict(report.skipped) == {"memories that were deleted there": 1}
    assert facts_of(owner, "content, user_id, category, tags") == [
        ("Ada prefers trains.", "ada", "travel", ["travel", "mood:calm", "app_id:cursor"])
    ]


# --- what is said of them ---


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("stream.json", '{"type": "thread.started", "thread_id": "t"}', "event stream of `codex exec --json`"),
        ("history.json", '{"session_id": "s", "ts": 1, "text": "hi"}', "list of prompts that Codex keeps"),
        ("logs.json", '[{"sessionId": "s", "messageId": 0, "type": "user", "message": "hi"}]', "Gemini CLI keeps"),
        ("users.json", '[{"uuid": "u", "full_name": "Ada"}]', "import its conversations.json"),
        ("past.json", '[{"old_memory": null, "new_memory": "Sails.", "event": "ADD"}]', "as `get_all` returns them"),
        ("store.pckl", "\x80\x05\x95", "a pickle of Python"),
        ("state.vscdb", "SQLite format 3\x00 and so on", "a database of SQLite"),
        (
            "odd.json",
            '{"what": "ever"}',
            "in no known format; say which with --format: jsonl, claude-code, chatgpt, codex",
        ),
    ],
)
def test_names_a_format_that_is_known_but_not_read(heart: Heart, tmp_path: Path, name: str, content: str, told: str):
    path = tmp_path / name
    path.write_text(content, "latin-1")

    with pytest.raises(InvalidInput) as refused:
        import_history(heart, [path])

    assert f"{name} is " in str(refused.value)
    assert told in str(refused.value)


def test_says_whose_the_memories_are_and_a_dry_run_shows_ten(
    nous: Callable[..., Answer],  # noqa: F811
    owner: psycopg.Connection,
    tmp_path: Path,
):
    rows = [
        {"content": f"Ada prefers train {number}.", "user_id": "ada", "learned_at": "2026-05-04"}
        for number in range(12)
    ]
    path = written(tmp_path / "m.jsonl", *rows)

    dry = nous("import", str(path), "--dry-run")

    assert dry.out.count("Ada prefers train") == 10
    assert "2026-05-04  Ada prefers train 0." in dry.out
    assert "12 memories of user ada: nous recall … --user ada" in dry.out
    assert facts_of(owner) == []
    assert "12 memories of user ada: nous recall … --user ada" in nous("import", str(path)).out


@pytest.mark.parametrize("name", ["gemini", "letta", "openmemory", "claude-ai", "mcp-memory", "langgraph"])
def test_a_file_that_is_cut_off_is_reported(heart: Heart, tmp_path: Path, name: str):
    path = tmp_path / "cut.json"
    path.write_text('{"messages": [', "utf-8")

    try:
        told = [note.message for note in import_history(heart, [path], format=name).bad]
    except InvalidInput as error:
        told = [str(error)]

    assert [each for each in told if "cut off" in each or "end of the file" in each or "expected" in each], told
