"""Says of a point what it is about, and whether it is a decision, a preference or a rule."""

from __future__ import annotations

import re

from nous_online.language.lexicon import (
    DECISION,
    LABELLED,
    LEAD_IN,
    NO_SUBJECT,
    OWN,
    PREFERENCE,
    RULE,
    SMALL_WORDS,
    SPOKEN_ELSEWHERE,
    STANDING,
    TOLD_RULE,
    VERBS,
    WE,
    word_list,
)
from nous_online.language.pairs.reading import read
from nous_online.language.writing.chats import (
    NEVER_SUBJECT,
    TIMES,
    is_asking,
    name_at_first,
    names_inside,
)
from nous_online.language.writing.lexrank import ASKING, ASSISTANTS, EDGE, without_openers
from nous_online.language.writing.points import Point, is_standing
from nous_online.language.writing.sentences import straighten_apostrophes

ARTICLES = ("the ", "a ", "an ", "our ")
GENERIC = word_list("generic")
SUBJECT = re.compile(r"\w[\w '&./#-]{0,48}\w")
LONGEST_ABOUT = 4  # words before the verb of what a user tells
JOINING = frozenset({"of", "and", "the"})
MERELY_OTHER = frozenset({"instead", "stattdessen"})
"""How people tell decisions, but also whatever else is other than it was."""


def subject_of(point: Point) -> str | None:
    """Return the subject of a point: the speaker who says "I", the words before its verb, or the first name in it.

    What a user tells is about whom or what its first sentence opens with, or about nothing that is named.
    """
    plain = straighten_apostrophes(point.text)
    text = " ".join(without_openers(plain[label.end() if (label := LABELLED.match(plain)) else 0 :].split()))
    is_told = is_asking(point.sentences[0])
    told = LEAD_IN.sub("", plain)
    named = name_at_first(plain) if point.about is None else named_in(straighten_apostrophes(point.about.text))
    if is_told and named and not OWN.match(told) and named.split()[0].casefold() not in TIMES:
        return named
    speaker = (point.speaker or "").casefold()
    if point.speaker and speaker not in ASSISTANTS and (OWN.search(text) or WE.match(text)):
        return point.speaker
    # What a user tells an assistant to do opens with the deed, not with what it is about.
    verb = None if is_standing(point.sentences[0]) else VERBS.search(text)
    about = text[: verb.start()].strip(EDGE) if verb else ""
    about = about.partition(" ")[2] if about.casefold().startswith(ARTICLES) else about
    low = about.casefold().split()
    is_named = low and low[0] not in NO_SUBJECT and not (SMALL_WORDS | GENERIC).issuperset(low)
    # "Nothing to", "round at his mate", "Mondays": what a user tells is about what has a name, or about nothing named.
    is_crumb = is_told and (not about[:1].isupper() or (SMALL_WORDS - JOINING).intersection(low) or low[0] in TIMES)
    if is_named and not is_crumb and SUBJECT.fullmatch(about) and ". " not in about:
        is_english = not SPOKEN_ELSEWHERE.intersection(text.casefold().split())
        is_plain = is_english and low[0] not in NEVER_SUBJECT and not (verb and verb[0].endswith("ed"))
        is_sure = is_plain and len(low) <= LONGEST_ABOUT
        return about if is_sure or not is_told else None
    names = () if is_told else read(text).names
    return next((name for name in names if name.casefold() not in SMALL_WORDS | GENERIC), None)


def named_in(text: str) -> str | None:
    """Return whom a sentence is about that says of whom the next one speaks: the name it opens with, or asks for."""
    return next(iter(names_inside(text)), None) if text.endswith("?") else name_at_first(text)


def category_of(point: Point, *, is_chat: bool = False) -> str | None:
    """Return `decision`, `preference` or `rule` where a point is worded as one, None for a plain statement.

    What an assistant says is nobody's preference or rule: "the script only reads JSON". What a user tells in a chat is
    a rule in the form of one alone: people say "only" and "never" of whatever they tell.
    """
    if point.label == "decision":
        return "decision"
    speaker, text = (point.speaker or "").casefold(), straighten_apostrophes(point.text)
    if is_chat and speaker in ASKING:
        decides = any(match[0].casefold() not in MERELY_OTHER for match in DECISION.finditer(text))
        prefers = any(match[0].casefold() != "allergic" for match in PREFERENCE.finditer(text))
        kinds = {"rule": TOLD_RULE.search(text), "preference": prefers, "decision": decides}
        return next((kind for kind, found in kinds.items() if found), None)
    kinds = (("preference", PREFERENCE), ("decision", DECISION), ("rule", RULE), ("rule", STANDING))
    told = {"decision"} if speaker in ASSISTANTS else {"decision", "preference", "rule"}
    kinds = kinds if speaker in ASKING else kinds[:3]
    return next((kind for kind, pattern in kinds if kind in told and pattern.search(text)), None)
