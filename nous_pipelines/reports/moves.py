"""What a proposal does to each memory, in a few words: from what to what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from nous_online.core.kinds import KINDS
from nous_pipelines.reports.report import Changed

TOLD_COLUMNS = ("state", "compression_tier", "scope", "severity", "rank_weight", "confirmation_count")
"""Of the columns a proposal sets, the first of these that changes says it all."""
UNSAID = "…"


def changed_of(
    changes: Sequence[Mapping[str, Any]], before: Mapping[str, Mapping[str, Any]], texts: Mapping[str, str]
) -> Iterator[Changed]:
    """Yield what becomes of each memory; what only accompanies that is left out."""
    for change in changes:
        given = change.get("set", {})
        if change["kind"] in KINDS and set(given) != {"contradiction_status"}:
            was, becomes = move(before.get(change["id"], {}), given, texts)
            yield Changed(change["kind"], change["id"], texts.get(change["id"], UNSAID), was, becomes)
        elif change["kind"] == "link":
            other = texts.get(given["to_id"], UNSAID)
            told = f"linked to “{other}” ({given['kind']}, {given['weight']:.2f})"
            yield Changed("link", change["id"], texts.get(change["id"], UNSAID), "", told)
        elif change["kind"] == "contradiction":
            a, b = (texts.get(given[side], UNSAID) for side in ("memory_a", "memory_b"))
            yield Changed("contradiction", change["id"], a, "", f"contradicts “{b}”; both kept, open")


def move(before: Mapping[str, Any], after: Mapping[str, Any], texts: Mapping[str, str]) -> tuple[str, str]:
    """Return from what to what a memory moves, by the most telling of its columns."""
    for column in TOLD_COLUMNS:
        if column in after and after[column] != before.get(column):
            return said(column, before.get(column)), successor(after, texts) or said(column, after[column])
    if after.get("superseded_by"):
        return "", successor(after, texts)
    return "", f"{', '.join(sorted(after))} brought up to date"


def successor(after: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """Say by what a memory is superseded, if it is."""
    heir = after.get("superseded_by")
    return f"superseded by “{texts.get(heir, UNSAID)}”" if heir else ""


def said(column: str, value: Any) -> str:
    """Return a value of a column in words."""
    if value is None:
        return ""
    if column == "rank_weight":
        return f"weight {float(value):.2f}"
    if column == "confirmation_count":
        return {0: "never confirmed", 1: "confirmed once"}.get(value, f"confirmed {value} times")
    return f"scope {value}" if column == "scope" else str(value)
