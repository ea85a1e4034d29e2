"""Agents exported from Letta (`.af`): their memory blocks to facts, what was said to episodes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.imports.import_files import ImportItem, ReaderState, Unread, fields_of, list_of, opened
from nous_online.interfaces.imports.memory_exports import items_of_text
from nous_online.interfaces.imports.records import imported_moment
from nous_online.interfaces.imports.sessionize import Message, SessionRead, items_of_session, text_of_parts

BLOCKS = ("blocks", "core_memory")
SPEAKERS = {"user": "user", "assistant": "assistant", "user_message": "user", "assistant_message": "assistant"}
SENDING = "send_message"
"""The tool by which an older agent says something."""
PROGRAM = ("heartbeat", "login", "system_alert", "bootup", "summary")
Fields = Mapping[str, Any]


def items_of_agents(path: Path, reading: ReaderState) -> Iterator[ImportItem]:
    """Yield the memory blocks of the agents in a file as facts, then what was said with each as episodes."""
    with opened(path) as file:
        unread = Unread(file)
        found = unread.value()
    exported = fields_of(json.loads(found) if isinstance(found, str) else found)  # some exports are JSON in a text
    blocks = [fields_of(block) for name in BLOCKS for block in list_of(exported.get(name))]
    agents = [fields_of(agent) for agent in list_of(exported.get("agents"))] or [exported]
    for number, block in enumerate(blocks, start=1):
        yield from items_of_block(block, ImportItem(number, unread.bytes_read), exported)
    for number, agent in enumerate(agents, start=1):
        session = SessionRead(path, "letta", id=name_of(agent, path, number), title=None, tags=("letta",))
        session.at = ImportItem(len(blocks) + number, unread.bytes_read)
        yield from items_of_session(session, messages_of(agent, session), reading)


def items_of_block(block: Fields, place: ImportItem, exported: Fields) -> Iterator[ImportItem]:
    """Yield the statements of a block as facts, under its label."""
    label, value = str(block.get("label") or "memory"), block.get("value")
    if not isinstance(value, str) or not value.strip():
        return
    said_at = block.get("updated_at") or block.get("created_at") or exported.get("created_at")
    fields = {"learned_at": said_at, "subject": label[:500], "context": label[:500], "source": f"letta:{label}"[:500]}
    yield from items_of_text(value, place, fields, named=f"block:{label}"[:200])


def name_of(agent: Fields, path: Path, number: int) -> str:
    """Return what tells an agent from the others: its name and id, or the file and its place in it."""
    told = [str(agent[name]) for name in ("name", "id") if agent.get(name)]
    return "/".join(told) or f"{path.stem}#{number}"


def messages_of(agent: Fields, session: SessionRead) -> Iterator[Message]:
    """Yield what was said with an agent, without what its program told it."""
    for number, fields in enumerate(map(fields_of, list_of(agent.get("messages"))), start=1):
        speaker = SPEAKERS.get(str(fields.get("role") or fields.get("message_type")))
        text = said_in(fields, str(speaker)) if speaker else ""
        if not speaker or not text:
            continue
        try:
            said_at = imported_moment("created_at", fields.get("created_at") or fields.get("date"))
        except InvalidInput as error:
            session.note_problem(str(error))
            continue
        if said_at is None:
            session.note_problem(f"message {number} of {session.name} has no date")
            continue
        yield Message(f"{session.name}:{fields.get('id') or number}", said_at, speaker, text)


def said_in(fields: Fields, speaker: str) -> str:
    """Return what a message says: a user's text without the JSON around it, of an agent also what it sent by a tool."""
    text = text_of_parts(fields.get("content") or fields.get("text"), kinds=("text",))
    if speaker == "user":
        told = fields_in(text)
        if told.get("type") in PROGRAM:
            return ""
        return str(told["message"]).strip() if isinstance(told.get("message"), str) else text
    sent = [fields_of(fields_of(call).get("function")) for call in list_of(fields.get("tool_calls"))]
    told = [fields_in(str(call.get("arguments") or "")).get("message") for call in sent if call.get("name") == SENDING]
    is_thought = bool(told)  # what an older agent writes beside a call it thinks, and says by the call
    return "\n".join(["" if is_thought else text, *(each for each in told if isinstance(each, str))]).strip()


def fields_in(text: str) -> Fields:
    """Return the fields of a JSON object in a text; none of any other text."""
    if not text.startswith("{"):
        return {}
    try:
        return fields_of(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def is_letta(fields: Fields) -> bool:
    """Tell whether an object is an agent or a memory block of an export."""
    return {"agent_type", "llm_config"} <= set(fields) or {"label", "value", "limit"} <= set(fields)
