"""`nous patterns` and `nous workflows`: what they print, and what they leave alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_runs import pointed_at, typed

from nous_online.heart import Heart

SOURCE = "\n".join(f"def {name}():\n    checked(1)\n    opened(3)\n    stored(4)\n" for name in "abc")


@pytest.fixture
def shop(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "shop").mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "shop" / "store.py").write_text(SOURCE, "utf-8")
    (tmp_path / "shop" / "broken.py").write_bytes(b"x = 1\0")
    monkeypatch.chdir(tmp_path)
    with pointed_at(database_url, tmp_path / "home"):
        yield tmp_path


def test_patterns_are_shown_and_kept(shop: Path):
    looked = typed("patterns", "shop", "--look-only", "--json").json
    told = typed("patterns", "shop")
    again = typed("patterns", "shop", "--json").json

    assert (looked["procedures"], looked["skipped"]) == ([], {"shop/broken.py": "it is binary"})
    assert "function: checked→opened→stored" in told.out
    assert "seen 3 times" in told.out
    assert "passed over shop/broken.py: it is binary" in told.err
    assert [each["name"] for each in again["procedures"]] == ["checked→opened→stored in shop (python)"]


def test_a_folder_that_is_not_there_ends_in_one_line(shop: Path):
    answer = typed("patterns", "nowhere")

    assert answer.code == 1
    assert "neither a file nor a folder" in answer.err


def test_workflows_are_shown_with_how_their_sessions_went(shop: Path):
    assert "no three closed episodes" in typed("workflows", "--agent", "aria").err
    with Heart.open("aria", works_in_background=False) as heart:
        for outcome in ("success", "success", "failure"):
            episode = heart.start_episode("Deploy billing")
            for step in ("test", "build", "prod"):
                heart.record_step(step)
            heart.close_episode(episode.id, outcome=outcome)

    told = typed("workflows", "--agent", "aria")
    again = typed("workflows", "--agent", "aria", "--json").json

    assert "stored  deploy: test→build→prod  (3 sessions, 67% succeeded)" in told.out
    assert [each["action"] for each in again["workflows"]] == ["known"]
