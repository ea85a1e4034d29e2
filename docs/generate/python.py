"""The page about the Python module: the verbs of the Heart, the values they take and return, the errors they raise."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from itertools import pairwise
from textwrap import dedent
from types import FunctionType
from typing import Any, Literal, Protocol, get_args, get_origin, is_typeddict

import nous_online
from nous_online.core import errors
from nous_online.core.details import meaning
from nous_online.core.fields import rows_of, type_text
from nous_online.heart import Heart
from nous_online.interfaces.adapters.wrapping import close_conversations, wrap
from nous_online.memories.agent import Verbs

HEAD = """# The Python module

Everything an agent calls, with its signature and what it promises. [The Heart, verb by verb](../heart.md) shows each
in use. Generated from the code by `make docs`; a test holds it current.

```python
from nous_online import Heart
```
"""


def python_page() -> str:
    """Return the whole page."""
    groups = [kind for kind in Heart.__mro__ if issubclass(kind, Verbs) and kind not in (Heart, Verbs)]
    values, choices = named_by([verb for group in (Heart, *groups) for verb in methods_of(group)])
    parts = [HEAD, heart_section(), *map(group_section, groups)]
    parts += ["## A client that remembers\n", verb_section(wrap), verb_section(close_conversations)]
    parts += ["## Values\n", *map(value_section, values), choices_section(choices), error_section()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


def heart_section() -> str:
    """Return the section about opening a heart and closing it."""
    return "\n".join(["## Heart\n", sentences(Heart), *map(verb_section, methods_of(Heart))])


def group_section(group: type) -> str:
    """Return the section about one group of verbs."""
    title = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", group.__name__.removesuffix("Verbs"))
    return "\n".join([f"## {title} verbs\n", sentences(group), *map(verb_section, methods_of(group))])


def verb_section(verb: FunctionType) -> str:
    """Return the heading, signature and promise of one verb."""
    return f"\n### {verb.__name__}\n\n```python\n{signature(verb)}\n```\n\n{sentences(verb)}\n"


def error_section() -> str:
    """Return the section about errors: the tree, and when each is raised."""
    return "\n".join(["## Errors\n", "From `nous_online.core.errors`.\n", *tree(errors.NousError, depth=0)])


def tree(error: type[Exception], *, depth: int) -> Iterator[str]:
    """Yield an error and those below it as a nested list."""
    yield f"{'  ' * depth}- `{error.__name__}`: {sentences(error)}"
    below = [each for each in error.__subclasses__() if each.__module__ == errors.__name__]
    for each in sorted(below, key=lambda each: each.__name__):
        yield from tree(each, depth=depth + 1)


# --- values: which classes the verbs take and return, and what each is made of ---


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


# --- what a class says about itself in its source ---


@dataclass(frozen=True)
class Field:
    """A field of a class: its type and default as they are written, and the text below it."""

    name: str
    annotation: str
    default: str | None
    meaning: str


def sentences(described: object) -> str:
    """Return the docstring of something, or nothing."""
    return inspect.getdoc(described) or ""


def fields_of(kind: type) -> list[Field]:
    """Return the annotated fields of a class and the properties it offers, or the rows of a table of fields."""
    if is_typeddict(kind):
        return [Field(each.name, type_text(each.hint), None, each.field.sentence) for each in rows_of(kind).values()]
    return [field for each in reversed(kind.__mro__) if is_ours(each) for field in own_fields(each)]


def is_ours(kind: type) -> bool:
    """Tell whether a class is one of the package."""
    return kind.__module__.startswith("nous_online")


def own_fields(kind: type) -> Iterator[Field]:
    """Yield what a class itself declares, in the order of its source."""
    parsed = ast.walk(ast.parse(dedent(inspect.getsource(kind))))
    declared = next(node for node in parsed if isinstance(node, ast.ClassDef))
    for node, after in pairwise([*declared.body, ast.Pass()]):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            default = ast.unparse(node.value) if node.value else None
            told = text_of(after) or meaning(kind.__name__, node.target.id)
            yield Field(node.target.id, ast.unparse(node.annotation), default, told)
        elif isinstance(node, ast.FunctionDef) and is_property(node):
            returned = ast.unparse(node.returns) if node.returns else ""
            yield Field(node.name, returned, None, first_line(ast.get_docstring(node)))


def text_of(node: ast.stmt) -> str:
    """Return the text a statement consists of, when it is one."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return " ".join(inspect.cleandoc(node.value.value).split())
    return ""


def is_property(node: ast.FunctionDef) -> bool:
    """Tell whether a method is read like a field by anybody."""
    decorators = [ast.unparse(each) for each in node.decorator_list]
    return not node.name.startswith("_") and bool({"property", "cached_property"} & set(decorators))


def first_line(text: str | None) -> str:
    """Return the first sentence of a docstring, on one line."""
    return " ".join((text or "").partition("\n\n")[0].split())


# --- methods, and their signatures as a person would write them ---


WIDTH = 100
STARS = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


def methods_of(kind: type) -> list[FunctionType]:
    """Return the public methods a class defines itself, in the order of its source."""
    own = [member for name, member in vars(kind).items() if not name.startswith("_")]
    callables = [member.__func__ if isinstance(member, classmethod) else member for member in own]
    return [each for each in callables if isinstance(each, FunctionType)]


def signature(method: FunctionType) -> str:
    """Return the signature of a function or method, without `self`, a parameter a line where it is long."""
    found = inspect.signature(method)
    parameters = list(written(each for name, each in found.parameters.items() if name not in ("self", "cls")))
    line = f"{method.__name__}({', '.join(parameters)}) -> {found.return_annotation}"
    if len(line) <= WIDTH:
        return line
    each = ",\n    ".join(parameters)
    return f"{method.__name__}(\n    {each},\n) -> {found.return_annotation}"


def written(parameters: Iterable[inspect.Parameter]) -> Iterator[str]:
    """Yield parameters as they are written, the star before the first that has to be named."""
    has_star = False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            yield "*"
        has_star = has_star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        yield f"{STARS.get(parameter.kind, '')}{parameter.name}: {parameter.annotation}{default_of(parameter)}"


def default_of(parameter: inspect.Parameter) -> str:
    """Return what a parameter is when it is not given, as it is written; nothing where it must be."""
    if parameter.default is parameter.empty:
        return ""
    return f' = "{parameter.default}"' if isinstance(parameter.default, str) else f" = {parameter.default!r}"
