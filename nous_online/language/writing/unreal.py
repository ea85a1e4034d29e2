"""Finds what a user says that asserts nothing: what they merely suppose ("If I were rich …"), and jokes."""

from __future__ import annotations

from collections.abc import Sequence

from nous_online.language.lexicon import CONTRASTING, COURTESY, HEALTH, JOKING, LEAD_IN, SUPPOSING, WOULD_IF
from nous_online.language.writing.chats import LEAST_TOLD, is_asking, told_before, told_stems
from nous_online.language.writing.lexrank import content_words
from nous_online.language.writing.sentences import Sentence, straighten_apostrophes


def unreal_sentences(sentences: Sequence[Sentence]) -> frozenset[int]:
    """Return the indexes of what a user merely supposes, or takes back as a joke; what tells of health is none."""
    found: set[int] = set()
    for place, sentence in enumerate(sentences):
        if is_asking(sentence):
            text = straighten_apostrophes(sentence.text)
            found |= {place} if _is_supposed(text) else set()
            found |= _joked(sentences, place, text)
    return frozenset(place for place in found if not HEALTH.search(straighten_apostrophes(sentences[place].text)))


def _is_supposed(text: str) -> bool:
    return bool(SUPPOSING.search(LEAD_IN.sub("", text)) or all(cue.search(text) for cue in WOULD_IF))


def _joked(sentences: Sequence[Sentence], place: int, text: str) -> set[int]:
    """Return the indexes of what a sentence calls a joke, with its own: what it says itself, or what is beside it.

    Where it opens a turn and goes on about something else, nobody can tell whether it means that or the user's turn
    before: both are left out. Only "April fools!" comes before its joke.
    """
    mark = JOKING.search(text)
    if mark is None:
        return set()
    if content_words(text[: mark.start()]):
        return {place}
    rest = text[mark.end() :].lstrip(" ,.!:;-")
    turn = sentences[place].turn
    near = (place - 1, place + 1) if mark["april"] else (place - 1,)  # "Just kidding! I live in Graz."
    beside = [at for at in near if 0 <= at < len(sentences) and sentences[at].turn == turn]
    if place - 1 in beside:
        return {place - 1} if content_words(rest) else {place - 1, place}
    before = [] if mark["april"] and (beside or content_words(rest)) else _last_told(sentences, place)
    if not content_words(rest):
        return {place, *beside, *before}
    is_meant = CONTRASTING.match(rest) or any(_says_instead(rest, sentences[at].text) for at in before)
    return {*before} if is_meant else {place, *before}


def _says_instead(text: str, joke: str) -> bool:
    """Tell whether what stands behind "just kidding" is meant: it is about the same as the joke, or says little."""
    told, joked = map(told_stems, (text, joke))
    return bool(told & joked) or len(told) < LEAST_TOLD


def _last_told(sentences: Sequence[Sentence], place: int) -> list[int]:
    """Return the index of what a user told last in their turn before, in a list that is empty without it."""
    _, last = told_before(sentences, place)
    told = [each for each in last if not COURTESY.fullmatch(straighten_apostrophes(each.text))]
    return [at for at in range(place) if told and sentences[at] is told[-1]]
