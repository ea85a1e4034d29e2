"""Claude Code's own files: an install adds to them, an uninstall gives them back, and all else stays as it is."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from cli_runs import typed

from nous_online.interfaces.hooks.client_settings import CLIENTS, launcher
from nous_online.interfaces.hooks.hook import EVENTS as ALL_EVENTS

ROOT = Path(__file__).parents[3]
PLUGINS = ROOT / "plugins"
CLAUDE_CODE = CLIENTS["claude-code"]
EVENTS, hook_entry, server_entry = CLAUDE_CODE.events, CLAUDE_CODE.hook_entry, CLAUDE_CODE.server_entry
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


MANIFESTS = {
    "claude-code": (".claude-plugin/plugin.json", ".mcp.json"),
    "codex": (".codex-plugin/plugin.json", ".mcp.json"),
    "gemini": ("gemini-extension.json", "gemini-extension.json"),
}
"""Of each plugin: the file that names it, and the one that lists its server."""


@pytest.mark.parametrize("name", CLIENTS)
def test_a_plugin_holds_what_an_install_writes(name: str):
    client, folder, (manifest, servers) = CLIENTS[name], PLUGINS / name, MANIFESTS[name]

    hooks = read(folder / "hooks" / "hooks.json")

    assert read(folder / servers)["mcpServers"] == {"nous": client.server_entry(["nous"], [])}
    assert hooks["hooks"] == {event: [{"hooks": [client.hook_entry(event, ["nous"], [])]}] for event in client.events}
    assert set(hooks) <= {"hooks", "description"}, "Codex refuses a file of hooks that holds more"
    assert (read(folder / manifest)["name"], read(folder / manifest)["version"]) == ("nous", version("nous-pipelines"))


def test_the_repository_lists_its_plugins_where_claude_code_and_codex_look_for_them():
    claude_code = read(ROOT / ".claude-plugin" / "marketplace.json")["plugins"]
    codex = read(ROOT / ".agents" / "plugins" / "marketplace.json")["plugins"]

    assert [each["name"] for each in (*claude_code, *codex)] == ["nous", "nous"]
    assert (ROOT / claude_code[0]["source"]).samefile(PLUGINS / "claude-code")
    assert (ROOT / codex[0]["source"]["path"]).samefile(PLUGINS / "codex")
    assert read(PLUGINS / "codex" / ".codex-plugin" / "plugin.json")["mcpServers"] == "./.mcp.json"


# --- the others ---

CONFIG = """\
# my settings
model = "gpt-5"

[mcp_servers.other]
command = "x"  # stays

[features]
hooks = true
"""


@pytest.fixture
def codex(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CODEX_HOME", raising=False)
    (home / ".codex").mkdir()
    return home / ".codex"


def test_every_client_names_events_that_the_hook_answers():
    assert {event for client in CLIENTS.values() for event in client.events} == set(ALL_EVENTS)


def test_codex_gets_a_table_at_the_end_of_its_settings_and_hooks_in_a_file_of_their_own(codex: Path):
    (codex / "config.toml").write_text(CONFIG, "utf-8")

    answer = typed("install", "codex", "--agent", "aria")

    assert answer.code == 0
    assert "/hooks" in answer.out
    text = (codex / "config.toml").read_text("utf-8")
    assert text.startswith(CONFIG)
    command = launcher()
    assert tomllib.loads(text) == {
        **tomllib.loads(CONFIG),
        "mcp_servers": {
            "other": {"command": "x"},
            "nous": {"command": command[0], "args": [*command[1:], "mcp", "--repository", "--agent", "aria"]},
        },
    }
    hooks = read(codex / "hooks.json")["hooks"]
    assert list(hooks) == ["SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"]
    assert {event: groups[0]["hooks"][0]["timeout"] for event, groups in hooks.items()}["SessionEnd"] == 3
    assert hooks["SessionEnd"][0]["hooks"][0]["command"].endswith("hook SessionEnd --agent aria")
    again = typed("install", "codex", "--agent", "aria", "--json").json["files"]
    assert [each["is_changed"] for each in again] == [False, False]


def test_codex_has_its_settings_back_after_an_uninstall_and_keeps_what_was_added_since(codex: Path):
    path = codex / "config.toml"
    path.write_text(CONFIG, "utf-8")
    typed("install", "codex")
    typed("install", "codex", "--agent", "aria")
    path.write_text(path.read_text("utf-8") + "\n[tools]\nweb_search = true\n", "utf-8")

    typed("uninstall", "codex")

    assert tomllib.loads(path.read_text("utf-8")) == {**tomllib.loads(CONFIG), "tools": {"web_search": True}}
    assert "# my settings" in path.read_text("utf-8")
    assert not (codex / "hooks.json").exists()
    path.write_text(CONFIG, "utf-8")
    typed("install", "codex")
    typed("uninstall", "codex")
    assert path.read_text("utf-8") == CONFIG
    path.unlink()
    typed("install", "codex")
    typed("uninstall", "codex")
    assert list(codex.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "told"),
    [("model = ", "is not TOML"), ('mcp_servers = {other = {command = "x"}}', "write it as tables")],
)
def test_settings_of_codex_that_can_t_be_added_to_stay_as_they_are(codex: Path, text: str, told: str):
    (codex / "config.toml").write_text(text, "utf-8")

    answer = typed("install", "codex")

    assert (answer.code, answer.out) == (1, "")
    assert "config.toml stays as it is" in answer.err.replace("\n", "")
    assert told in answer.err.replace("\n", " ")
    assert (codex / "config.toml").read_text("utf-8") == text


def test_gemini_has_its_server_and_its_hooks_in_one_file_and_gets_it_back(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("GEMINI_CLI_HOME", raising=False)
    path = home / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"ui": {"theme": "GitHub"}, "mcpServers": {"other": {"command": "x"}}}), "utf-8")
    before = path.read_bytes()

    assert typed("install", "gemini").code == 0

    found = read(path)
    command = launcher()
    assert found["mcpServers"]["nous"] == {"command": command[0], "args": [*command[1:], "mcp", "--repository"]}
    assert list(found["hooks"]) == ["SessionStart", "BeforeAgent", "PreCompress", "SessionEnd"]
    assert found["hooks"]["BeforeAgent"][0]["hooks"] == [
        {"name": "nous", "type": "command", "command": " ".join([*command, "hook", "BeforeAgent"]), "timeout": 5000}
    ]
    assert found["ui"] == {"theme": "GitHub"}
    typed("uninstall", "gemini")
    assert path.read_bytes() == before
