"""What a class says about itself in its source: its docstring and its fields with theirs."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from textwrap import dedent
from typing import is_typeddict

from nous_online.core.details import meaning
from nous_online.core.fields import rows_of, type_text


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
