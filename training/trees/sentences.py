"""Labelled pairs over the sentences of `templates`: wordings of one statement, and look-alikes that differ in one thing."""
# ruff: noqa: S311, PLR2004, E501 — seeded draws make the model reproducible; odds are read best in place

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from training.trees.templates import (
    ACTORS,
    ADDITIONS,
    DEEDS,
    FACTS,
    MANNERS,
    QUALIFIERS,
    SPOTS,
    TRAITS,
    VALUES,
)

SLOT = re.compile(r"{(\w+)}")
BEFORE_NOUN = re.compile(r"(?<=\b[Tt]he )(?=[a-z])|(?<=\ba )(?=[a-z])|(?<='s )(?=[a-z])")
A_BEFORE_VOWEL = re.compile(r"\ba (?=[aeiou])")
FACT_ROUNDS = 24  # draws of values per statement
SCENE_ROUNDS = 2_500


@dataclass(frozen=True)
class Example:
    """Two texts, whether they say the same, and where they come from."""

    a: str
    b: str
    is_same: bool
    source: str


def written_examples(seed: int) -> list[Example]:
    """Return the pairs generated from sentences written for this purpose, the same for the same seed."""
    rng = random.Random(seed)
    pairs = [*_fact_pairs(rng), *_scene_pairs(rng)]
    return [pair for pair in dict.fromkeys(pairs) if pair.a != pair.b]


def _fact_pairs(rng: random.Random) -> Iterator[Example]:
    for wordings in FACTS:
        slots = slots_of(wordings)
        for _ in range(FACT_ROUNDS):
            filled = drawn(slots, rng)
            one, other = rng.sample(wordings, 2)
            yield Example(filled_in(one, filled), filled_in(other, filled), is_same=True, source="written-wording")
            yield Example(
                filled_in(one, filled), noised(filled_in(one, filled), rng), is_same=True, source="written-noise"
            )
            yield Example(
                filled_in(one, filled), noised(filled_in(other, filled), rng), is_same=True, source="written-sloppy"
            )
            changed = {**filled, **_changed(slots, filled, rng)}
            yield Example(
                filled_in(one, filled),
                filled_in(rng.choice((one, other)), changed),
                is_same=False,
                source="written-value",
            )
            yield from _widened(one, other, filled, rng)
            yield from _qualified(one, other, filled, rng)
            yield from _exchanged(one, other, filled, rng)
            yield from _restated(wordings, filled, rng)


def _restated(wordings: tuple[str, ...], filled: dict[str, str], rng: random.Random) -> Iterator[Example]:
    """Say something else of the same things: "the capital of Kenya is …" against "the largest city in Kenya is …"."""
    slots = sorted(filled)
    others = [line for line in FACTS if not {*line} & {*wordings} and slots_of(line) == slots]
    if others:
        text = filled_in(rng.choice(rng.choice(others)), filled)
        yield Example(filled_in(rng.choice(wordings), filled), text, is_same=False, source="written-predicate")


def slots_of(wordings: tuple[str, ...]) -> list[str]:
    return sorted(set(SLOT.findall(" ".join(wordings))))


def drawn(slots: list[str], rng: random.Random) -> dict[str, str]:
    filled: dict[str, str] = {}
    for slot in slots:
        free = [value for value in VALUES[slot.rstrip("2")] if value not in filled.values()]
        filled[slot] = rng.choice(free)
    return filled


def _changed(slots: list[str], filled: dict[str, str], rng: random.Random) -> dict[str, str]:
    slot = rng.choice(slots)
    return {slot: rng.choice([value for value in VALUES[slot.rstrip("2")] if value not in filled.values()])}


def filled_in(wording: str, filled: dict[str, str]) -> str:
    text = wording.format(**filled)
    return text[0].upper() + text[1:]


def _widened(one: str, other: str, filled: dict[str, str], rng: random.Random) -> Iterator[Example]:
    """Narrow or widen one value: "in Ghent" against "in Ghent, Belgium", "in Belgium", "garlic" against "garlic and rice"."""
    if "city" in filled:
        place = rng.choice([value for value in VALUES["place"] if value not in filled.values()])
        text, told = filled_in(one, filled), rng.choice((one, other))
        whole = filled_in(told, {**filled, "city": f"{filled['city']}, {place}"})
        if told.rstrip(".").endswith("{city}"):
            yield Example(text, whole, is_same=False, source="written-wider")
        elif not filled.keys() & {"person", "thing", "company", "title"}:
            yield Example(text, whole, is_same=True, source="written-whole")
        yield Example(filled_in(one, {**filled, "city": place}), whole, is_same=False, source="written-wider")
    if "food" in filled:
        more = {**filled, "food": f"{filled['food']} and {rng.choice(VALUES['food'])}"}
        yield Example(
            filled_in(one, filled), filled_in(rng.choice((one, other)), more), is_same=False, source="written-wider"
        )
    if "thing" in filled:
        extra = rng.choice(
            (" since last year", " for a short time", " together with its sister company", " in the old town")
        )
        text = filled_in(other, filled).rstrip(".") + extra + "."
        yield Example(filled_in(one, filled), text, is_same=False, source="written-wider")


def _qualified(one: str, other: str, filled: dict[str, str], rng: random.Random) -> Iterator[Example]:
    """Add a word or a phrase that says more: "the former owner", "… and Bergen", "… for two years"."""
    plain, text = filled_in(one, filled), filled_in(rng.choice((one, one, other)), filled)
    nouns = [match.start() for match in BEFORE_NOUN.finditer(text)]
    if nouns:
        place = rng.choice(nouns)
        qualified = f"{text[:place]}{rng.choice(QUALIFIERS)} {text[place:]}"
        yield Example(plain, qualified, is_same=False, source="written-qualified")
    ending = rng.choice(ADDITIONS).format(**drawn(["city", "person", "place", "year", "food"], rng))
    yield Example(plain, f"{text.rstrip('.')} {ending}.", is_same=False, source="written-addition")


def _exchanged(one: str, other: str, filled: dict[str, str], rng: random.Random) -> Iterator[Example]:
    """Exchange the two values of one kind, in the same or in the other wording."""
    for slot, value in filled.items():
        if slot + "2" in filled and " and {" not in one + other:
            turned = {**filled, slot: filled[slot + "2"], slot + "2": value}
            yield Example(
                filled_in(one, filled),
                filled_in(rng.choice((one, other)), turned),
                is_same=False,
                source="written-roles",
            )


def noised(text: str, rng: random.Random) -> str:
    """Change what carries no meaning: the full stop, letter case, a filler, an article, a possessive."""
    plain = text.rstrip(".")
    return (
        plain,
        text.lower(),
        text.replace(" is ", " is currently ", 1) if " is " in text else f"{plain} .",
        text.replace("The ", "", 1) if text.startswith("The ") else f"{plain}!",
        text.replace(" was ", " has been ", 1) if " was " in text else text.upper(),
        text.replace(" the ", " ").removeprefix("The "),
        text.replace("'s ", " "),
    )[rng.randrange(7)]


@dataclass(frozen=True)
class Scene:
    """One everyday scene; every part is a tuple of interchangeable spellings."""

    trait: tuple[str, ...]
    actor: tuple[str, ...]
    deed: tuple[tuple[str, ...], ...]
    object: tuple[str, ...]
    object_trait: tuple[str, ...]
    spot: tuple[str, ...]
    manner: tuple[str, ...]


def _scene_pairs(rng: random.Random) -> Iterator[Example]:
    for _ in range(SCENE_ROUNDS):
        scene = fresh_scene(rng)
        yield Example(told(scene, rng), told(scene, rng), is_same=True, source="written-scene")
        other, kind = altered(scene, rng)
        yield Example(told(scene, rng), told(other, rng), is_same=False, source=f"written-scene-{kind}")


def fresh_scene(rng: random.Random) -> Scene:
    deed = rng.choice(DEEDS)
    return Scene(
        trait=_spellings(rng.choice(("", "", *TRAITS))),
        actor=_spellings(rng.choice(ACTORS)),
        deed=tuple(_spellings(part) for part in deed[:3]),
        object=_spellings(rng.choice(deed[3].split(","))),
        object_trait=_spellings(rng.choice(("", "", "", *TRAITS))),
        spot=_spellings(rng.choice(SPOTS)),
        manner=_spellings(rng.choice(MANNERS)),
    )


def _spellings(part: str) -> tuple[str, ...]:
    return tuple(part.strip().split("/"))


def altered(scene: Scene, rng: random.Random) -> tuple[Scene, str]:
    """Change one part of a scene so that it is another scene."""
    fresh = fresh_scene(rng)
    same_deed = next(deed for deed in DEEDS if _spellings(deed[0]) == scene.deed[0])
    changes = {
        "actor": replace(scene, actor=fresh.actor),
        "deed": replace(scene, deed=fresh.deed),
        "object": replace(scene, object=_spellings(rng.choice(same_deed[3].split(",")))),
        "trait": replace(scene, trait=fresh.trait),
        "object-trait": replace(scene, object_trait=fresh.object_trait),
        "spot": replace(scene, spot=fresh.spot),
        "manner": replace(scene, manner=fresh.manner),
        "moved-trait": replace(scene, trait=scene.object_trait, object_trait=scene.trait),
    }
    usable = [kind for kind, other in changes.items() if other != scene]
    kind = rng.choice(usable)
    return changes[kind], kind


def told(scene: Scene, rng: random.Random) -> str:
    """Return a scene in one of several constructions, with any spelling of each part."""
    actor, trait = rng.choice(scene.actor), rng.choice(scene.trait)
    article = rng.choice(("a", "a", "the", "one"))
    relative = bool(trait) and rng.random() < 0.25
    who = f"{article} {actor}, who is {trait}," if relative else f"{article} {trait} {actor}"
    doing, done, does = (rng.choice(spellings) for spellings in scene.deed)
    thing = _thing(scene, rng)
    spot, manner = rng.choice(scene.spot), rng.choice(scene.manner)
    said = rng.choice(_constructions(_Parts(who, doing, done, does, thing, spot, manner)))
    said = A_BEFORE_VOWEL.sub("an ", " ".join(said.split()).rstrip(","))
    return said[0].upper() + said[1:] + rng.choice(("", "."))


@dataclass(frozen=True)
class _Parts:
    """The spelled parts of a scene."""

    who: str
    doing: str
    done: str
    does: str
    thing: str
    spot: str
    manner: str


def _constructions(p: _Parts) -> tuple[str, ...]:
    return (
        f"{p.who} is {p.manner} {p.doing} {p.thing} {p.spot}",
        f"{p.who} is {p.doing} {p.thing} {p.manner} {p.spot}",
        f"{p.who} {p.manner} {p.does} {p.thing} {p.spot}",
        f"{p.thing} is being {p.manner} {p.done} by {p.who} {p.spot}",
        f"there is {p.who} {p.manner} {p.doing} {p.thing} {p.spot}",
        f"{p.spot or p.who} {p.who if p.spot else ''} is {p.manner} {p.doing} {p.thing}",
    )


def _thing(scene: Scene, rng: random.Random) -> str:
    written, trait = rng.choice(scene.object), rng.choice(scene.object_trait)
    article, _, noun = written.partition(" ")
    article = "a" if article == "an" else article
    if not noun or not trait:
        return written
    return f"{article} {noun} which is {trait}" if rng.random() < 0.25 else f"{article} {trait} {noun}"
