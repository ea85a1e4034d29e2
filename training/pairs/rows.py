"""What is learned from: labelled rows for the teachers, and pairs without a label that the teachers answer."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor

from training.pairs.fitting import Row

Tables: TypeAlias = dict[str, list[dict[str, Any]]]
TABLES = ("own", "near", "nli", "paws", "wording", "chats", "actions")
LABELS = "SUNDRVC"
TURNED = {"S": "S", "D": "D", "C": "C", "R": "V", "V": "R"}
"""What a pair is the other way round; an update turned round is one again where its wording is plain."""
ENTAILMENT = ("entailment", "neutral", "contradiction")
SMOOTHING = 0.1
TURNED_SHARE, REPEATED_SHARE, NEAR_SHARE, PUBLIC_SHARE = 0.25, 0.05, 0.3, 0.2
STRANGERS_IN_ENGLISH, STRANGERS_ELSEWHERE, STRANGER_WEIGHT = 0.15, 1.0, 0.5
"""Strangers for each row of a hand, and how much one counts."""
VARIED = 700
"""Statements repeated with harmless changes."""
HARMLESS: tuple[Callable[[str], str], ...] = (
    lambda text: text.rstrip("."),
    lambda text: text[:1].lower() + text[1:],
    lambda text: f"Reminder: {text}",
    lambda text: text.replace(" not ", "n't ", 1) if " is not " in text else text,
    lambda text: text.replace("the ", "", 1),
    lambda text: text.replace(" and ", " & ", 1),
    lambda text: text.replace(" two ", " 2 ").replace(" three ", " 3 "),
    str.lower,
)
NEAR_IN_HAND, NEAR_ELSEWHERE, NEAR_TRIGGERS, FAR_TRIGGERS = 9, 4, 14, 3
"""Neighbours of a statement in its own hand and elsewhere, and triggers of an action, that teachers read it with."""
CHANGED = 400_000
"""Pairs of which the second statement was changed by a word or two."""
DROPPED, ADDED = 0.2, 0.15
"""How often a word is dropped, and how often one is added; else it is exchanged."""
WORD = re.compile(r"[^\W_]+")
FEWEST_WORDS, LONGEST_SMALL = 3, 4
ROWS_AT_ONCE = 2048


def read_tables(folder: Path) -> Tables:
    """Return the rows of each table that may be trained on."""
    return {name: [row for row in read(folder / f"{name}.jsonl") if not row.get("is_held_out")] for name in TABLES}


def read(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def labelled(tables: Tables) -> list[Row]:
    """Return the rows of one epoch: what all hands wrote, neighbours that both hold, and a share of the public sets."""
    own = [*tables["own"], *tables["wording"]]
    near = random.sample(tables["near"], min(len(tables["near"]), int(NEAR_SHARE * len(own))))
    count = int(PUBLIC_SHARE * len(own))
    nli, paws, moved = (
        random.sample(tables[name], min(len(tables[name]), most))
        for name, most in (("nli", count), ("paws", count // 4), ("paws", count // 2))
    )
    return [
        *outcomes([*own, *varied(own)]),
        *strangers(tables["own"]),
        *(Row(row["a"], row["b"], "outcome", chances_of("D"), 0.6) for row in near),
        *actions(tables["actions"]),
        *(Row(row["a"], row["b"], "entailment", one_of(ENTAILMENT, row["label"])) for row in nli),
        *(Row(row["a"], row["b"], "paraphrase", (float(row["label"]),)) for row in paws),
        *(Row(row["a"], row["b"], "outcome", chances_of("DS"[row["label"]]), 0.6) for row in moved),
    ]


def strangers(own: Sequence[dict[str, Any]]) -> list[Row]:
    """Return first statements beside second ones of other pairs of the hand and language: both hold.

    A teacher that knows English best takes what it can't read for the same, unless it is told so.
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in own:
        groups.setdefault((row["author"], row["lang"]), []).append(row)
    found: list[Row] = []
    for (_, lang), rows in groups.items():
        count = int(len(rows) * (STRANGERS_IN_ENGLISH if lang == "en" else STRANGERS_ELSEWHERE))
        pairs = zip(random.choices(rows, k=count), random.choices(rows, k=count), strict=True)  # noqa: S311 (no secret)
        found += [
            Row(one["a"], other["b"], "outcome", chances_of("D"), STRANGER_WEIGHT)
            for one, other in pairs
            if one["a"] != other["a"]
        ]
    return found


def outcomes(rows: Sequence[dict[str, Any]]) -> list[Row]:
    """Return pairs of memories, some of them turned round, and some statements repeated word for word."""
    found: list[Row] = []
    for row in rows:
        label = row["label"]
        found.append(Row(row["a"], row["b"], "outcome", chances_of(label)))
        turned = TURNED.get(label) or ("U" if row["family"] == "plain" else None)
        if turned and random.random() < TURNED_SHARE:  # noqa: S311 (no secret)
            found.append(Row(row["b"], row["a"], "outcome", chances_of(turned), 0.7))
        if random.random() < REPEATED_SHARE:  # noqa: S311 (no secret)
            found.append(Row(row["a"], row["a"], "outcome", chances_of("S"), 0.5))
    return found


def actions(rows: Sequence[dict[str, Any]]) -> list[Row]:
    """Return rows for the head that learns if an action does what a trigger warns of, some with another's trigger."""
    others = random.sample(rows, len(rows))
    mixed = [(row, other) for row, other in zip(rows, others, strict=True) if row["trigger"] != other["trigger"]]
    return [
        *(Row(row["trigger"], row["action"], "does", (float(row["does"]),)) for row in rows),
        *(Row(row["trigger"], other["action"], "does", (0.0,), 0.5) for row, other in mixed[::2]),
    ]


def chances_of(label: str) -> tuple[float, ...]:
    """Return the wanted chance of each outcome, smoothed."""
    return tuple(SMOOTHING / len(LABELS) + (1 - SMOOTHING) * (each == label) for each in LABELS)


def one_of(labels: Sequence[str], label: str) -> tuple[float, ...]:
    """Return 1 for a label and 0 for the others."""
    return tuple(float(each == label) for each in labels)


def varied(own: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return statements said again with harmless changes."""
    return [{**row, "b": harmlessly_changed(row["a"]), "label": "S"} for row in random.sample(own, VARIED)]


def harmlessly_changed(text: str) -> str:
    """Return a statement with three changes that never change what is said."""
    for change in random.sample(HARMLESS, 3):
        text = change(text)
    return text


@dataclass(frozen=True)
class Question:
    """A pair that the teachers answer, with the wanted chances where somebody labelled it."""

    first: str
    second: str
    label: tuple[float, ...] = ()
    weight: float = 1.0


def questions_of_statements(tables: Tables, embedded: Callable[[Sequence[str]], Tensor]) -> list[Question]:
    """Return pairs of statements that a store might bring together, labelled ones first.

    Labelled are those of all hands, some of them turned round, strangers, and statements said again with harmless
    changes. Without a label are neighbours of one hand and language (or of one public set), neighbours elsewhere, and
    pairs of which the second was changed a little. First statements of one hand are not paired: calibration reads those
    as strangers.
    """
    own = [*tables["own"], *tables["wording"]]
    found = {(row.first, row.second): Question(row.first, row.second, row.target, row.weight) for row in outcomes(own)}
    for row in chain(outcomes(varied(own)), strangers(tables["own"])):
        found.setdefault((row.first, row.second), Question(row.first, row.second, row.target, row.weight))
    near = neighbours(tables, embedded)
    public = [(row["a"], row["b"]) for name in ("nli", "paws") for row in tables[name]]
    turned = [(row["b"], row["a"]) for row in own]
    bases = [
        *((row["a"], row["b"]) for row in own),
        *((row["a"], row["a"]) for row in own),
        *((row["text"], row["text"]) for row in tables["chats"]),
        *random.sample(near, min(len(near), len(own))),
    ]
    for pair in chain(near, public, turned, changed(bases)):
        found.setdefault(pair, Question(*pair))
    return list(found.values())


def neighbours(tables: Tables, embedded: Callable[[Sequence[str]], Tensor]) -> list[tuple[str, str]]:
    """Return statements of different pairs that are near each other, either one first."""
    own, firsts, hands = tables["own"], {row["a"] for row in tables["own"]}, dict[str, str]()
    for row in own:
        hands.update({row[side]: f"{row['author']} {row['lang']}" for side in ("a", "b")})
    for name in ("nli", "paws"):
        hands.update({row[side]: name for row in tables[name] for side in ("a", "b")})
    hands.update({row["text"]: row["set"] for row in tables["chats"] if row["text"] not in hands})
    texts = list(hands)
    vectors = embedded(texts)
    number = {hand: at for at, hand in enumerate(dict.fromkeys(hands.values()))}
    of_hand = torch.tensor([number[hands[text]] for text in texts], device=vectors.device)
    is_first = torch.tensor([text in firsts for text in texts], device=vectors.device)
    met: dict[tuple[int, int], None] = {}
    for start in range(0, len(texts), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        closeness = (vectors[rows] @ vectors.T).float()
        is_own = of_hand[rows][:, None] == of_hand[None]
        inside = closeness.masked_fill(~is_own | (is_first[rows][:, None] & is_first[None]), -1)
        for near, most in ((inside, NEAR_IN_HAND), (closeness.masked_fill(is_own, -1), NEAR_ELSEWHERE)):
            for at, places in enumerate(near.topk(most).indices.tolist(), start=start):
                met.update({(min(at, place), max(at, place)): None for place in places if place != at})
    pairs = [(texts[one], texts[other]) for one, other in met]
    return [pair if random.random() < 0.5 else pair[::-1] for pair in pairs]  # noqa: S311, PLR2004 (either order)


def changed(pairs: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield pairs of which the second lost a word, gained one, or has another in its place, once or twice."""
    words: dict[str, list[str]] = {}
    for _, text in pairs:
        for word in WORD.findall(text):
            words.setdefault(kind(word), []).append(word)
    for first, second in random.choices(pairs, k=CHANGED):  # noqa: S311 (no secret)
        text = second
        for _ in range(random.choice((1, 1, 2))):  # noqa: S311
            text = with_another_word(text, words)
        if text not in ("", second):
            yield (first, text) if random.random() < 0.5 else (text, first)  # noqa: S311, PLR2004 (either order)


def with_another_word(text: str, words: dict[str, list[str]]) -> str:
    """Return a text with one word dropped, added, or exchanged for another of its kind that is used somewhere."""
    places = list(WORD.finditer(text))
    if len(places) < FEWEST_WORDS:
        return text
    chosen = random.choice(places)  # noqa: S311 (no secret)
    old, (start, end) = chosen.group(), chosen.span()
    way = random.random()  # noqa: S311
    if way < DROPPED:
        return " ".join((text[:start] + text[end:]).split())
    if way < DROPPED + ADDED:
        return f"{text[:start]}{random.choice(words[kind('to')])} {text[start:]}"  # noqa: S311
    return text[:start] + random.choice(words[kind(old)]) + text[end:]  # noqa: S311


def kind(word: str) -> str:
    """Return what a word looks like: a number, a name, a small word, or any other."""
    if word.isdigit():
        return "number"
    return "name" if word[:1].isupper() else "small" if len(word) <= LONGEST_SMALL else "word"


def questions_of_actions(tables: Tables, embedded: Callable[[Sequence[str]], Tensor]) -> list[Question]:
    """Return (trigger, action): those of all hands first, then each action with near triggers and some others."""
    rows = tables["actions"]
    triggers, acts = (list(dict.fromkeys(row[name] for row in rows)) for name in ("trigger", "action"))
    near = (embedded(acts) @ embedded(triggers).T).topk(NEAR_TRIGGERS).indices.tolist()
    found = {(row.first, row.second): Question(row.first, row.second, row.target, row.weight) for row in actions(rows)}
    for action, places in zip(acts, near, strict=True):
        for trigger in chain((triggers[place] for place in places), random.sample(triggers, FAR_TRIGGERS)):
            found.setdefault((trigger, action), Question(trigger, action))
    return list(found.values())
