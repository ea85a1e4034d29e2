"""Adds our MCP server and hooks to the settings of a coding agent, and removes them; all else stays unchanged."""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from nous_online.core.errors import Conflict, InvalidInput, Unavailable
from nous_online.core.files import FileChange, put, text_of_file
from nous_online.interfaces.hooks.hook import EVENTS
from nous_online.interfaces.projects import top_of
from nous_online.processes import python_module

# --- coding agents ---

SERVER = "nous"
TIMEOUT_S = 5
"""Timeout after which the client ends a hook."""
LONGEST_END_S = 3
"""The longest that Codex waits for a hook at the end of a session."""
CODEX_NOTE = (
    "Codex runs the hooks once you trust them: it asks at its next start, or type /hooks there. "
    "Sessions are taken in as they end from Codex 0.145 on."
)
Files = tuple[Path, Path]


@dataclass(frozen=True)
class CodingAgent:
    """A coding agent: the names of its four hook events, and its files for servers and hooks, which may be the same."""

    name: str
    title: str
    events: tuple[str, ...]
    files: Callable[[], Files]
    """The user's files: servers, hooks."""
    project_files: tuple[str, str]
    """A repository's files, relative to its top folder: servers, hooks."""
    server_fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    hook_fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    timeouts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Timeouts of events that differ from `timeout`."""
    timeout: int = TIMEOUT_S
    """In the client's unit: seconds, of Gemini CLI milliseconds."""
    note: str = ""
    """What a person has to do after the installation."""

    def server_entry(self, command: Sequence[str], options: Sequence[str]) -> dict[str, Any]:
        return {**self.server_fields, "command": command[0], "args": [*command[1:], "mcp", "--repository", *options]}

    def hook_entry(self, event: str, command: Sequence[str], options: Sequence[str]) -> dict[str, Any]:
        line = shlex.join([*command, "hook", event, *options])
        timeout = self.timeouts.get(event, self.timeout)
        return {**self.hook_fields, "type": "command", "command": line, "timeout": timeout}

    def places(self, *, is_project: bool) -> Files:
        """Return the client's files for servers and hooks: of this repository, or of the user."""
        if not is_project:
            return self.files()
        servers, hooks = (top_of(Path.cwd()) / name for name in self.project_files)
        return servers, hooks


def claude_code_files() -> Files:
    configured = os.environ.get("CLAUDE_CONFIG_DIR")
    folder = Path(configured).expanduser() if configured else Path.home() / ".claude"
    return (folder if configured else Path.home()) / ".claude.json", folder / "settings.json"


def codex_files() -> Files:
    folder = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex").expanduser()
    return folder / "config.toml", folder / "hooks.json"


def gemini_files() -> Files:
    """Return the user's file of Gemini CLI, which holds both."""
    home = Path(os.environ.get("GEMINI_CLI_HOME") or Path.home()).expanduser()
    return home / ".gemini" / "settings.json", home / ".gemini" / "settings.json"


CLIENTS = {
    each.name: each
    for each in (
        CodingAgent(
            "claude-code",
            "Claude Code",
            ("SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"),
            claude_code_files,
            (".mcp.json", ".claude/settings.json"),
            server_fields={"type": "stdio"},
        ),
        CodingAgent(
            "codex",
            "Codex",
            ("SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"),
            codex_files,
            (".codex/config.toml", ".codex/hooks.json"),
            timeouts={"SessionEnd": LONGEST_END_S},
            note=CODEX_NOTE,
        ),
        CodingAgent(
            "gemini",
            "Gemini CLI",
            ("SessionStart", "BeforeAgent", "PreCompress", "SessionEnd"),
            gemini_files,
            (".gemini/settings.json", ".gemini/settings.json"),
            hook_fields={"name": SERVER},
            timeout=TIMEOUT_S * 1000,
        ),
    )
}

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
    """Return the command that starts this installation of `nous` from any folder and with any PATH."""
    command = python_module("nous_online.interfaces.cli")
    script = Path(command[0]).with_name("nous")
    return [str(script)] if script.exists() else command


def with_hooks(fields: Fields, client: CodingAgent, command: Sequence[str], options: Sequence[str]) -> Fields:
    """Return settings with our hooks added, or replaced in place."""
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
    """Return settings without our server, and with a server of the same name that was there before."""
    servers = object_in(fields, "mcpServers")
    earlier = object_in(before, "mcpServers").get(SERVER)
    rest = {name: earlier if name == SERVER else each for name, each in servers.items() if name != SERVER or earlier}
    return {
        name: rest if name == "mcpServers" else each for name, each in fields.items() if name != "mcpServers" or rest
    }


def without_hooks(fields: Fields) -> Fields:
    """Return settings without our hooks, and without groups that held nothing else."""
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
    command = cast("Fields", hook).get("command") if isinstance(hook, dict) else None
    return isinstance(command, str) and bool(OURS.search(command))


def has_entries(path: Path, text: str) -> bool:
    fields = {} if path.suffix == TOML else parse_settings(text)
    server = server_in(tables_of(text), SERVER) if path.suffix == TOML else object_in(fields, "mcpServers").get(SERVER)
    hooks = object_in(fields, "hooks")
    is_server = isinstance(server, dict) and "--repository" in cast("Fields", server).get("args", ())
    return is_server or any(
        is_ours(each) for event in hooks for group in groups_in(hooks, event) for each in group["hooks"]
    )


def object_in(fields: Mapping[str, Any], name: str) -> Fields:
    """Return a copy of the object under a name, empty if missing; raise `InvalidInput` for another type."""
    value = fields.get(name, {})
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} is {type(value).__name__}, not an object; mend it first")
    return deepcopy(cast("Fields", value))


def groups_in(hooks: Fields, event: str) -> list[Fields]:
    """Return the groups of hooks of an event; raise `InvalidInput` for anything else."""
    groups = cast("list[Any]", hooks.get(event, []))
    # A value that is no list, or holds what is no group, is not ours to change.
    if not isinstance(groups, list) or not all(  # pyright: ignore[reportUnnecessaryIsInstance] (it is a person's file)
        isinstance(each, dict) and isinstance(cast("Fields", each).get("hooks"), list) for each in groups
    ):
        raise InvalidInput(f"hooks.{event} is not a list of groups with `hooks`; mend it first")
    return groups


# --- the table of our server in a TOML file ---

# Edited as text, to keep comments and layout: the standard library reads TOML but can't write it. Each edit is checked
# by parsing the result.


def with_table(text: str | None, name: str, entry: Mapping[str, Any]) -> str:
    """Return a TOML text with a server of this name; raise `InvalidInput` if it can't be added as text."""
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
    """Return a TOML text without a server; None if nothing else was in it."""
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
    servers = fields.get(TABLE)
    return cast("dict[str, Any]", servers).get(name) if isinstance(servers, dict) else None


def tables_of(text: str | None) -> dict[str, Any]:
    return parsed(text or "", tomllib.loads, "TOML")


def parsed(text: str, parse: Callable[[str], Any], what: str) -> Any:
    """Return what a text says; raise `InvalidInput` if it is not in its format."""
    try:
        return parse(text)
    except ValueError as error:
        raise InvalidInput(f"it is not {what} ({error}); mend it, then try again: nothing was changed") from error


def check_tables(text: str, wanted: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` unless a changed text parses to exactly the wanted tables."""
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
    """Return the file changes of an installation; raise `InvalidInput` for a file in another format."""
    command = launcher()

    def added(path: Path, text: str | None) -> str | None:
        servers, hooks = client.places(is_project=is_project)
        if path.suffix == TOML:
            return with_table(text, SERVER, client.server_entry(command, options))
        before = after = parse_settings(text)
        if path == servers:
            ours = {**object_in(before, "mcpServers"), SERVER: client.server_entry(command, options)}
            after = {**before, "mcpServers": ours}
        after = with_hooks(after, client, command, options) if path == hooks else after
        return text if after == before else to_json(after, text)

    return planned_changes(client, added, is_project=is_project)


def planned_uninstall(*, is_project: bool, client: CodingAgent = CLIENTS["claude-code"]) -> list[FileChange]:
    """Return the file changes of an uninstallation: the backup, or the file without our entries."""

    def removed(path: Path, text: str | None) -> str | None:
        if text is None or not has_entries(path, text):
            return text
        saved = text_of_file(backup_of(path))
        if path.suffix == TOML:
            after = without_table(text, SERVER)
            # The backup comes back, with its layout, only if nobody changed anything else since.
            earlier = tables_of(saved)
            return saved if saved and tables_of(after) == earlier else after
        earlier = parse_settings(saved)
        rest = without_hooks(without_server(parse_settings(text), earlier))
        restored = saved if saved and rest == earlier else to_json(rest, text)
        return restored if rest or saved else None

    return planned_changes(client, removed, is_project=is_project)


def planned_changes(
    client: CodingAgent, change: Callable[[Path, str | None], str | None], *, is_project: bool
) -> list[FileChange]:
    """Return the change of each file of a client; raise `InvalidInput`, with the path, if one can't be made."""
    changes: list[FileChange] = []
    for path in dict.fromkeys(client.places(is_project=is_project)):
        before = text_of_file(path)
        try:
            changes.append(FileChange(path, before, change(path, before)))
        except InvalidInput as error:
            raise InvalidInput(f"{path} stays as it is: {error}") from error
    return changes


def parse_settings(text: str | None) -> Fields:
    """Return the JSON object of a file's text, empty without a file; raise `InvalidInput` for anything else."""
    fields: object = parsed(text, json.loads, "JSON") if text and text.strip() else {}
    if not isinstance(fields, dict):
        raise InvalidInput(f"it holds {type(fields).__name__}, not an object; mend it: nothing was changed")
    return cast("Fields", fields)


def to_json(fields: Fields, before: str | None) -> str:
    """Return settings as JSON, indented as they were before."""
    found = INDENT.search(before or "")
    return json.dumps(fields, indent=found[1] if found else 2, ensure_ascii=False) + "\n"


def backup_of(path: Path) -> Path:
    return path.with_name(path.name + BACKUP)


def write(changes: Sequence[FileChange]) -> None:
    """Write the changed files, each atomically, with a backup beside a file that held none of our entries.

    Raises `Conflict` for a file that changed since it was read, `Unavailable` for one that can't be written.
    """
    for change in changes:
        if not change.is_changed:
            continue
        if text_of_file(change.path) != change.before:
            raise Conflict(f"{change.path} was changed meanwhile; run the same command again")
        try:
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
        except OSError as error:
            raise Unavailable(f"{change.path} can't be written ({error}); own it or free some space") from error
