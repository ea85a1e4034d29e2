"""The page about plugging Nous into an agent does what it shows."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from executed_pages import DOCS, blocks_of, reading
from scripted_model import model, say, use

from nous_online.core.settings import settings

REMEMBERED = "Deploys go through blue/green"


def test_the_python_on_the_page_runs_as_it_stands(database_url, tmp_path, monkeypatch):
    turns = (
        use("remember", content=REMEMBERED),
        say("I will remember that."),
        use("memory", command="create", path="/memories/ada.md", file_text="Ada likes tea."),
        say("Noted."),
    )
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("NOUS_JUDGE", "offline")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")

    with model(*turns) as (url, asked), reading(database_url, tmp_path, agent="aria") as reader:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        settings.cache_clear()
        for block in blocks_of(DOCS / "mcp.md"):
            if block.language == "python":
                reader.run_python(block.text)

        remembered = reader.names["heart"].recall("deploys")[0].content

    assert remembered == REMEMBERED
    assert asked[0]["system"].startswith("Long-term memory.")
    assert [tool["name"] for tool in asked[0]["tools"]][:3] == ["context", "recall", "remember"]
    assert asked[1]["messages"][-1]["content"][0]["content"].startswith("stored ")
