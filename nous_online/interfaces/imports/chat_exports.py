"""The exports of ChatGPT and claude.ai: conversations to episodes, what the program remembered to facts.

An export is complete: unlike the log of a running session, none of its conversations waits for more messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from nous_online.core.errors import InvalidInput
from nous_online.core.validation import is_blank
from nous_online.interfaces.imports.import_files import ImportItem, ReaderState, read_export
from nous_online.interfaces.imports.memory_exports import facts_of_text
from nous_online.interfaces.imports.records import Fields, fields_of, imported_moment, list_of
from nous_online.interfaces.imports.sessionize import ImportedSession, Message, episodes_of, text_of_parts

# --- ChatGPT: conversations.json, or the zip it comes in ---

CONVERSATIONS = "conversations*.json"
MAPPING = "mapping"
MEMORY, INSTRUCTIONS = "chatgpt memory", "chatgpt instructions"
TO_MEMORY = "bio"
"""The tool that ChatGPT calls with what it is to remember."""
ABOUT = ("about_user_message", "about_model_message")
"""What users wrote about themselves and about the answers they want: a hidden message of every conversation."""
SPOKEN = ("user", "assistant")
SAID = ("text", "multimodal_text")


def read_chatgpt(path: Path, state: ReaderState) -> Iterator[ImportItem]:
    """Yield the episodes and the remembered facts of an export, and the problems of its conversations."""
    for place, fields, _ in read_export(
        path, names=[CONVERSATIONS], lists=["conversations"], alone=[MAPPING], program="ChatGPT"
    ):
        if place.problem:
            yield place
            continue
        session = ImportedSession(path, "chatgpt", tags=("chatgpt",), at=place)
        try:
            shown, began_at = read_conversation(fields, session)
            messages = sorted(dated_messages(shown, began_at), key=lambda message: message.said_at)
        except InvalidInput as error:
            yield replace(place, problem=str(error))
            continue
        yield from remembered_facts(shown, place, began_at, state)
        yield from episodes_of(session, messages, replace(state, is_over=True))


def read_conversation(fields: Fields, session: ImportedSession) -> tuple[list[Fields], datetime | None]:
    """Return the messages of a conversation that were shown last, and when it began; keep its id and title.

    Raises `InvalidInput` for anything else than a conversation.
    """
    if not isinstance(fields.get(MAPPING), Mapping):
        raise InvalidInput("a conversation must be an object with a `mapping` of its messages")
    name, title = fields.get("conversation_id") or fields.get("id"), fields.get("title")
    if not isinstance(name, str):
        raise InvalidInput("the conversation has no id; export it again")
    session.id, session.title = name, title if isinstance(title, str) else None
    began_at = imported_moment("create_time", fields.get("create_time"))
    return shown_branch(fields_of(fields[MAPPING]), fields.get("current_node")), began_at


def remembered_facts(
    shown: list[Fields], place: ImportItem, began_at: datetime | None, state: ReaderState
) -> Iterator[ImportItem]:
    """Yield as facts, each once, what ChatGPT was to remember and what users wrote about themselves."""
    for fields in shown:
        moment = imported_moment("create_time", fields.get("create_time")) or began_at
        details: dict[str, Any] = {"learned_at": moment.isoformat() if moment else None, "source": MEMORY}
        hidden = fields_of(fields_of(fields.get("metadata")).get("user_context_message_data"))
        texts = [(str(hidden[name]), INSTRUCTIONS) for name in ABOUT if hidden.get(name)]
        if fields.get("recipient") == TO_MEMORY:
            texts.append((text_of_parts(fields_of(fields.get("content")).get("parts")), MEMORY))
        for text, context in texts:
            if state.seen.is_new(text.encode("utf-8", "replace"), within=context):
                yield from facts_of_text(text, place, {**details, "context": context}, name=context)


def shown_branch(mapping: Fields, current: object) -> list[Fields]:
    """Return the messages that led to the one shown last, oldest first: those that were edited or regenerated are not.

    `mapping` holds the nodes of the conversation by id; `current` is the id of the last one.
    """
    branch: list[Fields] = []
    passed: set[str] = set()  # a damaged export may hold a cycle
    here = current if isinstance(current, str) and current in mapping else latest_leaf(mapping)
    while isinstance(here, str) and here not in passed and isinstance(mapping.get(here), Mapping):
        passed.add(here)
        node = fields_of(mapping[here])
        if isinstance(node.get("message"), Mapping):
            branch.append({**node["message"], "node": here})
        here = node.get("parent")
    return branch[::-1]


def latest_leaf(mapping: Fields) -> str | None:
    """Return the id of the node without children whose message is the latest."""

    def created(name: str) -> float:
        moment = fields_of(fields_of(mapping[name]).get("message")).get("create_time")
        return float(moment) if isinstance(moment, int | float) else 0.0

    parents = {fields_of(node).get("parent") for node in mapping.values()}
    return max((name for name in mapping if name not in parents), key=created, default=None)


def dated_messages(shown: list[Fields], began_at: datetime | None) -> Iterator[Message]:
    """Yield the messages that have a text; one without a date has that of the message before it."""
    said_at = began_at
    for fields in shown:
        said_at = imported_moment("create_time", fields.get("create_time")) or said_at
        speaker, text = spoken_text(fields)
        if is_blank(text):
            continue
        if said_at is None:
            raise InvalidInput("neither the conversation nor its messages say when it was: `create_time` is missing")
        message_id = fields.get("id")
        yield Message(message_id if isinstance(message_id, str) else str(fields["node"]), said_at, speaker, text)


def spoken_text(fields: Fields) -> tuple[str, str]:
    """Return who said a message and its text, which is empty for a hidden message and one for a tool."""
    speaker, said = fields_of(fields.get("author")).get("role"), fields_of(fields.get("content"))
    is_hidden = bool(fields_of(fields.get("metadata")).get("is_visually_hidden_from_conversation"))
    is_for_tool = fields.get("recipient", "all") not in ("all", None)
    if speaker not in SPOKEN or is_hidden or is_for_tool or said.get("content_type") not in SAID:
        return str(speaker), ""
    return speaker, "\n".join(text for text in list_of(said.get("parts")) if isinstance(text, str))


# --- claude.ai: conversations.json and memories.json, or the zip they come in ---

CLAUDE_AI_FILES = ("conversations.json", "memories.json")
CLAUDE_AI_SPEAKERS = {"human": "user", "assistant": "assistant"}
CLAUDE_AI_MEMORY = "claude.ai memory"


def read_claude_ai(path: Path, state: ReaderState) -> Iterator[ImportItem]:
    """Yield the conversations of an export as episodes, and what claude.ai remembered as facts."""
    for place, fields, written_at in read_export(
        path, names=CLAUDE_AI_FILES, lists=["conversations"], alone=["chat_messages", "conversations_memory"]
    ):
        if place.problem:
            yield place
            continue
        if is_claude_ai_memory(fields):
            yield from claude_ai_memories(fields, place, written_at)
            continue
        session = ImportedSession(path, "claude-ai", tags=("claude-ai",), at=place)
        try:
            messages = claude_ai_messages(fields, session)
        except InvalidInput as error:
            yield replace(place, problem=str(error))
            continue
        yield from episodes_of(session, messages, replace(state, is_over=True))


def claude_ai_memories(fields: Fields, place: ImportItem, written_at: datetime | None) -> Iterator[ImportItem]:
    """Yield the statements that claude.ai remembered of a person and of each of their projects."""
    details = {"learned_at": written_at.isoformat() if written_at else None, "source": CLAUDE_AI_MEMORY}
    general = fields.get("conversations_memory")
    if isinstance(general, str):
        yield from facts_of_text(general, place, {**details, "context": CLAUDE_AI_MEMORY}, name="memory")
    for project, text in fields_of(fields.get("project_memories")).items():
        if isinstance(text, str):
            tags = [f"project:{project}"[:100]]
            of_project = {**details, "context": f"{CLAUDE_AI_MEMORY} of a project", "tags": tags}
            yield from facts_of_text(text, place, of_project, name=f"memory:{project}")


def claude_ai_messages(fields: Fields, session: ImportedSession) -> list[Message]:
    """Return the messages of a conversation by time; keep its id and title.

    Raises `InvalidInput` for anything else than a conversation.
    """
    name, title = fields.get("uuid"), fields.get("name")
    if not isinstance(name, str) or not isinstance(fields.get("chat_messages"), list):
        raise InvalidInput("a conversation must be an object with a `uuid` and `chat_messages`")
    session.id, session.title = name, title if isinstance(title, str) else None
    began_at = imported_moment("created_at", fields.get("created_at"))
    messages: list[Message] = []
    for each in claude_ai_branch([fields_of(message) for message in fields["chat_messages"]]):
        said_at = imported_moment("created_at", each.get("created_at")) or began_at
        text = claude_ai_text(each)
        if text and said_at is None:
            raise InvalidInput("neither the conversation nor its messages say when it was: `created_at` is missing")
        if text and said_at:
            speaker = CLAUDE_AI_SPEAKERS.get(str(each.get("sender")), "user")
            messages.append(Message(str(each.get("uuid") or len(messages)), said_at, speaker, text))
    return sorted(messages, key=lambda message: message.said_at)


def claude_ai_branch(messages: list[Fields]) -> list[Fields]:
    """Return the messages that led to the latest one: those that were edited or regenerated are not among them."""
    by_id = {str(each.get("uuid")): each for each in messages}
    if not any(each.get("parent_message_uuid") in by_id for each in messages):
        return messages
    branch: list[Fields] = []
    here: Fields | None = max(messages, key=lambda each: str(each.get("created_at") or ""))
    while here is not None and here not in branch:
        branch.append(here)
        here = by_id.get(str(here.get("parent_message_uuid")))
    return branch[::-1]


def claude_ai_text(message: Fields) -> str:
    """Return the text of a message with the names of its attachments; thinking and tools are left out."""
    text = text_of_parts(message.get("content"), kinds=("text",)) or str(message.get("text") or "").strip()
    attached = [fields_of(each) for name in ("attachments", "files") for each in list_of(message.get(name))]
    names = dict.fromkeys(str(each["file_name"]) for each in attached if each.get("file_name"))
    return "\n".join([text, *(f"[attached: {name}]" for name in names)]).strip()


def is_claude_ai(fields: Fields) -> bool:
    """Return whether an object is a conversation of claude.ai, or its memory of a person."""
    return isinstance(fields.get("chat_messages"), list) or is_claude_ai_memory(fields)


def is_claude_ai_memory(fields: Fields) -> bool:
    """Return whether an object is what claude.ai remembered of a person."""
    return isinstance(fields.get("conversations_memory"), str) or isinstance(fields.get("project_memories"), Mapping)
