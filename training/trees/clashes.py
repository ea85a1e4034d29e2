"""Labelled pairs for the question of conflict: another value of one slot, or a denial, against everything else."""
# ruff: noqa: S311, PLR2004 — seeded draws make the model reproducible; odds are read best in place

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from nous_online.language.embedding import Embedder
from nous_online.language.pairs.slots import shared_slot
from training.trees.examples import FOLDED, held_out_texts, rows
from training.trees.sentences import (
    SLOT,
    Scene,
    altered,
    drawn,
    filled_in,
    fresh_scene,
    noised,
    slots_of,
    told,
)
from training.trees.templates import FACTS, SLOTS, VALUE_FIRST, VALUES

THOUSANDS, LARGE = re.compile(r"\b(\d)(\d{3})\b"), re.compile(r"\b(\d{3,})\b")
MOST_OF_A_SLOT = 12  # pairs of values of one DyKnow slot: a long chain of presidents is still one kind of sentence
NEAR = 0.5  # cosine from which two facts of one store are worth telling apart
MOST_NEAR = 3_000
EVERY_PAWS = 4
FAMILY_LETTERS = 24  # PAWS makes several pairs of one sentence: those that open alike are held out together
ROUNDS = 11  # draws of values per statement
SCENES = 1_200
TELLING = frozenset({"actor", "deed", "object", "spot"})  # in another of these, a scene is another for certain
DATE = frozenset({"dom", "month", "year"})
DENIALS = (
    (" is ", (" is not ", " isn't ", " is no longer ")),
    (" was ", (" was not ", " wasn't ")),
    (" are ", (" are not ", " aren't ")),
    (" has ", (" does not have ", " has no ", " doesn't have ")),
    (" uses ", (" does not use ", " doesn't use ", " never uses ")),
    (" lives ", (" does not live ", " doesn't live ")),
    (" works ", (" does not work ", " doesn't work ")),
    (" plays ", (" does not play ", " doesn't play ")),
    (" likes ", (" does not like ", " doesn't like ")),
    (" meets ", (" does not meet ", " never meets ")),
    (" runs ", (" does not run ", " doesn't run ")),
)


@dataclass(frozen=True)
class Clash:
    """Two texts, whether they exclude each other as values of one slot, and the family they are held out with."""

    a: str
    b: str
    is_conflict: bool
    source: str
    family: str


def labelled_clashes(folder: Path, *, embedder: Embedder, seed: int) -> list[Clash]:
    """Return the training pairs: no text of `facts_pairs.jsonl`, each pair once, the same for the same seed."""
    rng = random.Random(seed)
    held_out = held_out_texts(folder)
    read = [*_paws(folder), *_stsb(folder), *_consolidated(folder), *_dated(folder, rng)]
    free = [pair for pair in read if not {pair.a, pair.b} & held_out]
    apart = _apart(folder, held_out, free, embedder, rng)
    written = [*_fact_clashes(rng), *_scene_clashes(rng)]
    return [pair for pair in dict.fromkeys([*free, *apart, *written]) if pair.a != pair.b]


def _paws(folder: Path) -> Iterator[Clash]:
    for number, row in enumerate(rows(folder / "pairs_paws.jsonl")):
        if number % EVERY_PAWS == 0:
            yield _read(row, "PAWS")


def _stsb(folder: Path) -> Iterator[Clash]:
    for row in rows(folder / "pairs_stsb.jsonl"):
        yield _read(row, "STS-B")


def _read(row: dict[str, Any], source: str) -> Clash:
    """Return a pair that is no conflict; several made of one sentence are held out together."""
    family = f"{source} {min(row['a'], row['b'])[:FAMILY_LETTERS]}"
    return Clash(row["a"], row["b"], is_conflict=False, source=source, family=family)


def _consolidated(folder: Path) -> Iterator[Clash]:
    for row in rows(folder / "fc_conflicts.jsonl"):
        yield Clash(row["old"], row["new"], is_conflict=True, source="FactConsolidation", family=f"fact {row['slot']}")


def _dated(folder: Path, rng: random.Random) -> Iterator[Clash]:
    held_out = held_out_texts(folder)
    slots: dict[str, dict[str, str]] = {}
    for row in rows(folder / "dyknow_facts.jsonl"):
        if row["fact"] not in held_out:
            slots.setdefault(row["slot"], {})[row["value"]] = row["fact"]
    for slot, facts in slots.items():
        pairs = list(combinations(facts.values(), 2))
        for a, b in rng.sample(pairs, min(MOST_OF_A_SLOT, len(pairs))):
            yield Clash(a, b, is_conflict=True, source="DyKnow", family=f"fact {slot}")


def _apart(
    folder: Path, held_out: set[str], known: list[Clash], embedder: Embedder, rng: random.Random
) -> Iterator[Clash]:
    """Yield near facts of other slots; what the slots say is one, without the sets saying so, is left out."""
    slots = {row["fact"]: row["slot"] for row in rows(folder / "dyknow_facts.jsonl")}
    facts = sorted(({row["fact"] for row in rows(folder / "fc_facts.jsonl")} | set(slots)) - held_out)
    vectors = embedder.embed_documents(facts)
    conflicts = {frozenset((pair.a, pair.b)) for pair in known}
    near: list[tuple[int, int]] = []
    for start in range(0, len(facts), FOLDED):
        close = vectors[start : start + FOLDED] @ vectors.T >= NEAR
        near += [(start + int(i), int(j)) for i, j in np.argwhere(close) if start + i < j]
    for i, j in rng.sample(near, min(MOST_NEAR, len(near))):
        a, b = facts[i], facts[j]
        is_one_slot = slots.get(a, a) == slots.get(b, b) or frozenset((a, b)) in conflicts or shared_slot(a, b)
        if not is_one_slot:
            yield Clash(a, b, is_conflict=False, source="facts", family=f"fact {a}")


def _fact_clashes(rng: random.Random) -> Iterator[Clash]:
    for number, wordings in enumerate((*FACTS, *SLOTS)):
        slots = slots_of(wordings)
        subject = _subject(wordings)
        if subject is None:
            continue
        for _ in range(ROUNDS):
            filled = drawn(slots, rng)
            for kind, a, b in _told_apart(wordings, subject, filled, rng):
                is_conflict = kind in {"value", "denied", "nested"}
                yield Clash(a, b, is_conflict=is_conflict, source=f"written-{kind}", family=f"line {number}")


def _subject(wordings: tuple[str, ...]) -> str | None:
    """Return the slot a statement is about, when the others are one value of it."""
    slots = list(dict.fromkeys(SLOT.findall(wordings[0])))
    subject = slots[-1] if wordings[0] in VALUE_FIRST else slots[0]
    others = set(slots_of(wordings)) - {subject}
    return subject if len(others) == 1 or (len(others) > 1 and others <= DATE) else None


def _told_apart(
    wordings: tuple[str, ...], subject: str, filled: dict[str, str], rng: random.Random
) -> Iterator[tuple[str, str, str]]:
    one, other = rng.choice(wordings), rng.choice(wordings)
    value = rng.choice(sorted(filled.keys() - {subject}))
    revalued, renamed = (_with_other(filled, slot, rng) for slot in (value, subject))
    text = filled_in(one, filled)
    yield "value", text, filled_in(other, revalued)
    yield "value", text, filled_in(one, _with_other(filled, value, rng))
    yield from _nested(wordings, value, filled, rng)
    if one.startswith(f"{{{subject}}}"):  # "Ana owns the shop", "Ana owns the inn": of which of the two is it said?
        yield "subject", text, filled_in(one, renamed)
    yield "both", text, filled_in(one, _with_other(renamed, value, rng))
    yield "wording", text, filled_in(other, filled)
    yield "noise", text, _sloppily(filled_in(rng.choice((one, other)), filled), rng)
    denial = _denied(other, rng)
    if denial:
        yield "denied", text, filled_in(denial, filled)
        yield "denied-other", text, filled_in(denial, rng.choice((renamed, revalued)))
    lines = [line for line in FACTS if line != wordings and subject in slots_of(line)]
    if lines:
        line = rng.choice(lines)
        yield "predicate", text, filled_in(rng.choice(line), {**drawn(slots_of(line), rng), subject: filled[subject]})


def _sloppily(text: str, rng: random.Random) -> str:
    """Write the same otherwise: figures grouped or with decimals, another spelling of a name, no accents."""
    figures = THOUSANDS.sub(r"\1,\2", text) if rng.random() < 0.5 else LARGE.sub(r"\1.0", text)
    letters = [place for place, letter in enumerate(figures) if letter.islower() and place > 3]
    slip = rng.choice(letters)
    return rng.choice((figures, noised(figures, rng), figures[:slip] + figures[slip + 1 :]))


def _nested(
    wordings: tuple[str, ...], value: str, filled: dict[str, str], rng: random.Random
) -> Iterator[tuple[str, str, str]]:
    """Say the same of a place and of a wider or a nearer one: another value, though both may hold."""
    if value == "city":
        wider = rng.choice(VALUES["place"])
        nearer = f"{rng.choice(VALUES['thing'])}, {filled[value]}"
        one, other = rng.choice(wordings), rng.choice(wordings)
        yield "nested", filled_in(one, filled), filled_in(other, {**filled, value: rng.choice((wider, nearer))})


def _with_other(filled: dict[str, str], slot: str, rng: random.Random) -> dict[str, str]:
    free = [value for value in VALUES[slot.rstrip("2")] if value not in filled.values()]
    return {**filled, slot: rng.choice(free)}


def _denied(wording: str, rng: random.Random) -> str | None:
    usable = [(said, denials) for said, denials in DENIALS if wording.count(said) == 1]
    if not usable:
        return None
    said, denials = rng.choice(usable)
    return wording.replace(said, rng.choice(denials))


def _scene_clashes(rng: random.Random) -> Iterator[Clash]:
    for _ in range(SCENES):
        scene = fresh_scene(rng)
        other, kind = altered(scene, rng)
        family = f"scene {scene.deed[0][0]}"
        plain = told(scene, rng)
        yield Clash(plain, told(scene, rng), is_conflict=False, source="written-scene", family=family)
        yield Clash(plain, told(other, rng), is_conflict=False, source="written-scene-other", family=family)
        denial = told(_told_less(scene, rng), rng, is_denied=True)
        yield Clash(plain, denial, is_conflict=True, source="written-scene-denied", family=family)
        if kind in TELLING:
            apart = told(other, rng, is_denied=True)
            yield Clash(plain, apart, is_conflict=False, source="written-scene-denied-other", family=family)


def _told_less(scene: Scene, rng: random.Random) -> Scene:
    """Return the scene with some of its details left out: who denies that denies the whole of it."""
    left_out = rng.sample(("trait", "object_trait", "spot", "manner"), rng.randrange(4))
    return replace(scene, **dict.fromkeys(left_out, ("",)))
