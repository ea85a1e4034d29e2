"""Sessions of coding agents, of Claude Code, Codex and Gemini CLI, to episodes."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.imports.import_files import (
    ImportedSession,
    ImportItem,
    Message,
    ReaderState,
    episodes_of,
    read_messages,
    read_value,
    text_of_parts,
)
from nous_online.interfaces.imports.records import Fields, fields_of, imported_moment, json_object, list_of
from nous_online.interfaces.projects import project_of_session

SPOKEN = ("user", "assistant")
SUBAGENTS = "messages of subagents"
REPEATED = "messages that an earlier session holds too"
SHOWN_INPUTS = ("description", "command", "pattern", "query", "url", "prompt")
"""Inputs of a tool that say what a call was for, the best first."""
MAX_INPUT_CHARACTERS, MAX_ERROR_CHARACTERS = 200, 300
MAX_REFERENCE_CHARACTERS = 200
SUBJECT = re.compile(r"""(?:-[a-z]*m|--message|--title|-t)[ =](?:"\$\(cat <<-?['"]?\w+['"]?\s*|["'])([^\n"]{4,200})""")
QUOTES = " \"'"
ASKING, PLANNING = "AskUserQuestion", "ExitPlanMode"
COMMITS = re.compile(r"\bgit commit\b|\bgh pr create\b")
COMMITTED = re.compile(r"^\[[\w./-]{1,100}(?: \(root-commit\))? ([0-9a-f]{7,40})\] ", re.MULTILINE)
PULL_REQUEST = re.compile(r"https://[\w.-]{1,100}/[\w.-]{1,100}/[\w.-]{1,100}/pull/\d{1,9}\b")
Artifacts = list[tuple[str, str]]
"""Pairs of a kind and what names the artifact: a path, a hash, an address."""


@dataclass
class CodingSession(ImportedSession):
    """A session of a coding agent while it is read."""

    cwd: str | None = None
    began_at: datetime | None = None
    is_subagent: bool = False
    """Another session started it, and tells what came of it."""
    is_begun: bool = False
    """Something was said in it before the reader's place."""
    committing: set[str] = field(default_factory=set[str])
    """The ids of tool calls that commit or open a pull request: their results name what came of it."""
    asking: set[str] = field(default_factory=set[str])
    """The ids of tool calls that ask the user something: their results are what the user decided."""
    plans: set[str] = field(default_factory=set[str])
    """The plans so far: Codex repeats the whole plan with every step that is done."""

    def begin_in(self, folder: object, remote: str = "") -> None:
        """Set the project to that of a folder, unless the session has begun in another."""
        if self.project_id is None and isinstance(folder, str) and folder:
            self.project_id = project_of_session(folder, remote)


def call_lines(name: str, call: Fields, cwd: object) -> list[str]:
    """Return a tool call as lines: what it was for, and the plan, commit or pull request in it."""
    if name == PLANNING and isinstance(call.get("plan"), str):
        plan = call["plan"].strip()
        return ["Plan:", plan] if plan.startswith("#") else [f"Plan: {plan}"]
    path = call.get("file_path") or call.get("notebook_path") or call.get("path")
    inputs = (str(call[each]) for each in SHOWN_INPUTS if call.get(each))
    shown = relative_path(path, cwd) if isinstance(path, str) else next(inputs, "")
    shown = " ".join(shown.split())[:MAX_INPUT_CHARACTERS]
    lines = [f"[{name}: {shown}]"] if shown and name != ASKING else []
    command = str(call.get("command", ""))
    if COMMITS.search(command) and (subject := SUBJECT.search(command)):
        what = "Pull request" if "gh pr create" in command else "Commit"
        lines.append(f"{what}: {subject[1].strip(QUOTES)}")
    return lines


def relative_path(path: str, cwd: object) -> str:
    """Return a path relative to the folder a session works in; one outside of it is returned as it is."""
    for separator in ("/", "\\"):
        if isinstance(cwd, str) and cwd and path.startswith(cwd.rstrip(separator) + separator):
            return path[len(cwd.rstrip(separator)) + 1 :]
    return path


def artifacts_in(output: str) -> Artifacts:
    commits = [("commit", match[1]) for match in COMMITTED.finditer(output)]
    return commits + [("pr", match[0]) for match in PULL_REQUEST.finditer(output)]


def new_messages(
    session: CodingSession,
    state: ReaderState,
    message_of: Callable[[Fields, CodingSession], Message | None],
    said_of: Callable[[Fields, Message], str],
) -> Iterator[Message]:
    """Yield the messages of a session that no session read before holds; `said_of` returns what identifies one."""
    for line, message in read_messages(session, session.read_lines(), lambda each: message_of(each, session)):
        said = said_of(line, message).encode("utf-8", "replace")
        if state.seen.is_new(said, within=f"{session.program} messages"):
            session.is_begun = True
            yield message
        else:
            session.left_out[REPEATED] += 1


def tags_of(project: str, branch: object) -> tuple[str, ...]:
    """Return the tags of a place: its project, and its branch unless that is unknown or detached."""
    named = f"branch:{branch}" if isinstance(branch, str) and branch not in ("", "HEAD") else ""
    return tuple(each[:100] for each in (project, named) if each)


def failure_line(error: str) -> list[str]:
    line = " ".join(error.split())[:MAX_ERROR_CHARACTERS]
    return [f"[failed: {line}]"] if line else []


def by_age(path: Path) -> tuple[float, str]:
    """Sort files by when they were last written: a session that is taken up again copies an earlier one."""
    try:
        return path.stat().st_mtime, path.name
    except OSError:
        return 0.0, path.name


# --- Claude Code: one session a JSONL file ---

TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
KNOWN_TYPES = frozenset((
    *SPOKEN, *TITLES, "system", "progress", "attachment", "file-history-snapshot", "queue-operation", "last-prompt",
))  # fmt: skip
EDITING = {"Edit": "file_path", "MultiEdit": "file_path", "Write": "file_path", "NotebookEdit": "notebook_path"}
BOOKKEEPING = (
    "<local-command-", "<command-name>", "<command-message>", "<bash-", "[Request interrupted",
    "Operation stopped by hook:", "Stop hook feedback:",
)  # fmt: skip
"""How texts of the user begin that the program wrote."""
REMINDER = re.compile(
    r"<(system-reminder|task-notification|ide_(?:opened_file|selection|diagnostics))>.*?(?:</\1>|\Z)"
    r"(?:\s*(?:Read the output file to retrieve the result|Full transcript available at): \S+)?",
    re.DOTALL,
)
ANSWERED = re.compile(r'"([^"\n]{1,400})"="([^"\n]{1,400})"')
PERMITTING = re.compile(
    r"\b(?:(?:should|shall|may|can) i|(?:want|like) me to|how would you like|you like to do|proceed|next|currently"
    r"|ready|commit|push|merge|branch(?:es)?|PR|more questions|discuss|hm+)\b"
    r"|コミット|マージ|ブランチ|커밋|머지|진행|提交|推送|合并"
    r"|- (?:you decide\b|.*\?\Z)",
    re.IGNORECASE,
)
"""A question for leave to go on, or one that the user leaves open: its answer decides nothing that lasts."""
ENDS_INSIDE = re.compile(r"(?<![.?!…])[.?!…]++\s++|(?<![。！？])[。！？]++\s*+(?=.)")  # noqa: RUF001 — full-width marks
OBJECTED = re.compile(r"the user said:\s*(.+)", re.DOTALL)
SUMMARY_PART = re.compile(
    r"^\d\. (Primary Request and Intent|Key Technical Concepts|Files and Code Sections|Errors and fixes|Problem Solving"
    r"|All user messages|Pending Tasks|Current Work|Optional Next Step):?[ \t]*$",
    re.MULTILINE | re.IGNORECASE,
)
"""The heading of a part of the summary that takes the place of a session too long for the model's context."""
PASSING_PARTS = frozenset({"all user messages", "pending tasks", "current work", "optional next step"})
ASKED_PARTS = frozenset({"primary request and intent"})


def read_claude_code(path: Path, state: ReaderState) -> Iterator[ImportItem]:
    session = CodingSession(path, "claude-code")
    yield from episodes_of(session, new_messages(session, state, claude_message, lambda _, said: said.id), state)


def claude_message(fields: Fields, session: CodingSession) -> Message | None:
    """Return the message of a line; None for bookkeeping, a subagent's message and a title, which the session keeps."""
    kind = fields.get("type")
    if not isinstance(kind, str):
        raise InvalidInput("the line has no type; a transcript of Claude Code has one on every line")
    if kind in TITLES:
        title = fields.get(TITLES[kind])
        session.title = title if isinstance(title, str) and title.strip() else session.title
        return None
    if kind not in SPOKEN or (fields.get("isMeta") is True and fields.get("isCompactSummary") is not True):
        return None
    if fields.get("isApiErrorMessage") is True:  # "You've hit your limit": the program's words in the assistant's name
        return None
    if fields.get("isSidechain") is True:
        session.left_out[SUBAGENTS] += 1
        return None
    return claude_spoken(fields, kind, session)


def claude_spoken(fields: Fields, speaker: str, session: CodingSession) -> Message | None:
    """Return a message of the user or the assistant; raise `InvalidInput` if it has no id, date or content."""
    said, message_id = fields_of(fields.get("message")), fields.get("uuid")
    said_at = imported_moment("timestamp", fields.get("timestamp"))
    if not said or not isinstance(message_id, str) or said_at is None:
        raise InvalidInput("a message needs `uuid`, `timestamp` and `message`")
    if isinstance(fields.get("sessionId"), str):
        session.id = session.id or fields["sessionId"]
    content, cwd = said.get("content"), fields.get("cwd")
    if not isinstance(content, str | list):
        raise InvalidInput(f"the content of a message must be text or a list, got {type(content).__name__}")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list_of(said["content"])
    lines, artifacts = claude_blocks(blocks, cwd=cwd, session=session)
    if fields.get("isCompactSummary") is True:
        speaker, lines = "assistant", [lasting_parts("\n".join(lines), is_begun=session.is_begun)]
    if not any(lines) and not artifacts:
        return None
    session.begin_in(cwd)
    project = (PureWindowsPath(cwd) if "\\" in cwd else PurePosixPath(cwd)).name if isinstance(cwd, str) else ""
    tags = tags_of(project, fields.get("gitBranch"))
    return Message(message_id, said_at, speaker, "\n".join(lines), tuple(artifacts), tags)


def lasting_parts(summary: str, *, is_begun: bool) -> str:
    """Return the parts of a session's summary that last: not what it was about to do, which comes next.

    If the session has messages before the summary, what the user asked for is in those.
    """
    heads = [*SUMMARY_PART.finditer(summary)]
    if not heads:
        return summary
    ends = [*(head.start() for head in heads[1:]), len(summary)]
    passing = PASSING_PARTS | ASKED_PARTS if is_begun else PASSING_PARTS
    parts = [(head[1].casefold(), summary[head.start() : end]) for head, end in zip(heads, ends, strict=True)]
    return "\n".join(part.strip() for name, part in parts if name not in passing)


def claude_blocks(blocks: Sequence[object], *, cwd: object, session: CodingSession) -> tuple[list[str], Artifacts]:
    """Return the blocks of a message as lines, and the artifacts they name."""
    lines: list[str] = []
    artifacts: Artifacts = []
    for block in blocks:
        match block:
            case {"type": "text", "text": str() as text}:
                plain = REMINDER.sub("", text).strip()
                lines += [plain] if plain and not plain.startswith(BOOKKEEPING) else []
            case {"type": "tool_use", "name": str() as name}:
                call, call_id = fields_of(fields_of(block).get("input")), str(fields_of(block).get("id"))
                lines += call_lines(name, call, cwd)
                path = call.get(EDITING.get(name, ""))
                reference = relative_path(path, cwd) if isinstance(path, str) else ""
                artifacts += [("file", reference)] if 0 < len(reference) <= MAX_REFERENCE_CHARACTERS else []
                if COMMITS.search(str(call.get("command", ""))):
                    session.committing.add(call_id)
                elif name == ASKING:
                    session.asking.add(call_id)
            case {"type": "tool_result"}:
                shown, produced = claude_result(fields_of(block), session)
                lines += shown
                artifacts += produced
            case _:
                continue
    return lines, artifacts


def claude_result(result: Fields, session: CodingSession) -> tuple[list[str], Artifacts]:
    """Return the lines of a tool's result and the artifacts it names: only an error, a commit or an answer is shown.

    A call that the user refused with an objection counts as an error.
    """
    call_id, text = result.get("tool_use_id"), text_of_parts(result.get("content"))
    lines: list[str] = []
    if result.get("is_error") is True:
        objection = OBJECTED.search(text)
        lines += [objection[1].strip()] if objection else failure_line(text)
    if call_id in session.asking:
        for asked, answer in ANSWERED.findall(text):
            # One clause: the answer is read with it.
            topic = ENDS_INSIDE.sub("; ", asked.strip()).rstrip("?!.\uff1f\uff01\u3002 ")
            is_lasting = not PERMITTING.search(f"{asked} - {answer}")
            lines.append(
                f"Decision: {topic} - {answer.rstrip('.')}." if is_lasting else f"{asked} {answer.rstrip('.')}."
            )
    return lines, artifacts_in(text) if call_id in session.committing else []


def is_claude_code(fields: Fields) -> bool:
    kind = fields.get("type")
    has_place = "sessionId" in fields or "leafUuid" in fields or "messageId" in fields
    return isinstance(kind, str) and (kind in KNOWN_TYPES or "uuid" in fields) and has_place


# --- Codex: one session a JSONL file, which it calls a rollout ---

ENVELOPES = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"})
CONTENT = ("input_text", "output_text", "text")
CONTEXT = re.compile(
    r"\A(?:<[a-z]+(?:_[a-z]+)+>|<(?:permissions|user|collaboration)[ _-][a-z -]*>|<INSTRUCTIONS>|<skill>|# AGENTS\.md )"
)
"""How a message begins that the program sends to the model in the user's name."""
FROM_AN_EDITOR, ASKED_IN_AN_EDITOR = "# Context from my IDE setup", "## My request for Codex:"
SHELLS = ("bash", "sh", "zsh")
PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.{1,500})$", re.MULTILINE)
EXIT_CODE = re.compile(r"\A(?:Exit code|Process exited with code):? (-?\d+)|\nProcess exited with code (-?\d+)")
MAX_FILES_SHOWN = 20


def read_codex(path: Path, state: ReaderState) -> Iterator[ImportItem]:
    session = CodingSession(path, "codex")

    def said(line: Fields, message: Message) -> str:
        # A forked session copies an earlier one: the ids are new, its time, speaker and text are not.
        return f"{line.get('timestamp') or message.id}\n{message.speaker}\n{message.text}"

    yield from episodes_of(session, new_messages(session, state, codex_message, said), state)


def codex_message(line: Fields, session: CodingSession) -> Message | None:
    """Return the message of a line; None for bookkeeping and for the head of the session, which the session keeps."""
    kind, payload = line.get("type"), fields_of(line.get("payload"))
    if kind not in ENVELOPES:  # before September 2025 items had no envelope and no date
        kind, payload = ("response_item", line) if isinstance(kind, str) else ("session_meta", line)
    if kind == "session_meta":
        keep_codex_head(session, payload)
        return None
    said_at = imported_moment("timestamp", line.get("timestamp")) or session.began_at
    if kind == "compacted":
        text, artifacts, speaker = str(payload.get("message") or ""), [], "assistant"
    elif kind == "response_item":
        speaker = str(payload.get("role") or "assistant")
        text, artifacts = codex_item(payload, session)
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


def keep_codex_head(session: CodingSession, head: Fields) -> None:
    """Keep what the first head in a file says; a second is that of the session it was forked from."""
    if session.id or not isinstance(head.get("id"), str):
        return
    session.id = head["id"]
    session.began_at = imported_moment("timestamp", head.get("timestamp"))
    session.cwd = head.get("cwd") if isinstance(head.get("cwd"), str) else None
    session.is_subagent = "subagent" in fields_of(head.get("source")) or head.get("thread_source") == "subagent"
    project = PurePath(session.cwd.replace("\\", "/")).name if session.cwd else ""
    git = fields_of(head.get("git"))
    session.tags = tags_of(project, git.get("branch"))
    session.begin_in(session.cwd, str(git.get("repository_url") or ""))


def codex_item(item: Fields, session: CodingSession) -> tuple[str, Artifacts]:
    """Return an item of the conversation as text, and the files, commits and pull requests it names."""
    match item.get("type"):
        case "message" if item.get("role") in SPOKEN:
            text = text_of_parts(item.get("content"), kinds=CONTENT)
            if item["role"] == "user" and CONTEXT.match(text):
                text = ""
            elif item["role"] == "user" and text.startswith(FROM_AN_EDITOR):
                text = text.partition(ASKED_IN_AN_EDITOR)[2].strip()
            return text, []
        case "function_call" | "custom_tool_call" | "local_shell_call":
            return codex_call(item, session)
        case "function_call_output" | "custom_tool_call_output":
            output = codex_output(item.get("output"))
            code, error = EXIT_CODE.search(output), ""
            if code and (code[1] or code[2]) != "0":
                error = " ".join(output[code.end() :].split()).removeprefix("Output: ")
            artifacts = artifacts_in(output) if item.get("call_id") in session.committing else []
            return "".join(failure_line(error)), artifacts
        case "web_search_call":
            query = fields_of(item.get("action")).get("query")
            return (f"[web_search: {query}]" if isinstance(query, str) and query else ""), []
        case _:
            return "", []


def codex_call(item: Fields, session: CodingSession) -> tuple[str, Artifacts]:
    """Return a tool call as lines, and the files it writes; the session keeps the id of a call that commits."""
    name = str(item.get("name") or "shell")
    given = json_object(item["arguments"]) if isinstance(item.get("arguments"), str) else fields_of(item.get("action"))
    # Later versions call tools from JavaScript: exec_command({cmd:"git commit -m \\"…\\""}).
    script = item.get("input") if name != "apply_patch" and isinstance(item.get("input"), str) else ""
    command = shell_command(given) or str(script).replace("\\n", "\n").replace('\\"', '"')
    patch = str(item.get("input") or given.get("input") or "") if name == "apply_patch" else ""
    patch = patch or (command if "*** Begin Patch" in command else "")
    if paths := [relative_path(each.strip(), session.cwd) for each in PATCHED.findall(patch)]:
        files = [path[:MAX_REFERENCE_CHARACTERS] for path in paths]
        return f"[apply_patch: {', '.join(files[:MAX_FILES_SHOWN])}]", [("file", path) for path in files]
    if name == "update_plan":
        steps = [str(fields_of(step).get("step") or "").strip() for step in list_of(given.get("plan"))]
        plan = "; ".join(filter(None, steps))
        is_new = bool(plan) and plan not in session.plans
        session.plans.add(plan)
        return (f"Plan: {plan}" if is_new else ""), []
    if COMMITS.search(command):
        session.committing.add(str(item.get("call_id")))
    inputs = {"description": given.get("justification"), "command": command} if command else given
    return "\n".join(call_lines(name, inputs, session.cwd)), []


def shell_command(given: Fields) -> str:
    """Return the command that a shell was given, without `bash -lc` before it; an empty text for other tools."""
    command = given.get("command") or given.get("cmd")
    words = [str(word) for word in list_of(command)]
    if words[:1] and PurePath(words[0]).name in SHELLS and len(words) > 2:  # noqa: PLR2004 (bash -lc COMMAND)
        return words[2]
    return shlex.join(words) if words else command if isinstance(command, str) else ""


def codex_output(output: object) -> str:
    """Return the output of a tool, which older versions wrapped in JSON with the exit code."""
    text = output if isinstance(output, str) else text_of_parts(output)
    wrapped = json_object(text)
    if "output" not in wrapped:
        return text
    code = fields_of(wrapped.get("metadata")).get("exit_code", 0)
    return f"Exit code: {code}\n{wrapped['output']}"


def is_codex(fields: Fields) -> bool:
    if fields.get("type") in ENVELOPES:
        return isinstance(fields.get("payload"), Mapping) and "timestamp" in fields
    return fields.get("record_type") == "state" or {"id", "timestamp", "instructions"} <= set(fields)


# --- Gemini CLI: one object with the messages of a session, or in later versions one a line ---

GEMINI_KINDS = ("user", "gemini", "info", "error", "warning")
GEMINI_SPEAKERS = {"user": "user", "gemini": "assistant"}
NOT_SAID = ("/", "?", "<session_context>", "<hook_context>")
"""How messages of the user begin that are commands, or that the program wrote."""
SUBAGENT_PROMPTS = (
    "Your task is to do a deep investigation of the codebase", "You have exceeded the maximum number of turns",
)  # fmt: skip
"""How a program prompts a subagent in the user's name; older versions do not mark the session as a subagent's."""
WRITING = ("write_file", "replace", "edit")
PROJECT_HASH = re.compile(r"\A[0-9a-f]{64}\Z")


def read_gemini(path: Path, state: ReaderState) -> Iterator[ImportItem]:
    session = CodingSession(path, "gemini")
    if path.suffix == ".jsonl":
        lines = session.read_lines()
    else:  # the one object of an older file
        value, end = read_value(path)
        lines = iter([fields_of(value)])
        session.at = ImportItem(len(list_of(fields_of(value).get("messages"))), end)
    # Messages are known once the whole file is read: a line may change an earlier one, or take back all after it.
    messages = read_messages(session, gemini_entries(session, lines), partial(gemini_message, session=session))
    yield from episodes_of(session, (message for _, message in messages), state)


def gemini_entries(session: CodingSession, lines: Iterator[Fields]) -> Iterator[Fields]:
    """Yield the messages of a session as they were at its end."""
    messages: dict[str, Fields] = {}
    for line in lines:
        if isinstance(line.get("$rewindTo"), str):
            names = list(messages)
            after = names.index(line["$rewindTo"]) if line["$rewindTo"] in messages else 0
            messages = {name: messages[name] for name in names[:after]}
        elif isinstance(line.get("id"), str):
            messages[line["id"]] = line
        else:
            head = fields_of(line.get("$set")) or line
            keep_gemini_head(session, head)
            if isinstance(head.get("messages"), list):
                listed = [fields_of(each) for each in head["messages"]]
                messages = {str(each["id"]): each for each in listed if isinstance(each.get("id"), str)}
    yield from messages.values()


def keep_gemini_head(session: CodingSession, head: Fields) -> None:
    """Keep the id of a session, its summary as its title, and the project it belongs to."""
    session.id = str(head.get("sessionId") or session.id)
    summary = head.get("summary")
    session.title = summary if isinstance(summary, str) and summary.strip() else session.title
    session.is_subagent = session.is_subagent or head.get("kind") == "subagent"
    folders = [each for each in list_of(head.get("directories")) if isinstance(each, str)]
    session.cwd = session.cwd or (folders[0] if folders else None)
    session.begin_in(session.cwd)
    # Without folders the project is the one in the file's own path: tmp/PROJECT/chats/session.json.
    project = Path(session.cwd) if session.cwd else session.path.absolute().parent.parent
    is_known = session.cwd or session.path.parent.name == "chats"
    if is_known and not PROJECT_HASH.match(project.name):
        session.tags = (project.name[:100],)


def gemini_message(fields: Fields, session: CodingSession) -> Message | None:
    """Return a message; None for one of the program or of a subagent, and for one without text and tool calls."""
    speaker = GEMINI_SPEAKERS.get(str(fields.get("type")))
    if speaker is None:
        return None
    text = text_of_parts(fields.get("displayContent") or fields.get("content"))
    session.is_subagent = session.is_subagent or (speaker == "user" and text.startswith(SUBAGENT_PROMPTS))
    if session.is_subagent:
        session.left_out[SUBAGENTS] += 1
        return None
    said_at = imported_moment("timestamp", fields.get("timestamp"))
    if said_at is None:
        raise InvalidInput("a message needs a `timestamp`")
    lines = [] if not text or (speaker == "user" and text.startswith(NOT_SAID)) else [text]
    artifacts: Artifacts = []
    for call in map(fields_of, list_of(fields.get("toolCalls"))):
        shown, named = gemini_call(call, session)
        lines += shown
        artifacts += named
    if not lines and not artifacts:
        return None
    return Message(str(fields["id"]), said_at, speaker, "\n".join(lines), tuple(artifacts))


def gemini_call(call: Fields, session: CodingSession) -> tuple[list[str], Artifacts]:
    """Return a tool call and its error as lines, and the files, commits and pull requests it names."""
    name, given = str(call.get("name") or "tool"), fields_of(call.get("args"))
    path = given.get("file_path") or given.get("absolute_path") or given.get("path") or given.get("dir_path")
    lines = call_lines(name, {**given, "path": path} if isinstance(path, str) else given, session.cwd)
    answers = [
        fields_of(fields_of(part).get("functionResponse")).get("response") for part in list_of(call.get("result"))
    ]
    texts = [fields_of(answer).get("output") or fields_of(answer).get("error") or "" for answer in answers]
    output = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in texts)
    if call.get("status") == "error":
        return [*lines, *failure_line(str(call.get("resultDisplay") or output))], []
    if name in WRITING and isinstance(path, str):
        return lines, [("file", relative_path(path, session.cwd)[:MAX_REFERENCE_CHARACTERS])]
    return lines, artifacts_in(output) if COMMITS.search(str(given.get("command", ""))) else []


def is_gemini(fields: Fields) -> bool:
    return isinstance(fields.get("projectHash"), str) and "sessionId" in fields


def is_gemini_message(fields: Fields) -> bool:
    return fields.get("type") in GEMINI_KINDS and {"id", "timestamp", "content"} <= set(fields)
