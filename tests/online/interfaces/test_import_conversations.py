"""Conversations of other programs become closed episodes: dated, whole, once, and without their credentials."""

from __future__ import annotations

import json
import os
import tracemalloc
import zipfile
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import psycopg
import pytest
from conftest import ScriptedWriter
from import_files import facts_of, written
from told_credentials import HELD

from nous_online.core.errors import InvalidInput
from nous_online.heart import Heart
from nous_online.interfaces.imports.import_files import JsonStream, read_elements
from nous_online.interfaces.imports.importing import ImportOptions, import_history
from nous_online.language.writing.credentials import holds_credential

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
SECRET = "sk-proj-Zx81kQmV0pLr7TnB3wYc"  # noqa: S105 (made up)


def said(kind: str, minute: float, content: object, **more: object) -> dict[str, object]:
    """Return a line of a transcript."""
    moment = (NOON + timedelta(minutes=minute)).isoformat().replace("+00:00", "Z")
    return {
        "type": kind, "uuid": f"{more.pop('session', 's-1')}-{kind}-{minute}", "parentUuid": None, "timestamp": moment,
        "sessionId": "s-1", "cwd": "/srv/ada/atlas", "gitBranch": "retries", "isSidechain": False,
        "message": {"role": kind, "content": content}, **more,
    }  # fmt: skip


def used(tool: str, call: str, **given: object) -> list[dict[str, object]]:
    return [{"type": "tool_use", "id": call, "name": tool, "input": given}]


def result(call: str, text: str, *, is_error: bool = False) -> list[dict[str, object]]:
    return [{"type": "tool_result", "tool_use_id": call, "content": text, "is_error": is_error}]


SESSION = (
    {"type": "summary", "summary": "Retries of payments", "leafUuid": "x"},
    {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
    said("user", 0, "<command-name>/clear</command-name>"),
    said("user", 0.5, "Caveat: local commands follow", isMeta=True),
    said("user", 1, "Why do payments fail?\n<system-reminder>be kind</system-reminder>"),
    said("assistant", 2, [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Retries are off."}]),
    said("assistant", 3, used("Edit", "t1", file_path="/srv/ada/atlas/pay/retry.py", old_string="a", new_string="b")),
    said("user", 3.1, result("t1", "1 replacement")),
    said("assistant", 4, used("Bash", "t2", command="git commit -am 'Retry thrice'")),
    said("user", 4.1, [{**result("t2", "")[0], "content": [{"type": "text", "text": "[main 4f3d51d] Retry thrice"}]}]),
    said("assistant", 5, used("Bash", "t3", command="pytest -q")),
    said("user", 5.1, result("t3", "1 failed: test_retry", is_error=True)),
    said("assistant", 6, "I looked into it.", isSidechain=True),
    said("user", 7, f"The key is\nOPENAI_API_KEY={SECRET}\nkeep it out of git."),
    said("user", 200, "fact: Retries happen three times."),
)


def test_a_session_becomes_an_episode_for_each_stretch_without_a_pause(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    path = written(tmp_path / "s-1.jsonl", *SESSION)

    report = import_history(heart, [path])

    assert (report.source, report.episodes, report.stored, report.bad) == ("claude-code", 2, 0, [])
    assert dict(report.skipped) == {
        "messages of subagents": 1,
        "lines that look as if they hold a credential": 1,
    }
    first, second = episodes(owner)
    assert first["detail"].splitlines() == [
        "user: Why do payments fail?",
        "assistant: Retries are off.",
        "assistant: [Edit: pay/retry.py]",
        "assistant: [Bash: git commit -am 'Retry thrice']",
        "Commit: Retry thrice",
        "assistant: [Bash: pytest -q]",
        "user: [failed: 1 failed: test_retry]",
        "user: The key is",
        "[a line was left out: it looks as if it holds a credential]",
        "keep it out of git.",
    ]
    assert (first["title"], first["session_id"], first["state"]) == ("Retries of payments", "s-1", "closed")
    assert (first["tags"], first["participants"]) == (["atlas", "branch:retries"], ["user", "assistant"])
    assert (first["started_at"], first["ended_at"]) == ("2026-05-04T12:01:00+00:00", "2026-05-04T12:07:00+00:00")
    assert second["started_at"] == "2026-05-04T15:20:00+00:00"
    assert owner.execute("select kind, reference from heart.episode_artifacts order by 1").fetchall() == [
        ("commit", "4f3d51d"),
        ("file", "pay/retry.py"),
    ]


def test_a_session_tells_what_calls_were_for_what_was_planned_answered_objected_and_summed_up(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    def called(minute: int, name: str, **call: str) -> dict[str, object]:
        return said("assistant", minute, [{"type": "tool_use", "id": f"c{minute}", "name": name, "input": call}])

    def answered(minute: int, text: str, *, call: int, is_error: bool = False) -> dict[str, object]:
        result = {"type": "tool_result", "tool_use_id": f"c{call}", "content": text, "is_error": is_error}
        return said("user", minute, [result])

    heredoc = "git commit -m \"$(cat <<'EOF'\nWire the store\n\nAnd more.\nEOF\n)\""
    session = (
        called(0, "Bash", command="mix credo", description="Run the linters"),
        called(1, "Bash", command=heredoc),
        called(2, "Bash", command='gh pr create --title "Store and cache" --body x'),
        called(3, "ExitPlanMode", plan="Keep the cache, then drop the lock."),
        called(4, "AskUserQuestion"),
        answered(5, 'User has answered: "Which lock?"="The second one".', call=4),
        answered(6, "It was rejected. To tell you how to proceed, the user said:\nUse main", call=2, is_error=True),
        said("user", 7, "Decided so far: the cache stays.", isCompactSummary=True),
        said(
            "user",
            8,
            "Go on.<task-notification>\n<id>7</id>\n</task-notification>\n"
            "Read the output file to retrieve the result: /tmp/7",
        ),
    )

    import_history(heart, [written(tmp_path / "s.jsonl", *session)])

    (episode,) = episodes(owner)
    lines = episode["detail"].splitlines()
    assert "assistant: [Bash: Run the linters]" in lines
    assert {"Commit: Wire the store", "Pull request: Store and cache"} <= set(lines)
    assert "assistant: Plan: Keep the cache, then drop the lock." in lines
    assert "user: Decision: Which lock - The second one." in lines
    assert "user: Use main" in lines
    assert "assistant: Decided so far: the cache stays." in lines
    assert lines[-1] == "user: Go on."


def test_leave_to_go_on_is_no_decision_and_what_the_editor_shows_is_not_said(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    asking = {"type": "tool_use", "id": "c4", "name": "AskUserQuestion", "input": {}}
    answers = {"Which lock?": "The second one", "Should I go on?": "Yes", "Which key?": "You decide"}
    text = " ".join(f'"{asked}"="{answer}".' for asked, answer in (answers | {"どの錠ですか\uff1f": "二番目"}).items())
    session = (
        said("assistant", 4, [asking]),
        said("user", 5, [{"type": "tool_result", "tool_use_id": "c4", "content": text}]),
        said("user", 6, "<ide_opened_file>The user opened lock.ex</ide_opened_file>\nGo on."),
        said("user", 7, "Stop hook feedback: run the tests"),
    )

    import_history(heart, [written(tmp_path / "s.jsonl", *session)])

    (episode,) = episodes(owner)
    assert episode["detail"].splitlines() == [
        "user: Decision: Which lock - The second one.",
        "Should I go on? Yes.",
        "Which key? You decide.",
        "Decision: どの錠ですか - 二番目.",
        "user: Go on.",
    ]


SUMMARY = """This session is being continued from a previous conversation that ran out of context.
Analysis:
1. I looked at the store.

Summary:
1. Primary Request and Intent:
   The user wants retries.
2. Key Technical Concepts:
   - Retries back off twofold
4. Errors and fixes:
   - The lock was taken twice: fixed by an id
6. All user messages:
   - "Go on"
7. Pending Tasks:
   - Write the tests
9. Optional Next Step:
   Run the linter."""


@pytest.mark.parametrize("is_first", [True, False])
def test_of_a_summary_that_goes_on_with_a_session_what_lasts_is_told(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path, *, is_first: bool
):
    summary = said("user", 7, SUMMARY, isCompactSummary=True)
    before = [] if is_first else [said("user", 1, "Retries, please.")]

    import_history(heart, [written(tmp_path / "s.jsonl", *before, summary, said("user", 8, "Thanks."))])

    (episode,) = episodes(owner)
    assert "Retries back off twofold" in episode["detail"]
    assert "fixed by an id" in episode["detail"]
    assert ("The user wants retries" in episode["detail"]) == is_first
    for passing in ("I looked", "Go on", "Write the tests", "linter", "ran out of context"):
        assert passing not in episode["detail"]


def test_each_stretch_of_a_session_has_the_branches_it_was_on(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    moved = said("user", 10, "And on.", gitBranch="main", cwd="/srv/ada/pay")
    hotfix = said("user", 400, "Payments are down.", gitBranch="hotfix")

    import_history(heart, [written(tmp_path / "s.jsonl", said("user", 0, "Why?"), moved, hotfix)])

    assert [each["tags"] for each in episodes(owner)] == [
        ["atlas", "branch:retries", "pay", "branch:main"],
        ["atlas", "branch:hotfix"],
    ]


def test_facts_are_drawn_from_an_imported_session_dated_by_its_end(
    heart: Heart, owner: psycopg.Connection, writer: ScriptedWriter, tmp_path: Path
):
    import_history(heart, [written(tmp_path / "s-1.jsonl", said("user", 0, "Hi\nfact: Retries happen three times."))])

    heart.work()

    assert [told.ended_at for told in writer.told] == [NOON]
    assert owner.execute("select content, learned_at from heart.facts").fetchall() == [
        ("Retries happen three times.", NOON)
    ]


def test_a_session_that_was_taken_up_again_adds_only_what_is_new(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    first = written(tmp_path / "b.jsonl", *SESSION)
    os.utime(first, (1_000, 1_000))
    before = import_history(heart, [tmp_path])
    again = import_history(heart, [tmp_path])
    written(tmp_path / "a.jsonl", {"type": "ai-title", "aiTitle": "Renamed"}, *SESSION, said("user", 400, "And now?"))
    third = import_history(heart, [tmp_path], format="claude-code")

    assert (before.episodes, again.episodes, again.already_known, third.episodes) == (2, 0, 2, 1)
    assert (third.bad, third.already_known) == ([], 2)
    assert [each["detail"].splitlines()[0] for each in episodes(owner)][-1] == "user: And now?"


def test_leaves_out_what_may_still_be_going_on(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    now = datetime.now(UTC).isoformat()
    line = {**said("user", 0, "And next?"), "timestamp": now, "uuid": "late"}

    report = import_history(heart, [written(tmp_path / "s.jsonl", said("user", 0, "First."), line)])

    assert report.episodes == 1
    assert dict(report.skipped) == {"conversations that may still be going on (import them later)": 1}


def test_reports_the_lines_of_a_session_it_cannot_read_and_keeps_the_others(heart: Heart, tmp_path: Path):
    broken = {**said("user", 1, "x"), "timestamp": "yesterday"}
    shapeless = {**said("user", 1, "x"), "message": {"role": "user", "content": 7}}
    path = written(tmp_path / "s.jsonl", said("user", 0, "First."), "{", broken, shapeless, {"no": "type"})

    report = import_history(heart, [path])

    assert report.episodes == 1
    assert [note.number for note in report.bad] == [2, 3, 4, 5]
    assert "yesterday" in report.bad[1].message


def test_whatever_is_a_credential_elsewhere_is_one_in_a_history():
    assert [text for text in HELD if not holds_credential(text)] == []


# --- ChatGPT ---


def node(name: str, parent: str | None, role: str, text: object, minute: float | None, **more: object) -> dict:
    message = {
        "id": name, "author": {"role": role}, "create_time": None if minute is None else NOON.timestamp() + 60 * minute,
        "content": {"content_type": "text", "parts": [text]}, "recipient": "all", "metadata": {}, **more,
    }  # fmt: skip
    return {"id": name, "parent": parent, "children": [], "message": message}


def conversation(name: str, *nodes: dict, title: str = "Boats", current: str | None = None) -> dict:
    root = {"id": "root", "parent": None, "children": [], "message": None}
    mapping = {each["id"]: each for each in (root, *nodes)}
    for each in nodes:
        mapping[each["parent"]]["children"].append(each["id"])
    return {
        "conversation_id": name, "title": title, "create_time": NOON.timestamp(), "mapping": mapping,
        "update_time": (NOON + timedelta(days=1)).timestamp(), "current_node": current or nodes[-1]["id"],
    }  # fmt: skip


BOATS = conversation(
    "c-1",
    node("sys", "root", "system", "be brief", 0),
    node("u1", "sys", "user", "Which boat is fast?", 1),
    node("a1", "u1", "assistant", "None.", 2),
    node("a2", "u1", "assistant", "The sloop is fast.", 3),
    node("call", "a2", "assistant", "search(boats)", 4, recipient="browser"),
    node("tool", "call", "tool", "ten results", 5),
    node("hidden", "tool", "user", "secret settings", 6, metadata={"is_visually_hidden_from_conversation": True}),
    node("u2", "hidden", "user", {"asset_pointer": "picture"}, 7),
    node("u3", "u2", "user", "And a slow one?", None),
)
LATER = conversation("c-2", node("u9", "root", "user", "Do boats float?", 500), title="Floating")


def test_a_conversation_is_read_along_the_branch_that_was_shown_last(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    report = import_history(heart, [written(tmp_path / "conversations.json", json.dumps([BOATS, LATER]))])

    assert (report.source, report.episodes, report.bad) == ("chatgpt", 2, [])
    first, second = episodes(owner)
    assert first["detail"].splitlines() == [
        "user: Which boat is fast?",
        "assistant: The sloop is fast.",
        "user: And a slow one?",
    ]
    assert (first["title"], first["session_id"]) == ("Boats", "c-1")
    assert (first["started_at"], first["ended_at"]) == ("2026-05-04T12:01:00+00:00", "2026-05-04T12:07:00+00:00")
    assert (second["title"], second["started_at"]) == ("Floating", "2026-05-04T20:20:00+00:00")


def test_reads_the_zip_as_it_was_downloaded_and_a_renamed_conversation_is_known(heart: Heart, tmp_path: Path):
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("chat.html", "<html>")
        archive.writestr("conversations-000.json", json.dumps([BOATS]))
        archive.writestr("conversations-001.json", json.dumps([LATER]))
    first = import_history(heart, [path])
    again = import_history(heart, [written(tmp_path / "conversations.json", json.dumps([{**BOATS, "title": "Sails"}]))])

    assert (first.episodes, again.episodes, again.already_known, again.bad) == (2, 0, 1, [])


TALK = (
    node("t1", "root", "user", "Which rope?", 0),
    node("t2", "t1", "assistant", "Hemp.", 10),
    node("t3", "t2", "user", "And for salt water?", 20),
)


def test_a_conversation_that_goes_on_after_an_export_adds_what_is_new_in_the_next(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    first = import_history(heart, [written(tmp_path / "a.json", json.dumps([conversation("c-3", *TALK[:2])]))])
    second = import_history(heart, [written(tmp_path / "b.json", json.dumps([conversation("c-3", *TALK)]))])

    assert (first.episodes, second.episodes, second.already_known, second.bad) == (1, 1, 1, [])
    assert [each["detail"].splitlines() for each in episodes(owner)] == [
        ["user: Which rope?", "assistant: Hemp."],
        ["user: And for salt water?"],
    ]


def test_one_conversation_by_itself_is_read_though_its_last_message_is_missing(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    cut = conversation("c-4", *deepcopy(TALK), current="t9")
    cut["mapping"]["t3"]["children"] = ["t9"]

    report = import_history(heart, [written(tmp_path / "rope.json", json.dumps(cut))])

    assert (report.source, report.episodes, report.bad) == ("chatgpt", 1, [])
    assert len(episodes(owner)[0]["detail"].splitlines()) == len(TALK)


def test_what_chatgpt_was_to_remember_becomes_facts_once(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    about = {"about_user_message": "Name: Ada\nTrade: rigger", "about_model_message": "Answer in short sentences."}
    hidden = {"is_visually_hidden_from_conversation": True, "user_context_message_data": about}
    nodes = (
        node("h", "root", "user", "", None, metadata=hidden),
        node("u", "h", "user", "Remember that I sail the Petrel.", 1),
        node("m", "u", "assistant", "Sails a sloop named Petrel.", 2, recipient="bio"),
        node("a", "m", "assistant", "Noted.", 3),
    )
    later = (nodes[0], node("q", "h", "user", "What is my trade?", 9))
    export = json.dumps([conversation("c-5", *nodes), conversation("c-6", *later)])

    report = import_history(heart, [written(tmp_path / "conversations.json", export)])

    assert (report.stored, report.episodes, report.bad) == (4, 2, [])
    assert sorted(facts_of(owner, "content, source")) == [
        (content, "chatgpt memory")
        for content in ("Answer in short sentences.", "Name: Ada", "Sails a sloop named Petrel.", "Trade: rigger")
    ]


def test_a_folder_with_other_zips_is_read_past_them(heart: Heart, tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "theme.zip", "w") as archive:
        archive.writestr("style.css", "a {}")
    written(tmp_path / "conversations.json", json.dumps([BOATS]))

    report = import_history(heart, [tmp_path])

    assert (report.episodes, report.bad) == (1, [])
    with pytest.raises(InvalidInput, match="a zip without"):
        import_history(heart, [tmp_path / "theme.zip"])


def test_a_conversation_that_was_over_when_the_zip_was_made_is_whole(heart: Heart, tmp_path: Path):
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", json.dumps([{**BOATS, "update_time": None}]))

    assert import_history(heart, [path]).episodes == 1


def test_reports_a_zip_that_is_damaged(heart: Heart, tmp_path: Path):
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", json.dumps([BOATS] * 50))
    content = bytearray(path.read_bytes())
    content[120:160] = bytes(40)
    path.write_bytes(content)

    report = import_history(heart, [path])

    assert (report.bad_count, report.bad[0].unit) == (1, "conversation")
    assert "what comes after it was not read" in report.bad[0].message


def test_reports_a_bad_conversation_by_its_number_and_what_is_cut_off(heart: Heart, tmp_path: Path):
    text = json.dumps([BOATS, {"title": "no mapping"}, "words", LATER])

    whole = import_history(heart, [written(tmp_path / "conversations.json", text)])
    cut = import_history(heart, [written(tmp_path / "conversations-1.json", text[:-200])])

    assert (whole.episodes, [note.place for note in whole.bad]) == (2, ["conversation 2", "conversation 3"])
    assert (cut.already_known, [note.number for note in cut.bad]) == (1, [2, 3, 4])
    assert "cut off" in cut.bad[-1].message


@pytest.mark.parametrize(
    ("wanted", "holds", "message"),
    [
        ("mem0", {"data": [{"memory": "Boats float."}]}, "under 'results' or 'memories', found 'data';"),
        ("chatgpt", {"title": "Boats", "id": "c"}, "under 'conversations', found 'title' or 'id';"),
        ("chatgpt", {}, "found nothing;"),
    ],
)
def test_an_object_without_the_list_that_is_read_is_no_empty_history(
    heart: Heart, tmp_path: Path, wanted: str, holds: object, message: str
):
    report = import_history(heart, [written(tmp_path / "d.json", json.dumps(holds))], format=wanted)

    assert ([note.number for note in report.bad], report.is_useful) == ([1], False)
    assert message in report.bad[0].message


def test_a_list_of_any_length_is_read_with_little_memory_in_a_megabyte_or_so(tmp_path: Path):
    element = json.dumps({"text": 'naïve “quotes” ] } \\" ' * 200})
    file = BytesIO(("[" + ",\n".join([element] * 6000) + "]").encode())

    tracemalloc.start()
    count = sum(1 for _ in read_elements(JsonStream(file), lists=()))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (count, len(file.getvalue()) > 20_000_000) == (6000, True)
    assert peak < 12_000_000


# --- what is chosen ---


def test_a_dry_run_counts_what_an_import_would_store_and_stores_nothing(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    path = written(tmp_path / "s-1.jsonl", *SESSION)

    dry = import_history(heart, [path], options=ImportOptions(is_dry_run=True))
    stored = import_history(heart, [path], options=ImportOptions(since=NOON + timedelta(hours=1)))

    assert (dry.episodes, dry.is_dry_run) == (2, True)
    assert (stored.episodes, len(episodes(owner))) == (1, 1)
    assert dict(stored.skipped)["older than 2026-05-04T13:00:00+00:00"] == 1


def test_a_dry_run_makes_no_agent_that_a_line_names(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    lines = ({"agent": agent, "content": "Boats float."} for agent in ("basil", "carol", "basil", " "))

    dry = import_history(heart, [written(tmp_path / "facts.jsonl", *lines)], options=ImportOptions(is_dry_run=True))

    assert (dry.stored, [note.number for note in dry.bad]) == (3, [4])
    assert owner.execute("select id from heart.agents").fetchall() == [("aria",)]


def test_tells_the_formats_of_a_folder_apart(heart: Heart, tmp_path: Path):
    written(tmp_path / "s-1.jsonl", *SESSION)
    written(tmp_path / "facts.jsonl", {"content": "Boats float."})
    written(tmp_path / "memories.json", json.dumps({"results": [{"id": "1", "memory": "Ada sails.", "hash": "x"}]}))
    written(tmp_path / "conversations.json", json.dumps([LATER]))
    written(tmp_path / "user.json", json.dumps({"email": "ada@example.org"}))
    (tmp_path / "notes").mkdir()
    written(tmp_path / "notes" / "boats.md", "# Boats", "- Sloops have one mast.")
    (tmp_path / ".git").mkdir()
    written(tmp_path / ".git" / "x.md", "- Hidden.")

    report = import_history(heart, [tmp_path])

    assert (report.stored, report.episodes, report.files) == (3, 3, 5)
    assert dict(report.skipped)["files in no known format"] == 1


def test_says_what_to_do_about_a_file_in_no_known_format(heart: Heart, tmp_path: Path):
    with pytest.raises(InvalidInput, match=r"user.json is in no known format; say which with --format: jsonl, claude"):
        import_history(heart, [written(tmp_path / "user.json", json.dumps({"email": "x"}))])
    with pytest.raises(InvalidInput, match="nothing to import in"):
        import_history(heart, [tmp_path])


def episodes(owner: psycopg.Connection) -> list[dict]:
    rows = owner.execute("select to_jsonb(e) from heart.episodes e order by started_at").fetchall()
    return [row[0] for row in rows]
