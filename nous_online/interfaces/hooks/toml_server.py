"""Our server in a TOML file of another program: one table added at the end, and taken out again; the rest stays."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, cast

from nous_online.core.errors import InvalidInput

TABLE = "mcp_servers"
HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)


def with_table(text: str | None, name: str, entry: Mapping[str, Any]) -> str:
    """Return a TOML text with a server of this name in it; raise `InvalidInput` where nothing can be added to it."""
    before = parsed(text)
    if server_in(before, name) == dict(entry):
        return text or ""
    kept = without_table(text, name) or ""
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()]
    gap = "" if not kept else "\n" if kept.endswith("\n") else "\n\n"
    after = f"{kept}{gap}[{TABLE}.{name}]\n" + "\n".join(lines) + "\n"
    servers = {**cast("dict[str, Any]", before.get(TABLE, {})), name: dict(entry)}
    checked(after, {**before, TABLE: servers})
    return after


def without_table(text: str | None, name: str) -> str | None:
    """Return a TOML text without a server; None where nothing but that server was in it."""
    before = parsed(text)
    if text is None or server_in(before, name) is None:
        return text
    start = re.search(rf"^[ \t]*\[{TABLE}\.{name}\][^\n]*$", text, re.MULTILINE)
    if start is None:
        raise InvalidInput(f"{TABLE}.{name} is not a table of its own; take it out by hand, then try again")
    following = HEADER.search(text, start.end())
    after = (text[: start.start()].rstrip("\n") + "\n" if text[: start.start()].strip() else "") + (
        "\n" + text[following.start() :] if following else ""
    )
    servers = {key: value for key, value in before[TABLE].items() if key != name}
    rest = {key: value for key, value in before.items() if key != TABLE}
    checked(after, {**rest, **({TABLE: servers} if servers else {})})
    return after.lstrip("\n") if after.strip() else None


def server_in(fields: Mapping[str, Any], name: str) -> object:
    """Return the server of a name; None where there is none."""
    servers = fields.get(TABLE)
    return cast("dict[str, Any]", servers).get(name) if isinstance(servers, dict) else None


def parsed(text: str | None) -> dict[str, Any]:
    """Return the tables of a TOML text; raise `InvalidInput` where it is none."""
    try:
        return tomllib.loads(text or "")
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"it is not TOML ({error}); mend it, then try again: nothing was changed") from error


def checked(text: str, wanted: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` where a changed text says anything else than what was wanted."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        found = None
    if found != wanted:
        raise InvalidInput(
            f"{TABLE} can't be changed as it is written there; write it as tables, or add the server by hand"
        )
