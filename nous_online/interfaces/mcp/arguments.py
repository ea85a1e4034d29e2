"""What a client sends is checked against what the tool publishes, before anything else sees it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from nous_online.core.errors import InvalidInput
from nous_online.interfaces.mcp.tools import Tool

SHOWN_CHARACTERS = 200


def checked_arguments(tool: Tool, sent: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments of a call without those that are null; raise `InvalidInput` naming what to mend."""
    from jsonschema import Draft202012Validator

    given: dict[str, Any] = {
        name: unwrapped(tool, name, value) for name, value in (sent or {}).items() if value is not None
    }
    unknown = sorted(set(given) - set(tool.arguments))
    if unknown:
        known = ", ".join(tool.arguments) or "none"
        raise InvalidInput(f"{tool.name} takes no argument {unknown[0][:SHOWN_CHARACTERS]!r}; it takes: {known}")
    for problem in Draft202012Validator(dict(tool.takes)).iter_errors(given):  # pyright: ignore[reportUnknownMemberType]
        place = "".join(f"{part}: " for part in problem.absolute_path)
        raise InvalidInput(f"{tool.name}: {place}{problem.message[:SHOWN_CHARACTERS]}")
    return given


def unwrapped(tool: Tool, name: str, value: Any) -> Any:
    """Return a list that a client sent as the JSON text of one, as some do, and anything else as it is."""
    if not isinstance(value, str) or tool.arguments.get(name, {}).get("type") != "array":
        return value
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return cast("list[object]", found) if isinstance(found, list) else value
