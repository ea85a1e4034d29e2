"""What keeps two statements apart however alike a model finds them: the exact things that models read over."""

from __future__ import annotations

import re
from collections import Counter

from nous_online.core.texts import unseen
from nous_online.language.pairs.guards import differences, exact_differences
from nous_online.language.pairs.reading import read

WORD = re.compile(r"\w+")
CLOSE_WORDING = 0.5  # Jaccard of the words from which two texts differ in a few of them
CASES = ("i me my mine myself", "we us our ours ourselves", "he him his", "she her hers", "they them their theirs")
PERSONS = {word: cases.split()[0] for cases in CASES for word in cases.split()}
"""Each person by the word in which it acts: "we lent it to Leeds", "Leeds lent it to us"."""
MOST_BESIDE_PERSONS = 2
"""Words that may differ besides where persons have changed places."""
OWNED = re.compile(r"['\u2019]s\b")
NOT = re.compile(r"n['\u2019]t\b")
PASSED_OVER = frozenset({"a", "an", "the", "do", "does", "did"})
TENSES = tuple(frozenset(words.split()) for words in ("is are am", "was were", "has have had", "will"))
FEW_CHANGED = 6  # words, among which one small word may decide
DECIDING = frozenset(
    """against without except unless until till before after instead despite almost nearly about hardly barely only even
    too enough more less most least fewer still yet already once again never no not nobody nothing none maybe perhaps
    probably may might could would should must can cannot used""".split()  # noqa: SIM905 (words)
)
"""Small words that make another statement of close wording, and that models read over."""


def never_same(a: str, b: str) -> tuple[str, ...]:
    """Return, in words, why two texts are never the same, however alike a reader finds them.

    Always: another number, date, name, identifier or quotation; the same words in another order, case or punctuation;
    persons in other roles; a letter no person sees.
    In close wording also whatever a guard finds, and names in another order: there one small word decides.
    """
    if hidden := unseen(a, b):
        return (hidden,)
    one, other = (WORD.findall(text.casefold()) for text in (a, b))
    if sorted(one) == sorted(other):
        return ("the same words in another order or spelling",)
    if other_roles(a, b):
        return ("persons in other roles",)
    if len({*one} & {*other}) < CLOSE_WORDING * len({*one} | {*other}):
        return exact_differences(a, b)
    names = [[name.lower() for name in read(text).names] for text in (a, b)]
    first, second = ([name for name in own if name in names[0] and name in names[1]] for own in names)
    return (*differences(a, b), *(("names in another order",) if first != second else ()))


def other_small_words(a: str, b: str) -> bool:
    """Tell whether two texts differ in few words, and one alone holds a word that decides, or each another tense."""
    if words_changed(a, b) > FEW_CHANGED:
        return False
    one, other = ({*WORD.findall(text.casefold())} for text in (a, b))
    first, second = ({place for place, tense in enumerate(TENSES) if tense & words} for words in (one, other))
    return bool((one ^ other) & DECIDING) or (bool(first and second) and first.isdisjoint(second))


def other_roles(a: str, b: str) -> bool:
    """Tell whether one who acts in one of two texts is acted upon in the other: "I owe Dean two stamps"."""
    one, other = (
        [word for word in WORD.findall(NOT.sub(" not", OWNED.sub("", text.casefold()))) if word not in PASSED_OVER]
        for text in (a, b)
    )
    persons, other_persons = (Counter(word for word in words if word in PERSONS) for words in (one, other))
    if persons == other_persons:
        return False
    caseless, other_caseless = (Counter(PERSONS.get(word, word) for word in words) for words in (one, other))
    differing = (caseless - other_caseless) + (other_caseless - caseless)
    return differing.total() <= MOST_BESIDE_PERSONS and differing.keys().isdisjoint(PERSONS.values())


def words_changed(a: str, b: str) -> int:
    """Return how many words, however written, stand in one of two texts alone."""
    one, other = (Counter(WORD.findall(text.casefold())) for text in (a, b))
    return ((one - other) + (other - one)).total()
