"""Cuts what a user tells an assistant in one breath into its matters: "The van goes in on Friday and Mira is back"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nous_online.core.patterns import regex
from nous_online.language.lexicon import LEAD_IN, NUMBER_WORDS, OWN, SMALL_WORDS, VERBS, WE, word_list
from nous_online.language.writing.chats import ASKED, ASKING_FOR, NEVER_SUBJECT, leans_back, name_at_first
from nous_online.language.writing.lexrank import EDGE, content_words
from nous_online.language.writing.sentences import CLOSING, ENDINGS, PREMISE, straighten_apostrophes

LEAST_CONTENT, LEAST_SPLICED = 2, 3
"""Content words of a matter, and of one behind a mere comma, where people also explain what they just said."""
LEAST_WORDS = 8  # of a sentence with two matters
MOST_BEFORE_AND = 3  # words of a subject before "and" and another one
_TURNED = (
    r"(?:(?:how|what|where|why|when) )?(?:do|can|should|could|would) (?:I|we)\b"
    r"|(?:can|could|would) you\b|any (?:ideas?|tips?)\b"
)
"""How a question begins that can be none by its order of words: "they agreed how many", "the plan is that" tell."""
_JOINT = regex(
    r"(?P<word>(?:,\s|\s)(?:(?:and|but|so)\s)?(?:btw|by the way|anyway)\b[,:]?\s"
    r"|(?:,\s|\s)(?:oh|ah),?\s(?:(?:and|et|y|und)\s)?(?:also\s)?)"
    r"|(?P<break>(?<!\.)\.{2,}\s|…\s|\s?[\u2600-\u27bf\U0001f300-\U0001faff]{1,9}\s)"
    rf"|(?P<asked>,\s(?={ASKING_FOR})|\s(?={_TURNED}))"
    r"|(?P<strong>\s[-\u2013\u2014]{1,2}\s"
    r"|(?:,\s|\s)(?:(?:and|but|so)\s)?(?:also|another thing|separately)\b,?\s)"
    r"|(?P<joined>,\s(?:and|und|et|y)\s)|(?P<comma>,\s)"
    r"|(?P<bare>\s(?:and|und|et)\s)",
    re.IGNORECASE,
)
"""What may stand between two matters, from what leads to another one to what joins words as often as clauses."""
_PARTING = frozenset({"word", "break"})  # joints that stand between matters alone
_NOT_ASKED = regex(
    r"\b(?:know|knows|knew|ask|asks|asked|tell|tells|told|see|show|wonder|wondering|about|of|on|for|to|is|sure|understand"
    r"|explain|out|remember|forgot|no|matter|that's|and|or|but|with|in|than|like|check|decide|say|said|exactly)\Z",
    re.IGNORECASE,
)
"""Before a question that is none: "I know what is wrong"."""
_DEPENDENT = regex(
    r"\b(?:if|when|whenever|while|because|unless|although|though|once|whether|that|which|who|whose"
    r"|(?:since|until|till)(?= (?:I|we|he|she|it|they|you|the|my|our)\b)"
    r"|wenn|weil|dass|ob|als|bis|falls|obwohl|si|quand|parce|puisque|que|qui|cuando|porque|aunque|mientras"
    r"|think|thought|hope|guess|believe|said|told|says|know|heard|sure|wonder|wish|maybe|perhaps|both|either)\b",
    re.IGNORECASE,
)
"""What may reach over a joint: a condition, a reason, what somebody thinks."""
_CONJUNCTION = regex(r",|\b(?:and|but|so|then|because|und|aber|et|mais|y|pero)\b", re.IGNORECASE)
_NUMBER = regex(rf"(?:\d|\b(?:hundred|thousand|million|one|{'|'.join(NUMBER_WORDS)}))\Z", re.IGNORECASE)
_NUMBER_ON = regex(rf"(?:\d|one\b|half\b|(?:{'|'.join(NUMBER_WORDS)})\b|an? (?:half|quarter)\b)", re.IGNORECASE)
"""The two sides of an "and" inside a number: "four hundred and eighty"."""
_SUBJECT = regex(r"(?:[^\W\d_][\w'-]{0,20}\s){1,5}", re.IGNORECASE)
_LISTED = "|".join(sorted(word_list("third_person") | word_list("first_person")))
_FINITE = regex(rf"{VERBS.pattern}|\b(?:{_LISTED})\b", re.IGNORECASE)
_PRONOUN = regex(r"(?:i|i'(?:m|ve|d|ll)|ich|je|j'\w+|yo|we(?:'\w{2})?|wir|nous)\s\w", re.IGNORECASE)
_DETERMINERS = frozenset("the my our der die das le la les el los las mon ma mes mi mis notre nos".split())  # noqa: SIM905 (words)
_NO_NOUN = SMALL_WORDS - {"of", "the", "a", "our", "my"}


def matters_of(text: str) -> list[str]:
    """Return the matters of a user's sentence as written, each with a full stop; the sentence where it has but one.

    A cut needs a clause of its own on either side, with subject and verb. Where a condition, a reason or an opinion
    may reach over it, or the second clause leans on the first ("and it works"), there is none. Of a question only what
    is told before it is cut off.
    """
    if len(text.split()) < LEAST_WORDS or ASKED.match(text):
        return [text]
    is_asking = text.rstrip(CLOSING).endswith("?")
    asked = [joint for joint in _JOINT.finditer(text) if ASKED.match(text, joint.end())] if is_asking else []
    if is_asking and not asked:
        return [text]
    if not asked:
        return list(_cut(text))
    told, question = text[: asked[-1].start()], text[asked[-1].end() :]
    if premise := PREMISE.search(straighten_apostrophes(told)):
        told, question = text[: premise.start()], text[premise.start() :].lstrip(", ")
    tells = _FINITE.search(told) and len(content_words(told)) >= LEAST_CONTENT
    return [*map(_closed, _cut(told)), question] if tells else [text]


def _cut(text: str) -> Iterator[str]:
    start = 0
    for joint in _JOINT.finditer(text):
        left, right = text[start : joint.start()], text[joint.end() :]
        if _is_apart(left, right, str(joint.lastgroup)):
            yield _closed(left)
            start = joint.end()
    yield text[start:] if not start else _closed(text[start:])


def _closed(text: str) -> str:
    plain = text.strip().rstrip(",;")
    return plain if plain.endswith(ENDINGS) else f"{plain}{'?' if ASKED.match(plain) else '.'}"


def _is_apart(left: str, right: str, joint: str) -> bool:
    """Tell whether two neighbouring parts of a sentence are two matters."""
    one, other = straighten_apostrophes(left), straighten_apostrophes(right)
    upcoming = other if joint == "asked" else _JOINT.split(other, maxsplit=1)[0]
    is_open = left.count("(") != left.count(")") or left.count('"') % 2
    least = LEAST_SPLICED if joint == "comma" else LEAST_CONTENT
    if is_open or len(content_words(upcoming or "")) < least:
        return False
    if joint == "word":
        return not leans_back(other)
    if len(content_words(one)) < LEAST_CONTENT:
        return False
    if joint in {"bare", "joined"} and (_opens_a_list(one) or (_NUMBER.search(one) and _NUMBER_ON.match(other))):
        return False
    is_finite = _FINITE.search(one) is not None
    if joint == "asked":
        return is_finite and not _NOT_ASKED.search(one)
    is_other = not leans_back(other) and (joint in _PARTING or opens_clause(other))
    return is_other and (joint in {*_PARTING, "strong"} or (is_finite and not _DEPENDENT.search(one)))


def _opens_a_list(text: str) -> bool:
    """Tell whether a text ends with the first of several that do something: "so me" before "and mum are driving"."""
    last = _CONJUNCTION.split(text)[-1].split()
    return 0 < len(last) <= MOST_BEFORE_AND and _FINITE.search(" ".join(last)) is None


def opens_clause(text: str) -> bool:
    """Tell whether a text opens with a subject of its own, no pronoun for something said before, and its verb."""
    told = LEAD_IN.sub("", text)
    if _PRONOUN.match(told) or name_at_first(told):
        return True
    verb = _FINITE.search(told)
    subject = told[: verb.start()] if verb else ""
    first = subject.partition(" ")[0].casefold().strip(EDGE)
    is_own = bool(OWN.match(subject) or WE.match(subject)) or first in _DETERMINERS
    is_named = first not in NEVER_SUBJECT and not _NO_NOUN.intersection(subject.casefold().split())
    return bool(_SUBJECT.fullmatch(subject)) and (is_own or is_named)
