"""What is learned from: labelled rows for the teachers, and pairs without a label that the teachers answer."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import Tensor

from training.pairs.fitting import Row

Tables: TypeAlias = dict[str, list[dict[str, Any]]]
TABLES = ("own", "near", "nli", "paws", "wording", "actions")
LABELS = "SUNDRVC"
TURNED = {"S": "S", "D": "D", "C": "C", "R": "V", "V": "R"}
"""What a pair is the other way round; an update turned round is one again where its wording is plain."""
ENTAILMENT = ("entailment", "neutral", "contradiction")
SMOOTHING = 0.1
TURNED_SHARE, REPEATED_SHARE, NEAR_SHARE, PUBLIC_SHARE = 0.25, 0.05, 0.3, 0.2
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
NEAR_IN_HAND, NEAR_ELSEWHERE, NEAR_TRIGGERS, FAR_TRIGGERS = 6, 3, 12, 3
"""Neighbours of a statement in its own hand and elsewhere, and triggers of an action, that teachers read it with."""
SWAPPED = 70_000
"""Pairs in which one word of the second statement was exchanged for one of another."""
WORD = re.compile(r"[^\W_]+")
SHORTEST_SWAPPED = 3
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
        *(Row(row["a"], row["b"], "outcome", chances_of("D"), 0.6) for row in near),
        *actions(tables["actions"]),
        *(Row(row["a"], row["b"], "entailment", one_of(ENTAILMENT, row["label"])) for row in nli),
        *(Row(row["a"], row["b"], "paraphrase", (float(row["label"]),)) for row in paws),
        *(Row(row["a"], row["b"], "outcome", chances_of("DS"[row["label"]]), 0.6) for row in moved),
    ]


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


def unlabelled(tables: Tables, embedded: Callable[[Sequence[str]], Tensor]) -> list[tuple[str, str]]:
    """Return pairs of statements that a store might bring together, to be answered by the teachers.

    Neighbours of one hand and language (or of one public set), neighbours elsewhere, pairs with one word exchanged, and
    the pairs that have a label. First statements of one hand are not paired: calibration reads those as strangers.
    """
    own, firsts, hands = tables["own"], {row["a"] for row in tables["own"]}, dict[str, str]()
    for row in own:
        hands.update({row[side]: f"{row['author']} {row['lang']}" for side in ("a", "b")})
    for name in ("nli", "paws"):
        hands.update({row[side]: name for row in tables[name] for side in ("a", "b")})
    texts = list(hands)
    vectors = embedded(texts)
    number = {hand: at for at, hand in enumerate(dict.fromkeys(hands.values()))}
    of_hand = torch.tensor([number[hands[text]] for text in texts], device=vectors.device)
    is_first = torch.tensor([text in firsts for text in texts], device=vectors.device)
    met: dict[frozenset[str], tuple[str, str]] = {}
    for start in range(0, len(texts), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        closeness = (vectors[rows] @ vectors.T).float()
        is_own = of_hand[rows][:, None] == of_hand[None]
        inside = closeness.masked_fill(~is_own | (is_first[rows][:, None] & is_first[None]), -1)
        for near, most in ((inside, NEAR_IN_HAND), (closeness.masked_fill(is_own, -1), NEAR_ELSEWHERE)):
            for at, places in enumerate(near.topk(most).indices.tolist(), start=start):
                pairs = [(texts[place], texts[at]) for place in places if texts[place] != texts[at]]
                met.update({frozenset(pair): pair for pair in pairs})
    public = [(row["a"], row["b"]) for name in ("nli", "paws") for row in tables[name]]
    labelled = [(row["a"], row["b"]) for row in [*own, *tables["wording"]]]
    turned = [(b, a) for a, b in labelled]
    pairs = [pair if random.random() < 0.5 else pair[::-1] for pair in met.values()]  # noqa: S311, PLR2004 (either order)
    return list(dict.fromkeys([*pairs, *public, *labelled, *turned, *swapped(own)]))


def swapped(own: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield pairs in which one word that both statements have is another in the second, of another pair of the hand."""
    words: dict[str, list[str]] = {}
    for row in own:
        words.setdefault(row["author"] + row["lang"], []).extend(WORD.findall(row["b"]))
    for row in random.choices(own, k=SWAPPED):  # noqa: S311 (no secret)
        both = [
            word
            for word in WORD.findall(row["b"])
            if len(word) >= SHORTEST_SWAPPED or word.isdigit() or word in row["a"]
        ]
        if not both:
            continue
        old, others = random.choice(both), words[row["author"] + row["lang"]]  # noqa: S311
        like = [word for word in random.choices(others, k=40) if kind(word) == kind(old) and word != old]  # noqa: S311
        if like:
            yield row["a"], re.sub(rf"\b{re.escape(old)}\b", like[0], row["b"], count=1)


def kind(word: str) -> str:
    """Return what a word looks like: a number, a name, or any other."""
    return "number" if word.isdigit() else "name" if word[:1].isupper() else "word"


def unanswered_actions(tables: Tables, embedded: Callable[[Sequence[str]], Tensor]) -> list[tuple[str, str]]:
    """Return (trigger, action) pairs: each action with its own trigger, with the nearest ones, and with some others."""
    rows = tables["actions"]
    triggers, actions = (list(dict.fromkeys(row[name] for row in rows)) for name in ("trigger", "action"))
    near = (embedded(actions) @ embedded(triggers).T).topk(NEAR_TRIGGERS).indices.tolist()
    found = [(row["trigger"], row["action"]) for row in rows]
    for action, places in zip(actions, near, strict=True):
        found += [(triggers[place], action) for place in places]
        found += [(trigger, action) for trigger in random.sample(triggers, FAR_TRIGGERS)]
    return list(dict.fromkeys(found))
