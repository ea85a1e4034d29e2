"""What is told, before it is stored: a credential in it is refused, hidden or kept, as the policy says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from nous_online.core.errors import Refused
from nous_online.core.rights import Rights
from nous_online.language.writing.hidden_credentials import MARK, hidden


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


def without(value: Any) -> tuple[Any, int]:
    """Return a text, or a list of texts, with its credentials hidden, and how many there were."""
    if isinstance(value, str):
        return hidden(value)
    if isinstance(value, list | tuple):
        found = [without(each) for each in cast("Sequence[object]", value)]
        return [text for text, _ in found], sum(count for _, count in found)
    return value, 0
