"""No text can stop a process: every pattern, and every entrance of texts, takes time linear in what it reads.

Time is CPU time of the thread, so other work on the machine counts for nothing.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import hostile_texts
import pytest
from hostile_texts import ENDS, RUNS, cpu_seconds, filled
from turns import in_turn

import nous_online
import nous_pipelines
from nous_online.core.patterns import LatePattern

ROOT = Path(__file__).parents[3]
LONG = 4_000
FLOOR_S = 0.015
"""Less says nothing about how time grows."""
HINT_S = FLOOR_S / 16
"""For a quarter of a text: from less, quadratic time does not reach the floor."""
MOST_S = 0.2
"""For the longer text: fifty microseconds a character, a minute for a megabyte."""
MOST_GROWTH = 8.0
"""Four times the text: linear time grows by 4, quadratic by 16."""
LIMIT = 1.25
"""As many times what it may take a search is given before it is ended: nobody waits for how slow it is."""
ELSEWHERE = {
    # makes the patterns of closed lists, all of them kept in modules
    "nous_online/language/lexicon.py phrases",
    # sets of characters that are read from the table of the tokenizer
    "nous_online/language/tokens.py pieces_of_claude",
    # makes the patterns that the others ask for
    "nous_online/core/patterns.py compiled",
    # holds the name of an agent, which only a run that erases it knows
    "nous_pipelines/orchestration/night_erasure.py __init__",
}
SLOW = (
    r"[.!?]+[\"']{0,4}\s+", r"\s*\n\s*", r"\s+$", r"(?:a|a)+b", r"[\w@]+/", r"^(\w+\s?)*:", r"(\w+) in <name>",
)  # fmt: skip
"""Patterns that take longer, each in a way of its own."""
USES = frozenset({"compile", "search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn", "template"})
USING = re.compile(rf"^(?=\s|def |async def ).*(?:\bre\.({'|'.join(USES)})\b|\bregex\()", re.MULTILINE)
"""On a line that may be part of a function."""


def modules() -> Iterator[types.ModuleType]:
    """Yield every module of the packages; a program is no module."""
    for package in (nous_online, nous_pipelines):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def patterns_in(value: object, name: str) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Yield the patterns a value is or holds, by name."""
    value = value.compiled() if isinstance(value, LatePattern) else value
    if isinstance(value, re.Pattern):
        yield name, value
    elif type(value) in (tuple, list, set, frozenset, dict):
        entries: Any = value
        pairs = entries.items() if isinstance(entries, dict) else enumerate(entries)
        for place, each in pairs:
            yield from patterns_in(each, f"{name}[{place!r}]")


def compiled() -> dict[str, re.Pattern[Any]]:
    """Return every pattern of the packages once, under the first name it is known by."""
    found: dict[tuple[Any, int], tuple[str, re.Pattern[Any]]] = {}
    for module in modules():
        for attribute, value in list(vars(module).items()):
            for name, pattern in patterns_in(value, f"{module.__name__}.{attribute}"):
                found.setdefault((pattern.pattern, pattern.flags), (name, pattern))
    return dict(found.values())


def most_s(text: str) -> float:
    """Return how long a search of a text may take."""
    return MOST_S * max(len(text) / LONG, 1)


def search_s(pattern: re.Pattern[Any], text: str) -> float:
    """Return the CPU time of looking for a pattern everywhere in a text, and of fitting it to the whole."""
    looked_at = text.encode() if isinstance(pattern.pattern, bytes) else text

    def look() -> None:
        for _ in pattern.finditer(looked_at):
            pass
        pattern.fullmatch(looked_at)

    return cpu_seconds(look, limit_s=LIMIT * most_s(text))


def slowness(pattern: re.Pattern[Any], runs: Sequence[str] = RUNS, ends: Sequence[str] = ENDS) -> str | None:
    """Return which text a pattern is too slow for, None where it is fast for all.

    What grows too fast is asked again of longer texts: a repetition of at most 2,000 characters is slow up to these.
    """
    for prefix, pump, end in hostile_texts.attacks_on(pattern, runs, ends):
        found = None
        for length in (LONG, 4 * LONG):
            longer, shorter = (filled(pump, size, prefix=prefix, end=end) for size in (length, length // 4))
            found = growth(pattern, longer, shorter)
            if found is None:
                break
        if found:
            return f"{prefix!r} and {pump!r} over and over: {found}"
    return None


def growth(pattern: re.Pattern[Any], longer: str, shorter: str) -> str | None:
    """Return how much longer the longer text takes, None where that is little or nothing.

    The shorter is asked first: most patterns show by it that they take no time. What looks slow is asked twice.
    """
    shorter_s = search_s(pattern, shorter)
    if shorter_s < HINT_S:
        return None
    took_s = search_s(pattern, longer)
    if took_s < FLOOR_S:
        return None
    if took_s >= LIMIT * most_s(longer):
        return f"more than {took_s} s, and nobody knows how much"
    took_s, shorter_s = min(took_s, search_s(pattern, longer)), min(shorter_s, search_s(pattern, shorter))
    grew = took_s / max(shorter_s, 1e-6)
    if took_s > most_s(longer) or (took_s > FLOOR_S and grew > MOST_GROWTH):
        return f"{took_s:.3f} s, {grew:.1f} times a quarter of it"
    return None


def test_every_pattern_takes_linear_time_on_hostile_text() -> None:
    patterns = compiled()

    slow = {
        name: found
        for place, (name, pattern) in enumerate(patterns.items())
        if (found := slowness(pattern, in_turn(RUNS, of=8, place=place), in_turn(ENDS, of=3, place=place // 8)))
    }

    assert len(patterns) > 400
    assert slow == {}


@pytest.mark.parametrize("pattern", in_turn(SLOW, of=len(SLOW)))
def test_the_clock_finds_a_pattern_that_takes_longer(pattern: str) -> None:
    assert slowness(re.compile(pattern)) is not None


def makes_a_pattern(node: ast.AST) -> bool:
    """Tell whether a node of a program is `re.search`, or another of these, or the name `regex`."""
    if isinstance(node, ast.Name):
        return node.id == "regex"
    return isinstance(node, ast.Attribute) and node.attr in USES and getattr(node.value, "id", None) == "re"


def test_no_pattern_is_written_where_this_file_does_not_find_it() -> None:
    hidden = {
        f"{path.relative_to(ROOT)} {function.name}"
        for folder in ("nous_online", "nous_pipelines")
        for path in (ROOT / folder).rglob("*.py")
        if USING.search(text := path.read_text("utf-8"))
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if makes_a_pattern(node)
    }

    assert hidden == ELSEWHERE
