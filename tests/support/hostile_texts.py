"""Texts written to make a search slow, drawn from a pattern or fixed, and a clock that counts CPU alone."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from re import _parser  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType] (not in the stubs)
from typing import Any

OF_CATEGORY = {
    "CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "a", "CATEGORY_NOT_WORD": "-",
    "CATEGORY_NOT_SPACE": "a", "CATEGORY_NOT_DIGIT": "a",
}  # fmt: skip
ORDINARY = "a1 -.\n\"'(_:*A\u4e2d"
END = "\x00"
"""What hardly any pattern goes on with."""
ENDS = (END, "a", "\n")
RUNS = (
    ".", "!", "…", ",", ";", ":", " ", "\n", "\t", "\r\n", "a", "A", "1", "-", "_", "\"", "'", "(", "[", "{", "*", "`",
    "#", "|", "<", "@", "/", "。", "é", "\u200b", ". ", "Mr. ", "a. ", "A. ", "a ", " a", "A ", "1 ", "1.", "1,", "a-",
    "a.b", "\n ", " \n", "a\n", "\n- ", "# a\n", "a: ", "a: b\n", "](", "[[", "**a", "<!--", "a' ", "\" ", " ,", "not ",
    "is a ", "in 1 ", "password ", "token: ", "Step: a | ", "@a", "a@", ".0", "a/", "- - ", "we never ", "without ",
)  # fmt: skip


class TooSlow(Exception):
    """Raised in the midst of a search that took more CPU than it was given."""


def cpu_seconds(work: Callable[[], object], *, limit_s: float) -> float:
    """Return how much CPU `work` takes in this thread; work that takes more than `limit_s` is ended and counts so."""
    if threading.current_thread() is not threading.main_thread():
        raise AssertionError("only the main thread can be ended by a signal")

    def end(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    started = time.thread_time()
    try:
        work()
    except TooSlow:
        return limit_s
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return time.thread_time() - started


def filled(pump: str, length: int, *, prefix: str = "", end: str = END) -> str:
    """Return a text of `length` characters: a prefix, then one thing over and over."""
    return (prefix + pump * (length // len(pump) + 1))[:length] + end


def attacks_on(
    pattern: re.Pattern[Any], runs: Sequence[str] = RUNS, ends: Sequence[str] = ENDS
) -> list[tuple[str, str, str]]:
    """Return (prefix, what to repeat, end) of texts that fit a pattern up to one of its repetitions, and then don't.

    To them come `runs`, whatever the pattern is.
    """
    pumps: list[tuple[str, str]] = []
    whole = sample(_parser.parse(pattern.pattern, pattern.flags), "", pumps)
    found = [(prefix, pump, end) for prefix, pump in pumps for end in ends]
    found += [("", prefix + pump, END) for prefix, pump in pumps if prefix]
    found += [("", near, END) for near in (whole, whole[:-1]) if near]
    return list(dict.fromkeys([*found, *(("", run, END) for run in runs)]))


def sample(parsed: Any, prefix: str, pumps: list[tuple[str, str]]) -> str:
    """Return a text that fits a parsed pattern, and note each repetition in it with what stands before it."""
    text = ""
    for operation, argument in parsed:
        name, before = str(operation), prefix + text
        if name in OF_ONE:
            text += OF_ONE[name](argument)
        elif name.endswith("REPEAT"):
            text += repeated(argument, before, pumps)
        elif name in INSIDE:
            found = [sample(inner, before, pumps) for inner in INSIDE[name](argument)][0]  # noqa: RUF015 — all of them note theirs
            is_told = not name.startswith("ASSERT") or (name == "ASSERT" and argument[0] < 0)
            text += found if is_told else ""
    return text


def repeated(argument: Any, prefix: str, pumps: list[tuple[str, str]]) -> str:
    """Return a text that fits a repetition, and note what can be repeated; three times or fewer is none."""
    least, most, body = argument
    inner = sample(body, prefix, pumps)
    is_class = len(body) == 1 and str(body[0][0]) == "IN"
    if int(most) > 3:
        pumps += [(prefix, each) for each in (members(body[0][1]) if is_class else [inner]) if each]
    return inner * max(int(least), 1)


def members(items: Sequence[Any]) -> list[str]:
    """Return a character for each thing a class mentions; for a class of all others, ordinary ones that it holds."""
    if str(items[0][0]) == "NEGATE":
        refused = re.compile(f"[{''.join(map(written, items[1:]))}]")
        return [each for each in ORDINARY if not refused.match(each)]
    return list(map(first_of, items))


def first_of(item: Any) -> str:
    """Return one character of a part of a class."""
    operation, argument = item
    if str(operation) == "CATEGORY":
        return OF_CATEGORY[str(argument)]
    return chr(argument[0] if isinstance(argument, tuple) else argument)


def written(item: Any) -> str:
    """Return a part of a class as it is written in a pattern."""
    operation, argument = item
    if str(operation) == "CATEGORY":
        letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[str(argument).rsplit("_", maxsplit=1)[-1]]
        return f"\\{letter.upper() if 'NOT' in str(argument) else letter}"
    ends = argument if isinstance(argument, tuple) else (argument,)
    return "-".join(re.escape(chr(code)) for code in ends)


OF_ONE: dict[str, Callable[[Any], str]] = {
    "LITERAL": chr,
    "NOT_LITERAL": lambda code: "b" if code == ord("a") else "a",
    "ANY": lambda _: "a",
    "IN": lambda items: members(items)[0],
}
INSIDE: dict[str, Callable[[Any], Sequence[Any]]] = {
    "SUBPATTERN": lambda argument: [argument[3]],
    "ATOMIC_GROUP": lambda argument: [argument],
    "BRANCH": lambda argument: argument[1],
    "ASSERT": lambda argument: [argument[1]],
    "ASSERT_NOT": lambda argument: [argument[1]],
}
"""The patterns inside an operation; of several the first is told."""


def texts(length: int) -> Iterator[tuple[str, str]]:
    """Yield each fixed run as a text of `length` characters, after its name."""
    for run in RUNS:
        yield repr(run), filled(run, length, end="x")
