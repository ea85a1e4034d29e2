"""Which sentences hold what looks like a credential: such a sentence is never lifted into another memory.

It errs on the safe side: a sentence left out costs a line of a summary, one let through hands a key to every recall.
"""

# ruff: noqa: RUF001 — full-width marks are what other scripts write
from __future__ import annotations

import re
from collections.abc import Sequence

from nous_online.writing.sentences import Sentence, said

_KEYWORD = (
    r"(?:pass(?:word|wort|phrase|code|wd)s?|pwd|kennwort|contrase[nñ]a|senha|mot de passe|пароль|密码|パスワード"
    r"|api[\s_-]{0,2}keys?|access[\s_-]{0,2}keys?|private[\s_-]{0,2}keys?|secret[\s_-]{0,2}keys?|secrets?|tokens?"
    r"|credentials?|bearer|otp|cvv2?|cvc|pin(?:[\s_-]?(?:code|number))?|ssn|seed[\s_-]phrase|recovery[\s_-]codes?)"
)
_MENTION = re.compile(rf"(?<![^\W_]){_KEYWORD}(?![^\W_])", re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"(?<![^\W_]){_KEYWORD}(?![^\W_])[\w\s\"'`*)]{{0,60}}?(?:[=:：]+>?|->|→|\b(?:is|was|are|to|it's)\b)"
    r"[\s\"'`*]{0,4}(?P<value>[^\s\"'`]{3,})",
    re.IGNORECASE,
)
_SHAPES = re.compile(
    r"\b(?:sk|pk|rk)[-_][\w-]{12,}|\bgh[opsur]_\w{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{12,}|\b(?:hf|npm|pypi)[_-]\w{16,}"
    r"|\b(?:AKIA|ASIA)[A-Z\d]{12,}|\bxox[abeoprs]-[\w-]{8,}|\bAIza[\w-]{20,}|\bya29\.[\w-]{8,}|\beyJ[\w-]{6,}\.[\w-]{4,}"
    r"|-----BEGIN|\bBearer\s+[\w.~+/-]{8,}|\bBasic\s+[A-Za-z\d+/]{12,}={0,2}|://[^\s/:@]{1,80}:[^\s/@]{1,80}@"
    r"|\b\d{3}-\d{2}-\d{4}\b|(?<!\d)\d{4}[\s-]?\d{4}[\s-]?\d{4}[\s-]?\d{1,7}(?!\d)"
)
_TOKEN = re.compile(r"[A-Za-z\d+/_=-]{20,200}")
_NO_VALUE = re.compile(
    r"(?:[^\W\d_]+(?:ed|en|ing|ly|able|ible|al)|the|a|an|in|on|at|by|for|from|with|of|to|not|no|too|very|only|still|now|also|so|and"
    r"|or|be|been|used|kept|stored|sent|wrong|correct|invalid|valid|missing|empty|short|long|weak|strong|old|new|safe|set"
    r"|due|out|up|gone|lost|read|rotat\w*|what|where|which|that|this|it|you|we|they|required|optional)[.,;:!?)]*",
    re.IGNORECASE,
)
SHORT_ANSWER = 4
"""Words; after "what's the password?" an answer this short may be nothing but the password."""


def holds_credential(text: str) -> bool:
    """Tell whether a text holds what looks like a password, key, token, card or identity number."""
    if _SHAPES.search(text) or any(is_random(match.group()) for match in _TOKEN.finditer(text)):
        return True
    return any(not _NO_VALUE.fullmatch(match["value"]) for match in _ASSIGNED.finditer(text))


def is_random(token: str) -> bool:
    """Tell whether a long token mixes digits with small and capital letters, as keys do and hashes don't."""
    kinds = (str.isdigit, str.islower, str.isupper)
    mixed = all(sum(kind(char) for char in token) >= 2 for kind in kinds)  # noqa: PLR2004 — "Section3" has one of each
    return mixed and token.count("/") + token.count("-") + token.count("_") <= len(token) // 8


def without_credentials(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Return the sentences that may be lifted: none that holds a credential, no short answer to a question for one."""
    kept: list[Sentence] = []
    before = ""
    for sentence in sentences:
        text = said(sentence)
        answers = bool(_MENTION.search(before)) and len(sentence.text.split()) <= SHORT_ANSWER
        if not answers and not holds_credential(text):
            kept.append(sentence)
        before = text
    return kept
