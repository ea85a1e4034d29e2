"""Erasing an agent, or a part of it, from an export: the file is written anew, and can be restored as before."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from nous_online.core.errors import Refused
from nous_online.interfaces.exports.exporting import ExportWriter, replaced
from nous_online.interfaces.exports.restoring import MAX_LINE_BYTES, opened, read_header, rows_in
from nous_online.memories.erasure import ERASED, TEXTS, Erasure, unquoted, unquoting

Row = dict[str, Any]
LISTED = ("result_ids", "targets")
"""Lists of ids that make a row about each of them."""
POINTERS = ("superseded_by", "source_episode_id", "episode_id", "proposal_id", "learned_from_episode_id")
"""Columns by which a row points to another without being about it."""
LOST = {"embedding": None, "context_embedding": None, "embedding_space_id": None}
GONE = {"superseded_by": None, "superseded_at": None, "succession": None}


def erase_exports(erasure: Erasure, paths: Iterable[Path]) -> Counter[str]:
    """Erase an agent from exports of it, and return how many held something of what goes.

    An export of an agent that is erased whole is deleted. Raises `InvalidInput` for a file that is no whole export, and
    `Refused` for one of another agent.
    """
    found = Counter[str]()
    for path in paths:
        if not path.exists():  # deleted by the look before this one
            continue
        with opened(path) as file:
            first = file.readline(MAX_LINE_BYTES)
        agent_id = read_header(first, path).agent_id
        if agent_id != erasure.agent_id:
            raise Refused(f"{path} is an export of agent {agent_id!r}, not of {erasure.agent_id!r}; name another file")
        if erasure.ids is None:
            found["exports"] += 1
            if not erasure.is_dry_run:
                path.unlink()
            continue
        found["exports"] += rewrite_export(path, first, erasure)
    return +found


def rewrite_export(path: Path, first: bytes, erasure: Erasure) -> bool:
    """Write an export without a part of its agent, and return whether it held something of it."""
    ids, replace = erasure.ids or frozenset(), unquoting(erasure.quotations)
    said: dict[str, list[Row]] = {}
    for table, row in rows_in(path):
        if table.name == "heart.statements" and row["id"] not in ids and row["fact_id"] not in ids:
            said.setdefault(row["fact_id"], []).append(row)
    kept = ((table.name, row, without_part(table.name, row, ids, said, replace)) for table, row in rows_in(path))
    if erasure.is_dry_run:
        return any(new != row for _, row, new in kept)
    rows, is_changed = Counter[str](), False
    with replaced(path) as file:
        writer = ExportWriter(file)
        writer.write(first.decode().rstrip("\n"))
        for table, row, new in kept:
            is_changed |= new != row
            if new is not None:
                writer.write(f'{{"table":"{table}","row":{json.dumps(new, ensure_ascii=False)}}}')
                rows[table] += 1
        writer.write(json.dumps({"end": {"rows": rows, "sha256": writer.checksum()}}))
    return is_changed


def without_part(
    table: str, row: Row, ids: frozenset[str], said: Mapping[str, list[Row]], replace: Callable[[str], str]
) -> Row | None:
    """Return a row without what goes; None for one that is about it."""
    own = {name: value for name, value in row.items() if name not in POINTERS}
    if any(isinstance(value, str) and value in ids for value in own.values()):
        return None
    if any(not ids.isdisjoint(row.get(name) or ()) for name in LISTED):
        return None
    new = {name: None if name in POINTERS and value in ids else value for name, value in row.items()}
    if table == "heart.facts":
        new = standing_fact(row, new, said.get(row["id"], []))
    for quoting, column, kind in TEXTS:
        if quoting == table and new.get(column) is not None:
            new[column] = replace(str(new[column])) if kind == "text" else unquoted(new[column], replace)
    after = cast("Row", row.get("after") or {})
    if table == "lifecycle.events" and str(after.get("superseded_by")) in ids:
        new["reason"] = ERASED
    return new


def standing_fact(row: Row, new: Row, said: list[Row]) -> Row:
    """Return a fact that stays, as it stands without what it pointed to and without statements that went."""
    if row.get("superseded_by") and not new["superseded_by"]:
        new |= GONE
        if new["state"] == "superseded":
            new |= {"state": "archived", "archived_at": row["superseded_at"]}
    if said and row["content"] not in {each["content"] for each in said}:
        oldest = min(said, key=lambda each: (each["said_at"], each["recorded_at"]))
        words = {name: oldest[name] for name in ("content", "subject", "source")}
        new |= {**words, **LOST, "context": None, "slot": None, "summary": None, "compressed": None, "index_word": None}
    if said:
        new["confirmation_count"] = min(row["confirmation_count"], len(said) - 1)
    return new
