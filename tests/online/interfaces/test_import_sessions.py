"""Sessions of Codex and Gemini CLI become closed episodes: whole, once, and without what the program put there.

Each file is written here in the shape its program documents or writes.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest
from conftest import ScriptedWriter
from import_files import facts_of, written

from nous_online.heart import Heart
from nous_online.interfaces.imports.importing import ImportOptions, import_history
from nous_online.interfaces.projects import project_of_session

SECRET = "sk-proj-Zx81kQmV0pLr7TnB3wYc"  # noqa: S105 (made up)


def episodes(owner: psycopg.Connection) -> list[dict[str, Any]]:
    rows = owner.execute("select to_jsonb(e) from heart.episodes e order by started_at").fetchall()
    return [row[0] for row in rows]


def artifacts(owner: psycopg.Connection) -> list[tuple[str, str]]:
    return owner.execute("select kind, reference from heart.episode_artifacts order by 1").fetchall()


# --- of any program ---


def claude(session: str, cwd: str) -> dict[str, object]:
    return {
        "type": "user", "uuid": f"m-{session}", "sessionId": session, "timestamp": "2026-05-04T12:00:00Z", "cwd": cwd,
        "message": {"role": "user", "content": f"Why do payments fail in {session}?"},
    }  # fmt: skip


@pytest.mark.parametrize(("named", "projects"), [
    (None, {project_of_session("/srv/ada/atlas"): 2, project_of_session("/srv/ada/pay"): 1}),
    ("all", {"all": 3}),
])  # fmt: skip
def test_each_session_belongs_to_the_project_of_its_folder_unless_the_import_names_one(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path, named: str | None, projects: dict[str, int]
):
    paths = [
        written(tmp_path / "c-1.jsonl", claude("c-1", "/srv/ada/atlas"), {**claude("c-1", "/srv/bea"), "uuid": "m-2"}),
        written(tmp_path / "c-2.jsonl", claude("c-2", "/srv/ada/pay")),
        written(tmp_path / "r-1.jsonl", *ROLLOUT),
    ]

    reports = [
        import_history(heart, paths, options=ImportOptions(is_dry_run=is_dry_run, project_id=named))
        for is_dry_run in (True, False)
    ]

    assert [report.of_projects for report in reports] == [projects] * 2
    assert Counter(each["project_id"] for each in episodes(owner)) == projects


def test_a_session_that_is_stored_under_another_project_is_not_stored_twice(heart: Heart, tmp_path: Path):
    path = written(tmp_path / "c-1.jsonl", claude("c-1", "/srv/ada/atlas"))
    import_history(heart, [path], options=ImportOptions(project_id="all"))

    report = import_history(heart, [path])

    assert (report.already_known, report.bad_count, report.of_projects) == (1, 0, {})


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

    assert (report.source, report.episodes, report.bad) == ("codex", 1, [])
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
    import_history(heart, [path], options=ImportOptions(is_over=True))

    written(path, HEAD, message(1, "user", "Why do payments fail?"), message(30, "assistant", "Retries are off."))
    import_history(heart, [path], options=ImportOptions(is_over=True))

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


def test_tools_that_codex_calls_from_a_script_are_told(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    def script(minute: int, source: str) -> dict[str, object]:
        called = {"type": "custom_tool_call", "name": "exec", "call_id": f"c{minute}", "input": source}
        return at(minute, "response_item", **called)

    patch = r"*** Begin Patch\n*** Update File: /srv/ada/atlas/pay/retry.py\n@@\n-a\n+b\n*** End Patch"
    path = written(
        tmp_path / "rollout-2026-05-04T12-00-00-r-1.jsonl",
        ROLLOUT[0],
        message(1, "user", "Why do payments fail?"),
        script(2, f'await tools.apply_patch("{patch}");'),
        script(3, r'await tools.exec_command({cmd:"git commit -am \"Retry thrice\""});'),
    )

    import_history(heart, [path])

    (episode,) = episodes(owner)
    lines = episode["detail"].splitlines()
    assert lines[1] == "assistant: [apply_patch: pay/retry.py]"
    assert lines[2].startswith("assistant: [exec: await tools.exec_command({cmd:")
    assert lines[3] == "Commit: Retry thrice"


def test_facts_are_drawn_from_a_session_of_codex(
    heart: Heart, owner: psycopg.Connection, writer: ScriptedWriter, tmp_path: Path
):
    path = written(tmp_path / "rollout.jsonl", HEAD, message(1, "user", "Hi\nfact: Payments are retried three times."))

    import_history(heart, [path])
    heart.work()

    assert [row[0] for row in facts_of(owner)] == ["Payments are retried three times."]


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

    assert (report.source, report.episodes, report.bad) == ("gemini", 1, [])
    (episode,) = episodes(owner)
    assert episode["detail"].splitlines() == DETAIL
    assert (episode["title"], episode["tags"]) == ("Retries of payments", ["atlas"])
    assert artifacts(owner) == [("commit", "4f3d51d"), ("file", "pay/retry.py")]
    log = written(tmp_path / "session-2026-05-04.jsonl", told, note, ASKED, ANSWERED)
    again = import_history(heart, [log])
    assert (again.episodes, again.already_known) == (0, 1)


def test_what_older_versions_of_gemini_told_a_subagent_is_not_said_by_the_user(heart: Heart, tmp_path: Path):
    path = tmp_path / "session.json"
    brief = {**ASKED, "content": "Your task is to do a deep investigation of the codebase to find why payments fail."}
    late = {**ASKED, "id": "m3", "content": "You have exceeded the maximum number of turns. You have one final chance."}
    path.write_text(json.dumps({**GEMINI, "messages": [brief, ANSWERED, late]}), "utf-8")

    report = import_history(heart, [path])

    assert (report.episodes, dict(report.skipped)["messages of subagents"]) == (0, 3)


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
