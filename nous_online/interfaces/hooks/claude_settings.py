"""Adds the server and the hooks to the settings of a coding agent, and takes them out; all else stays as it is."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

from nous_online.core.errors import Conflict, InvalidInput, Unavailable
from nous_online.interfaces.file_changes import FileChange, put, text_of_file
from nous_online.interfaces.hooks.clients import CLIENTS, SERVER, CodingAgent
from nous_online.interfaces.hooks.hook import EVENTS
from nous_online.processes import python_module

TOML = ".toml"
TABLE = "mcp_servers"
HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)
LINE = re.compile(r"^[^\n]+$", re.MULTILINE)
OURS = re.compile(rf"\bnous(?:\.exe|_online\.interfaces\.cli)?[\"']? hook (?:{'|'.join(EVENTS)})\b")
BACKUP = ".before-nous"
Fields = dict[str, Any]
INDENT = re.compile(r"^([ \t]{1,16}+)\S", re.MULTILINE)


# --- entries ---


def launcher() -> list[str]:
    """Return how to start this `nous` from any folder and with any PATH."""
    command = python_module("nous_online.interfaces.cli")
    script = Path(command[0]).with_name("nous")
    return [str(script)] if script.exists() else command


def with_server(fields: Fields, client: CodingAgent, command: Sequence[str], options: Sequence[str]) -> Fields:
    """Return settings with our server in them, in the place of the one it replaces."""
    servers = object_in(fields, "mcpServers")
    return {**fields, "mcpServers": {**servers, SERVER: client.server_entry(command, options)}}


def with_hooks(fields: Fields, client: CodingAgent, command: Sequence[str], options: Sequence[str]) -> Fields:
    """Return settings with our hooks in them, in the places of those they replace."""
    hooks = object_in(fields, "hooks")
    for event in client.events:
        ours, is_placed = client.hook_entry(event, command, options), False
        groups = groups_in(hooks, event)
        for group in groups:
            for place, hook in enumerate(group["hooks"]):
                if is_ours(hook):
                    group["hooks"][place], is_placed = ours, True
        hooks[event] = groups if is_placed else [*groups, {"hooks": [ours]}]
    return {**fields, "hooks": hooks}


def without_server(fields: Fields, before: Mapping[str, Any]) -> Fields:
    """Return settings without our server, and with the one of its name that stood there before."""
    servers = object_in(fields, "mcpServers")
    earlier = object_in(before, "mcpServers").get(SERVER)
    rest = {name: earlier if name == SERVER else each for name, each in servers.items() if name != SERVER or earlier}
    return {
        name: rest if name == "mcpServers" else each for name, each in fields.items() if name != "mcpServers" or rest
    }


def without_hooks(fields: Fields) -> Fields:
    """Return settings without our hooks, and without what held nothing else."""
    hooks = object_in(fields, "hooks")
    kept: Fields = {}
    for event in hooks:
        groups = groups_in(hooks, event)
        rest = [{**group, "hooks": [each for each in group["hooks"] if not is_ours(each)]} for group in groups]
        rest = [new for new, old in zip(rest, groups, strict=True) if new["hooks"] or not old["hooks"]]
        if rest or not groups:
            kept[event] = rest
    return {name: kept if name == "hooks" else each for name, each in fields.items() if name != "hooks" or kept}


def is_ours(hook: object) -> bool:
    """Tell whether a hook starts a `nous`, wherever that lies."""
    command = cast("Fields", hook).get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and bool(OURS.search(command))


def has_entries(path: Path, text: str) -> bool:
    """Tell whether a file holds what an install writes."""
    if path.suffix == TOML:
        server = server_in(tables_of(text), SERVER)
        return isinstance(server, dict) and "--repository" in cast("Fields", server).get("args", ())
    fields = parsed(path, text)
    server = object_in(fields, "mcpServers").get(SERVER)
    hooks = object_in(fields, "hooks")
    is_server = isinstance(server, dict) and "--repository" in cast("Fields", server).get("args", ())
    return is_server or any(
        is_ours(each) for event in hooks for group in groups_in(hooks, event) for each in group["hooks"]
    )


def object_in(fields: Mapping[str, Any], name: str) -> Fields:
    """Return a copy of the object under a name, empty where there is none; raise `InvalidInput` for anything else."""
    value = fields.get(name, {})
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} is {type(value).__name__}, not an object; mend it first")
    return deepcopy(cast("Fields", value))


def groups_in(hooks: Fields, event: str) -> list[Fields]:
    """Return the groups of hooks of an event; raise `InvalidInput` where they are none."""
    groups = hooks.get(event, [])
    if not isinstance(groups, list) or not all(is_group(each) for each in cast("list[object]", groups)):
        raise InvalidInput(f"hooks.{event} is not a list of groups with `hooks`; mend it first")
    return cast("list[Fields]", groups)


def is_group(group: object) -> bool:
    """Tell whether something is a group of hooks."""
    return isinstance(group, dict) and isinstance(cast("Fields", group).get("hooks"), list)


# --- the table of our server in a TOML file ---


def with_table(text: str | None, name: str, entry: Mapping[str, Any]) -> str:
    """Return a TOML text with a server of this name in it; raise `InvalidInput` where nothing can be added to it."""
    before = tables_of(text)
    if server_in(before, name) == dict(entry):
        return text or ""
    kept = without_table(text, name) or ""
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in entry.items()]
    gap = "" if not kept else "\n" if kept.endswith("\n") else "\n\n"
    after = f"{kept}{gap}[{TABLE}.{name}]\n" + "\n".join(lines) + "\n"
    servers = {**cast("dict[str, Any]", before.get(TABLE, {})), name: dict(entry)}
    check_tables(after, {**before, TABLE: servers})
    return after


def without_table(text: str | None, name: str) -> str | None:
    """Return a TOML text without a server; None where nothing but that server was in it."""
    before = tables_of(text)
    if text is None or server_in(before, name) is None:
        return text
    lines = (each for each in LINE.finditer(text) if each[0].strip().partition("]")[0] == f"[{TABLE}.{name}")
    start = next(lines, None)
    if start is None:
        raise InvalidInput(f"{TABLE}.{name} is not a table of its own; take it out by hand, then try again")
    following = HEADER.search(text, start.end())
    after = (text[: start.start()].rstrip("\n") + "\n" if text[: start.start()].strip() else "") + (
        "\n" + text[following.start() :] if following else ""
    )
    servers = {key: value for key, value in before[TABLE].items() if key != name}
    rest = {key: value for key, value in before.items() if key != TABLE}
    check_tables(after, {**rest, **({TABLE: servers} if servers else {})})
    return after.lstrip("\n") if after.strip() else None


def server_in(fields: Mapping[str, Any], name: str) -> object:
    """Return the server of a name; None where there is none."""
    servers = fields.get(TABLE)
    return cast("dict[str, Any]", servers).get(name) if isinstance(servers, dict) else None


def tables_of(text: str | None) -> dict[str, Any]:
    """Return the tables of a TOML text; raise `InvalidInput` where it is none."""
    try:
        return tomllib.loads(text or "")
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"it is not TOML ({error}); mend it, then try again: nothing was changed") from error


def check_tables(text: str, wanted: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` where a changed text says anything else than what was wanted."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        found = None
    if found != wanted:
        raise InvalidInput(
            f"{TABLE} can't be changed as it is written there; write it as tables, or add the server by hand"
        )


# --- files ---


def planned_install(
    *, is_project: bool, options: Sequence[str], client: CodingAgent = CLIENTS["claude-code"]
) -> list[FileChange]:
    """Return what an install would write; raise `InvalidInput` where a file is not what the client reads."""
    command = launcher()

    def added(path: Path, text: str | None) -> str | None:
        servers, hooks = client.places(is_project=is_project)
        if path.suffix == TOML:
            return with_table(text, SERVER, client.server_entry(command, options))
        before = parsed(path, text)
        after = with_server(before, client, command, options) if path == servers else before
        after = with_hooks(after, client, command, options) if path == hooks else after
        return text if after == before else written_like(after, text)

    return [changed(path, added) for path in dict.fromkeys(client.places(is_project=is_project))]


def planned_uninstall(*, is_project: bool, client: CodingAgent = CLIENTS["claude-code"]) -> list[FileChange]:
    """Return what an uninstall would write: what stood there before, or what is left without our entries."""

    def removed(path: Path, text: str | None) -> str | None:
        if text is None or not has_entries(path, text):
            return text
        saved = text_of_file(backup_of(path))
        if path.suffix == TOML:
            after = without_table(text, SERVER)
            earlier = tables_of(saved)
            return saved if saved and tables_of(after) == earlier else after
        earlier = parsed(path, saved)
        left = without_hooks(without_server(parsed(path, text), earlier))
        restored = saved if saved and left == earlier else written_like(left, text)
        return restored if left or saved else None

    return [changed(path, removed) for path in dict.fromkeys(client.places(is_project=is_project))]


def changed(path: Path, change: Callable[[Path, str | None], str | None]) -> FileChange:
    """Return what a change makes of a file; its refusal names the file."""
    before = text_of_file(path)
    return FileChange(path, before, worded(path, lambda: change(path, before)))


def worded(path: Path, change: Callable[[], Any]) -> Any:
    """Return what a change comes to; its refusal names the file."""
    try:
        return change()
    except InvalidInput as error:
        raise InvalidInput(f"{path} stays as it is: {error}") from error


def parsed(path: Path, text: str | None) -> Fields:
    """Return the JSON object of a file, empty where there is no file; raise `InvalidInput` for anything else."""
    try:
        fields: object = json.loads(text) if text and text.strip() else {}
    except ValueError as error:
        raise InvalidInput(f"it is not JSON ({error}); mend it, then try again: nothing was changed") from error
    if not isinstance(fields, dict):
        raise InvalidInput(f"it holds {type(fields).__name__}, not an object; mend it: nothing was changed")
    return cast("Fields", fields)


def written_like(fields: Fields, before: str | None) -> str:
    """Return settings as text, indented as they were."""
    found = INDENT.search(before or "")
    return json.dumps(fields, indent=found[1] if found else 2, ensure_ascii=False) + "\n"


def backup_of(path: Path) -> Path:
    """Return where a file is kept as it stood before the install."""
    return path.with_name(path.name + BACKUP)


def write(changes: Sequence[FileChange]) -> None:
    """Write what changes, each file at once or not at all, with a backup of what held none of our entries beside it.

    Raises `Conflict` for a file that somebody changed meanwhile, `Unavailable` for one that can't be written.
    """
    for change in changes:
        if not change.is_changed:
            continue
        if text_of_file(change.path) != change.before:
            raise Conflict(f"{change.path} was changed meanwhile; run the same command again")
        try:
            replace_file(change)
        except OSError as error:
            raise Unavailable(f"{change.path} can't be written ({error}); own it or free some space") from error


def replace_file(change: FileChange) -> None:
    """Write one file through a draft beside it, with the rights it had; a link keeps pointing where it points."""
    target = change.path.resolve()
    backup = backup_of(change.path)
    if change.after is None or change.after == text_of_file(backup):
        backup.unlink(missing_ok=True)
    elif change.before is not None and not has_entries(change.path, change.before):
        put(backup, change.before, like=target)
    if change.after is None:
        target.unlink(missing_ok=True)
    else:
        put(target, change.after, like=target)
