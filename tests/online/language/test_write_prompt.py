"""An answer about an episode is read in the form that was asked for, or not at all."""

from __future__ import annotations

import json

import pytest

from nous_online.language.claude.model_writer import AnsweredCaution, Claim, read_answer
from nous_online.language.claude.replies import Failure, LLMError

FACT = {"content": "Orla runs the mill.", "subject": "Orla", "category": "other", "evidence": "I run the mill."}
CENSOR = {"trigger": "rebuild in larch", "reason": "It warps.", "evidence": "Larch warps."}
GOOD = {
    "title": "The mill",
    "summary": "Orla runs it.",
    "line": "Orla runs the mill.",
    "index_word": "mill",
    "facts": [FACT],
    "censors": [CENSOR],
}


def test_an_answer_in_the_form_that_was_asked_for_is_read() -> None:
    answer = read_answer(json.dumps(GOOD))

    assert (answer.title, answer.summary, answer.index_word) == ("The mill", "Orla runs it.", "mill")
    assert (answer.facts, answer.censors) == ((Claim(**FACT),), (AnsweredCaution(**CENSOR),))


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({**GOOD, "pinned": True}),
        json.dumps({**GOOD, "facts": [{**FACT, "trust": "100"}]}),
        json.dumps({**GOOD, "censors": [{**CENSOR, "action": "block"}]}),
        json.dumps(GOOD).replace('"title": "The mill"', '"title": "The mill", "title": "The weir"'),
        json.dumps(GOOD).replace('"subject": "Orla"', '"subject": "Orla", "subject": "Piet"'),
        json.dumps({name: value for name, value in GOOD.items() if name != "line"}),
        json.dumps({**GOOD, "title": 3}),
        json.dumps({**GOOD, "facts": "none"}),
        json.dumps([GOOD]),
        "3",
    ],
)
def test_an_answer_with_other_repeated_or_missing_keys_is_malformed(text: str) -> None:
    with pytest.raises(LLMError, match="has not the form that was asked for") as raised:
        read_answer(text)

    assert raised.value.kind is Failure.MALFORMED
