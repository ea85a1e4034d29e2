"""Does a censor fire on what its trigger warns of, and on nothing else? Triggers with actions and near misses."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from benchmarks.intervals import of_share
from nous_online.core.deadline import Deadline
from nous_online.core.errors import NotFound
from nous_online.language.actions.action_words import variants, warned_act
from nous_online.language.actions.triggers import ActionWording
from nous_online.language.minilm import LocalMiniLM, Vectors
from nous_online.memories.checking import (
    POLICY,
    ActionQuestion,
    CheckDetails,
    Suspect,
    checked_question,
    match_of,
    with_readings,
)

TABLES = Path(__file__).parents[1] / "tests" / "support"
HELD_OUT = "held_out_actions"
FITTED = ("drawn_actions", "seen_actions", "unseen_actions", "developed_actions")
QUICK_PAIRS = 60


@dataclass(frozen=True)
class ActionPair:
    """A trigger, an action, and whether the one should set off the other."""

    trigger: str
    action: str
    fires: bool


class Texts(dict[str, Vectors]):
    """The vector of every text that is asked for, embedded once."""

    def __missing__(self, text: str) -> Vectors:
        self.add([text])
        return self[text]

    def add(self, texts: Iterable[str]) -> None:
        """Embed those that are not known: many at once take half as long."""
        unknown = sorted(set(texts) - self.keys())
        self.update(zip(unknown, LocalMiniLM().embed_documents(unknown), strict=True))


TEXTS = Texts()


def run(data: Path, *, quick: bool) -> dict[str, Any]:
    """Measure the held-out table; the tables that weights were fitted on stand beside it."""
    held = counts_of(read_actions(TABLES / f"{HELD_OUT}.py")[: QUICK_PAIRS if quick else None])
    peers: dict[str, Any] = {}
    for name in () if quick else FITTED:
        fitted = counts_of(read_actions(TABLES / f"{name}.py"))
        peers |= {f"{name}_{metric}": fitted[metric] for metric in ("precision", "recall", "block_precision")}
    return {
        "metrics": held,
        "peers": peers,
        "notes": ["fired counts warnings and blocks; held out: no word, weight or threshold was chosen on it"],
    }


def read_actions(file: Path) -> list[ActionPair]:
    """Return the pairs of a table: a trigger, and below it actions that should (+) and should not (-) set it off."""
    if not file.is_file():
        raise NotFound(f"{file} is missing; the tables of actions come with the tests")
    table = next(
        node.value.value
        for node in ast.parse(file.read_text("utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )
    pairs: list[ActionPair] = []
    trigger = ""
    for line in filter(None, table.splitlines()):
        if line.startswith("  "):
            sign, action = line.strip().split(" ", 1)
            pairs.append(ActionPair(trigger, action, fires=sign == "+"))
        else:
            trigger = line
    return pairs


def question_of(action: str) -> ActionQuestion:
    """Return an action as a check asks about it."""
    return checked_question(action, CheckDetails(), now=datetime(2026, 5, 1, tzinfo=UTC))


def readings_of(trigger: str) -> tuple[str, ...]:
    """Return the act that a trigger warns of, and what else it may mean."""
    return warned_act(trigger), *variants(trigger)


def embed(pairs: Sequence[ActionPair]) -> None:
    """Embed all that the matches of pairs ask for."""
    triggers, actions = {pair.trigger for pair in pairs}, {pair.action for pair in pairs}
    TEXTS.add(text for trigger in triggers for text in (trigger, *readings_of(trigger)))
    TEXTS.add(part for action in actions for part in question_of(action).parts)


def match(trigger: str, action: str) -> str | None:
    """Return how an action sets off a trigger, as a check finds it."""
    asked = question_of(action)
    others = {text: TEXTS[text] for text in readings_of(trigger)}
    suspects = [
        Suspect(UUID(int=1), trigger, False, "block", 50, [], number, float(TEXTS[trigger] @ TEXTS[part]))  # noqa: FBT003
        for number, part in enumerate(asked.parts, 1)
    ]
    near = [each for each in suspects if each.similarity >= POLICY.similarity_floor]
    found: set[str] = set()
    for suspect in with_readings(asked, near, Deadline(60)):
        others |= {text: TEXTS[text] for text in readings_of(suspect.trigger)}
        vector = TEXTS[asked.parts[suspect.part - 1]]
        each = match_of(asked, suspect, ActionWording(action), vector, others)
        found |= {each.match} if each else set()
    return min(found, key=["near", "meaning"].index, default=None)


def counts_of(pairs: Sequence[ActionPair]) -> dict[str, float]:
    """Return how many of the pairs fire, how many of them block, and how often that is right; 1 where none does."""
    embed(pairs)
    matches = [(match(pair.trigger, pair.action), pair.fires) for pair in pairs]
    fired = [fires for found, fires in matches if found]
    near = [fires for found, fires in matches if found == "near"]
    return {
        "precision": of_share(fired) if fired else 1.0,
        "recall": of_share(bool(found) for found, fires in matches if fires),
        "block_precision": of_share(near) if near else 1.0,
        "near_miss_blocked": len(near) - sum(near),
        "should_fire": sum(pair.fires for pair in pairs),
        "near_misses": sum(not pair.fires for pair in pairs),
        "fired": len(fired),
        "blocked": len(near),
    }
