"""No credential comes in from notes and conversations, wherever it stands: each is left out, and counted."""

from __future__ import annotations

from pathlib import Path

import psycopg
from import_files import facts_of, written

from nous_online.heart import Heart
from nous_online.interfaces.imports.importing import import_history

PASSWORD = "password: Tr0ub4dor&3xyz!"  # noqa: S105 (made up)
HIDDEN_TITLES = "headings and titles that look as if they hold a credential"


def test_a_heading_or_an_item_with_a_credential_is_told_of_nothing_that_stands_under_it(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    path = written(
        tmp_path / "staging.md", "# Staging", f"- {PASSWORD}", "  - It is for the deploy job.",
        "## API key sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789", "- Rotate it every month.",
        "### Rules", "- Tell Ada first.",
    )  # fmt: skip

    report = import_history(heart, [path])

    assert facts_of(owner, "content, subject, context") == [
        ("It is for the deploy job.", "Staging", f"{tmp_path.name}/staging > Staging"),
        ("Rotate it every month.", "Staging", f"{tmp_path.name}/staging > Staging"),
        ("Tell Ada first.", "Rules", f"{tmp_path.name}/staging > Staging > Rules"),
    ]
    assert dict(report.skipped) == {"facts that look as if they hold a credential": 1, HIDDEN_TITLES: 1}


def test_a_word_by_itself_below_the_name_of_a_credential_is_one(
    heart: Heart, owner: psycopg.Connection, tmp_path: Path
):
    path = written(
        tmp_path / "staging.md", "# Staging password", "Tr0ub4dor&3xyz!", "", "It is asked for once a day.", "# Doors",
        "- The door code", "  - 4711", "  - Ada made it up in spring.",
    )  # fmt: skip

    report = import_history(heart, [path])

    assert facts_of(owner) == [("Ada made it up in spring.",), ("It is asked for once a day.",), ("The door code",)]
    assert dict(report.skipped) == {"facts that look as if they hold a credential": 2}


def test_a_title_with_a_credential_is_not_that_of_an_episode(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    spoken = {
        "uuid": "u",
        "timestamp": "2026-05-01T09:00:00Z",
        "message": {"content": "Is it up?"},
        "cwd": "/srv/atlas",
    }
    path = written(
        tmp_path / "s.jsonl",
        {"type": "custom-title", "customTitle": PASSWORD, "sessionId": "s"},
        {"type": "user", "sessionId": "s", **spoken},
    )

    report = import_history(heart, [path])

    assert owner.execute("select title, detail from heart.episodes").fetchall() == [(None, "user: Is it up?")]
    assert dict(report.skipped) == {HIDDEN_TITLES: 1}


def test_file_and_line_of_what_is_left_out_are_named(heart: Heart, owner: psycopg.Connection, tmp_path: Path):
    at = {"sessionId": "s", "cwd": "/srv/atlas", "timestamp": "2026-05-01T09:00:00Z"}
    said = ["Is it up?", f"Yes.\n{PASSWORD}", "Thanks, the gate is open."]
    path = written(
        tmp_path / "s.jsonl",
        *({"type": "user", "uuid": f"u{place}", "message": {"content": text}, **at} for place, text in enumerate(said)),
    )
    notes = written(tmp_path / "notes.md", "# Staging", "It is up.", f"- {PASSWORD}")

    report = import_history(heart, [path, notes])

    assert report.hidden == ["notes.md line 3", "s.jsonl line 2"]
    assert PASSWORD not in str(report)
