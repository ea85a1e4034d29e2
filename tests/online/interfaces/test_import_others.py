"""What other programs keep: sessions of Codex and Gemini CLI, exports of claude.ai, mem0's server, Letta and others.

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
from conftest import ScriptedWriter
from import_files import facts_of, written
from test_cli import Answer, environment, nous  # noqa: F401 (fixtures)

from nous_online.core.errors import InvalidInput
from nous_online.heart import Heart
from nous_online.interfaces.imports.importing import Choice, import_history

SECRET = "sk-proj-Zx81kQmV0pLr7TnB3wYc"  # noqa: S105 (made up)


def episodes(owner: psycopg.Connection) -> list[dict[str, Any]]:
    rows = owner.execute("select to_jsonb(e) from heart.episodes e order by started_at").fetchall()
    return [row[0] for row in rows]


def artifacts(owner: psycopg.Connection) -> list[tuple[str, str]]:
    return owner.execute("select kind, reference from heart.episode_artifacts order by 1").fetchall()


# --- Codex ---


def at(minute: int, kind: str, **payload: object) -> dict[str, object]:
    return {"timestamp": f"2026-05-04T12:{minute:02}:00.000Z", "type": kind, "payload": payload}


def message(minute: int, role: str, text: str) -> dict[str, object]:
    kind = "output_text" if role == "assistant" else "input_text"
    return at(minute, "response_item", type="message", role=role, content=[{"type": kind, "text": text}])


def call(minute: int, name: str, **arguments: object) -> dict[str, object]:
    return at(
        minute, "response_item", type="function_call", name=name, arguments=json.dumps(arguments), call_id=f"c{minute}"
    )


def output(minute: int, text: str) -> dict[str, object]:
    return at(minute, "response_item", type="function_call_output", call_id=f"c{minute}", output=text)


HEAD = at(
    0, "session_meta", id="r-1", timestamp="2026-05-04T12:00:00Z", cwd="/srv/ada/atlas", git={"branch": "retries"}
)
ROLLOUT = (
    HEAD,
    message(0, "developer", "You may write to /srv."),
    message(0, "user", "<environment_context>\n  <cwd>/srv/ada/atlas</cwd>\n</environment_context>"),
    message(0, "user", "# AGENTS.md instructions for /srv/ada/atlas\n\nBe brief."),
    message(1, "user", "# Context from my IDE setup:\n\n- a.py\n\n## My request for Codex:\nWhy do payments fail?"),
    at(1, "event_msg", type="user_message", message="Why do payments fail?"),
    at(2, "response_item", type="reasoning", summary=[{"type": "summary_text", "text": "hm"}]),
    call(2, "update_plan", plan=[{"step": "Read the log", "status": "pending"}, {"step": "Mend it"}]),
    call(3, "update_plan", plan=[{"step": "Read the log", "status": "completed"}, {"step": "Mend it"}]),
    call(4, "shell", command=["bash", "-lc", "pytest -q"], justification="Run the tests"),
    output(4, json.dumps({"output": "1 failed: test_retry", "metadata": {"exit_code": 1}})),
    at(5, "response_item", type="custom_tool_call", name="apply_patch", call_id="c5",
       input="*** Begin Patch\n*** Update File: /srv/ada/atlas/pay/retry.py\n@@\n-a\n+b\n*** End Patch"),
    call(6, "exec_command", cmd="git commit -am 'Retry thrice'"),
    output(6, "Process exited with code 0\nOutput:\n[retries 4f3d51d] Retry thrice"),
    at(7, "compacted", message="So far: retries were off, now they are thrice."),
    message(8, "assistant", f"Done.\nOPENAI_API_KEY={SECRET}"),
    at(9, "event_msg", type="agent_message", message="Done."),
)  # fmt: skip


def test_a_session_of_codex_becomes_an_episode(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    path = written(tmp_path / "rollout-2026-05-04T12-00-00-r-1.jsonl", *ROLLOUT)

    report = import_history(heart, [path])

    assert (report.source, report.episodes, report.bad) == ("codex", 1, ())
    (episode,) = episodes(owner)
    assert episode["detail"].splitlines() == [
        "user: Why do payments fail?",
        "assistant: Plan: Read the log; Mend it",
        "assistant: [shell: Run the tests]",
        "assistant: [failed: 1 failed: test_retry]",
        "assistant: [apply_patch: pay/retry.py]",
        "assistant: [exec_command: git commit -am 'Retry thrice']",
        "Commit: Retry thrice",
        "assistant: So far: retries were off, now they are thrice.",
        "assistant: Done.",
        "[a line was left out: it looks as if it holds a credential]",
    ]
    assert artifacts(owner) == [("commit", "4f3d51d"), ("file", "pay/retry.py")]
    assert (episode["tags"], episode["session_id"], episode["source"]) == (
        ["atlas", "branch:retries"],
        "r-1",
        "codex:r-1",
    )
    assert import_history(heart, [path]).episodes == 0


def test_a_session_of_codex_that_goes_on_adds_only_what_is_new(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    path = written(tmp_path / "rollout.jsonl", HEAD, message(1, "user", "Why do payments fail?"))
    import_history(heart, [path], choice=Choice(is_over=True))

    written(path, HEAD, message(1, "user", "Why do payments fail?"), message(30, "assistant", "Retries are off."))
    import_history(heart, [path], choice=Choice(is_over=True))

    assert [each["detail"] for each in episodes(owner)] == [
        "user: Why do payments fail?",
        "assistant: Retries are off.",
    ]


def test_a_session_of_codex_leaves_out_what_it_was_forked_from_and_what_a_subagent_said(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    first = written(tmp_path / "a.jsonl", HEAD, message(1, "user", "Why do payments fail?"))
    own = at(2, "session_meta", id="r-2", timestamp="2026-05-04T12:02:00Z", cwd="/srv/ada/atlas")
    fork = written(
        tmp_path / "b.jsonl", own, HEAD, message(1, "user", "Why do payments fail?"), message(3, "user", "And refunds?")
    )
    meta = at(4, "session_meta", id="r-3", timestamp="2026-05-04T12:04:00Z", source={"subagent": "review"})
    sub = written(tmp_path / "c.jsonl", meta, message(5, "assistant", "I looked."))

    report = import_history(heart, [first, fork, sub])

    assert [each["detail"] for each in episodes(owner)] == ["user: Why do payments fail?", "user: And refunds?"]
    assert dict(report.skipped) == {"messages of subagents": 1, "messages that an earlier session holds too": 1}


def test_reads_a_session_of_codex_from_before_lines_had_dates(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    path = written(
        tmp_path / "rollout-2025-08-01.jsonl",
        {"id": "old-1", "timestamp": "2025-08-01T09:00:00Z", "instructions": None},
        {"record_type": "state"},
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "fact: The beta opens in May."}],
        },
        {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls"]}', "call_id": "c1"},
        {"type": "function_call", "name": "shell", "arguments": '{"command": ["ls"]}', "call_id": "c2"},
    )

    import_history(heart, [path])

    (episode,) = episodes(owner)
    assert episode["detail"].splitlines() == ["user: fact: The beta opens in May.", *["assistant: [shell: ls]"] * 2]
    assert episode["started_at"] == "2025-08-01T09:00:00+00:00"


# --- Gemini CLI ---

GEMINI = {"sessionId": "g-1", "projectHash": "ab" * 32, "startTime": "2026-05-04T12:00:00Z"}
ASKED = {
    "id": "m1",
    "timestamp": "2026-05-04T12:00:00Z",
    "type": "user",
    "content": [{"text": "Why do payments fail?"}],
}
ANSWERED = {
    "id": "m2", "timestamp": "2026-05-04T12:01:00Z", "type": "gemini", "content": "Retries are off.",
    "thoughts": [{"subject": "hm", "description": "hm"}],
    "toolCalls": [
        {"name": "replace", "args": {"file_path": "/srv/ada/atlas/pay/retry.py"}, "status": "success"},
        {"name": "read_file", "args": {"absolute_path": "/srv/b.py"}, "status": "error",
         "resultDisplay": "File not found"},
        {"name": "run_shell_command", "args": {"command": "git commit -m 'Retry thrice'", "description": "Commit it"},
         "result": [{"functionResponse": {"response": {"output": "[main 4f3d51d] Retry thrice"}}}]},
    ],
}  # fmt: skip
DETAIL = [
    "user: Why do payments fail?",
    "assistant: Retries are off.",
    "[replace: pay/retry.py]",
    "[read_file: /srv/b.py]",
    "[failed: File not found]",
    "[run_shell_command: Commit it]",
    "Commit: Retry thrice",
]


def test_a_session_of_gemini_becomes_an_episode_from_either_kind_of_file(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    told = {**GEMINI, "summary": "Retries of payments", "directories": ["/srv/ada/atlas"]}
    note = {"id": "m0", "timestamp": "2026-05-04T12:00:00Z", "type": "info", "content": "Update available"}
    whole = tmp_path / "session-2026-05-04.json"
    whole.write_text(json.dumps({**told, "messages": [note, ASKED, ANSWERED]}), "utf-8")

    report = import_history(heart, [whole])

    assert (report.source, report.episodes, report.bad) == ("gemini", 1, ())
    (episode,) = episodes(owner)
    assert episode["detail"].splitlines() == DETAIL
    assert (episode["title"], episode["tags"]) == ("Retries of payments", ["atlas"])
    assert artifacts(owner) == [("commit", "4f3d51d"), ("file", "pay/retry.py")]
    log = written(tmp_path / "session-2026-05-04.jsonl", told, note, ASKED, ANSWERED)
    again = import_history(heart, [log])
    assert (again.episodes, again.already_known) == (0, 1)


def test_what_was_taken_back_in_gemini_and_what_is_a_command_is_not_told(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    path = written(
        tmp_path / "session.jsonl",
        GEMINI,
        {**ASKED, "id": "m0", "content": "/clear"},
        ASKED,
        {**ANSWERED, "id": "m3", "toolCalls": []},
        {"$rewindTo": "m3"},
        {"id": "m4", "timestamp": "2026-05-04T12:02:00Z", "type": "gemini", "content": "Let me"},
        {"id": "m4", "timestamp": "2026-05-04T12:02:00Z", "type": "gemini", "content": "Let me look."},
        {"$set": {"lastUpdated": "2026-05-04T12:02:00Z"}},
        {"id": "m5", "type": "gemini", "content": "undated"},
    )

    report = import_history(heart, [path])

    assert episodes(owner)[0]["detail"].splitlines() == ["user: Why do payments fail?", "assistant: Let me look."]
    assert [note.message for note in report.bad] == ["a message needs a `timestamp`"]


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
    "conversations_memory": "**Work context**\n\nAda teaches ethics in Porto.\n\n**Interests**\n\n- chess\n- trains",
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

    assert (report.source, report.episodes, report.stored, report.bad) == ("claude-ai", 1, 4, ())
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
    {"type": "relation", "from": "Ada_Lovelace", "to": "Atlas", "relationType": "works_on"},
)  # fmt: skip


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

    assert (report.source, report.stored, report.bad) == ("mcp-memory", 3, ())
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

    assert (report.source, report.stored, report.of_users) == ("langgraph", 3, (("ada", 2),))
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

    assert (report.source, report.stored, report.episodes, report.bad) == ("letta", 2, 1, ())
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

    assert (report.source, report.stored, report.of_users) == ("openmemory", 1, (("ada", 1),))
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
    path.write_text(content, "utf-8")

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


def test_facts_are_drawn_from_a_session_of_codex(
    heart: Heart, owner: psycopg.Connection, writer: ScriptedWriter, tmp_path: Path
):
    path = written(tmp_path / "rollout.jsonl", HEAD, message(1, "user", "Hi\nfact: Payments are retried three times."))

    import_history(heart, [path])
    heart.work()

    assert [row[0] for row in facts_of(owner)] == ["Payments are retried three times."]
