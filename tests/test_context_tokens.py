from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nous_online.tokens import tokens_of


@pytest.mark.parametrize(
    "text", ["", "a", "Deploys go through blue/green.", "Größe: 3 µm", "部署在五点", "🦊🦊🦊", "\ud800"]
)
def test_tokens_are_counted_from_above(text):
    assert tokens_of(text) >= len(text) / 2.5
    assert tokens_of(text) <= 4 * len(text)


@given(st.text(), st.text())
def test_texts_put_together_have_no_more_tokens_than_their_parts(one, other):
    assert tokens_of(one + other) <= tokens_of(one) + tokens_of(other)
