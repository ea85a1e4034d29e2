"""Differences in wording that never change the meaning, and differences that always do; by rule, without a model.

`may_be_same` accepts a short list of harmless differences; every other one needs a judge. `never_same`, subjects,
things and conditions keep two statements apart whatever a judge says.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from difflib import SequenceMatcher
from functools import lru_cache

from nous_online.core.patterns import regex
from nous_online.core.validation import invisible_difference, without_invisible
from nous_online.language.lexicon import (
    ARTICLES,
    COPULAS,
    DATED,
    FUNCTION_WORDS,
    NUMBER_WORDS,
    OWN,
    UNIDENTIFIED,
    UNITS,
    WE,
    phrases,
    word_list,
)
from nous_online.language.pairs.figures import NUMERALS, with_plain_figures
from nous_online.language.pairs.guards import differences, exact_differences
from nous_online.language.pairs.reading import (
    CURRENCIES,
    NOON,
    ORDINAL_WORDS,
    clock,
    read,
    read_words,
    with_plain_dates,
)

Sides = tuple[list[str], list[str]]  # the words of two statements that replace each other
SUBJECT = "subject"  # prefix of the reason for different subjects
MARKS = frozenset("'\".,;:!?-/")
TOKEN = regex(r"[^\W_](?:[\w'\u2019.:%/-]*\w)?|\S")
LEAST_ALIKE = 0.5  # share of equal words from which two statements have the same wording
TITLES = frozenset({"mr", "mrs", "ms", "dr", "prof", ".", "herr", "frau", "señor", "señora", "mme", "madame"})
PLACING = frozenset({"to", "at", "for", "of", "from", "in"})
CONDITIONAL = frozenset({"on", "at", "in", "for", "during", "with"})  # prepositions of a condition
THRESHOLDS = frozenset({"over", "above", "under", "below", "than"})  # of "more than 1,000 euros"
FRACTIONS = frozenset({"half", "quarter"})
NO_NAMES = FUNCTION_WORDS | UNIDENTIFIED | word_list("past_markers") | word_list("newly")
"""Words that no name begins with, though a sentence may."""
LONGEST_CONDITION, LONGEST_NAME = 3, 6  # words, initials and their stops among them
INTRODUCED = regex(
    r"(?:an?|some(?:one|body)?|no(?:body| one)|there (?:is|are|was|were)|two|three|four|five|several|many|people)\b",
    re.IGNORECASE,
)
SPEAKERS = frozenset({("user",), ("me",), ("i",)})
"""Subjects that everything has which one person tells: no sign that two statements are about the same."""
MOST_COMPARED = 60  # words: aligning is quadratic


@lru_cache(maxsize=65_536)
def subject_words(subject: str | None) -> tuple[str, ...]:
    """Return a subject normalised for comparison: "The Ana's  Desk" → ana, desk.

    Only a leading article is left out, since the A of "project A" distinguishes it from project B.
    """
    words = tuple(word for word in read_words(subject or "").words if word not in MARKS)
    return words[1:] if len(words) > 1 and words[0] in ARTICLES else words


def other_subjects(a: str | None, b: str | None, texts: tuple[str, str]) -> str | None:
    """Return the reason that two statements have different subjects, None when they agree or one is missing.

    A user who says "I" tells of everything: "Greenhill rang me" is about Greenhill too. Of two who say "I" each tells
    of themselves.
    """
    one, other = subject_words(a), subject_words(b)
    if not one or not other or one == other:
        return None
    says = [_says_i(subject, text) for subject, text in zip((one, other), texts, strict=True)]
    is_of_user = (says[0] and one in SPEAKERS) or (says[1] and other in SPEAKERS)
    return None if is_of_user and not all(says) else f"{SUBJECT} {' '.join(one)} ≠ {' '.join(other)}"


def _says_i(subject: tuple[str, ...], text: str) -> bool:
    """Tell whether a subject is who says "I" in a text: its name stands in front of it ("Ana: I …"), or nowhere."""
    if not (OWN.search(text) or WE.search(text)):
        return False
    speaker, colon, _ = text.partition(":")
    return bool(colon and subject_words(speaker) == subject) or not set(subject) <= {*read_words(text).words}


def share_a_subject(a: str | None, b: str | None) -> bool:
    """Tell whether two statements are about one thing by their subjects."""
    return is_telling(a) and subject_words(a) == subject_words(b)


def is_telling(subject: str | None) -> bool:
    """Tell whether a subject says what a statement is about, other than who tells it."""
    return bool(subject_words(subject)) and subject_words(subject) not in SPEAKERS


def other_things(a: str, b: str) -> str | None:
    """Return the reason that two statements in the same wording give two things a value each, None where they don't.

    "web-04 is at 71 %" and "web-05 is at 83 %": a name or identifier differs, and the quantities after it; or the names
    that the statements begin with, and anything after them ("Dublin is in Europe", "Lima is in Peru"). Of 332 such
    pairs written for training 328 hold together; three say the same, which the reader sees.
    """
    (before, (first, second)), *values = _replaced(a, b) or [([], ([], []))]
    is_named = len(first) == len(second) == 1 and _is_name(first[0]) and _is_name(second[0])
    is_counted = is_named and all(any(map(str.isdigit, "".join(side))) for _, sides in values for side in sides)
    is_of_two = bool(values) and (is_counted or (TITLES.issuperset(before) and _are_names(first, second)))
    return f"two things, {' '.join(first)} and {' '.join(second)}, each with a value of its own" if is_of_two else None


def is_of_any(text: str) -> bool:
    """Tell whether an English statement introduces what it is about ("A man …", "There is …").

    Another one may be about another: "A dog sleeps", "A dog barks".
    """
    return bool(INTRODUCED.match(text))


def other_names(a: str, b: str) -> tuple[str, str] | None:
    """Return the names two statements begin with, where nothing else differs: "Ana maintains it", "Bo maintains it"."""
    (before, (first, second)), *values = _replaced(a, b) or [([], ([], []))]
    is_of_two = first and TITLES.issuperset(before) and not values and _are_names(first, second)
    return (" ".join(first), " ".join(second)) if is_of_two else None


def may_add(a: str, b: str, *, is_of_slot: bool = False) -> bool:
    """Tell whether one of two statements in the same wording may come on top of the other instead of replacing it.

    "Ana has piano on Mondays", "… on Thursdays": another time of what has many, or one more of what one may have many.
    What fills a slot has one value ("plays the position of goalkeeper"), but perhaps several times. In any wording:
    what the other one excepts.
    """
    if _is_excepted(a, b) or _is_excepted(b, a):
        return True
    replaced = _replaced(a, b)
    if len(replaced) != 1:
        return False
    ((before, sides),) = replaced
    words = [word.casefold() for side in sides for word in side]
    shared = {word.casefold() for word in TOKEN.findall(a)}.difference(words)
    is_at = bool({"at", "on", "until"}.intersection(before[-1:])) or any(
        ":" in word or word.removesuffix("s") in DATED | PARTS_OF_DAYS for word in words
    )
    if not is_at or any(word.removesuffix("s") not in TIMES and not word[0].isdigit() for word in words):
        is_counted = any(map(_is_quantity, sides))
        is_of_many = not OF_PERSONS.isdisjoint(shared) and SINGLING.isdisjoint(shared)
        return is_of_many and not (is_counted or is_of_slot)
    is_often = any(word.endswith("s") and word.removesuffix("s") in WEEKDAYS for word in words)
    return is_often or OF_ONE_TIME.isdisjoint(shared)


def _is_excepted(one: str, other: str) -> bool:
    """Tell whether a statement speaks of what another excepts, and excepts nothing itself."""
    excepted = EXCEPTED.findall(one)
    if not excepted or EXCEPTED.search(other):
        return False
    spoken = {word.removesuffix("s") for word in TOKEN.findall(other.casefold())}
    return any(word.casefold().removesuffix("s") in spoken for word in excepted)


def _is_name(word: str) -> bool:
    """Tell whether a word is capitalised, or of letters and digits, and no part of a date and no "The"."""
    has_both = any(map(str.isalpha, word)) and any(map(str.isdigit, word))
    is_written = (word[0].isupper() and len(word) > 1) or has_both
    return is_written and word.casefold().removesuffix("s") not in DATED and word.casefold() not in NO_NAMES


def _are_names(first: list[str], second: list[str]) -> bool:
    """Tell whether two beginnings are two names ("J. A. Happ", "Ana dos Santos"), not one title in two genders."""
    one, other = " ".join(first), " ".join(second)
    return (
        all(_is_name(side[-1]) and side[0][0].isupper() and len(side) <= LONGEST_NAME for side in (first, second))
        and NO_NAMES.isdisjoint(word.casefold() for word in (*first, *second) if len(word) > 1)
        and not one.startswith(other)
        and not other.startswith(one)
    )


def other_conditions(a: str, b: str) -> str | None:
    """Return the reason that two statements in the same wording give quantities under different conditions, or None.

    "The shop opens at 9 on weekdays" and "… at 11 on Sundays": a condition is a recurring time, a group or a threshold
    after a preposition. None where a name or a calendar day differs too: "on Tuesday at 9" and "on Thursday at 10" is
    one event that was moved.
    """
    # In all 38 such pairs of the training set, and all 3 of the benchmark `wording`, both statements hold.
    replaced, quantities = _replaced(a, b), 0
    conditions: list[Sides] = []
    for words, parts in replaced:
        before, sides = words, parts
        if all(len(side) > 1 and side[0].casefold() in CONDITIONAL for side in parts):
            before, sides = [parts[0][0].casefold()], (parts[0][1:], parts[1][1:])
        is_pressure = len(before) > 1 and before[-1] in THRESHOLDS and _is_quantity([before[-2]])  # "142 over 90"
        link = before[-1] if before and not is_pressure else ""
        is_of_quantities = all(map(_is_quantity, sides))
        quantities += is_of_quantities and link not in THRESHOLDS
        is_condition = (
            link in THRESHOLDS if is_of_quantities else link in CONDITIONAL and all(map(_is_condition, sides))
        )
        conditions += [sides] if is_condition else []
    if not (quantities and conditions and quantities + len(conditions) == len(replaced)):
        return None
    one, other = (" ".join(side) for side in conditions[0])
    return f"each under a condition of its own: {one}, {other}"


def _replaced(a: str, b: str) -> list[tuple[list[str], Sides]]:
    """Return the replaced parts of two statements in nearly the same wording, each with the words before it."""
    one, other = TOKEN.findall(a), TOKEN.findall(b)
    if max(len(one), len(other)) > MOST_COMPARED:
        return []
    words = [[word.casefold() for word in side] for side in (one, other)]
    matcher = SequenceMatcher(None, *words, autojunk=False)
    changes = [each for each in matcher.get_opcodes() if each[0] != "equal"]
    if matcher.ratio() < LEAST_ALIKE or any(change != "replace" for change, *_ in changes):
        return []
    return [
        ([word for word in words[0][:i] if word not in ARTICLES], (one[i:j], other[k:n])) for _, i, j, k, n in changes
    ]


def _is_quantity(side: list[str]) -> bool:
    return any(any(map(str.isdigit, word)) or word.casefold() in {*NUMBER_WORDS, *FRACTIONS} for word in side)


def _is_condition(side: list[str]) -> bool:
    """Tell whether a phrase can be a condition: short, without quantity, name and calendar day."""
    is_plain = all(not word[0].isupper() or word.casefold().removesuffix("s") in DATED for word in side)
    return (
        len(side) <= LONGEST_CONDITION
        and is_plain
        and not _is_quantity(side)
        and not {w.casefold() for w in side} & DATED
    )


WEEKDAYS = word_list("weekdays")
OF_PERSONS, SINGLING = word_list("of_persons"), word_list("singling")
PARTS_OF_DAYS = word_list("parts_of_days")
TIMES = DATED | PARTS_OF_DAYS | {"o'clock", "th", "st", "nd", "rd", "of", "the", "to", "at", "in"}
EXCEPTED = regex(
    r"\b(?:except(?:ing)?|excluding|apart from|other than) (?:(?:for|on|in|at) )?(?:(?:the|our|my|an?) )?"
    r"([^\W\d_]{3,40})",
    re.IGNORECASE,
)
"""The word after "except for" and its like."""
OF_ONE_TIME = COPULAS | word_list("of_one_time")
QUOTES = str.maketrans({"‘": "'", "’": "'", "`": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "…": "."})  # noqa: RUF001 (typographic quotes are the subject)
WIDE = regex(r"[、。；！「」『』]|[，：](?!\d)|(?<!\d)[，：]")  # noqa: RUF001 (so are full-width marks)
WIDTHS = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFF01, 0xFFEF)}
"""Letters, digits and marks of full or half width, as others write them."""
FACES = "\\s\u263a\ufe0f\U0001f600-\U0001f637\U0001f641-\U0001f644\U0001f910-\U0001f917\U0001f970-\U0001f976"
SMILEYS = regex(rf"\A[{FACES}]+(?=[^{FACES}])|(?<=[^{FACES}])[{FACES}]+\Z")
"""Faces around a statement: they show a mood. A thumb, a heart, a tick or a thing may be what is said."""
OPENING, CLOSING = "\"'¡", ".,;:!،؛।\"'"
"""Punctuation around a word; one inside ("C++", "3.5") and a question mark stay."""
LABEL = regex(r"^\s*(?:reminder|note(?: to self)?|by the way|btw|fyi|hey|ok|okay)\s?[:,]\s", re.IGNORECASE)
"""A label in front of a statement; the colon is needed, since "Reminder emails are sent" is about emails."""
CONTRACTIONS = (
    (regex(r"\bcan(?:'|no)t\b"), "can not"),
    (regex(r"\bwon't\b"), "will not"),
    (regex(r"(?<=[a-z])n't\b"), " not"),
    (regex(r"\b(it|that|there|here|he|she|what|who)'s\b"), r"\1 is"),
    (regex(r"\bi'm\b"), "i am"),
    (regex(r"\b(you|we|they)'re\b"), r"\1 are"),
    (regex(r"\b(i|you|we|they)'ve\b"), r"\1 have"),
    (regex(r"\b(i|you|we|they|it|he|she|that|there)'ll\b"), r"\1 will"),
)
PRONOUN = frozenset({"I"})
LONGEST_SYMBOL = 2  # letters of a unit whose case tells it from another: "Mb", "MB"
CLOCK = regex(
    r"(?<![\d:.])(?:(\d{1,2})(?:[:.](\d{2}))?\s?([ap])\.?m\b|([01]?\d|2[0-3]):(\d{2}))(?![:\d])", re.IGNORECASE
)
AFTERNOON = regex(
    rf"(?<![\d:.])(1[01]|[1-9])(?:[:.h](\d\d))?(?: (?:uhr|heures?|uur|h))? {phrases('afternoon').pattern}",
    re.IGNORECASE,
)
NUMBERED = {
    **{word: str(value) for word, value in NUMBER_WORDS.items()},
    **{word: f"{value}." for word, value in ORDINAL_WORDS.items()},
}
ORDINAL = regex(r"(?<![\w.])(\d{1,3})(?:st|nd|rd|th)(?!\w)")
MONEY = regex(r"([$€£¥])\s?(\d(?:[\d.,]*\d)?)|(?<![\w.,])(\d(?:[\d.,]*\d)?)\s?([$€£¥])(?!\w)")
THOUSANDS = regex(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?![\d,])")
MEASURED = regex(r"(?<![\w.,-])(\d(?:[\d.,]*\d)?)\s?([^\W\d_]+|%)(?!\w)")
AGREEING = {"are": "is", "were": "was", "have": "has", "do": "does"}
"""Verbs in the plural, and their singular: "the team is", "the team are"."""
ARTICLE_MATTERS = frozenset({"few", "little", "most", ""})
"""Words that an article changes ("few came", "a few came"), and the end of the text: "grade A"."""
FILLERS = frozenset({"please", "btw", "fyi", "also"})
ENGLISH = (frozenset(NUMBER_WORDS) - word_list("not_only_english")) | word_list("surely_english")
"""Words that hardly occur in other languages; a text with none of them is not treated as English."""


def may_be_same(a: str, b: str) -> bool:
    """Tell whether two texts have the same words in the same order, apart from harmless differences.

    Harmless in any language are case, width, spacing, punctuation around words, a label such as "Reminder:", faces
    around one of them, a number in words, and the spelling of a number, a unit, a date or an hour; in English also
    articles, contractions, fillers such as "please", ordinals in words, and the number of a verb.
    """
    a, b = _without_smileys(a, b)
    one, other = spelling(a), spelling(b)
    if one == other:
        return bool(one) or a == b
    is_english = bool(ENGLISH & {*one, *other})
    said, again = wording(a, is_english=is_english), wording(b, is_english=is_english)
    return bool(said) and len(said) == len(again) and all(map(_is_one_word, said, again))


def _without_smileys(a: str, b: str) -> tuple[str, str]:
    """Return two texts without the faces around one of them; where both have some, these may be what they say."""
    one, other = (SMILEYS.sub("", text) for text in (a, b))
    return (one, other) if one == a.strip() or other == b.strip() else (a, b)


def _is_one_word(one: str, other: str) -> bool:
    return one == other or NUMERALS.get(one) == other or one == NUMERALS.get(other)


@lru_cache(maxsize=65_536)
def spelling(text: str) -> tuple[str, ...]:
    """Return the words of a text, without case, width, spacing and punctuation around them; its figures in English."""
    narrow = WIDE.sub(" ", LABEL.sub("", without_invisible(text))).translate(WIDTHS)
    plain = with_plain_figures(" ".join(unicodedata.normalize("NFC", narrow).translate(QUOTES).split()))
    tokens = [token for written in plain.split() if (token := _bare(written))]
    return tuple(
        token if _has_own_case(token, before) else token.casefold()
        for before, token in zip(["", *tokens], tokens, strict=False)
    )


def _bare(written: str) -> str:
    """Strip the punctuation around a word, except the marks of feet and inches, and the comma after a "no" or "not"."""
    word = written.lstrip(OPENING)
    token = word.rstrip(CLOSING)
    mark = word[len(token) : len(token) + 1]
    is_length = mark in {"'", '"'} and token[-1:].isdigit()
    return token + mark if is_length or (mark == "," and token.lower() in {"no", "not"}) else token


def _has_own_case(token: str, before: str) -> bool:
    """Tell whether the case of a word matters: in a key ("aB3"), a unit ("5 Mb") or a letter ("plan A")."""
    if any(map(str.isdigit, token)):
        return token not in {token.lower(), token.upper()}
    is_letter = len(token) == 1 and bool(before) and token not in PRONOUN
    return is_letter or (len(token) <= LONGEST_SYMBOL and before[-1:].isdigit())


@lru_cache(maxsize=65_536)
def wording(text: str, *, is_english: bool) -> tuple[str, ...]:
    """Return the words of a text normalised; numbers, articles and contractions only in English."""
    plain = " ".join(spelling(text))
    if is_english:
        for pattern, opened in CONTRACTIONS:
            plain = pattern.sub(opened, plain)
        plain = THOUSANDS.sub(lambda match: match[0].replace(",", ""), plain)
        plain = " ".join(NUMBERED.get(word, word) for word in plain.split())
    plain = ORDINAL.sub(r"\1.", with_plain_dates(plain))
    plain = AFTERNOON.sub(lambda match: clock(NOON + int(match[1]) * 60 + int(match[2] or 0)), plain)
    plain = MONEY.sub(_money, CLOCK.sub(_hour, plain))
    tokens = MEASURED.sub(_measure, plain).split()
    return tuple(
        AGREEING.get(token, token) if is_english else token
        for token, follower in zip(tokens, [*tokens[1:], ""], strict=False)
        if not is_english or not (token in FILLERS or (token in ARTICLES and follower not in ARTICLE_MATTERS))
    )


def _hour(match: re.Match[str]) -> str:
    """Return an hour of the day as HH:MM, from "8 pm" or "20:00"."""
    hour, minute, half, hour24, minute24 = match.groups()
    if half is None:
        return f"{int(hour24):02}:{minute24}"
    return f"{int(hour) % 12 + 12 * (half in 'pP'):02}:{minute or '00'}"


def _money(match: re.Match[str]) -> str:
    """Return a sum of money with its currency in letters, from "€45" or "45 €"."""
    sign, amount, amount_before, sign_after = match.groups()
    return f"{amount or amount_before} {CURRENCIES[sign or sign_after]}"


def _measure(match: re.Match[str]) -> str:
    """Return a number with its unit in one spelling, from "45 euros" or "45 eur"; units are not converted."""
    unit = UNITS.get(match[2])
    return match[0] if unit is None else f"{match[1]} {unit[0]}*{unit[1]:g}"


WORD = regex(r"\w+")
CLOSE_WORDING = 0.5  # Jaccard of the words from which two texts differ in a few of them
CASES = ("i me my mine myself", "we us our ours ourselves", "he him his", "she her hers", "they them their theirs")
PERSONS = {word: cases.split()[0] for cases in CASES for word in cases.split()}
"""The subject form of each personal pronoun: "we lent it to Leeds", "Leeds lent it to us"."""
MOST_BESIDE_PERSONS = 2  # other words that may differ where persons have exchanged roles
OWNED = regex(r"['\u2019]s\b")
NOT = regex(r"n['\u2019]t\b")
PASSED_OVER = frozenset({"a", "an", "the", "do", "does", "did"})
TENSES = tuple(frozenset(words.split()) for words in ("is are am", "was were", "has have had", "will"))
NAMES_MOVED = "names in another order"
FEW_CHANGED = 6  # changed words up to which one small word may decide
DECIDING = word_list("deciding")  # small words that change the meaning, and that models overlook


def never_same(a: str, b: str) -> tuple[str, ...]:
    """Return the reasons why two texts are never the same, however similar the reader finds them.

    Always: another number, date, name, identifier or quotation; the same words in another order, case or punctuation;
    persons in other roles; invisible characters. In close wording, where one small word decides, also every other guard
    and another order of names.
    """
    if hidden := invisible_difference(a, b):
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
    return (*differences(a, b), *((NAMES_MOVED,) if first != second else ()))


def are_of_other_places(a: str, b: str) -> bool:
    """Tell whether two statements give other places, or other persons and things, and differ again behind them.

    In the same wording ("the bins at Rask on Mondays", "… at Holm on Fridays"), or beginning alike up to a preposition
    ("Calls to Rask go to Bo", "Calls to Holm now go to Ida"): one thing may have moved, or there are two.
    """
    first, *others = _replaced(a, b) or [([], ([], []))]
    is_placed = bool(PLACING.intersection(first[0][-1:])) and not any(_is_of_quantity_or_day(side) for side in first[1])
    if is_placed and any(before[-1:] != ["of"] for before, _ in others):
        return True
    (before, name, rest), (other_before, other_name, other_rest) = _begun_with_name(a), _begun_with_name(b)
    are_followed = bool(rest and other_rest) and rest != other_rest and "of" not in (rest[0], other_rest[0])
    return before == other_before and are_followed and {*name}.isdisjoint(other_name)


def _is_of_quantity_or_day(side: list[str]) -> bool:
    return _is_quantity(side) or any(word.casefold().removesuffix("s") in DATED for word in side)


def _begun_with_name(text: str) -> tuple[list[str], list[str], list[str]]:
    """Return the words up to the first preposition before a name, in lower case, that name, and the words behind it.

    All three are empty for a text without one.
    """
    words = text.split()[:MOST_COMPARED]
    starts = (place + 1 for place, word in enumerate(words[:-1]) if word in PLACING and words[place + 1][0].isupper())
    start = next(starts, 0)
    if not start:
        return [], [], []
    end = next((place for place in range(start, len(words)) if not words[place][0].isupper()), len(words))
    return [word.casefold() for word in words[:start]], words[start:end], words[end:]


def other_small_words(a: str, b: str) -> bool:
    """Tell whether two texts differ in few words, one of them a deciding word or the tense."""
    if words_changed(a, b) > FEW_CHANGED:
        return False
    one, other = ({*WORD.findall(text.casefold())} for text in (a, b))
    first, second = ({place for place, tense in enumerate(TENSES) if tense & words} for words in (one, other))
    return bool((one ^ other) & DECIDING) or (bool(first and second) and first.isdisjoint(second))


def other_roles(a: str, b: str) -> bool:
    """Tell whether persons have exchanged roles: "I owe Dean", "Dean owes me"."""
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
    """Return the number of words that only one of two texts has, whatever their case."""
    one, other = (Counter(WORD.findall(text.casefold())) for text in (a, b))
    return ((one - other) + (other - one)).total()
