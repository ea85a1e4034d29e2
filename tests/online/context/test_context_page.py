from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "context.md").read_text("utf-8")


def test_the_example_of_the_page_shows_what_it_says(heart, capsys: pytest.CaptureFixture[str]):
    code, shown = re.findall(r"## An example\n\n```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)[0]

    exec(code, {"heart": heart})  # noqa: S102 (the page is ours)

    today = f"{datetime.now(UTC):%Y-%m-%d}"
    assert capsys.readouterr().out == shown.replace("2026-11-22", today)
