"""What is told, before it is stored: a credential in it is refused, hidden or kept, as the policy says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from nous_online.core.errors import Refused
from nous_online.core.rights import Rights
from nous_online.language.writing.credentials import MARK, hidden


def guarded(told: Mapping[str, Any], names: Sequence[str], rights: Rights) -> tuple[dict[str, Any], int]:
    """Return what is told with its credentials hidden in the texts of these names, and how many there were.

    Raises `Refused` where the policy wants none told at all.
    """
    values, count = dict(told), 0
    if rights.on_credential == "keep":
        return values, 0
    for name in (each for each in names if each in told):
        values[name], found = without(values.get(name))
        if found and rights.on_credential == "refuse":
            raise Refused(
                f"{name} looks as if it held a credential, which the policy on_credential='refuse' keeps out: tell it "
                f"without, or with {MARK} in its place; nothing was stored"
            )
        count += found
    return values, count


def logged(text: str, rights: Rights) -> str:
    """Return a text as it is noted that it was asked or done: credentials hidden, unless the policy keeps them."""
    return text if rights.on_credential == "keep" else hidden(text)[0]


def without(value: Any) -> tuple[Any, int]:
    """Return a text, or texts in lists and mappings, with its credentials hidden, and how many there were."""
    if isinstance(value, str):
        return hidden(value)
    if isinstance(value, list | tuple):
        found = [without(each) for each in cast("Sequence[object]", value)]
        return [text for text, _ in found], sum(count for _, count in found)
    if isinstance(value, Mapping):
        entries = {name: without(each) for name, each in cast("Mapping[str, object]", value).items()}
        return {name: text for name, (text, _) in entries.items()}, sum(count for _, count in entries.values())
    return value, 0
