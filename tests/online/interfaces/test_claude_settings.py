"""Claude Code's own files: an install adds to them, an uninstall gives them back, and all else stays as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_runs import typed

from nous_online.interfaces.hooks.claude_settings import hook_entry, launcher, server_entry
from nous_online.interfaces.hooks.hook import EVENTS

PLUGIN = Path(__file__).parents[3] / "plugins" / "claude-code"
OTHER_HOOK = {"type": "command", "command": "/usr/bin/other hook", "timeout": 9}
SETTINGS: dict[str, Any] = {
    "zeta": 1,
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [OTHER_HOOK]}],
        "SessionStart": [{"matcher": "startup", "hooks": [OTHER_HOOK]}],
    },
    "permissions": {"allow": ["Bash(ls:*)", "\u00e4\u2028"]},
}
SERVERS: dict[str, Any] = {
    "oauthAccount": {"token": "unseen"},
    "mcpServers": {"other": {"command": "x"}},
    "alpha": [1.5],
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    (tmp_path / ".claude").mkdir()
    return tmp_path


def fill(home: Path) -> tuple[Path, Path]:
    """Write files as somebody has them who uses Claude Code."""
    servers, settings = home / ".claude.json", home / ".claude" / "settings.json"
    servers.write_text(json.dumps(SERVERS, indent=4), "utf-8")
    settings.write_text(json.dumps(SETTINGS, indent="\t", ensure_ascii=False), "utf-8")
    return servers, settings


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def test_an_install_adds_a_server_and_four_hooks_and_keeps_everything_else_in_order(home: Path):
    servers, settings = fill(home)
    servers.chmod(0o600)

    answer = typed("install", "claude-code")

    assert answer.code == 0
    assert read(servers) == {
        **SERVERS, "mcpServers": {"other": {"command": "x"}, "nous": server_entry(launcher(), [])},
    }  # fmt: skip
    assert (list(read(servers)), list(read(settings))) == (list(SERVERS), list(SETTINGS))
    found = read(settings)["hooks"]
    assert list(found) == ["PreToolUse", "SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"]
    assert found["PreToolUse"] == SETTINGS["hooks"]["PreToolUse"]
    assert found["SessionStart"][0] == SETTINGS["hooks"]["SessionStart"][0]
    for event in EVENTS:
        assert found[event][-1] == {"hooks": [hook_entry(event, launcher(), [])]}
    assert "\n\t" in settings.read_text("utf-8")
    assert servers.stat().st_mode & 0o777 == 0o600
    assert read(servers.with_name(".claude.json.before-nous")) == SERVERS


def test_a_second_install_changes_nothing_and_an_upgrade_replaces_our_entries_alone(home: Path):
    _, settings = fill(home)
    typed("install", "claude-code")
    first = settings.read_text("utf-8")

    again = typed("install", "claude-code", "--json")
    settings.write_text(first.replace(launcher()[0], "/opt/old/bin/nous"), "utf-8")
    upgraded = typed("install", "claude-code", "--json")

    assert [each["is_changed"] for each in again.json["files"]] == [False, False]
    assert [each["is_changed"] for each in upgraded.json["files"]] == [False, True]
    assert settings.read_text("utf-8") == first
    assert read(settings.with_name("settings.json.before-nous")) == SETTINGS


def test_an_uninstall_restores_what_was_there_byte_for_byte(home: Path):
    files = fill(home)
    before = [path.read_bytes() for path in files]
    typed("install", "claude-code", "--agent", "aria")

    assert typed("uninstall", "claude-code").code == 0

    assert [path.read_bytes() for path in files] == before
    assert sorted(path.name for path in home.rglob("*before-nous")) == []
    assert [each["is_changed"] for each in typed("uninstall", "claude-code", "--json").json["files"]] == [False, False]


def test_an_uninstall_keeps_what_was_added_since_and_gives_back_a_server_of_the_same_name(home: Path):
    servers, settings = fill(home)
    own = {"command": "nous", "args": ["mcp", "--agent", "mine"]}
    servers.write_text(json.dumps({"mcpServers": {"nous": own}}), "utf-8")
    typed("install", "claude-code")
    servers.write_text(json.dumps({**read(servers), "added": True}), "utf-8")
    later = read(settings)
    later["hooks"]["SessionEnd"][0]["hooks"].append(OTHER_HOOK)
    settings.write_text(json.dumps(later), "utf-8")

    typed("uninstall", "claude-code")

    assert read(servers) == {"mcpServers": {"nous": own}, "added": True}
    assert read(settings) == {**SETTINGS, "hooks": {**SETTINGS["hooks"], "SessionEnd": [{"hooks": [OTHER_HOOK]}]}}


def test_files_an_install_made_are_gone_after_an_uninstall(home: Path):
    typed("install", "claude-code")
    typed("uninstall", "claude-code")

    assert [path.name for path in home.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "text", ["{not json", "[]", '{"hooks": []}', '{"hooks": {"SessionEnd": {}}}', '{"hooks": {"PreCompact": [1]}}']
)
@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_file_that_is_not_what_claude_code_reads_is_refused_and_nothing_is_changed(
    home: Path, text: str, command: str
):
    servers, settings = fill(home)
    settings.write_text(text, "utf-8")

    answer = typed(command, "claude-code")

    assert (answer.code, answer.out) == (1, "")
    assert str(settings) in answer.err.replace("\n", "")
    assert (settings.read_text("utf-8"), read(servers)) == (text, SERVERS)


def test_a_dry_run_shows_a_diff_and_writes_nothing(home: Path):
    servers, settings = fill(home)

    answer = typed("install", "claude-code", "--dry-run")

    assert '+    "nous": {' in answer.out.replace("        ", "    ")
    assert "+++ " in answer.out
    assert "unseen" not in answer.out
    assert (read(servers), read(settings)) == (SERVERS, SETTINGS)


def test_with_project_the_files_are_those_of_the_repository(home: Path, monkeypatch: pytest.MonkeyPatch):
    inner = home / "repository" / "src"
    inner.mkdir(parents=True)
    (home / "repository" / ".git").mkdir()
    monkeypatch.chdir(inner)

    typed("install", "claude-code", "--project")

    assert set(read(home / "repository" / ".mcp.json")) == {"mcpServers"}
    assert set(read(home / "repository" / ".claude" / "settings.json")["hooks"]) == set(EVENTS)
    assert not (home / ".claude.json").exists()


def test_a_link_to_settings_kept_elsewhere_stays_a_link(home: Path):
    kept = home / "dotfiles.json"
    kept.write_text(json.dumps(SETTINGS), "utf-8")
    (home / ".claude" / "settings.json").symlink_to(kept)

    typed("install", "claude-code")

    assert (home / ".claude" / "settings.json").is_symlink()
    assert set(EVENTS) <= set(read(kept)["hooks"])


def test_the_plugin_holds_what_an_install_writes():
    hooks, servers = read(PLUGIN / "hooks" / "hooks.json"), read(PLUGIN / ".mcp.json")

    assert servers == {"mcpServers": {"nous": server_entry(["nous"], [])}}
    assert hooks["hooks"] == {event: [{"hooks": [hook_entry(event, ["nous"], [])]}] for event in EVENTS}
    assert read(PLUGIN / ".claude-plugin" / "plugin.json")["name"] == "nous"
