"""Transcripts of Claude Code, one session a JSONL file, to episodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.imports.import_files import ImportItem, ReaderState, fields_of, list_of, objects_of_lines
from nous_online.interfaces.imports.records import imported_moment
from nous_online.interfaces.imports.sessionize import Message, SessionRead, items_of_session

SPOKEN = ("user", "assistant")
TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
KNOWN_TYPES = frozenset((
    *SPOKEN, *TITLES, "system", "progress", "attachment", "file-history-snapshot", "queue-operation", "last-prompt",
))  # fmt: skip
SUBAGENTS = "messages of subagents"
REPEATED = "messages that an earlier session holds too"
EDITING = {"Edit": "file_path", "MultiEdit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}
TOLD_INPUTS = ("description", "command", "pattern", "query", "url", "prompt")
MOST_OF_AN_INPUT, MOST_OF_AN_ERROR = 200, 300
MAX_REFERENCE_CHARACTERS = 200
BOOKKEEPING = ("<local-command-", "<command-name>", "<command-message>", "<bash-stdout>", "[Request interrupted")
REMINDER = re.compile(
    r"<(system-reminder|task-notification)>.*?(?:</\1>|\Z)(?:\s*Read the output file to retrieve the result: \S+)?",
    re.DOTALL,
)
SUBJECT = re.compile(r"""(?:-[a-z]*m|--message|--title|-t)[ =](?:"\$\(cat <<-?['"]?\w+['"]?\s*|["'])([^\n"]{4,200})""")
QUOTES = " \"'"
ANSWERED = re.compile(r'"([^"\n]{1,400})"="([^"\n]{1,400})"')
OBJECTED = re.compile(r"the user said:\s*(.+)", re.DOTALL)
ASKING, PLANNING = "AskUserQuestion", "ExitPlanMode"
COMMITS = re.compile(r"\bgit commit\b|\bgh pr create\b")
COMMITTED = re.compile(r"^\[[\w./-]{1,100}(?: \(root-commit\))? ([0-9a-f]{7,40})\] ", re.MULTILINE)
PULL_REQUEST = re.compile(r"https://[\w.-]{1,100}/[\w.-]{1,100}/[\w.-]{1,100}/pull/\d{1,9}\b")
SUMMARY_PART = re.compile(
    r"^\d\. (Primary Request and Intent|Key Technical Concepts|Files and Code Sections|Errors and fixes|Problem Solving"
    r"|All user messages|Pending Tasks|Current Work|Optional Next Step):?[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
"""The parts of a summary that Claude Code goes on with when there is no more room for the session itself."""
PASSING_PARTS = frozenset({"all user messages", "pending tasks", "current work", "optional next step"})
ASKED_PARTS = frozenset({"primary request and intent"})
Fields = Mapping[str, Any]


@dataclass
class CodingSession(SessionRead):
    """A session of Claude Code while it is read."""

    asking: set[str] = field(default_factory=set[str])
    """The ids of tool calls that ask the user something: their results are what the user decided."""
    is_begun: bool = False
    """Something was said in it before the line the reader stands at."""

    def await_result(self, tool: str, call: Fields, call_id: str) -> None:
        """Keep the id of a call whose result says what came of it, or what the user decided."""
        if COMMITS.search(str(call.get("command", ""))):
            self.committing.add(call_id)
        elif tool == ASKING:
            self.asking.add(call_id)


def items_of_sessions(path: Path, reading: ReaderState) -> Iterator[ImportItem]:
    """Yield the episodes of a session, and what was wrong with some of its lines."""
    session = CodingSession(path, "claude-code")
    yield from items_of_session(session, messages_of(session, reading), reading)


def messages_of(session: CodingSession, reading: ReaderState) -> Iterator[Message]:
    """Yield what was said in a session, each message of all sessions once, keeping its problems and its title."""
    for place, fields in objects_of_lines(session.path):
        session.at = place
        if place.problem:
            session.problems.append(place)
        if fields is None:
            continue
        try:
            message = message_of(fields, session)
        except InvalidInput as error:
            session.note_problem(str(error))
            continue
        if message and not reading.seen.is_new(message.id.encode(), within="claude-code messages"):
            session.left_out[REPEATED] += 1
        elif message:
            session.is_begun = True
            yield message


def message_of(fields: Fields, session: CodingSession) -> Message | None:
    """Return what a line says; None where it is bookkeeping, of a subagent, or a title, which is kept."""
    kind = fields.get("type")
    if not isinstance(kind, str):
        raise InvalidInput("the line has no type; a transcript of Claude Code has one on every line")
    if kind in TITLES:
        title = fields.get(TITLES[kind])
        session.title = title if isinstance(title, str) and title.strip() else session.title
        return None
    if kind not in SPOKEN or (fields.get("isMeta") is True and fields.get("isCompactSummary") is not True):
        return None
    if fields.get("isSidechain") is True:
        session.left_out[SUBAGENTS] += 1
        return None
    return spoken(fields, kind, session)


def spoken(fields: Fields, speaker: str, session: CodingSession) -> Message | None:
    """Return a message of the user or the assistant; raise `InvalidInput` where it has no id, date or content."""
    said, message_id = fields_of(fields.get("message")), fields.get("uuid")
    said_at = imported_moment("timestamp", fields.get("timestamp"))
    if not said or not isinstance(message_id, str) or said_at is None:
        raise InvalidInput("a message needs `uuid`, `timestamp` and `message`")
    if isinstance(fields.get("sessionId"), str):
        session.id = session.id or fields["sessionId"]
    content = said.get("content")
    if not isinstance(content, str | list):
        raise InvalidInput(f"the content of a message must be text or a list, got {type(content).__name__}")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list_of(said["content"])
    told, artifacts = told_in(blocks, cwd=fields.get("cwd"), session=session)
    if fields.get("isCompactSummary") is True:
        speaker, told = "assistant", [lasting_of("\n".join(told), is_begun=session.is_begun)]
    if not any(told) and not artifacts:
        return None
    return Message(message_id, said_at, speaker, "\n".join(told), tuple(artifacts), tuple(place_of(fields)))


def lasting_of(summary: str, *, is_begun: bool) -> str:
    """Return what a summary of the session so far tells that lasts: not what it was about to do, which comes next.

    Where the session began before it, what was asked for is told there.
    """
    heads = [*SUMMARY_PART.finditer(summary)]
    if not heads:
        return summary
    ends = [*(head.start() for head in heads[1:]), len(summary)]
    passing = PASSING_PARTS | ASKED_PARTS if is_begun else PASSING_PARTS
    parts = [(head[1].casefold(), summary[head.start() : end]) for head, end in zip(heads, ends, strict=True)]
    return "\n".join(part.strip() for name, part in parts if name not in passing)


def place_of(fields: Fields) -> Iterator[str]:
    """Yield the project and the branch a message was said in, as tags."""
    branch, project = fields.get("gitBranch"), project_of(fields.get("cwd"))
    if project:
        yield project[:100]
    if isinstance(branch, str) and branch not in ("", "HEAD"):
        yield f"branch:{branch}"[:100]


def project_of(cwd: object) -> str | None:
    """Return the name of the folder a session works in."""
    if not isinstance(cwd, str):
        return None
    return (PureWindowsPath(cwd) if "\\" in cwd else PurePosixPath(cwd)).name or None


def told_in(
    blocks: Sequence[object], *, cwd: object, session: CodingSession
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the lines the blocks of a message come to, and the artifacts they name."""
    told: list[str] = []
    artifacts: list[tuple[str, str]] = []
    for block in blocks:
        match block:
            case {"type": "text", "text": str() as text}:
                told += said_by_people(text)
            case {"type": "tool_use", "name": str() as name}:
                call = fields_of(fields_of(block).get("input"))
                told += told_of_call(name, call, cwd)
                artifacts += edited(name, call, cwd)
                session.await_result(name, call, str(fields_of(block).get("id")))
            case {"type": "tool_result"}:
                result = fields_of(block)
                text = text_of(result.get("content"))
                told += failed(result)
                artifacts += produced(text) if result.get("tool_use_id") in session.committing else []
                told += decided(text) if result.get("tool_use_id") in session.asking else []
            case _:
                continue
    return told, artifacts


def said_by_people(text: str) -> list[str]:
    """Return a text without what the program put around it; nothing where it is all the program's."""
    plain = REMINDER.sub("", text).strip()
    return [plain] if plain and not plain.startswith(BOOKKEEPING) else []


def told_of_call(name: str, call: Fields, cwd: object) -> list[str]:
    """Return a tool call as lines: what it was for, and the plan, the commit or the pull request it states."""
    if name == PLANNING and isinstance(call.get("plan"), str):
        plan = call["plan"].strip()
        return ["Plan:", plan] if plan.startswith("#") else [f"Plan: {plan}"]
    command = str(call.get("command", ""))
    what = "Pull request" if "gh pr create" in command else "Commit"
    subjects = (
        [f"{what}: {match[1].strip(QUOTES)}" for match in SUBJECT.finditer(command)] if COMMITS.search(command) else []
    )
    return [*(f"[{name}: {shown}]" for shown in [shown_call(call, cwd)] if shown and name != ASKING), *subjects[:1]]


def shown_call(call: Fields, cwd: object) -> str:
    """Return what of a tool call says what it was for, on one line."""
    path = call.get("file_path") or call.get("notebook_path") or call.get("path")
    told = relative(path, cwd) if isinstance(path, str) else next((call[n] for n in TOLD_INPUTS if call.get(n)), "")
    return " ".join(str(told).split())[:MOST_OF_AN_INPUT]


def edited(tool: str, call: Fields, cwd: object) -> list[tuple[str, str]]:
    """Return the file a tool call writes to."""
    path = call.get(EDITING.get(tool, ""))
    reference = relative(path, cwd) if isinstance(path, str) else ""
    return [("file", reference)] if 0 < len(reference) <= MAX_REFERENCE_CHARACTERS else []


def relative(path: str, cwd: object) -> str:
    """Return a path as seen from where the session works."""
    for separator in ("/", "\\"):
        if isinstance(cwd, str) and cwd and path.startswith(cwd.rstrip(separator) + separator):
            return path[len(cwd.rstrip(separator)) + 1 :]
    return path


def failed(result: Fields) -> list[str]:
    """Return what a failed tool call said, the beginning of it, or what the user said instead of allowing it.

    Of those that went well nothing is told.
    """
    if result.get("is_error") is not True:
        return []
    text = text_of(result.get("content"))
    if objection := OBJECTED.search(text):
        return [objection[1].strip()]
    line = " ".join(text.split())[:MOST_OF_AN_ERROR]
    return [f"[failed: {line}]"] if line else []


def decided(text: str) -> list[str]:
    """Return what the user answered to questions, a line each."""
    return [f"Decision: {asked} {answer}" for asked, answer in ANSWERED.findall(text)]


def produced(text: str) -> list[tuple[str, str]]:
    """Return the commits and pull requests the output of a command names."""
    commits = [("commit", match[1]) for match in COMMITTED.finditer(text)]
    return commits + [("pr", match[0]) for match in PULL_REQUEST.finditer(text)]


def text_of(content: object) -> str:
    """Return the text of a tool's result."""
    if isinstance(content, str):
        return content
    return "\n".join(str(fields_of(block).get("text", "")) for block in list_of(content))


def is_claude_code(fields: Fields) -> bool:
    """Tell whether a line is one of a transcript of Claude Code."""
    kind = fields.get("type")
    has_place = "sessionId" in fields or "leafUuid" in fields or "messageId" in fields
    return isinstance(kind, str) and (kind in KNOWN_TYPES or "uuid" in fields) and has_place


def by_age(path: Path) -> tuple[float, str]:
    """Order files by when they were last written: a session that was taken up again copies what an earlier one held."""
    try:
        return path.stat().st_mtime, path.name
    except OSError:
        return 0.0, path.name
