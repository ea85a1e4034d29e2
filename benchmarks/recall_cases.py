"""Three public sets as stores of turns and questions over them, all by one rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks import cases

WINDOW = 2
"""How many turns before and after one are what was said around it."""


@dataclass(frozen=True)
class Turn:
    """One thing somebody said, in the session it was said in."""

    key: str
    speaker: str
    text: str
    session: str
    time: str

    @property
    def line(self) -> str:
        return f"{self.speaker}: {' '.join(self.text.split())}"


@dataclass(frozen=True)
class Question:
    """A question, and the keys of the turns that hold its answer."""

    text: str
    evidence: frozenset[str]
    category: str


@dataclass(frozen=True)
class Store:
    """What one agent learns, and what it is then asked."""

    set_name: str
    name: str
    turns: Sequence[Turn]
    questions: Sequence[Question]

    def contexts(self) -> list[str]:
        """Return what was said around each turn: when, and the turns beside it in its session, a line each."""
        return [self._context(index) for index in range(len(self.turns))]

    def _context(self, index: int) -> str:
        turn = self.turns[index]
        beside = [*self.turns[max(0, index - WINDOW) : index], *self.turns[index + 1 : index + 1 + WINDOW]]
        return "\n".join([turn.time, *(other.line for other in beside if other.session == turn.session)])


def locomo(data: Path, *, quick: bool) -> list[Store]:
    """Return one store a conversation; answerable questions with evidence. Quick: the shortest conversation."""
    questions = cases(data, "locomo_qa")
    stores = [
        Store(
            "locomo",
            conversation,
            turns := list(map(locomo_turn, rows)),
            locomo_questions(questions, conversation, turns),
        )
        for conversation, rows in by(cases(data, "locomo_turns"), "conv")
    ]
    return [min(stores, key=lambda store: len(store.turns))] if quick else stores


def locomo_turn(row: dict[str, Any]) -> Turn:
    """Return a turn with the caption of its picture, if it shows one."""
    caption = f" [{row['image_caption']}]" if row["image_caption"] else ""
    return Turn(row["dia_id"], row["speaker"], row["text"] + caption, str(row["session"]), row["session_time"])


def locomo_questions(rows: list[dict[str, Any]], conversation: str, turns: Sequence[Turn]) -> list[Question]:
    """Return the questions over one conversation that can be answered from its turns."""
    asked = [row for row in rows if row["conv"] == conversation and row["answerable"]]
    return with_evidence(turns, ((row["question"], row["evidence"], row["category"]) for row in asked))


def beam(data: Path, *, quick: bool) -> list[Store]:
    """Return one store a chat; questions with evidence. Quick: the first chat."""
    questions = cases(data, "beam100k_questions")
    chats = by(cases(data, "beam100k_turns"), "chat")
    return [beam_store(chat, rows, questions) for chat, rows in (chats[:1] if quick else chats)]


def beam_store(chat: str, rows: list[dict[str, Any]], questions: list[dict[str, Any]]) -> Store:
    """Return one chat; a turn without a date was said at the last one given."""
    turns: list[Turn] = []
    for row in rows:
        time = row["time"] or (turns[-1].time if turns else "")
        turns.append(Turn(str(row["id"]), row["role"], row["text"], str(row["batch"]), time))
    asked = [row for row in questions if str(row["chat"]) == chat]
    return Store(
        "beam",
        chat,
        turns,
        with_evidence(turns, ((row["question"], row["evidence_ids"], row["type"]) for row in asked)),
    )


def longmemeval(data: Path, *, quick: bool) -> list[Store]:
    """Return all evidence turns of all questions in one store, with one full history as filler.

    Quick: every fourth question, no filler.
    """
    rows = cases(data, "lme_evidence")[:: 4 if quick else 1]
    filler = [] if quick else cases(data, "lme_one_full_haystack")
    sessions = [(f"{row['qid']}-{n}", session) for row in rows for n, session in enumerate(row["evidence_sessions"])]
    sessions += [(row["session_id"], row) for row in filler]
    turns: dict[str, Turn] = {}
    for name, session in sessions:
        for said in session["turns"]:
            text = said["content"]
            turns.setdefault(text, Turn(str(len(turns)), said["role"], text, name, session["date"]))
    asked = (
        (row["question"], [turns[said["content"]].key for said in evidence(row)], row["type"])
        for row in rows
        if not row["abstention"]
    )
    return [Store("lme", "lme", list(turns.values()), with_evidence(list(turns.values()), asked))]


def evidence(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the turns that hold the answer to a question."""
    return (said for session in row["evidence_sessions"] for said in session["turns"])


def with_evidence(turns: Sequence[Turn], asked: Iterator[tuple[str, list[Any], str]]) -> list[Question]:
    """Return the questions for which at least one turn of the store is named as evidence."""
    known = {turn.key for turn in turns}
    found = [Question(text, frozenset(map(str, keys)) & known, category) for text, keys, category in asked]
    return [question for question in found if question.evidence]


def by(rows: list[dict[str, Any]], field: str) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return runs of rows with one value of `field`."""
    return [(str(value), list(run)) for value, run in groupby(rows, key=lambda row: row[field])]
