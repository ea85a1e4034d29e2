"""What is taken out of texts and JSON that quote an agent, and what stays."""

from __future__ import annotations

import pytest

from nous_pipelines.orchestration.night_erasure import ERASED, Redaction
from nous_pipelines.reports.text_reports import plain

REDACTION = Redaction("default", ["The zinfandel is in the cellar", "tea", "12345678-1234-1234-1234-123456789012"])


@pytest.mark.parametrize(
    ("text", "erased"),
    [
        ("kept **The zinfandel is in the cellar** today", "kept **[erased]** today"),
        ("“tea” / “coffee”", "“[erased]” / “coffee”"),
        ("steam and teapots", "steam and teapots"),
        ("agent 'default' is not known", "agent '[erased]' is not known"),
        ("nothing was proposed for: ben, default", "nothing was proposed for: ben, [erased]"),
        ("default: 5 memories would leave", "[erased]: 5 memories would leave"),
        ("## Policy\n\n- default: probe_days = 29", "## Policy\n\n- [erased]: probe_days = 29"),
        ("## default\n| default | 3 |", "## [erased]\n| [erased] | 3 |"),
        ("<b>default</b> slept", "<b>[erased]</b> slept"),
        ("the default executor", "the default executor"),
        ("tea", "tea"),
        ("12345678-1234-1234-1234-123456789012", "[erased]"),
        ("", ""),
    ],
)
def test_names_and_words_are_erased_where_they_are_meant(text: str, erased: str) -> None:
    assert REDACTION.text(text) == erased


@pytest.mark.parametrize("words", ["- feed\n3 #ocelots * daily", "2. feed_them <b>!", "plain words only"])
def test_words_are_erased_as_markdown_quotes_them(words: str) -> None:
    redaction = Redaction("my_agent", [words])

    assert redaction.text(f"kept **{plain(words)}** today") == f"kept **{ERASED}** today"
    assert redaction.text(plain(f"alike: “{words}” is older")) == f"alike: “{ERASED}” is older"
    assert redaction.text(f"## {plain('my_agent')}\n") == f"## {ERASED}\n"


def test_json_loses_the_objects_of_the_agent_and_keeps_its_shape() -> None:
    document = {
        "agent_ids": ["ben", "default"],
        "agents": ["default"],
        "proposals": [{"agent_id": "default", "x": 1}, {"agent_id": "ben", "reason": "likes tea too"}],
        "tags": {"nous/agents": "ben, default", "default": "default"},
        "left": {"ben": {"too young": 2}, "default": {"too young": 1}},
        "reasons": {"12345678-1234-1234-1234-123456789012": "gone", "other": 1.5},
    }

    assert REDACTION.value(document) == {
        "agent_ids": ["ben", ERASED],
        "agents": [ERASED],
        "proposals": [{"agent_id": "ben", "reason": f"likes {ERASED} too"}],
        "tags": {"nous/agents": f"ben, {ERASED}", "default": "default"},
        "left": {"ben": {"too young": 2}},
        "reasons": {ERASED: "gone", "other": 1.5},
    }
