"""What a tool answers: a terse text for the model, and the same as values. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nous_online.context.context_answer import Context
from nous_online.core.domain import Fact, Learned
from nous_online.core.texts import visible
from nous_online.memories.checking import CensorCheck
from nous_online.memories.contradictions import Contradiction, sides_of
from nous_online.memories.working_memory import WorkingMemory
from nous_online.recall.recall import Detail, Recalled
from nous_online.recall.recalling import Recall

MOST_CHARACTERS = 8_000
"""Of one memory: an episode may hold a megabyte, and a model reads what it is given."""

MOST_NEAR = 3
"""Facts that a statement might replace: each costs the model that reads it some forty tokens."""


@dataclass(frozen=True)
class ToolAnswer:
    """What a tool answers."""

    text: str
    values: dict[str, Any]


def quoted(text: str) -> str:
    """Return what a memory says as one line in quotation marks, so that it can't be taken for what the server says."""
    return json.dumps(shortened(text), ensure_ascii=False)


def shortened(text: str) -> str:
    """Return what a person sees of a text, cut where it is longer than a model should have to read."""
    text = visible(text)
    if len(text) <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]} … [cut: {MOST_CHARACTERS:,} of {len(text):,} characters]"


def learned(found: Learned) -> ToolAnswer:
    """Return what became of a statement, what it contradicts, and what it might replace."""
    contradicted = [near.fact for near in found.contradicts]
    near = [{"id": str(each.fact.id), "text": shortened(each.fact.content)} for each in found.near if each.suggestion]
    near = near[:MOST_NEAR]
    reason = shortened(found.reason)
    lines = [f"{found.action} {found.memory.id}: {reason}"]
    lines += [f"{found.hidden} of what looks like credentials was hidden"] if found.hidden else []
    lines += [f"contradicts {fact.id}: {quoted(fact.content)}" for fact in contradicted]
    lines += [f"near {each['id']}: {quoted(each['text'])}" for each in near]
    lines += ["if it replaces one of these, remember it again with replaces"] if near else []
    values = {"action": found.action, "id": str(found.memory.id), "reason": reason}
    contradicts = [str(fact.id) for fact in contradicted]
    return ToolAnswer("\n".join(lines), {**values, "contradicts": contradicts, "near": near, "hidden": found.hidden})


def recalled(found: Recall, detail: Detail) -> ToolAnswer:
    """Return the answers of a recall, best first."""
    memories = [recalled_values(each, detail) for each in found]
    lines = [
        f"{place}. {each['kind']} {each['id']} ({each['said_at'][:10]}{contested(each)}): {quoted(each['text'])}"
        for place, each in enumerate(memories, start=1)
    ]
    doubt = "" if found.is_confident else ": nothing clearly answers this; the nearest are:"
    title = f"recall {found.id}{by_words(found)}{doubt if memories else ': nothing was found'}"
    values = {"recall_id": str(found.id), "memories": memories, "is_confident": found.is_confident}
    return ToolAnswer("\n".join([title, *lines]), {**values, "is_by_words": found.is_by_words})


def by_words(found: Recall | Context) -> str:
    """Return the mark of an answer that only words were compared for."""
    return "; the embedder failed, so only words were compared" if found.is_by_words else ""


def contested(each: Mapping[str, Any]) -> str:
    """Return the mark of a memory that others contradict."""
    return f", contradicted by {', '.join(each['contradicted_by'])}" if each["contradicted_by"] else ""


def recalled_values(each: Recalled, detail: Detail) -> dict[str, Any]:
    """Return one answer of a recall."""
    memory = each.memory
    return {
        "id": str(memory.id),
        "kind": memory.kind,
        "text": shortened(memory.level(memory.shown(detail)) or memory.content),
        "score": round(each.score, 3),
        "said_at": memory.said_at.isoformat(timespec="seconds"),
        "contradicted_by": [str(other) for other in each.contradicted_by],
    }


def context(found: Context) -> ToolAnswer:
    """Return a context as it is put before a model."""
    title = f"recall {found.recall_id}, {found.token_count} tokens at most{by_words(found)}"
    values = {"recall_id": str(found.recall_id), "text": found.text, "token_count": found.token_count}
    values["is_by_words"] = found.is_by_words
    return ToolAnswer(f"{title}\n{found.text}", values)


def checked(found: CensorCheck) -> ToolAnswer:
    """Return what speaks against an action."""
    verdict = found.severity or "go"
    findings = [
        {
            "severity": each.severity,
            "trigger": shortened(each.censor.trigger),
            "reason": shortened(each.message),
            "id": str(each.censor.id),
            "activation_id": str(each.id),
        }
        for each in found
    ]
    lines = [
        f"{each['severity']} {each['id']}: {quoted(each['trigger'])}; {quoted(each['reason'])}" for each in findings
    ]
    title = "nothing speaks against it" if not findings else f"verdict: {verdict}"
    return ToolAnswer("\n".join([title, *lines]), {"verdict": verdict, "findings": findings})


def working_memory(found: WorkingMemory) -> ToolAnswer:
    """Return what a session is about and what it holds."""
    items = [
        {"id": str(item.id), "kind": item.kind, "text": shortened(item.text or ""), "state": item.state}
        for item in found.items
    ]
    task = shortened(found.task) if found.task else None
    threads = [shortened(thread) for thread in found.open_threads]
    lines = [f"task: {quoted(task)}" if task else "no task yet"]
    lines += [f"{item['kind']} {item['id']} ({item['state']}): {quoted(item['text'])}" for item in items]
    lines += [f"open: {quoted(thread)}" for thread in threads]
    values = {"task": task, "frame": found.frame, "items": items, "open_threads": threads}
    return ToolAnswer("\n".join(lines), values)


def ruled(found: Contradiction) -> ToolAnswer:
    """Return how a contradiction was decided, or is proposed to be, with what both sides say."""
    sides = {name: {"id": side["id"], "text": shortened(side["content"])} for name, side in sides_of(found)}
    lines = [f"  {name}: {quoted(side['content'])}" for name, side in sides_of(found)]
    if found.status == "open" and found.proposed is not None:
        reason = "one side is pinned or trusted more, so a person decides: nous resolve"
        head, status = f"{found.id}: {found.proposed['resolution']} is proposed; {reason}", "proposed"
    else:
        head, status = f"{found.id}: {found.resolution}", found.status
    return ToolAnswer("\n".join([head, *lines]), {"status": status, **sides})


def contradictions(found: Sequence[tuple[Contradiction, Fact, Fact]]) -> ToolAnswer:
    """Return contradictions with what both sides say."""
    listed = [
        {"id": str(each.id), **{side: {"id": str(fact.id), "text": shortened(fact.content)} for side, fact in sides}}
        for each, sides in ((each, (("a", a), ("b", b))) for each, a, b in found)
    ]
    lines = [f"{each.id}\n  a: {quoted(a.content)}\n  b: {quoted(b.content)}" for each, a, b in found]
    return ToolAnswer("\n".join(lines) or "nothing contradicts itself", {"contradictions": listed})
