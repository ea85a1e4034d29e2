"""The methods of a class, and their signatures as a person would write them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from types import FunctionType

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
