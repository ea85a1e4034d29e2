"""The classes that the verbs take and return: which they are, and what each is made of."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Iterable
from enum import Enum
from importlib import import_module
from types import FunctionType
from typing import Any, Literal, Protocol, get_args, get_origin

import nous_online
from docs.generate.classes import Field, fields_of, sentences
from docs.generate.signatures import methods_of, signature
from nous_online.memories.agent import Verbs

BAR = r"\|"
"""A bar inside a table."""


def named_by(verbs: Iterable[FunctionType]) -> tuple[list[type], dict[str, list[str]]]:
    """Return the classes of ours that signatures name, and those these name in turn; and the choices among words."""
    waiting = [(verb.__module__, signature(verb)) for verb in verbs]
    waiting += [(nous_online.HOMES[name], name) for name in nous_online.__all__]
    kinds: set[type] = set()
    choices: dict[str, list[str]] = {}
    while waiting:
        module, text = waiting.pop()
        for name, known in [(name, meant(module, name)) for name in re.findall(r"\b[A-Z]\w+", text)]:
            if words := words_of(known):
                choices[name] = words
            elif is_value(known) and known not in kinds:
                kinds.add(known)
                waiting += said_by(known)
    return sorted(kinds, key=lambda kind: (kind.__name__, kind.__module__)), choices


def said_by(kind: type) -> list[tuple[str, str]]:
    """Return what a class names itself: the types of its fields, and the signatures of what a seam is asked."""
    annotations = [field.annotation for field in fields_of(kind)]
    return [(kind.__module__, text) for text in (*annotations, *map(signature, asked_of(kind)))]


def meant(module: str, name: str) -> Any:
    """Return what a module means by a name, None for what it does not know."""
    return getattr(import_module(imported_by(module).get(name, module)), name, None)


def is_value(known: Any) -> bool:
    """Tell whether something is a class of ours; errors and the heart have sections of their own."""
    is_ours = isinstance(known, type) and known.__module__.startswith("nous_online.")
    return is_ours and not issubclass(known, Exception | Verbs)


def words_of(known: Any) -> list[str]:
    """Return the words to choose from, where something is such a choice."""
    if get_origin(known) is Literal:
        return [str(word) for word in get_args(known)]
    return [str(each.value) for each in known] if isinstance(known, type) and issubclass(known, Enum) else []


@functools.cache
def imported_by(module: str) -> dict[str, str]:
    """Return where a module has its names of ours from, also those that only the type checker sees."""
    parsed = ast.parse(inspect.getsource(import_module(module)))
    imports = [node for node in ast.walk(parsed) if isinstance(node, ast.ImportFrom)]
    ours = [node for node in imports if (node.module or "").startswith("nous_online.")]
    return {alias.name: str(node.module) for node in ours for alias in node.names}


def value_section(kind: type) -> str:
    """Return the section about one class: where it is, what it is, its fields, and what a seam is asked."""
    rows = "\n".join(map(row, fields_of(kind)))
    table = f"\n| field | type | |\n|---|---|---|\n{rows}\n" if rows else ""
    asked = "".join(f"\n```python\n{signature(each)}\n```\n\n{sentences(each)}\n" for each in asked_of(kind))
    home = "nous_online" if nous_online.HOMES.get(kind.__name__) == kind.__module__ else kind.__module__
    return f"### {kind.__name__}\n\nFrom `{home}`. {sentences(kind)}\n{table}{asked}"


def asked_of(kind: type) -> list[FunctionType]:
    """Return what implementations of a seam are asked; nothing for other classes."""
    return methods_of(kind) if Protocol in kind.__mro__ else []


def choices_section(choices: dict[str, list[str]]) -> str:
    """Return the section about types that are a choice among words."""
    rows = [f"| `{name}` | {', '.join(f'`{word}`' for word in choices[name])} |" for name in sorted(choices)]
    return "\n".join(["## Choices\n", "| type | one of |", "|---|---|", *rows, ""])


def row(field: Field) -> str:
    """Return a field as a row of a table."""
    default = f" = {field.default}" if field.default is not None else ""
    cells = (f"`{field.name}`", f"`{field.annotation}{default}`", field.meaning)
    return f"| {' | '.join(cell.replace('|', BAR) for cell in cells)} |"
