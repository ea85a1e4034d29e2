"""Public pairs of statements as a judge is asked about them, with the verdicts that would be right."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import cases
from benchmarks.dedup import cosines
from nous_online.language.minilm import LocalMiniLM
from nous_online.language.pairs.judging import JudgedStatement, Pair, Verdict

SAID = datetime(2025, 1, 1, tzinfo=UTC)
CONFLICTS = frozenset({"supersedes", "contradiction", "same_slot_other_value"})
PARTED = frozenset({Verdict.UPDATES, Verdict.CONTRADICTS})
RIGHT = {
    "duplicate": frozenset({Verdict.SAME, Verdict.COMPATIBLE}),
    "different": frozenset({Verdict.COMPATIBLE}),
    "related": frozenset({Verdict.COMPATIBLE}),
} | dict.fromkeys(CONFLICTS, PARTED)
"""The verdicts that are right of a label: two wordings of one statement can stand side by side."""
STRICTLY_RIGHT = RIGHT | {"duplicate": frozenset({Verdict.SAME})}
LONGEST_PART = 300
"""Characters of a sentence that a judge is asked about; longer ones are code or lists."""


@dataclass(frozen=True)
class Labelled:
    """Pairs, the earlier statement first, with the label and the source of each."""

    pairs: Sequence[Pair]
    labels: Sequence[str]
    sources: Sequence[str]


def labelled(rows: Sequence[Mapping[str, Any]], embedder: LocalMiniLM) -> Labelled:
    """Return labelled rows as pairs; all are said in the same order, so that order tells nothing of the label."""
    pairs = stated([(row["a"], row["b"]) for row in rows], embedder)
    return Labelled(pairs, [row["label"] for row in rows], [row["source"] for row in rows])


def stated(texts: Sequence[tuple[str, str]], embedder: LocalMiniLM) -> list[Pair]:
    """Return pairs of texts, the first said a day before the second."""
    if not texts:
        return []
    return [
        Pair(
            JudgedStatement(a, stated_at=SAID),
            JudgedStatement(b, stated_at=SAID + timedelta(days=1)),
            float(similarity),
        )
        for (a, b), similarity in zip(texts, cosines(texts, embedder), strict=True)
    ]


def conflicts_of_stores(data: Path) -> list[tuple[str, str]]:
    """Return old and new value of each conflict of FactConsolidation."""
    return list(dict.fromkeys((row["old"], row["new"]) for row in cases(data, "fc_conflicts")))


def successive_values(data: Path) -> list[tuple[str, str]]:
    """Return each two values of one DyKnow slot that follow each other."""
    slots: dict[str, list[str]] = {}
    for row in sorted(cases(data, "dyknow_facts"), key=lambda row: (row["slot"], row["valid_from"])):
        slots.setdefault(row["slot"], []).append(row["fact"])
    return [pair for facts in slots.values() for pair in pairwise(facts) if pair[0] != pair[1]]


def updated_turns(data: Path) -> list[list[tuple[str, str]]]:
    """Return, for each update of LongMemEval, every sentence of the older turn with every one of the newer."""
    chains = [[told["text"] for told in row["chain"]] for row in cases(data, "lme_knowledge_updates")]
    return [crossed([old], [new]) for chain in chains for old, new in pairwise(chain)]


def contradicted_turns(data: Path) -> list[list[tuple[str, str]]]:
    """Return, for each contradiction asked about in BEAM, the sentences of both statements crossed."""
    turns = {(row["chat"], row["id"]): row["text"] for row in cases(data, "beam100k_turns")}
    found: list[list[tuple[str, str]]] = []
    for row in cases(data, "beam100k_questions"):
        if row["type"] == "contradiction_resolution":
            roles = row["evidence_roles"] or {}
            first, second = (
                [turns[row["chat"], place] for place in roles.get(name, []) if (row["chat"], place) in turns]
                for name in ("first_statement", "second_statement")
            )
            found.append(crossed(first, second))
    return found


def crossed(olds: Sequence[str], news: Sequence[str]) -> list[tuple[str, str]]:
    """Return every sentence of the older texts with every different one of the newer, each pair once."""
    ends = [(a, b) for old in olds for a in sentences(old) for new in news for b in sentences(new)]
    return list(dict.fromkeys((a, b) for a, b in ends if a != b))


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a chat turn."""
    parts = re.split(r"(?<=[.!?])\s+|\n+", text)
    yield from (part.strip() for part in parts if len(part.split()) >= 3 and len(part) <= LONGEST_PART)
