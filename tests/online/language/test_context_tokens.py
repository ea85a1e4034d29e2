# ruff: noqa: RUF001 — typographic marks have counts of their own
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nous_online.core.settings import Settings
from nous_online.language.tokens import (
    character_cost,
    claude_tokens,
    claude_tokens_of_part,
    counting,
    fewest,
    openai_tokens,
    pieces_of_claude,
    tokens_of,
    tokens_of_stretches,
)

COUNTED = [
    ("- Deploys go through blue/green since May 2026.", 17, 14),
    ("Ana Petrov's team moved the billing job to Hetzner: it's cheaper, they'd said.", 34, 20),
    ("# Critical\n- never deploy on Friday: nobody is there\n- decided 2026-10-01: Keep sessions in Redis", 42, 27),
    ("def cost_of(text: str) -> int:\n    return tokens_of(f\"{BULLET}{text}\\n\")", 37, 24),
    ("select id, max(weight)::float8 as weight from heart.links where agent_id = %(agent_id)s group by id", 37, 24),
    ("https://example.org/a/b-77/index.html?id=9173&x=5f2c#top", 29, 23),
    ("f47ac10b-58cc-4372-a567-0e02b2c3d479 12345678 0.92 10:30", 38, 35),
    ("{\"kind\":\"fact\",\"ids\":[\"a1\",\"b2\"],\"score\":0.5123,\"is_pinned\":false}", 37, 27),
    ("TypeError: Cannot read properties of undefined (reading 'token') at LoginForm.tsx:42", 35, 20),
    ("Der Geschäftsführer verschiebt die Überprüfung auf nächsten Dienstag.", 34, 11),
    ("L’équipe a déplacé la réunion à 14 h 30 – « c’est mieux », dit-elle.", 37, 22),
    ("Команда перенесла развёртывание на среду, потому что база занята.", 23, 19),
    ("فريق العمل نقل الاجتماع إلى يوم الأربعاء", 27, 8),
    ("टीम ने बैठक बुधवार को कर दी है।", 21, 10),
    ("部署在每周五下午五点进行,数据库需要备份。", 21, 15),
    ("会議は水曜日に変更されました。サーバーは大阪です。", 23, 17),
    ("회의는 수요일로 변경되었습니다.", 17, 8),
    ("🦊🦊🦊 done ✅ – “quoted”… 3 µm", 27, 19),
    ("ALL CAPS and CamelCaseNames and snake_case_names, NASA's API v2.10.3!", 36, 21),
    ("\tindented\n\n\n  twice   spaced  \n", 13, 9),
]  # fmt: skip
"""Texts with their tokens for Claude 4.8, as ctok 1.3 counts, the last line end added, and for o200k."""
LINES = st.text().map(lambda text: f"- {' '.join(text.split())}\n")


@pytest.mark.parametrize(("text", "claude", "openai"), COUNTED, ids=[text[:12].strip() for text, *_ in COUNTED])
def test_a_text_has_the_tokens_that_claude_and_openai_count(text, claude, openai):
    assert (claude_tokens(text), openai_tokens(text)) == (claude, openai)


@pytest.mark.parametrize("text", ["", "\ud800", "\x00\x01", "\ufdd0a\ufdd1", "\U0010ffff\ufe0f", "\u0301"])
def test_any_text_has_a_count_that_its_bytes_bound(text):
    assert claude_tokens(text) <= 3 * len(text.encode("utf-8", "replace"))
    assert openai_tokens(text) <= len(text.encode("utf-8", "replace"))
    assert bool(text) == bool(openai_tokens(text))


@given(st.lists(LINES, max_size=6))
def test_lines_put_together_have_no_more_tokens_than_their_sum(lines):
    assert claude_tokens("".join(lines)) <= sum(map(claude_tokens, lines))
    assert openai_tokens("".join(lines)) <= sum(map(openai_tokens, lines))


@given(
    st.lists(st.one_of(st.text(max_size=8), st.sampled_from(["it's", "end\n- 's", "a.\n", "B\n\n b", "7\n "]))).map(
        "".join
    )
)
def test_a_text_read_line_by_line_has_the_tokens_of_the_whole(text):
    assert claude_tokens(text) == claude_tokens_of_part(text)


@given(
    st.lists(
        st.one_of(
            st.text(st.characters(max_codepoint=127), max_size=6), st.sampled_from(["Ab", " ", ".", "\n- ", "'s"])
        )
    ).map("".join)
)
def test_a_plain_text_has_the_tokens_of_its_stretches(text):
    assert claude_tokens(text) == tokens_of_stretches(text)


@given(
    st.lists(st.one_of(st.text(max_size=3), st.sampled_from(["inter", "national", "ation", "ing"])), max_size=5).map(
        "".join
    )
)
def test_a_word_costs_the_fewest_pieces_of_all_ways_to_cut_it(word):
    known = pieces_of_claude().known
    least = [0]
    for end in range(1, len(word) + 1):
        ways = [least[start] + 1 for start in range(end) if word[start:end] in known]
        least.append(min(ways, default=least[-1] + character_cost(word[end - 1])))

    assert fewest(word, pieces_of_claude(), character_cost) == least[-1]


def test_a_budget_is_counted_for_claude_unless_openai_is_named(monkeypatch):
    text = "Der Geschäftsführer verschiebt die Überprüfung."
    assert (tokens_of(text), counting()) == (claude_tokens(text), "Claude since Opus 4.7, reconstructed")

    monkeypatch.setattr("nous_online.language.tokens.settings", lambda: Settings(tokenizer="openai"))

    assert (tokens_of(text), counting()) == (openai_tokens(text), "OpenAI o200k")
