"""LangGraph's `BaseStore` over an agent's memory; needs the extra `langgraph`.

A value is a document: its JSON text, under a name made of its namespace and key. Putting supersedes, deleting archives,
and a search with a query is a recall among these documents. Values don't expire. `index` can exclude a whole value from
searches, but not single fields: recall reads the whole text.
"""

from __future__ import annotations

import asyncio
import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote, unquote

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from nous_online.core.domain import DOCUMENT
from nous_online.core.errors import InvalidInput
from nous_online.core.policy import MAX_RECALL_LIMIT
from nous_online.heart import Heart
from nous_online.memories.documents import Document, Documents, Edit

PLACE = "langgraph"
"""Project id of the documents, which limits recall to them."""
UNINDEXED = "unindexed"
"""Tag of a value that searches with a query must not find."""
SURROGATES = "surrogatepass"
QUOTED = re.compile(r"[%/\x00-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters percent-encoded in names: slashes separate labels, and PostgreSQL can't store NUL or lone surrogates."""
COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$ne": operator.ne,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
Name = tuple[str, ...]


class NousStore(BaseStore):
    """The items of one agent. Safe to share between threads."""

    def __init__(self, heart: Heart) -> None:
        self._heart = heart
        self._documents = Documents(heart.agent, PLACE)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run all reads on the state before, then apply all puts in one transaction.

        Raises `InvalidInput` for a value that is not a JSON object or larger than 32 KiB, for an `index` of fields, and
        for an unknown filter operator.
        """
        operations = list(ops)
        results = [self._answer(op) for op in operations]
        # The last put of a key wins, as LangGraph's own stores do.
        puts = {(*op.namespace, str(op.key)): op for op in operations if isinstance(op, PutOp)}
        if puts:
            texts = {name: None if op.value is None else text_of(op) for name, op in puts.items()}
            tags = {name: (UNINDEXED,) if op.index is False else () for name, op in puts.items()}
            # The last word: a put overwrites what others put meanwhile.
            edits = [Edit(name_of(name), texts[name], None, tags[name], is_last_word=True) for name in puts]
            self._documents.change(lambda: edits)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    def _answer(self, op: Op) -> Result:
        match op:
            case GetOp():
                name = name_of((*op.namespace, str(op.key)))
                found = self._documents.find([name]).get(name)
                return None if found is None else Item(**details_of(found))
            case SearchOp():
                return self._search(op)
            case ListNamespacesOp():
                known = {parts_of(each.name)[:-1] for each in self._documents.list()}
                wanted = op.match_conditions or ()
                fitting = [each for each in known if all(does_fit(each, condition) for condition in wanted)]
                return sorted({each[: op.max_depth] for each in fitting})[op.offset : op.offset + op.limit]
            case PutOp():
                return None

    def _search(self, op: SearchOp) -> list[SearchItem]:
        """Return items below a namespace: the best answers to a query first, without one the latest changed first."""
        prefix = name_of(op.namespace_prefix)
        below = self._documents.list(f"{prefix}/" if prefix else "")
        kept = [each for each in below if does_match(json.loads(each.text), op.filter or {})]
        scores = self._scores(op.query) if op.query else {}
        if op.query:
            kept = [each for each in kept if UNINDEXED not in each.tags]
        kept.sort(key=lambda each: (scores.get(each.name, -1.0), each.changed_at, each.name), reverse=True)
        shown = kept[op.offset : op.offset + op.limit]
        return [SearchItem(**details_of(each), score=scores.get(each.name)) for each in shown]

    def _scores(self, query: str) -> dict[str, float]:
        """Return the scores of documents for a query, by name; documents beyond the best 200 memories have none."""
        found = self._heart.recall(query, types=["fact"], limit=MAX_RECALL_LIMIT, project_id=PLACE)
        return {each.memory.subject or "": each.score for each in found if each.memory.category == DOCUMENT}


def text_of(op: PutOp) -> str:
    """Return the value of a put as JSON; raise `InvalidInput` if it can't be written or searched so."""
    value: object = op.value
    if not isinstance(value, dict):
        raise InvalidInput(f"the value of an item must be a dict, got {value!r}; put it under a name of its own")
    if isinstance(op.index, list):
        raise InvalidInput(f"index must be False or left out, got {op.index!r}: a search reads the whole value")
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"the value of an item must be JSON: {error}") from error


def name_of(parts: Sequence[str]) -> str:
    """Return the document name of an item, or the prefix of names below a namespace."""
    return "/".join(QUOTED.sub(lambda found: quote(found[0], safe="", errors=SURROGATES), part) for part in parts)


def parts_of(name: str) -> Name:
    return tuple(unquote(part, errors=SURROGATES) for part in name.split("/"))


def details_of(document: Document) -> dict[str, Any]:
    *namespace, key = parts_of(document.name)
    return {
        "namespace": tuple(namespace),
        "key": key,
        "value": json.loads(document.text),
        "created_at": document.created_at,
        "updated_at": document.changed_at,
    }


def does_match(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(does_hold(value.get(name), condition) for name, condition in wanted.items())


def does_hold(found: Any, condition: Any) -> bool:
    """Return whether a field meets a condition: a value to equal, or operators such as `{"$gt": 4}`."""
    named: Mapping[str, Any] = cast("Mapping[str, Any]", condition) if isinstance(condition, dict) else {}
    if not any(name.startswith("$") for name in named):
        return bool(found == condition)
    unknown = sorted(set(named) - set(COMPARISONS))
    if unknown:
        raise InvalidInput(f"a filter knows {', '.join(COMPARISONS)}; it does not know {unknown[0]!r}")
    try:
        return all(COMPARISONS[name](found, operand) for name, operand in named.items())
    except TypeError:  # such as a text compared with a number
        return False


def does_fit(namespace: Name, condition: MatchCondition) -> bool:
    """Return whether a namespace begins or ends with a path, in which * matches any one label."""
    path = condition.path
    if len(path) > len(namespace):
        return False
    part: Iterator[str] = iter(namespace if condition.match_type == "prefix" else namespace[-len(path) :])
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=False))
