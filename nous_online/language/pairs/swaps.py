"""What two statements put in each other's place, and how near in meaning those phrases are."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import cache

from nous_online.language.minilm import LocalMiniLM

WORD = re.compile(r"\w+(?:['\u2019]\w+)?")


def swapped_phrases(a: str, b: str) -> list[tuple[str, str]]:
    """Return each phrase of one text with what stands in its place in the other; what only one has is left out."""
    one, other = (WORD.findall(text.casefold()) for text in (a, b))
    changes = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return [
        (" ".join(one[first:last]), " ".join(other[start:end]))
        for change, first, last, start, end in changes
        if change == "replace"
    ]


def least_alike(a: str, b: str) -> float:
    """Return the cosine of the two swapped phrases that are furthest apart; 1 where none are swapped.

    Two statements alike but for one phrase have nearly the same vector whatever the phrase says: "most were helpful",
    "most were ineffective". The phrases alone tell. Raises `Unavailable` without the encoder's file.
    """
    pairs = swapped_phrases(a, b)
    texts = list(dict.fromkeys(phrase for pair in pairs for phrase in pair))
    if not texts:
        return 1.0
    vectors = dict(zip(texts, _encoder().embed_documents(texts), strict=True))
    return min(float(vectors[one] @ vectors[other]) for one, other in pairs)


@cache
def _encoder() -> LocalMiniLM:
    return LocalMiniLM()
