"""The exports of other programs: mem0 and its server, MCP's memory server, LangGraph, Letta, ChatGPT and claude.ai.

The conversations of an export become episodes, what the program remembered becomes facts. An export is complete: unlike
the log of a running session, none of its conversations waits for more messages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from nous_online.core.errors import InvalidInput
from nous_online.core.validation import MAX_NAMES, is_blank
from nous_online.interfaces.imports.import_files import (
    HIDDEN_FACTS,
    ImportedSession,
    ImportItem,
    JsonStream,
    Message,
    Occurrences,
    ReaderState,
    episodes_of,
    open_export,
    read_export,
    read_messages,
    read_objects,
    read_value,
    text_of_parts,
)
from nous_online.interfaces.imports.markdown_notes import Page, is_secret, notes_of
from nous_online.interfaces.imports.records import (
    MAX_STATEMENT_CHARACTERS,
    Fields,
    ImportedRecord,
    fields_of,
    id_text,
    imported_moment,
    json_object,
    list_of,
    parts,
)
from nous_online.language.writing.credentials import holds_credential

EMPHASISED_LINE = re.compile(r"^(\*\*|__|\*|_)([^*_\n]{1,100})\1:?[ \t]*$", re.MULTILINE)
"""A line in bold or italics is the heading of what follows."""


def fact_item(place: ImportItem, fields: Fields, name: str | None) -> ImportItem:
    """Return a fact to import, or why it is left out: it has no text, or looks as if it holds a credential.

    `name` identifies it within its source; without one its fields do.
    """
    content = fields.get("content")
    if not isinstance(content, str) or is_blank(content):
        return replace(place, problem="the memory has no text")
    if holds_credential(content):
        return replace(place, left_out={HIDDEN_FACTS: 1})
    given = {key: value for key, value in fields.items() if value not in (None, "", [])}
    return replace(place, record=ImportedRecord("fact", None, None, given), name=name, text=canonical_json(given))


def canonical_json(fields: Fields) -> bytes:
    """Return fields as JSON that does not depend on their order."""
    return json.dumps(fields, sort_keys=True, ensure_ascii=True).encode()


def facts_of_text(text: str, place: ImportItem, fields: Fields, *, name: str) -> Iterator[ImportItem]:
    """Yield the statements of a text in Markdown as facts with these fields, each under its heading.

    `name` identifies the text within its source: its statements are known again when it is imported again.
    """
    page = Page({})
    for note in notes_of(EMPHASISED_LINE.sub(r"## \2", text), page):
        if is_secret(note):
            yield replace(place, left_out={HIDDEN_FACTS: 1})
            continue
        heading = note.headings[-1] if note.headings else str(fields.get("subject") or "")
        above = " > ".join((str(fields.get("context") or name), *note.headings))[:MAX_STATEMENT_CHARACTERS]
        for part in parts(note.text, max_characters=MAX_STATEMENT_CHARACTERS):
            digest = note.digest(f"{above}\n{part}")
            dated = {"learned_at": note.said_at.isoformat()} if note.said_at else {}
            details = {**fields, **dated, "content": part, "subject": heading[:500], "context": above}
            yield fact_item(place, details, f"{name}:{digest}")
    yield replace(place, left_out=dict(page.left_out))


def read_rows(path: Path, *, lists: Collection[str], is_lines: bool) -> Iterator[tuple[ImportItem, Fields | None]]:
    """Yield the objects of a file that has one a line, or a list of them, each with its place; None for no object."""
    if is_lines:
        yield from read_objects(path)
    else:
        yield from ((place, fields) for place, fields, _ in read_export(path, lists=lists))


# --- mem0 ---

MEM0_LISTS = ("results", "memories")
MEM0_IDS = ("agent_id", "app_id", "run_id", "session_id")
"""What a memory of mem0 belongs to beside its user; here they become tags."""
CAPITALS = re.compile(r"(?<=[a-z])[A-Z]+")
CAPITAL_OF_A_WORD = re.compile(r"(?<=[a-z])([A-Z])(?=[a-z])")
"""Where a word of a name begins, or an abbreviation: "dependsOn", "userID"."""


def read_mem0(path: Path, _: ReaderState) -> Iterator[ImportItem]:
    for place, fields in read_rows(path, lists=MEM0_LISTS, is_lines=path.suffix in (".jsonl", ".ndjson")):
        yield place if place.problem or fields is None else mem0_item(fields, place)


def mem0_item(memory: Fields, place: ImportItem) -> ImportItem:
    """Return a memory as a fact, what is wrong with it, or why it is left out."""
    # A vector store that mem0 writes to holds the fields as the payload of a point; mem0 in TypeScript names them
    # `createdAt`, in Python `created_at`.
    given = {**fields_of(memory.get("payload")), **memory}
    given = {CAPITALS.sub(lambda found: f"_{found[0].lower()}", name): value for name, value in given.items()}
    try:
        fields = mem0_fact(given)
        own_id = None if given.get("id") is None else id_text("id", given["id"])
    except InvalidInput as error:
        return replace(place, problem=str(error))
    fields["source"] = f"mem0:{own_id}" if own_id else "mem0"
    # A memory whose text was updated since the last import is another fact.
    digest = sha256(fields["content"].encode("utf-8", "replace")).hexdigest()[:16]
    item = fact_item(place, fields, f"{own_id}:{digest}" if own_id else None)
    # The hash of this text names a memory without an id: stored names depend on each byte, so empty fields stay in it.
    return replace(item, text=canonical_json(fields))


def mem0_fact(memory: Fields) -> dict[str, Any]:
    content = memory.get("memory") or memory.get("data") or memory.get("text") or memory.get("content")
    if not isinstance(content, str) or is_blank(content):
        raise InvalidInput("the memory has no text; it belongs under `memory`")
    said_at = imported_moment("updated_at", memory.get("updated_at")) or imported_moment(
        "created_at", memory.get("created_at")
    )
    metadata = fields_of(memory.get("metadata"))
    categories = [tag for tag in names_in(memory.get("categories")) if tag]
    others = {name: value for name, value in metadata.items() if name != "category"}
    labels = {**others, **{name: memory[name] for name in MEM0_IDS if memory.get(name)}}
    tags = [*categories, *(f"{name}:{value}"[:100] for name, value in labels.items() if isinstance(value, str | int))]
    return {
        "content": content,
        "learned_at": said_at.isoformat() if said_at else None,
        "category": (categories or names_in(metadata.get("category")) or [None])[0],
        "tags": tags[:MAX_NAMES],
        "user_id": memory.get("user_id"),
    }


def names_in(value: object) -> list[str]:
    """Return the names in a list, or a name as a list of itself; each at most 100 characters."""
    values = list_of(value) or [value]
    return [each[:100] for each in values if isinstance(each, str)]


def is_mem0(fields: Fields) -> bool:
    if isinstance(payload := fields.get("payload"), Mapping):
        return {"data", "hash"} <= payload.keys()
    return isinstance(fields.get("memory"), str) and bool({"hash", "categories", "metadata"} & set(fields))


# --- the backup of mem0's own server: a zip, or its memories.json ---

BACKUP = "memories.json"
DELETED = "memories that were deleted there"


def read_openmemory(path: Path, _: ReaderState) -> Iterator[ImportItem]:
    """Yield the memories of a backup, each with its user and the names of its categories and its app."""
    for file, _moment in open_export(path, [BACKUP], program="mem0"):
        stream = JsonStream(file)
        yield from memories_of(fields_of(stream.take_value()), stream.bytes_read)


def memories_of(backup: Fields, end: int) -> Iterator[ImportItem]:
    categories, apps = names_by_id(backup, "categories"), names_by_id(backup, "apps")
    for number, memory in enumerate(map(fields_of, list_of(backup.get("memories"))), start=1):
        place, labels = ImportItem(number, end), map(str, list_of(memory.get("category_ids")))
        if memory.get("state") == "deleted" or memory.get("deleted_at"):
            yield replace(place, left_out={DELETED: 1})
            continue
        given = {
            **memory,
            "memory": memory.get("content"),
            "categories": [categories[each] for each in labels if each in categories],
            "user_id": fields_of(backup.get("user")).get("user_id"),
            "app_id": apps.get(str(memory.get("app_id"))),
        }
        yield mem0_item(given, place)


def names_by_id(backup: Fields, table: str) -> dict[str, str]:
    rows = map(fields_of, list_of(backup.get(table)))
    return {str(row.get("id")): str(row["name"]) for row in rows if row.get("name")}


def is_openmemory(fields: Fields) -> bool:
    return isinstance(fields.get("content"), str) and {"state", "category_ids", "app_id"} <= set(fields)


# --- the graph of MCP's memory server: memory.jsonl, or one object ---

GRAPH_LISTS = ("entities", "relations")
OTHER_NAMES = {
    "from_entity": "from", "to_entity": "to", "relation_type": "relationType", "entity_type": "entityType",
}  # fmt: skip
"""What forks of the server call its fields."""
ENTITY, RELATION = "entity", "relation"
REPEATED_OBSERVATIONS = "observations and relations that stand there before"


def read_mcp_memory(path: Path, state: ReaderState) -> Iterator[ImportItem]:
    """Yield each observation and each relation as a fact, each once: the server appends the same entity again."""
    for place, row in read_rows(path, lists=GRAPH_LISTS, is_lines=path.suffix != ".json"):
        fields = in_names_of_the_server(row or {})
        if place.problem or not fields:
            yield place
        elif is_entity(fields):
            yield from observations_of(fields, place, state.seen)
        elif is_relation(fields):
            text = f"{fields['from']} {relation_in_words(str(fields['relationType']))} {fields['to']}"
            yield once({"content": text, "subject": str(fields["from"])[:500], "tags": [RELATION]}, place, state.seen)
        else:
            wanted = "an entity with `name` and `observations`, or a relation with `from`, `to` and `relationType`"
            yield replace(place, problem=f"not {wanted}")


def in_names_of_the_server(row: Fields) -> Fields:
    """Return an object of the graph with its fields named as the reference server names them."""
    return {OTHER_NAMES.get(name, name): value for name, value in row.items()}


def relation_in_words(kind: str) -> str:
    """Return `depends_on` and `dependsOn` as "depends on", and `runsOnAWS` as "runs on AWS"."""
    words = CAPITAL_OF_A_WORD.sub(lambda found: f" {found[1].lower()}", kind.replace("_", " "))
    return CAPITALS.sub(lambda found: f" {found[0] if len(found[0]) > 1 else found[0].lower()}", words)


def observations_of(entity: Fields, place: ImportItem, seen: Occurrences) -> Iterator[ImportItem]:
    """Yield each observation of an entity, after its name where the text does not contain it."""
    name, kind = str(entity["name"]), entity.get("entityType")
    category = kind[:100] if isinstance(kind, str) and kind.strip() else None
    for observation in list_of(entity["observations"]):
        text = observation if isinstance(observation, str) else fields_of(observation).get("content")
        if not isinstance(text, str) or not text.strip():
            continue
        is_named = name.replace("_", " ").casefold() in text.replace("_", " ").casefold()
        content = text if is_named else f"{name}: {text}"
        yield once({"content": content, "subject": name[:500], "category": category}, place, seen)


def once(fields: Fields, place: ImportItem, seen: Occurrences) -> ImportItem:
    """Return a fact when it occurs for the first time, and afterwards that it was left out."""
    said = f"{fields['subject']}\n{fields['content']}".encode("utf-8", "replace")
    if not seen.is_new(said, within="mcp-memory"):
        return replace(place, left_out={REPEATED_OBSERVATIONS: 1})
    return fact_item(place, {**fields, "source": "mcp-memory"}, seen.name(said, within="mcp-memory names"))


def is_entity(fields: Fields) -> bool:
    is_named = isinstance(fields.get("name"), str) and isinstance(fields.get("observations"), list)
    return is_named and fields.get("type", ENTITY) == ENTITY


def is_relation(fields: Fields) -> bool:
    return all(isinstance(fields.get(name), str) for name in ("from", "to", "relationType"))


def is_mcp_memory(fields: Fields) -> bool:
    return is_entity(fields) or is_relation(in_names_of_the_server(fields))


# --- items of a LangGraph store, as its `search` returns them or LangMem writes them ---

STORE_LISTS = ("items", "memories", "results")
STORE_TEXTS = ("content", "text", "memory", "data", "fact")
MEMORIES = "memories"
PLAIN_KIND = "Memory"
"""What LangMem calls a memory without a schema of its own."""


def read_langgraph(path: Path, _: ReaderState) -> Iterator[ImportItem]:
    for place, fields in read_rows(path, lists=STORE_LISTS, is_lines=path.suffix != ".json"):
        yield place if place.problem or not fields else store_item(fields, place)


def store_item(fields: Fields, place: ImportItem) -> ImportItem:
    """Return an item of a store as a fact; its namespace becomes its tags and names its user."""
    if not is_langgraph(fields):
        return replace(place, problem="an item needs a `namespace`, a `key` and a `value`")
    value, namespace = fields_of(fields["value"]), fields["namespace"]
    # Some exports join the labels of a namespace with dots.
    labels = namespace.split(".") if isinstance(namespace, str) else list_of(namespace)
    labels = [label for label in labels if isinstance(label, str) and label]
    # LangGraph pairs a user with "memories", in either order.
    others = [label for label in labels if label != MEMORIES]
    has_user = MEMORIES in labels and len(labels) == len(others) + 1 == 2  # noqa: PLR2004 (a pair)
    kind = value.get("kind")
    given = {
        "content": value_text(value),
        "category": kind[:100] if isinstance(kind, str) and kind != PLAIN_KIND else None,
        "learned_at": fields.get("updated_at") or fields.get("created_at"),
        "tags": [label[:100] for label in labels],
        "user_id": others[0][:100] if has_user else None,
        "source": f"langgraph:{'/'.join(labels)}"[:500],
    }
    return fact_item(place, given, f"{'/'.join(labels)}:{fields['key']}")


def value_text(value: Fields) -> str:
    """Return the text of an item's value: its own text, or else its fields as "name: value; name: value"."""
    found = next((value[name] for name in STORE_TEXTS if value.get(name)), None)
    if isinstance(found, str):
        return found
    if fields_of(found):
        return value_text(fields_of(found))
    shown = {name: in_words(each) for name, each in value.items() if name != "kind"}
    return "; ".join(f"{name.replace('_', ' ')}: {each}" for name, each in shown.items() if each)


def in_words(value: object) -> str:
    """Return a value as words: the elements of a list with commas; an empty text for an object and for null."""
    if elements := list_of(value):
        return ", ".join(filter(None, map(in_words, elements)))
    return str(value) if isinstance(value, str | int | float) else ""


def is_langgraph(fields: Fields) -> bool:
    has_labels = isinstance(fields.get("namespace"), list | str)
    return has_labels and "key" in fields and isinstance(fields.get("value"), Mapping)


# --- agents exported from Letta (`.af`): their memory blocks to facts, what was said to episodes ---

LETTA_BLOCKS = ("blocks", "core_memory")
LETTA_SPEAKERS = {"user": "user", "assistant": "assistant", "user_message": "user", "assistant_message": "assistant"}
SENDING = "send_message"
"""The tool by which an older agent says something."""
OF_THE_PROGRAM = ("heartbeat", "login", "system_alert", "bootup", "summary")
"""Types of messages that the program sends in the user's name."""


def read_letta(path: Path, state: ReaderState) -> Iterator[ImportItem]:
    """Yield the memory blocks of the agents in a file as facts, then the conversation of each as episodes."""
    found, end = read_value(path)
    exported = fields_of(json.loads(found) if isinstance(found, str) else found)  # some exports are JSON in a text
    blocks = [fields_of(block) for name in LETTA_BLOCKS for block in list_of(exported.get(name))]
    agents = [fields_of(agent) for agent in list_of(exported.get("agents"))] or [exported]
    for number, block in enumerate(blocks, start=1):
        label, value = str(block.get("label") or "memory"), block.get("value")
        said_at = block.get("updated_at") or block.get("created_at") or exported.get("created_at")
        named = {"subject": label[:500], "context": label[:500], "source": f"letta:{label}"[:500]}
        if isinstance(value, str) and value.strip():
            place = ImportItem(number, end)
            yield from facts_of_text(value, place, {"learned_at": said_at, **named}, name=f"block:{label}"[:200])
    for number, agent in enumerate(agents, start=1):
        named = "/".join(str(agent[name]) for name in ("name", "id") if agent.get(name))
        place = ImportItem(len(blocks) + number, end)
        session = ImportedSession(path, "letta", named or f"{path.stem}#{number}", tags=("letta",), at=place)
        objects = [{**fields_of(each), "number": index} for index, each in enumerate(list_of(agent.get("messages")), 1)]
        messages = read_messages(session, objects, partial(letta_message, session=session))
        yield from episodes_of(session, (message for _, message in messages), state)


def letta_message(fields: Fields, session: ImportedSession) -> Message | None:
    """Return a message of the user or the agent; None for one without text; raise `InvalidInput` without a date."""
    speaker = LETTA_SPEAKERS.get(str(fields.get("role") or fields.get("message_type")))
    text = letta_text(fields, speaker) if speaker else ""
    if not speaker or not text:
        return None
    said_at = imported_moment("created_at", fields.get("created_at") or fields.get("date"))
    if said_at is None:
        raise InvalidInput(f"message {fields['number']} of {session.name} has no date")
    return Message(f"{session.name}:{fields.get('id') or fields['number']}", said_at, speaker, text)


def letta_text(fields: Fields, speaker: str) -> str:
    """Return the text of a message: a user's without the JSON around it, of an agent also what it sent by a tool."""
    text = text_of_parts(fields.get("content") or fields.get("text"), kinds=("text",))
    if speaker == "user":
        wrapped = json_object(text)
        if wrapped.get("type") in OF_THE_PROGRAM:
            return ""
        return str(wrapped["message"]).strip() if isinstance(wrapped.get("message"), str) else text
    calls = [fields_of(fields_of(call).get("function")) for call in list_of(fields.get("tool_calls"))]
    given = [json_object(str(each.get("arguments") or "")) for each in calls if each.get("name") == SENDING]
    # What an older agent writes beside a call are its thoughts; what it says is in the call.
    sent = [each["message"] for each in given if isinstance(each.get("message"), str)]
    return "\n".join(["" if given else text, *sent]).strip()


def is_letta(fields: Fields) -> bool:
    return {"agent_type", "llm_config"} <= set(fields) or {"label", "value", "limit"} <= set(fields)


# --- conversations of ChatGPT and claude.ai ---

Conversation = tuple[Sequence[Message], Iterable[ImportItem]]
"""The messages of a conversation, and the facts that the program remembered of it."""


def read_conversations(
    path: Path,
    state: ReaderState,
    name: str,
    conversation_of: Callable[[Fields, ImportedSession, ReaderState, datetime | None], Conversation],
    **where: Any,
) -> Iterator[ImportItem]:
    """Yield conversations as episodes and what was remembered as facts; `where` goes to `read_export`."""
    for place, fields, written_at in read_export(path, **where):
        if place.problem:
            yield place
            continue
        session = ImportedSession(path, name, tags=(name,), at=place)
        try:
            messages, facts = conversation_of(fields, session, state, written_at)
        except InvalidInput as error:
            yield replace(place, problem=str(error))
            continue
        yield from facts
        yield from episodes_of(session, messages, replace(state, is_over=True))


def branch_to(last: object, nodes: Fields, parent: str) -> dict[str, Fields]:
    """Return the nodes that led to the last one, by id, oldest first: those that were edited or regenerated did not."""
    branch: dict[str, Fields] = {}
    while isinstance(last, str) and last not in branch and isinstance(nodes.get(last), Mapping):
        branch[last] = fields_of(nodes[last])
        last = branch[last].get(parent)
    return dict(reversed(branch.items()))


def dated_messages(
    said: Iterable[tuple[str, datetime | None, str, str]], began_at: datetime | None, date: str
) -> list[Message]:
    """Return messages by time, of id, moment, speaker and text; one without a moment has that of the one before it."""
    messages: list[Message] = []
    said_at = began_at
    for name, moment, speaker, text in said:
        said_at = moment or said_at
        if is_blank(text):
            continue
        if said_at is None:
            raise InvalidInput(f"neither the conversation nor its messages say when it was: `{date}` is missing")
        messages.append(Message(name, said_at, speaker, text))
    return sorted(messages, key=lambda message: message.said_at)


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
    where: dict[str, Any] = {"names": [CONVERSATIONS], "lists": ["conversations"], "alone": [MAPPING]}
    yield from read_conversations(path, state, "chatgpt", chatgpt_conversation, program="ChatGPT", **where)


def chatgpt_conversation(fields: Fields, session: ImportedSession, state: ReaderState, _: object) -> Conversation:
    """Return the messages that were shown last, and as facts what was to be remembered; keep id and title."""
    if not isinstance(fields.get(MAPPING), Mapping):
        raise InvalidInput("a conversation must be an object with a `mapping` of its messages")
    name, title = fields.get("conversation_id") or fields.get("id"), fields.get("title")
    if not isinstance(name, str):
        raise InvalidInput("the conversation has no id; export it again")
    session.id, session.title = name, title if isinstance(title, str) else None
    began_at = imported_moment("create_time", fields.get("create_time"))
    nodes, last = fields_of(fields[MAPPING]), fields.get("current_node")
    branch = branch_to(last if isinstance(last, str) and last in nodes else latest_leaf(nodes), nodes, "parent")
    shown = [(name, fields_of(node["message"])) for name, node in branch.items() if node.get("message")]
    said = [
        (
            own_id if isinstance(own_id := each.get("id"), str) else name,
            imported_moment("create_time", each.get("create_time")),
            *spoken_text(each),
        )
        for name, each in shown
    ]
    facts = remembered_facts([each for _, each in shown], session.at, began_at, state)
    return dated_messages(said, began_at, "create_time"), facts


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


def latest_leaf(mapping: Fields) -> str | None:
    """Return the id of the node without children whose message is the latest."""

    def created(name: str) -> float:
        moment = fields_of(fields_of(mapping[name]).get("message")).get("create_time")
        return float(moment) if isinstance(moment, int | float) else 0.0

    parents = {fields_of(node).get("parent") for node in mapping.values()}
    return max((name for name in mapping if name not in parents), key=created, default=None)


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
    alone = ("chat_messages", "conversations_memory")
    where: dict[str, Any] = {"names": CLAUDE_AI_FILES, "lists": ["conversations"], "alone": alone}
    yield from read_conversations(path, state, "claude-ai", claude_ai_conversation, **where)


def claude_ai_conversation(
    fields: Fields, session: ImportedSession, state: ReaderState, written_at: datetime | None
) -> Conversation:
    """Return the messages of a conversation, keeping its id and title, or what claude.ai remembered as facts."""
    if is_claude_ai_memory(fields):
        return [], claude_ai_memories(fields, session.at, written_at)
    name, title = fields.get("uuid"), fields.get("name")
    if not isinstance(name, str) or not isinstance(fields.get("chat_messages"), list):
        raise InvalidInput("a conversation must be an object with a `uuid` and `chat_messages`")
    session.id, session.title = name, title if isinstance(title, str) else None
    messages = [fields_of(message) for message in fields["chat_messages"]]
    by_id = {str(each.get("uuid")): each for each in messages}
    if any(each.get("parent_message_uuid") in by_id for each in messages):
        latest = max(messages, key=lambda each: str(each.get("created_at") or ""))
        messages = [*branch_to(str(latest.get("uuid")), by_id, "parent_message_uuid").values()]
    spoken = [(each, text) for each in messages if (text := claude_ai_text(each))]
    said = [
        (
            str(each.get("uuid") or place),
            imported_moment("created_at", each.get("created_at")),
            CLAUDE_AI_SPEAKERS.get(str(each.get("sender")), "user"),
            text,
        )
        for place, (each, text) in enumerate(spoken)
    ]
    return dated_messages(said, imported_moment("created_at", fields.get("created_at")), "created_at"), ()


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


def claude_ai_text(message: Fields) -> str:
    """Return the text of a message with the names of its attachments; thinking and tools are left out."""
    text = text_of_parts(message.get("content"), kinds=("text",)) or str(message.get("text") or "").strip()
    attached = [fields_of(each) for name in ("attachments", "files") for each in list_of(message.get(name))]
    names = dict.fromkeys(str(each["file_name"]) for each in attached if each.get("file_name"))
    return "\n".join([text, *(f"[attached: {name}]" for name in names)]).strip()


def is_claude_ai(fields: Fields) -> bool:
    return isinstance(fields.get("chat_messages"), list) or is_claude_ai_memory(fields)


def is_claude_ai_memory(fields: Fields) -> bool:
    """Return whether an object is what claude.ai remembered of a person."""
    return isinstance(fields.get("conversations_memory"), str) or isinstance(fields.get("project_memories"), Mapping)
