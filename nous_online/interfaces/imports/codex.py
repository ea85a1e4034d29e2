"""Sessions of Codex, which it calls rollouts, one a JSONL file, to episodes."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.imports.claude_code import (
    COMMITS,
    MOST_OF_AN_ERROR,
    REPEATED,
    SUBAGENTS,
    produced,
    relative,
    told_of_call,
)
from nous_online.interfaces.imports.import_files import ReaderState, fields_of, list_of, objects_of_lines
from nous_online.interfaces.imports.records import imported_moment
from nous_online.interfaces.imports.sessionize import Message, SessionRead, items_of_session, text_of_parts

ENVELOPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"})
SPOKEN = ("user", "assistant")
CONTENT = ("input_text", "output_text", "text")
CONTEXT = re.compile(
    r"\A(?:<[a-z]+(?:_[a-z]+)+>|<(?:permissions|user|collaboration)[ _-][a-z -]*>|<INSTRUCTIONS>|<skill>|# AGENTS\.md )"
)
"""How a message begins that the program put before the model in the user's name."""
FROM_AN_EDITOR, ASKED_IN_AN_EDITOR = "# Context from my IDE setup", "## My request for Codex:"
SHELLS = ("bash", "sh", "zsh")
PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.{1,500})$", re.MULTILINE)
EXIT_CODE = re.compile(r"\A(?:Exit code|Process exited with code):? (-?\d+)|\nProcess exited with code (-?\d+)")
MOST_FILES = 20
MOST_OF_A_REFERENCE = 200
Fields = Mapping[str, Any]


@dataclass
class Rollout(SessionRead):
    """A session of Codex while it is read."""

    began_at: datetime | None = None
    plans: set[str] = field(default_factory=set[str])
    """What was planned so far: every step that is done tells the whole plan again."""


def items_of_rollouts(path: Path, reading: ReaderState) -> Iterator[Any]:
    """Yield the episodes of a session, and what was wrong with some of its lines."""
    session = Rollout(path, "codex")
    yield from items_of_session(session, messages_of(session, reading), reading)


def messages_of(session: Rollout, reading: ReaderState) -> Iterator[Message]:
    """Yield what was said in a session; what a forked session copied from an earlier one only where it was first."""
    for place, line in objects_of_lines(session.path):
        session.at = place
        if place.problem:
            session.problems.append(place)
        if line is None:
            continue
        try:
            message = message_of(line, session)
        except InvalidInput as error:
            session.note_problem(str(error))
            continue
        if message is None:
            continue
        said = f"{line.get('timestamp') or message.id}\n{message.speaker}\n{message.text}"
        if reading.seen.is_new(said.encode("utf-8", "replace"), within="codex messages"):
            yield message
        else:
            session.left_out[REPEATED] += 1


def message_of(line: Fields, session: Rollout) -> Message | None:
    """Return what a line says; None where it is bookkeeping or tells of the session, which is kept."""
    kind, payload = line.get("type"), fields_of(line.get("payload"))
    if kind not in ENVELOPES:  # before September 2025 items stood by themselves, and undated
        kind, payload = ("response_item", line) if isinstance(kind, str) else ("session_meta", line)
    if kind == "session_meta":
        begin(session, payload)
        return None
    said_at = imported_moment("timestamp", line.get("timestamp")) or session.began_at
    if kind == "compacted":
        text, artifacts, speaker = str(payload.get("message") or ""), [], "assistant"
    elif kind == "response_item":
        speaker = str(payload.get("role") or "assistant")
        text, artifacts = told_of_item(payload, session)
    else:
        return None
    if not text and not artifacts:
        return None
    if said_at is None:
        raise InvalidInput("neither the line nor the session says when it was: `timestamp` is missing")
    if session.is_subagent:
        session.left_out[SUBAGENTS] += 1
        return None
    return Message(f"{session.name}:{session.at.number}", said_at, speaker, text, tuple(artifacts))


def begin(session: Rollout, meta: Fields) -> None:
    """Keep what the head of a session says of it; that of a session it was forked from comes second and is none."""
    if session.id or not isinstance(meta.get("id"), str):
        return
    session.id = meta["id"]
    session.began_at = imported_moment("timestamp", meta.get("timestamp"))
    session.cwd = meta.get("cwd") if isinstance(meta.get("cwd"), str) else None
    session.is_subagent = "subagent" in fields_of(meta.get("source")) or meta.get("thread_source") == "subagent"
    branch = fields_of(meta.get("git")).get("branch")
    project = PurePath(session.cwd.replace("\\", "/")).name if session.cwd else ""
    named = [project, f"branch:{branch}" if isinstance(branch, str) and branch != "HEAD" else ""]
    session.tags = tuple(each[:100] for each in named if each)


def told_of_item(item: Fields, session: Rollout) -> tuple[str, list[tuple[str, str]]]:
    """Return an item of the conversation as text, and the files and commits it names."""
    match item.get("type"):
        case "message" if item.get("role") in SPOKEN:
            return spoken(text_of_parts(item.get("content"), kinds=CONTENT), str(item["role"])), []
        case "function_call" | "custom_tool_call" | "local_shell_call":
            return told_of_tool(item, session)
        case "function_call_output" | "custom_tool_call_output":
            output = text_of_output(item.get("output"))
            told = failed(output)
            return told, produced(output) if item.get("call_id") in session.committing else []
        case "web_search_call":
            query = fields_of(item.get("action")).get("query")
            return (f"[web_search: {query}]" if isinstance(query, str) and query else ""), []
        case _:
            return "", []


def spoken(text: str, speaker: str) -> str:
    """Return what somebody said without what the program or an editor put around it."""
    if speaker == "assistant":
        return text
    if CONTEXT.match(text):
        return ""
    if text.startswith(FROM_AN_EDITOR):
        return text.partition(ASKED_IN_AN_EDITOR)[2].strip()
    return text


def told_of_tool(item: Fields, session: Rollout) -> tuple[str, list[tuple[str, str]]]:
    """Return a call of a tool as lines, and the files it writes; a call that commits is awaited."""
    name = str(item.get("name") or "shell")
    given = arguments_of(item)
    patch = str(item.get("input") or given.get("input") or "") if name == "apply_patch" else ""
    command = command_of(given)
    patch = patch or (command if "*** Begin Patch" in command else "")
    if patch:
        files = [relative(path.strip(), session.cwd)[:MOST_OF_A_REFERENCE] for path in PATCHED.findall(patch)]
        return (f"[apply_patch: {', '.join(files[:MOST_FILES])}]" if files else ""), [("file", path) for path in files]
    if name == "update_plan":
        return told_of_plan(given, session), []
    if COMMITS.search(command):
        session.committing.add(str(item.get("call_id")))
    told = {"description": given.get("justification"), "command": command} if command else given
    return "\n".join(told_of_call(name, told, session.cwd)), []


def arguments_of(item: Fields) -> Fields:
    """Return what a tool was given: JSON in a text, or of a shell the action it is to take."""
    if isinstance(item.get("arguments"), str):
        try:
            return fields_of(json.loads(item["arguments"]))
        except (ValueError, RecursionError):
            return {}
    return fields_of(item.get("action"))


def command_of(given: Fields) -> str:
    """Return the command a shell was given, without the shell it is wrapped in; nothing for other tools."""
    command = given.get("command") or given.get("cmd")
    words = [str(word) for word in list_of(command)]
    if words[:1] and PurePath(words[0]).name in SHELLS and len(words) > 2:  # noqa: PLR2004 (bash -lc COMMAND)
        return words[2]
    return shlex.join(words) if words else command if isinstance(command, str) else ""


def told_of_plan(given: Fields, session: Rollout) -> str:
    """Return a plan when it is made or changed; nothing when only a step of it was done."""
    steps = [str(fields_of(step).get("step") or "").strip() for step in list_of(given.get("plan"))]
    plan = "; ".join(filter(None, steps))
    if not plan or plan in session.plans:
        return ""
    session.plans.add(plan)
    return f"Plan: {plan}"


def text_of_output(output: object) -> str:
    """Return the output of a tool, which older versions wrapped in JSON with the exit code."""
    text = output if isinstance(output, str) else text_of_parts(output)
    if not text.startswith("{"):
        return text
    try:
        wrapped = fields_of(json.loads(text))
    except (ValueError, RecursionError):
        return text
    code = fields_of(wrapped.get("metadata")).get("exit_code", 0)
    return f"Exit code: {code}\n{wrapped.get('output', '')}" if "output" in wrapped else text


def failed(output: str) -> str:
    """Return what a failed call said, the beginning of it; nothing of those that went well."""
    code = EXIT_CODE.search(output)
    if not code or (code[1] or code[2]) == "0":
        return ""
    line = " ".join(output[code.end() :].split()).removeprefix("Output: ")[:MOST_OF_AN_ERROR]
    return f"[failed: {line}]" if line else ""


def is_codex(fields: Fields) -> bool:
    """Tell whether a line is one of a session of Codex."""
    if fields.get("type") in ENVELOPES:
        return isinstance(fields.get("payload"), Mapping) and "timestamp" in fields
    return fields.get("record_type") == "state" or {"id", "timestamp", "instructions"} <= set(fields)
