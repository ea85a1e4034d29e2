"""Slots: the attribute to which a statement gives a value, found by its words alone.

A slot is the statement without its value (decision 0012). Only a statement that a later one can supersede has a slot:
about an identified thing, and an attribute with one value at a time. In doubt a statement has none, so that nothing
supersedes it by mistake.
"""
# ruff: noqa: PLR2004 — word counts are read best in place

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import dropwhile

from nous_online.core.patterns import regex
from nous_online.language.lexicon import (
    ARTICLES,
    ATTRIBUTES,
    DATED,
    FUNCTION_WORDS,
    MANY_VALUED,
    NEGATORS,
    NUMBER_WORDS,
    PROGRESSIVE_STATES,
    UNIDENTIFIED,
    UNITS,
    word_list,
)
from nous_online.language.pairs.guards import differences, is_near_spelling
from nous_online.language.pairs.reading import StatementWords, read, read_words
from nous_online.language.pairs.wordings import other_names, other_subjects, subject_words

ADDITIONS, PAST_MARKERS = word_list("additions"), word_list("past_markers")
DWELLING, HOLDING, NEWLY, WIDE_PLACES = map(word_list, ("dwelling", "holding", "newly", "wide_places"))
ONE_OF_SEVERAL, SINGLING = word_list("one_of_several"), word_list("singling")
IRREGULAR_PAST = word_list("irregular_past")
MOST_WORDS = 30  # a longer statement makes several claims, and a new value of one must not hide the others
COPULAS = frozenset({"is", "are", "was", "were", "am"})
PLACING = frozenset({"in", "at", "by", "to", "as", "from", "on", "for", "of"})
NAMING = frozenset({"called", "named", "equals"})
OPENERS = COPULAS | PLACING | NAMING
INSIDE_NAMES = frozenset(
    {"of", "in", "at", "on", "for", "and", "the", "de", "la", "du", "von", "van", "der", "del", "to", "from", ","}
)
THIRD_PERSON = frozenset({"he", "him", "his", "she", "her", "hers", "it", "its", "they", "them", "their", "theirs"})
PRONOUNS = THIRD_PERSON | {"i", "me", "my", "mine"}
JOINTS = frozenset({"and", "or", "but", "while", "because", "although", "if", "when", "whose", "then", "so"})
COMPLEMENTS = frozenset({"of", "in", "for", "at", "on", "that", "where", "who", "which", "to", "from", "by"})
RELATIVES = frozenset({"that", "which", "who", "where"})
INDEFINITE = frozenset({"a", "an", "some", "any", "several"})
PLACE = regex(r"\b(\w++) (?:in|at|to|from) <name>")
LIMITS = FUNCTION_WORDS | {"least", "most"}
CASUAL = frozenset({"now", "current", "currently", "presently", "still", "just", "actually", "recently", "today"})
SENTENCE_END = regex(r"[a-z0-9)]{3}[.!?;]\s+[A-Z\"(]|\?\s*$")


@dataclass(frozen=True)
class Slot:
    """A slot and its value; `key` is the same for every value of one attribute of one thing."""

    key: str
    value: tuple[str, ...]
    is_name: bool = False


@dataclass(frozen=True)
class _Claim:
    """The words of a statement with punctuation, as written and in lower case; both have the same length."""

    cased: tuple[str, ...]
    words: tuple[str, ...]

    def is_named(self, place: int) -> bool:
        """Tell whether the word at `place` has a capital letter, as names do ("iPhone" and "École" too)."""
        if not 0 <= place < len(self.cased) or self.cased[place].islower():  # most words: going by letters is slow
            return False
        return any(letter.isupper() for letter in self.cased[place])


def slot_key(text: str, subject: str | None) -> str | None:
    """Return the key of the slot `text` fills, None where it fills none.

    "Wilma Trent was born in the city of London." → "wilma trent was born in city of".
    """
    slot = filled_slot(text, subject)
    return slot.key if slot else None


@lru_cache(maxsize=131_072)
def filled_slot(text: str, subject: str | None) -> Slot | None:
    """Return the slot and value of a statement that makes one claim about an identified thing, None for any other."""
    claim = _claim(read_words(text))
    if claim is None or not _is_identified(claim, subject):
        return None
    counted = _counted(claim)
    if counted is not None:
        return _keyed(claim, subject, *counted, kind="number")
    turned = _chosen(claim, subject) or _turned(claim, subject)
    places = [
        place
        for place, word in enumerate(claim.words[:-1])
        if place and word in OPENERS and not claim.is_named(place) and not _is_inside_name(claim, place)
    ]
    if turned is not None or not places:
        return turned
    opening = places[-1]  # the value follows the last copula or preposition outside of names
    is_run = claim.words[opening] == "on" and claim.words[opening - 1] in {"run", "runs"}
    if is_run and len(claim.words) == opening + 3 and claim.is_named(opening + 1) and is_number(claim.words[-1]):
        return _keyed(claim, subject, opening + 2, opening + 3, kind="number")  # "runs on Postgres 15"
    if _is_labelled(claim, opening) or _tells_more(claim, opening) or not _holds_one_value(claim, opening):
        return None
    kind = _kind(claim, opening)
    return None if kind is None else _keyed(claim, subject, opening + 1, len(claim.words), kind=kind)


def _claim(reading: StatementWords) -> _Claim | None:
    """Return a statement as a claim, None for a question, a negation, an addition, the past, or several claims."""
    cased = list(reading.cased)
    while cased and not _is_spoken(cased[-1]):
        cased.pop()
    claim = _Claim(tuple(cased), reading.words[: len(cased)])
    if not 3 <= len(claim.words) <= MOST_WORDS or SENTENCE_END.search(reading.text):
        return None
    opening = () if _opens_with_title(claim) else claim.words[:1]
    common = {*opening, *(word for place, word in enumerate(claim.words) if not claim.is_named(place))}
    return None if common & (NEGATORS | ADDITIONS | PAST_MARKERS) or _is_compound(claim) else claim


def _opens_with_title(claim: _Claim) -> bool:
    """Tell whether the first word opens a name of three or more words: "A Rake's Progress", "No More Heroes"."""
    return claim.is_named(0) and claim.is_named(1) and (claim.is_named(2) or _is_inside_name(claim, 2))


def _is_spoken(word: str) -> bool:
    return any(letter.isalnum() for letter in word)


def _is_labelled(claim: _Claim, opening: int) -> bool:
    """Tell whether a colon stands behind `opening`: "on call at Rask: Bo" names two things; "at 9:30" one."""
    behind = range(opening + 1, len(claim.words) - 1)
    return any(claim.words[place] == ":" and not claim.words[place + 1][0].isdigit() for place in behind)


def _tells_more(claim: _Claim, opening: int) -> bool:
    """Tell whether a verb stands behind a preposition: "The lab in Bonn employs Ada" gives no other value than "Bonn".

    That is a word that ends like a verb behind a name, a number or a subject without a verb, or any word between two
    numbers; but not the last word ("in Bonn offices").
    """
    is_of_attribute = claim.words[opening] == "of" and claim.words[opening - 1] in ATTRIBUTES
    if claim.words[opening] not in PLACING or is_of_attribute:
        return False
    is_bare = claim.words[0] in ARTICLES and not any(_may_be_verb(claim, place) for place in range(1, opening))
    last_number = max((place for place, word in enumerate(claim.words) if is_number(word)), default=0)
    return any(
        (is_bare and claim.words[place - 1] not in ARTICLES and _may_be_verb(claim, place))
        or (claim.is_named(place - 1) and _may_be_verb(claim, place))
        or (
            is_number(claim.words[place - 1])
            and (_may_be_verb(claim, place) or (place < last_number and _is_plain(claim, place)))
        )
        for place in range(opening + 2, len(claim.words) - 1)
    )


def _is_plain(claim: _Claim, place: int) -> bool:
    """Tell whether a word is no name, number, unit, part of a date or small word."""
    word = claim.words[place]
    is_counted = is_number(word) or word in UNITS or word in DATED
    return not claim.is_named(place) and word.isalpha() and not is_counted and word not in FUNCTION_WORDS


def _may_be_verb(claim: _Claim, place: int) -> bool:
    word = claim.words[place]
    return _is_plain(claim, place) and (word.endswith(("s", "ed")) or word in IRREGULAR_PAST)


def _is_compound(claim: _Claim) -> bool:
    """Tell whether a comma or a conjunction outside of names opens another clause."""
    for place, word in enumerate(claim.words):
        joins = word in JOINTS and not claim.is_named(place) and not _is_inside_name(claim, place)
        follower = claim.cased[place + 1] if place + 1 < len(claim.cased) else ""
        if joins or (word == "," and follower[:1].islower()):
            return True
    return False


def _is_inside_name(claim: _Claim, place: int) -> bool:
    """Tell whether the small word at `place` is part of a name: "University of the Arts", "Duke, Prince of"."""
    if claim.words[place] not in INSIDE_NAMES or not claim.is_named(place - 1):
        return False
    after = place + 1
    while after < len(claim.words) and claim.words[after] in INSIDE_NAMES and not claim.is_named(after):
        after += 1
    # "at Harbour Road on Mondays" names a place and a day.
    is_dated = claim.words[place] == "on" and claim.words[min(after, len(claim.words) - 1)].removesuffix("s") in DATED
    return claim.is_named(after) and not is_dated


def _is_identified(claim: _Claim, subject: str | None) -> bool:
    """Tell whether a claim is about an identified thing: "a man" or "three girls" may be others next time."""
    first, second = claim.words[0], claim.words[1]
    is_counted = is_number(first) and second.isalpha() and second not in COPULAS and not claim.is_named(1)
    if is_counted or (first in UNIDENTIFIED and not _opens_with_title(claim)):
        return False
    return bool(subject) or first not in THIRD_PERSON


def _counted(claim: _Claim) -> tuple[int, int] | None:
    """Return start and end of the only number of a claim if it counts or measures: "has 3 dogs", "lasts 14 days"."""
    places = [place for place, word in enumerate(claim.words) if is_number(word)]
    if len(places) != 1 or not 2 <= places[0] < len(claim.words) - 1:
        return None
    place = places[0]
    before, after = claim.words[place - 1], claim.words[place + 1]
    is_dated = before in PLACING - {"of", "to"} or claim.is_named(place - 1) or claim.is_named(place + 1)
    is_of_thing = claim.words[place - 2] in PLACING | ARTICLES and before not in LIMITS  # "of team 3"
    is_counted = after in UNITS or (after.endswith("s") and after not in FUNCTION_WORDS)
    is_value = is_counted and not (is_dated or is_of_thing or _is_activity(claim, place))
    return (place, place + 1) if is_value else None


def is_number(word: str) -> bool:
    """Tell whether a word is a number in digits or letters; "one" is not."""
    return word[0].isdigit() or word in NUMBER_WORDS


def _holds_one_value(claim: _Claim, opening: int) -> bool:
    """Tell whether the words before the value speak of an attribute that has one value at a time."""
    common = {word for place, word in enumerate(claim.words[: opening + 1]) if not claim.is_named(place)}
    if claim.words[opening] in COPULAS and _is_attribute(claim, opening):  # "the type of music that Ana plays is"
        common -= set(dropwhile(lambda word: word not in RELATIVES, claim.words[:opening]))
    verb, article, attribute = (claim.words[max(0, opening - back)] for back in (3, 2, 1))
    is_of_holding = claim.words[opening] == "of" and verb in HOLDING and article == "the"
    if is_of_holding and attribute in ATTRIBUTES:  # "has the rank of", "speaks the language of"
        common -= HOLDING
    if MANY_VALUED & common or _holds_many(claim, opening):
        return False
    if not common - FUNCTION_WORDS - CASUAL:
        return bool(common & COPULAS)
    if claim.words[opening] in COPULAS:
        return True
    return not _is_activity(claim, opening)


def _holds_many(claim: _Claim, opening: int) -> bool:
    """Tell whether several values can hold at once: places lie inside one another, and one publisher has many books.

    An office moves, but a thing with a name of its own stays where it is: another place is a wider or narrower one.
    """
    copula = next((place for place in range(1, opening) if claim.words[place] in COPULAS), None)
    if copula is None:
        return False
    if claim.words[opening] == "of":
        return claim.words[copula + 1] == "the"
    is_place = claim.words[opening] in {"in", "at", "on", "from"} and _value_kind(claim, opening + 1) == "name"
    return is_place and (claim.words[opening] == "from" or _is_name(claim, copula))


def _is_name(claim: _Claim, end: int) -> bool:
    """Tell whether the words before `end` are a name, with or without an article."""
    start = int(claim.words[0] in ARTICLES and end > 1)
    return claim.is_named(start) and claim.is_named(end - 1)


def _is_activity(claim: _Claim, end: int) -> bool:
    """Tell whether a claim is about an activity of the moment: "is riding"; "is living" is a state."""
    pairs = zip(claim.words[:end], claim.words[1:end], strict=False)
    return any(verb in COPULAS and word.endswith("ing") and word not in PROGRESSIVE_STATES for verb, word in pairs)


def _kind(claim: _Claim, opening: int) -> str | None:
    """Return the kind of value a slot takes, "" for any kind, None where the words after `opening` only describe.

    The kind keeps attributes apart: "works in Rome" and "works in May", "The office is open" and "is in Rome".
    """
    opener, is_indefinite = claim.words[opening], claim.words[opening + 1] in INDEFINITE
    kind = _value_kind(claim, opening + 1)
    if opener in NAMING or (opener in COPULAS and _is_attribute(claim, opening)):
        return ""
    if is_indefinite:
        return None
    if opener == "of":
        return ""
    if opener not in COPULAS:
        return kind
    if _is_name(claim, opening) and claim.words[0] not in ARTICLES:
        return kind if kind.startswith("number") else None
    return None if kind == "word" else kind


def _value_kind(claim: _Claim, start: int) -> str:
    places = [place for place in range(start, len(claim.words)) if claim.words[place] not in ARTICLES | CASUAL]
    first = places[0] if places else start
    word, follower = claim.words[first], claim.words[first + 1] if first + 1 < len(claim.words) else ""
    is_name = claim.is_named(first + 1) and follower not in DATED  # "60 Minutes", "Jan Peter", "de Havilland"
    if (is_number(word) or word in DATED or not _is_spoken(word)) and not is_name:
        unit = UNITS.get(follower)
        return f"number of {unit[0]}" if unit else "number"
    return "name" if claim.is_named(first) or (is_name and (is_number(word) or word in INSIDE_NAMES)) else "word"


def _is_attribute(claim: _Claim, end: int) -> bool:
    """Tell whether a subject is an attribute with one value: "the status of the job", "Ana's favourite food"."""
    return _head(claim, end) in ATTRIBUTES or bool({"favourite", "favorite"} & set(claim.words[:end]))


def _head(claim: _Claim, end: int) -> str:
    """Return the head noun of a subject: "name" in "the name of the king", "number" in "Ana's phone number"."""
    head = ""
    for place in range(end):
        word = claim.words[place]
        if head and (word in COMPLEMENTS or claim.is_named(place)):
            break
        if not claim.is_named(place) and word not in ARTICLES | PRONOUNS and _is_spoken(word):
            head = word
    return head


def _turned(claim: _Claim, subject: str | None) -> Slot | None:
    """Return the slot of "X is the R of Y", the same as that of "the R of Y is X"."""
    copula = next((place for place, word in enumerate(claim.words) if word in COPULAS), 0)
    follows = [place for place in range(copula + 1, len(claim.words)) if claim.words[place] not in CASUAL][:1]
    if not copula or not all(claim.is_named(place) for place in range(copula)) or not follows:
        return None
    place = follows[0]
    links = [link for link in range(place + 2, len(claim.words) - 1) if claim.words[link] in {"of", "for", "at", "in"}]
    if claim.words[place] != "the" or not links or claim.words[links[0] + 1] in INDEFINITE:
        return None
    role = {claim.words[between] for between in range(place + 1, links[0])}
    if role & MANY_VALUED or (role & ONE_OF_SEVERAL and not role & SINGLING) or claim.words[copula] in {"was", "were"}:
        return None
    order = [*range(place + 1, len(claim.words)), copula]
    key = _spelled(claim, order, subject) + ([] if role & ATTRIBUTES else ["<name>"])
    return Slot(" ".join(key), tuple(_spelled(claim, range(copula), None)), is_name=True)


def _chosen(claim: _Claim, subject: str | None) -> Slot | None:
    """Return the slot of "prefers X over Y", the same as of "prefers Y over X"; without Y one may prefer several."""
    verb = next((place for place, word in enumerate(claim.words) if place and word in {"prefer", "prefers"}), 0)
    over = next((place for place, word in enumerate(claim.words) if word in {"over", "to"} and place > verb + 1), 0)
    if not verb or not over or over == len(claim.words) - 1:
        return None
    liked, left = (
        _spelled(claim, places, None) for places in (range(verb + 1, over), range(over + 1, len(claim.words)))
    )
    alternatives = f"<{' or '.join(sorted((' '.join(liked), ' '.join(left))))}>"
    return Slot(" ".join([*_spelled(claim, range(verb), subject), "prefer", alternatives]), tuple(liked))


def _keyed(claim: _Claim, subject: str | None, start: int, end: int, *, kind: str) -> Slot:
    """Return the slot of a claim whose value is the words from `start` to `end`."""
    marks = [f"<{kind}>"] if kind else []
    rest = _spelled(claim, range(end, len(claim.words)), None)
    key = [*_spelled(claim, range(start), subject), *marks, *rest]
    is_name = any(claim.is_named(place) or claim.words[place] == "," for place in range(start, end))
    return Slot(" ".join(key), tuple(_spelled(claim, range(start, end), None)), is_name=is_name)


def _spelled(claim: _Claim, places: Iterable[int], subject: str | None) -> list[str]:
    """Return the words at `places`, normalised for comparison, after the words of the subject."""
    about = subject_words(subject)
    left_out = ARTICLES | CASUAL | (PRONOUNS if about else frozenset[str]())
    found = [
        claim.words[place] if claim.is_named(place) else _singular(claim.words[place])
        for place in places
        if _is_spoken(claim.words[place])
        and (claim.words[place] not in left_out or (place > 0 and claim.is_named(place)))  # "Test A" is no "test"
    ]
    return [*about, *(word for word in found if word not in about)]


def _singular(word: str) -> str:
    is_inflected = len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))
    return word[:-1] if is_inflected and word not in FUNCTION_WORDS else word


def shared_slot(known: str, new: str, *, subjects: tuple[str | None, str | None] = (None, None)) -> str | None:
    """Return the slot that two statements fill with different values, None without one.

    A more precise value ("Ghent", "Ghent, Belgium") is not a different one. A missing subject is taken from the other
    statement.
    """
    if other_subjects(*subjects, (known, new)):
        return None
    about_known, about_new = subjects[0] or subjects[1], subjects[1] or subjects[0]
    one, other = filled_slot(known, about_known), filled_slot(new, about_new)
    if not one or not other:
        return None
    is_update = one.key == other.key and _is_other_value(one, other) and not _may_be_nested(one, other, new)
    # Only guards know whether two numbers differ in more than their spelling.
    is_number_alike = is_update and any(map(is_number, one.value)) and not differences(known, new)
    return one.key if is_update and not is_number_alike else None


def other_holders(a: str, b: str) -> str | None:
    """Return the reason that two statements give the same value to slots of two things, None where they don't.

    "Ana plays the position of goalkeeper" and "Bo plays the position of goalkeeper"; an office that one person holds
    ("is the mayor of Ghent") is one slot, whoever holds it.
    """
    names = other_names(a, b)
    one, other = (filled_slot(text, None) if names else None for text in (a, b))
    is_of_two = one and other and one.key != other.key
    return f"two things, {names[0]} and {names[1]}, with the same value" if names and is_of_two else None


def _may_be_nested(one: Slot, other: Slot, new: str) -> bool:
    """Tell whether one of two places may lie inside the other, so that both hold: "lives in Rome", "lives in Italy".

    For a dwelling this is assumed unless the new statement says that somebody moved.
    """
    place = PLACE.search(one.key)
    if place is None:
        return False
    wide = [bool(WIDE_PLACES & set(slot.value)) for slot in (one, other)]
    return wide[0] != wide[1] or (place[1] in DWELLING and not NEWLY & set(read(new).words))


def _is_other_value(one: Slot, other: Slot) -> bool:
    a, b = (set(slot.value) - PLACING for slot in (one, other))
    only_a, only_b = a - b, b - a
    if not only_a or not only_b:  # "Ghent, Belgium" is Ghent, but a "rugby union" is no "rugby"
        return bool(only_a | only_b) and not (one.is_name or other.is_name) and one.value[-1] != other.value[-1]
    return not all(any(is_near_spelling(x, y) for y in only_b) for x in only_a)
