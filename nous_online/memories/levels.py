"""The four levels a memory can be shown at: full, summary, compressed and index, each no longer than the one before.

Stored levels are used where there are any; others are derived from the memory's text, in its own words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from nous_online.core.errors import InvalidInput
from nous_online.language.lexicon import NEGATORS
from nous_online.language.writing.fact_lines import (
    LONGEST_SCOPE,
    byte_count,
    fact_line,
    key_of,
    shortest_sentence,
    terse_line,
    with_subject,
)
from nous_online.language.writing.lexrank import LONGEST_INDEX, index_word, one_line

BANDS = ("goals", "core_patterns", "core_tools", "core_concepts", "implementation_notes")
"""The list fields of a procedure, besides steps and template."""
STEP_PARTS = ("name", "detail")
BAND_TITLES = ("Goals", "Patterns", "Tools", "Concepts", "Notes")
HINT_CHARACTERS = 120  # one line of a context; about 30 tokens
IN_REVIEW = "In review: "
"""How recall begins the second line of a procedure that mostly failed (`recall.sql`)."""
ARROW, ELLIPSIS = "→", "…"
SEVERE = frozenset({"block", "absolute"})
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True)
class Levels:
    """One memory at its four levels; the texts of each are no longer than those of the level before it."""

    full: str
    summary: str
    compressed: str
    index: str
    """A word or a phrase of at most 50 characters, never empty."""


def levels_of(kind: str, row: Mapping[str, Any]) -> Levels:
    """Return a memory at its four levels, from the columns of its table or the fields of `recall.Found`.

    `kind` is `fact`, `episode`, `procedure`, `censor` or `decision`; a column that is absent counts as null. Stored
    levels win, unless they are longer than the level above them. Raises `InvalidInput` for another kind.
    """
    derive = DERIVED.get(kind)
    if derive is None:
        raise InvalidInput(f"there are no levels of a {kind!r}; known: {', '.join(DERIVED)}")
    return derive(row)


def fact_levels(row: Mapping[str, Any]) -> Levels:
    """Return the levels of a fact, with its subject in front where the text does not name it."""
    # An index word means that the levels were stored: a null then repeats the level above it (see `stored_levels`).
    content: str = row["content"]
    subject: str | None = row.get("subject")
    full = with_subject(content, subject)
    index: str | None = row.get("index_word")
    summary = row.get("summary") or (full if index else with_subject(shortest_sentence(content), subject))
    compressed = row.get("compressed") or (summary if index else fact_line(content, subject, scope_of(row)))
    return descending(full, summary, compressed, (index, subject, key_of(compressed)))


def stored_levels(row: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the columns of a new fact that keep its levels; one that only repeats the level above it stays null."""
    levels = fact_levels(row)
    return {
        "summary": levels.summary if levels.summary != levels.full else None,
        "compressed": levels.compressed if levels.compressed != levels.summary else None,
        "index_word": levels.index,
    }


def scope_of(row: Mapping[str, Any]) -> str | None:
    """Return the scope shown with a fact: its category, its project or its first tag, if short enough."""
    tags: Sequence[str] = row.get("tags") or ()
    candidates = (row.get("category"), row.get("project_id"), *tags[:1])
    return next((each for each in candidates if each and len(each) <= LONGEST_SCOPE), None)


def episode_levels(row: Mapping[str, Any]) -> Levels:
    """Return the levels of an episode; until it is completed, its title stands for missing ones."""
    title = row.get("title") or row.get("subject") or ""
    written = (row.get("content"), row.get("detail"), row.get("summary"), row.get("compressed"), title)
    full = next(filter(None, written), None) or row.get("index_word") or "episode"
    summary = row.get("summary") or row.get("compressed") or title or one_line(full)
    compressed = row.get("compressed") or title or one_line(summary)
    return descending(full, summary, compressed, (row.get("index_word"), title))


def procedure_levels(row: Mapping[str, Any]) -> Levels:
    """Return the levels of a procedure; its compressed one is the hint "deploy: test→build→stage".

    Where its text says that it is in review and why, so do its summary, in the second line, and its hint.
    """
    name: str = row.get("name") or row.get("subject") or ""
    full = row.get("content") or procedure_text(name, row)
    steps: Sequence[Any] = row.get("steps") or ()
    template: Any = row.get("template")
    bands: dict[str, Sequence[str]] = {band: row.get(band) or () for band in BANDS}
    is_told = bool(steps or template or any(bands.values()))
    hint = row.get("compressed") or (hint_of(name, bands=bands, steps=steps, template=template) if is_told else name)
    review = [line for line in full.split("\n")[1:2] if line.startswith(IN_REVIEW)]
    first, *more = (row.get("summary") or "\n".join(filter(None, (hint, row.get("trigger"))))).split("\n")
    return descending(
        full, "\n".join([first, *review, *more]), " ".join([hint, *review]), (row.get("index_word"), name)
    )


def procedure_text(name: str, row: Mapping[str, Any]) -> str:
    """Return all fields of a procedure, a line each, as recall shows it."""
    bands = (
        f"{title}: {'; '.join(row[band])}" for band, title in zip(BANDS, BAND_TITLES, strict=True) if row.get(band)
    )
    steps: Sequence[Any] = row.get("steps") or ()
    lines = (each if isinstance(each, str) else ": ".join(filter(None, map(each.get, STEP_PARTS))) for each in steps)
    numbered = (f"{place}. {step}" for place, step in enumerate(lines, start=1))
    template: Mapping[str, Any] = row.get("template") or {}
    filled = (f"{part}: {value}" for part, value in template.items())
    return "\n".join(filter(None, (name, row.get("trigger"), *bands, *numbered, *filled)))


def step_name(step: str | Mapping[str, str]) -> str:
    return step if isinstance(step, str) else step["name"]


def hint_of(name: str, *, bands: Mapping[str, Sequence[str]], steps: Sequence[Any], template: Any) -> str:
    """Return one line that says how it is done: "deploy: test→build→stage"."""
    if steps:
        body = ARROW.join(map(step_name, steps))
    elif template:
        body = ARROW.join(map(str, template))
    else:
        body = next("; ".join(lines) for lines in (bands["core_patterns"], *bands.values()) if lines)
    line = " ".join(f"{name}: {body}".split())
    return line if len(line) <= HINT_CHARACTERS else f"{line[: HINT_CHARACTERS - 1].rstrip()}{ELLIPSIS}"


def censor_levels(row: Mapping[str, Any]) -> Levels:
    """Return the levels of a censor: what not to do, and why; one that blocks says never."""
    trigger = row.get("trigger") or str(row.get("content", "")).partition(": ")[0]
    reason = row.get("reason") or str(row.get("content", "")).partition(": ")[2]
    severity = row.get("severity") or row.get("category")
    reason = "" if reason == trigger else reason  # some name only what is forbidden
    denies = bool(NEGATORS & set(trigger.lower().split()[:2])) or trigger.lower().startswith(("don't", "do not"))
    action = f"never {trigger}" if severity in SEVERE and not denies else trigger
    full = f"{action}: {reason}" if reason else action
    summary = row.get("summary") or (f"{action}: {shortest_sentence(reason)}" if reason else action)
    compressed = row.get("compressed") or (f"{action}: {terse_line(reason)}" if reason else action)
    return descending(full, summary, compressed, (row.get("index_word"), trigger))


def decision_levels(row: Mapping[str, Any]) -> Levels:
    """Return the levels of a decision: what was decided, and why."""
    title: str = row["title"]
    rationale = row.get("rationale") or ""
    full = f"{title}: {rationale}" if rationale else title
    summary = f"{title}: {shortest_sentence(rationale)}" if rationale else title
    return descending(full, summary, fact_line(title), (title,))


def descending(full: str, summary: str, compressed: str, names: Iterable[str | None]) -> Levels:
    """Return levels of which none is longer than the one before it.

    The index is the first of `names` with at most 50 characters that is no longer than the compressed level; else the
    beginning of that level, cut at a word's end if possible.
    """
    shorter = summary if byte_count(summary) <= byte_count(full) else full
    line = _SPACES.sub(" ", compressed).strip()
    line = line if line and byte_count(line) <= byte_count(shorter) else shorter
    spaced = (" ".join(name.split()) for name in names if name)
    fitting = (
        name
        for name in chain(spaced, map(index_word, (line,)))  # made only where none before it fits
        if name and len(name) <= LONGEST_INDEX and byte_count(name) <= byte_count(line)
    )
    opening = line[:LONGEST_INDEX]
    whole = opening if len(line) <= LONGEST_INDEX else opening.rpartition(" ")[0] or opening
    return Levels(full, shorter, line, next(fitting, whole.strip() or opening))


DERIVED: dict[str, Callable[[Mapping[str, Any]], Levels]] = {
    "fact": fact_levels,
    "episode": episode_levels,
    "procedure": procedure_levels,
    "censor": censor_levels,
    "decision": decision_levels,
}
