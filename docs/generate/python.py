"""The page about the Python module: the verbs of the Heart, the values they take and return, the errors they raise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import FunctionType

from docs.generate.classes import sentences
from docs.generate.signatures import methods_of, signature
from docs.generate.values import choices_section, named_by, value_section
from nous_online.core import errors
from nous_online.heart import Heart
from nous_online.interfaces.adapters.wrapping import wrap
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
    parts = [HEAD, heart_section(), *map(group_section, groups), "## A client that remembers\n", verb_section(wrap)]
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
