"""Sessions of Gemini CLI, an object with its messages or one a line, to episodes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.imports.claude_code import (
    COMMITS,
    MOST_OF_AN_ERROR,
    SUBAGENTS,
    produced,
    relative,
    told_of_call,
)
from nous_online.interfaces.imports.import_files import (
    ImportItem,
    ReaderState,
    Unread,
    fields_of,
    list_of,
    objects_of_lines,
    opened,
)
from nous_online.interfaces.imports.records import imported_moment
from nous_online.interfaces.imports.sessionize import Message, SessionRead, items_of_session, text_of_parts

KINDS = ("user", "gemini", "info", "error", "warning")
SPEAKERS = {"user": "user", "gemini": "assistant"}
NOT_SAID = ("/", "?", "<session_context>", "<hook_context>")
"""How an entry of the user begins that is a command, or was put there by the program."""
SUBAGENT_TOLD = (
    "Your task is to do a deep investigation of the codebase", "You have exceeded the maximum number of turns",
)  # fmt: skip
"""How a program speaks to a subagent in the name of the user, whose session older versions do not mark as one."""
WRITING = ("write_file", "replace", "edit")
HASH = re.compile(r"\A[0-9a-f]{64}\Z")
Fields = Mapping[str, Any]


def items_of_gemini(path: Path, reading: ReaderState) -> Iterator[ImportItem]:
    """Yield the episodes of a session, and what was wrong with some of its messages."""
    session = SessionRead(path, "gemini")
    lines = lines_of_log(session) if path.suffix == ".jsonl" else lines_of_record(session)
    yield from items_of_session(session, messages_of(session, lines), reading)


def lines_of_record(session: SessionRead) -> Iterator[Fields]:
    """Yield the one object of an older session file."""
    with opened(session.path) as file:
        unread = Unread(file)
        fields = fields_of(unread.value())
        session.at = ImportItem(len(list_of(fields.get("messages"))), unread.bytes_read)
    yield fields


def lines_of_log(session: SessionRead) -> Iterator[Fields]:
    """Yield the objects of a session file that was written line by line."""
    for place, line in objects_of_lines(session.path):
        session.at = place
        if place.problem:
            session.problems.append(place)
        if line is not None:
            yield line


def messages_of(session: SessionRead, lines: Iterator[Fields]) -> Iterator[Message]:
    """Yield what was said, as it stood at the end: a line may change a message, and take back what came after one."""
    messages: dict[str, Fields] = {}
    for line in lines:
        if isinstance(line.get("$rewindTo"), str):
            names = list(messages)
            after = names.index(line["$rewindTo"]) if line["$rewindTo"] in messages else 0
            messages = {name: messages[name] for name in names[:after]}
        elif isinstance(line.get("id"), str):
            messages[line["id"]] = line
        else:
            told = fields_of(line.get("$set")) or line
            keep_known(session, told)
            if isinstance(told.get("messages"), list):
                listed = [fields_of(each) for each in told["messages"]]
                messages = {str(each["id"]): each for each in listed if isinstance(each.get("id"), str)}
    for fields in messages.values():
        try:
            message = message_of(fields, session)
        except InvalidInput as error:
            session.note_problem(str(error))
            continue
        if message:
            yield message


def keep_known(session: SessionRead, fields: Fields) -> None:
    """Keep what an object says of its session: its id, a summary as its title, and which project it belongs to."""
    session.id = str(fields.get("sessionId") or session.id)
    summary = fields.get("summary")
    session.title = summary if isinstance(summary, str) and summary.strip() else session.title
    session.is_subagent = session.is_subagent or fields.get("kind") == "subagent"
    folders = [each for each in list_of(fields.get("directories")) if isinstance(each, str)]
    session.cwd = session.cwd or (folders[0] if folders else None)
    place = Path(session.cwd) if session.cwd else session.path.absolute().parent.parent
    is_known = session.cwd or session.path.parent.name == "chats"
    if is_known and not HASH.match(place.name):
        session.tags = (place.name[:100],)


def message_of(fields: Fields, session: SessionRead) -> Message | None:
    """Return what a message says; None where the program or a subagent speaks, or nobody does."""
    speaker = SPEAKERS.get(str(fields.get("type")))
    if speaker is None:
        return None
    text = text_of_parts(fields.get("displayContent") or fields.get("content"))
    session.is_subagent = session.is_subagent or (speaker == "user" and text.startswith(SUBAGENT_TOLD))
    if session.is_subagent:
        session.left_out[SUBAGENTS] += 1
        return None
    said_at = imported_moment("timestamp", fields.get("timestamp"))
    if said_at is None:
        raise InvalidInput("a message needs a `timestamp`")
    told = [] if not text or (speaker == "user" and text.startswith(NOT_SAID)) else [text]
    artifacts: list[tuple[str, str]] = []
    for call in map(fields_of, list_of(fields.get("toolCalls"))):
        lines, files = told_of_tool(call, session)
        told += lines
        artifacts += files
    if not told and not artifacts:
        return None
    return Message(str(fields["id"]), said_at, speaker, "\n".join(told), tuple(artifacts))


def told_of_tool(call: Fields, session: SessionRead) -> tuple[list[str], list[tuple[str, str]]]:
    """Return a call of a tool and what a failed one said as lines, and the files, commits and requests it names."""
    name, given = str(call.get("name") or "tool"), fields_of(call.get("args"))
    path = given.get("file_path") or given.get("absolute_path") or given.get("path") or given.get("dir_path")
    told = told_of_call(name, {**given, "path": path} if isinstance(path, str) else given, session.cwd)
    artifacts: list[tuple[str, str]] = []
    if call.get("status") == "error":
        line = " ".join(str(call.get("resultDisplay") or result_of(call)).split())[:MOST_OF_AN_ERROR]
        told += [f"[failed: {line}]"] if line else []
    elif name in WRITING and isinstance(path, str):
        artifacts.append(("file", relative(path, session.cwd)[:200]))
    elif COMMITS.search(str(given.get("command", ""))):
        artifacts += produced(result_of(call))
    return told, artifacts


def result_of(call: Fields) -> str:
    """Return what a tool answered, as text."""
    answers = [
        fields_of(fields_of(part).get("functionResponse")).get("response") for part in list_of(call.get("result"))
    ]
    told = [fields_of(answer).get("output") or fields_of(answer).get("error") or "" for answer in answers]
    return "\n".join(each if isinstance(each, str) else json.dumps(each) for each in told)


def is_gemini(fields: Fields) -> bool:
    """Tell whether an object is the head of a session of Gemini CLI."""
    return isinstance(fields.get("projectHash"), str) and "sessionId" in fields


def is_gemini_message(fields: Fields) -> bool:
    """Tell whether an object is a message of Gemini CLI."""
    return fields.get("type") in KINDS and {"id", "timestamp", "content"} <= set(fields)
