"""The coding agents that call hooks: what each calls them, where it keeps its settings, and how these are written."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nous_online.interfaces.hooks.repository import top_of

SERVER = "nous"
TIMEOUT_S = 5
"""After which a client itself gives up on a hook."""
LONGEST_END_S = 3
"""Codex waits no longer at the end of a session."""
CODEX_NOTE = (
    "Codex runs the hooks once you trust them: it asks at its next start, or type /hooks there. "
    "Sessions are taken in as they end from Codex 0.145 on."
)
Files = tuple[Path, Path]


@dataclass(frozen=True)
class CodingAgent:
    """A coding agent: the names of its four moments, and its files for servers and for hooks, which may be one."""

    name: str
    title: str
    events: tuple[str, ...]
    files: Callable[[], Files]
    """Of the user: servers, hooks."""
    project_files: tuple[str, str]
    """Of a repository, from its top: servers, hooks."""
    server_fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    hook_fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    timeouts: Mapping[str, int] = field(default_factory=dict[str, int])
    """Of single events, where one differs."""
    timeout: int = TIMEOUT_S
    note: str = ""
    """What is left for a person to do after an install."""

    def server_entry(self, command: Sequence[str], options: Sequence[str]) -> dict[str, Any]:
        """Return our MCP server as the client lists it."""
        return {**self.server_fields, "command": command[0], "args": [*command[1:], "mcp", "--repository", *options]}

    def hook_entry(self, event: str, command: Sequence[str], options: Sequence[str]) -> dict[str, Any]:
        """Return our hook of one event as the client lists it."""
        line = shlex.join([*command, "hook", event, *options])
        timeout = self.timeouts.get(event, self.timeout)
        return {**self.hook_fields, "type": "command", "command": line, "timeout": timeout}

    def places(self, *, is_project: bool) -> Files:
        """Return where the client looks for servers and for hooks: in this repository, or for the user."""
        if not is_project:
            return self.files()
        servers, hooks = (top_of(Path.cwd()) / name for name in self.project_files)
        return servers, hooks


def claude_code_files() -> Files:
    """Return the user's files of Claude Code."""
    configured = os.environ.get("CLAUDE_CONFIG_DIR")
    folder = Path(configured).expanduser() if configured else Path.home() / ".claude"
    return (folder if configured else Path.home()) / ".claude.json", folder / "settings.json"


def codex_files() -> Files:
    """Return the user's files of Codex."""
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
