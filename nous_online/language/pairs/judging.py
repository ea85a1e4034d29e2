"""Judges of a pair of statements (same, update, contradiction, compatible or unsure), and the built-in one.

A judge never decides which statement is true, only whether both fill one slot, and which was stated later.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Literal, Protocol, TypeVar

from nous_online.core.validation import invisible_difference
from nous_online.language.lexicon import HARMFUL
from nous_online.language.pairs import reader
from nous_online.language.pairs.beginnings import begins, without_starts
from nous_online.language.pairs.clauses import (
    are_worded_alike,
    clauses_of,
    has_sentences,
    parts_in_common,
    without_asides,
)
from nous_online.language.pairs.guards import denied, differences, give_two_values, gives_one_number, says_again
from nous_online.language.pairs.numbered import other_numbered
from nous_online.language.pairs.pair_model import LEAST_SIMILARITY, load_model, pair_features
from nous_online.language.pairs.reader import LEAST_CHANCE, Chances, calibration, content_of, read_pairs, shared_content
from nous_online.language.pairs.slips import in_one_spelling
from nous_online.language.pairs.slots import other_holders, shared_slot
from nous_online.language.pairs.unsaid import left_unsaid
from nous_online.language.pairs.wordings import (
    NAMES_MOVED,
    are_of_other_places,
    is_of_any,
    may_add,
    may_be_same,
    never_same,
    other_conditions,
    other_names,
    other_small_words,
    other_subjects,
    other_things,
    share_a_subject,
)

K = TypeVar("K", bound=Hashable)
NOTHING_SHARED = "different statements, no shared slot with another value"  # the reason where no guard fired
SURE_FROM = 0.8
"""Confidence from which an update supersedes by itself; below, it opens a contradiction instead.

The built-in judge's confidence is the share of such verdicts that were right on pairs outside its training set: 0.97
where both statements fill one slot, the only case it calls an update (0.996 of those in `facts_pairs` were one). A
model that answers in words and is sure says 0.9 or more, so anything below is its own doubt, of `same` as well.
"""
HARMLESS_HELD = 0.99
"""Confidence of `same` for pairs without a difference that matters: people called all 110 such in `facts_pairs` so."""
TWO_THINGS_HELD = 0.96
"""Confidence for two things with a value each: 77 of 78 in training, and all 7 in the benchmark `wording`."""
CODE = re.compile(r'\{\s?"|":|</|\(\)|=>|==|::')
"""Marks of code and data, for which the reader was not trained; such a text may also be an attack on a judge."""
MOST_EXPLAINED_WORDS = 25
"""Words of the longer statement up to which a verdict names what differs."""
LEAST_SHARED_OF_LONG = 2
"""Content words that two long statements have in common to be a change, in a language that the reader does not know."""
SURE_OF_WHOLE = 0.8
"""Chance from which two English texts of several sentences change each other though no two of their sentences do."""
PREFERENCE = "preference"  # prefix of the reasons of the guard of preferences
UNRELATED_BELOW = 0.2  # chance of `same` below which a pair without a shared slot is two separate statements
DOUBTED_FROM = 0.2  # chance of a change from which a pair that is left as it is counts as *unsure*
SLOT_HELD = 0.97
"""Confidence of an update or contradiction of one slot: 0.9693 of the training pairs that share a slot were one."""
DENIAL_HELD = 0.95
"""The same of a denial in the same content words: 293 of 297 such pairs were a conflict, in every second row of
`facts_pairs` and every fourth of SICK, which were looked at for this. Of pairs written to look alike half are, and the
reader sees those."""
TWO_THINGS_FROM = 0.9
"""The reader's chance of `distinct` from which a denial found by words alone is dropped; few real denials reach it."""
UNREAD_HELD = 0.95
"""Highest confidence of `compatible`: 0.9512 of the training pairs without a sign of a conflict had none."""
TWO_VALUES_FROM = 0.93
"""Chance of `distinct` from which two values of one slot may both hold: 2 of 837 changes of FactConsolidation."""
NUMBER = "<number"  # begins the mark of a number in the key of a slot
LEFT_FROM = 0.8
"""The chance of `distinct` from which a clause is about something else, where no other is read as changed: of 384
changes of statements of several clauses, written for training, 84 kept a clause or a value by it (`reader-16`)."""
LEAST_FAR, LEAST_HALF_FAR = 0.4, 0.5  # cosines from which `SURE_OF_FAR`, and from which `same_at` suffices
SURE_OF_FAR, SURE_OF_LONG, FAR_SAME_HELD = 0.6, 0.7, 0.98
"""The reader's chance in both orders of statements further apart, and of longer ones; and how often it was right: in
344 of 348 far pairs of few words of hands 6, 8 and 21 with a chance from 0.4, in all 41 further apart from 0.6, and in
all 72 longer ones from 0.7."""
MOST_SHORT_WORDS, MOST_FAR_WORDS = 12, 24  # of a far statement for which `same_at` suffices, and `SURE_OF_LONG`
LEAST_NEAR_WORDS = 6
"""Of near statements that may be called the same: in shorter ones a single word decides ("directed", "produced")."""
TREES_LIKE_FROM = 0.8
"""The trees' chance of `same` from which near statements are the same where the reader agrees (`AGREED_FROM`).

Chosen by hands 6, 8 and 21 of `training/pairs`, while looking at the fact pairs of `benchmarks dedup` too: those
figures are of rows the choice has seen.
"""
READ_LIKE_FROM = 0.3  # the reader's chance of `same` from which a pair is read in the other order as well
SMALL_WORD = "a small word that decides"  # why two near statements are kept apart that differ in few words
TREES_SURE_FROM, AGREED_FROM = 0.85, 0.5
"""The trees' chance of `same`, and the reader's in both orders, from which names in another order keep no two near
statements apart. The same words in another order are left out ("only the mother may consent", "the mother may only
consent"), and so are small words."""
SURE_OF_NEAR = 0.86
"""The reader's chance in both orders from which it alone is sure of near ones: all 98 of hands 6, 8 and 21 that are so
are the same."""
SURE_OF_FOREIGN = 0.7
"""The reader's chance of a change from which it is believed in other languages and long texts: one of the 43
look-alikes of hands 6, 8 and 21 in other languages is called a change then, and two from `change_at`."""
SURE_OF_PARTS = 0.92
"""The chance of a change of one part by another that give no values of one kind ("page 4", "page 9"). Of 2,900 pairs of
turns of two chats (BEAM, LoCoMo) 26 were noticed in parts with the usual one, hardly any rightly."""
SURE_OF_ANY, SAME_OF_ANY = 0.925, 0.9
"""The reader's chances of a change, and of `same`, from which it is believed where one statement introduces somebody or
something: the other is often about another. Of the changes written for training 4 % are so; chosen looking at the
captions of SICK."""
OTHER_NEARER = "perhaps another value, but as likely of something else that is near"
UNSURE_UPDATE = 0.79  # confidence of an update that opens a contradiction instead of retiring: under `SURE_FROM`


class Verdict(StrEnum):
    """The relation of two statements; `UNSURE` is always valid, and changes nothing."""

    SAME = "same"
    UPDATES = "updates"
    CONTRADICTS = "contradicts"
    COMPATIBLE = "compatible"
    UNSURE = "unsure"


@dataclass(frozen=True)
class JudgedStatement:
    """A statement as a judge sees it; `trust` (0 to 100) is for the caller, no judge uses it."""

    text: str
    subject: str | None = None
    stated_at: datetime | None = None
    trust: int = 50


@dataclass(frozen=True)
class Pair:
    """Two statements of one agent and the cosine of their vectors; `b` is the newer where the order is known."""

    a: JudgedStatement
    b: JudgedStatement
    similarity: float


@dataclass(frozen=True)
class Judgement:
    """A verdict with who gave it and why; `slot` names what both speak about, `later` which was stated later."""

    verdict: Verdict
    confidence: float
    reason: str
    slot: str | None
    later: Literal["a", "b"] | None
    model: str
    prompt_version: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0
    change: float = 0.0
    """Calibrated chance that one changed the other, from the built-in judge; 0 where it did not read the pair."""


@dataclass(frozen=True)
class Seen:
    """Everything the built-in judge decides by: guards, slot, the raw chance of the trees, and the reader's chances.

    `is_denied`: one negates what the other states. `is_harmless`: the two differ only in ways that never change the
    meaning.
    """

    similarity: float
    reasons: Sequence[str]
    slot: str | None
    is_denied: bool
    same: float
    later: Literal["a", "b"] | None
    is_harmless: bool
    reading: Chances | None = None
    """The reader's chances, the earlier statement first; None where it was not run."""
    kept_apart: Sequence[str] = ()
    """Differences the reader may miss, which forbid `same` whatever it says (`never_same`)."""
    words: int = 0
    """Words of the longer statement."""
    changed_chance: float = 0.0
    """Chance of a change among neighbours (`NeighbourOdds`), most of which are about something else."""
    things: str | None = None
    """The two things, or conditions, that the statements give a value each, in otherwise equal words."""
    is_partial: bool = False
    """The later one changes a part of the earlier and leaves another: "vegan and allergic to soy", "not vegan now"."""
    begins: str | None = None
    """The words by which the later one says that it is yet to begin: "from January"."""
    is_of_any: bool = False
    """One of them introduces what it is about: "A man is cooking" (`is_of_any`)."""
    is_of_others: bool = False
    """Nothing but the name differs that the statements begin with: "Ana maintains the icons", "Bo maintains …"."""
    part_chance: float = 0.0
    """The same chance of one part of each, where read as a whole they change nothing (`changes_in_parts`)."""
    is_kept: bool = False
    """No reading retires the earlier one: no sentence by itself replaces it (`ReadInParts.retires`), or it says what
    somebody must never be given (`HARMFUL`)."""
    is_worded_alike: bool = False
    """Half of the content words of both are shared; told only where a change is noticed."""
    is_elsewhere: bool = False
    """They begin alike, of another place or person each, and go on differently (`are_of_other_places`)."""
    may_add: bool = False
    """Both may hold, the later one on top of the earlier: "Ana has piano on Mondays", "… on Thursdays" (`may_add`)."""


@dataclass(frozen=True)
class ReadInParts:
    """The chances of a change of one pair, as a whole and by its parts."""

    whole: float
    """That of the two as a whole; of texts of several sentences only as far as a part bears it out."""
    part: float
    """That of the likeliest part, where the whole is read as no change and the part surely is one; else 0."""
    retires: bool
    """Whether one may retire the other; of texts of several sentences, whether one replaces what another says."""


class Judge(Protocol):
    """Anything that gives one judgement per pair, in order."""

    @property
    def name(self) -> str: ...

    @property
    def prompt_version(self) -> str: ...

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Judge each pair on its own; raise `Unavailable` when no verdict can be had now."""
        ...


class OfflineJudge:
    """The built-in judge: a small cross-encoder and rules for exact differences; needs no key, 2.5 ms a pair."""

    prompt_version = "reader-20"

    @property
    def name(self) -> str:
        return f"offline:{load_model().version}+{calibration().version}"

    def load(self) -> None:
        """Load the models now, so that it does not count towards a call's deadline; raise `Unavailable` if missing."""
        load_model()
        reader.weights()

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Judge each pair from its words alone; raise `Unavailable` when a model file is missing or altered."""
        pairs = [_without_slips(pair) for pair in pairs]
        slots = [slot_of_pair(pair) for pair in pairs]
        denials = [slot is None and is_denied(pair) for pair, slot in zip(pairs, slots, strict=True)]
        reasons, harmless = compared_exactly(pairs, [slots[i] or denials[i] for i in range(len(pairs))])
        same = chances_of_same(pairs, [bool(apart) or harmless[i] for i, apart in enumerate(reasons)])
        readings = read_those(pairs, [not is_equal for is_equal in harmless])
        in_parts = changes_in_parts(pairs, readings, slots)
        changed = [each.whole for each in in_parts]
        partial = leave_a_part(pairs, readings, changed, slots)
        return [
            self._judgement(
                Seen(
                    similarity=pair.similarity,
                    reasons=reasons[i],
                    slot=slots[i],
                    is_denied=denials[i],
                    same=same[i],
                    later=later(pair),
                    is_harmless=harmless[i],
                    reading=readings[i],
                    kept_apart=_kept_apart(pair, readings[i], same[i]),
                    words=_words(pair),
                    changed_chance=changed[i],
                    is_partial=partial[i],
                    begins=_begins(pair) if slots[i] or is_noticed(changed[i]) else None,
                    things=_two_things(pair, readings[i], is_asked=slots[i] is not None or denials[i]),
                    is_of_any=is_of_any(pair.a.text) or is_of_any(pair.b.text),
                    is_of_others=is_noticed(changed[i]) and other_names(pair.a.text, pair.b.text) is not None,
                    part_chance=in_parts[i].part,
                    is_kept=not in_parts[i].retires or HARMFUL.search(_in_order(pair)[0]) is not None,
                    is_worded_alike=is_noticed(changed[i]) and are_worded_alike(pair.a.text, pair.b.text),
                    is_elsewhere=is_noticed(changed[i]) and are_of_other_places(pair.a.text, pair.b.text),
                    may_add=(slots[i] is not None or is_noticed(changed[i]))
                    and may_add(pair.a.text, pair.b.text, is_of_slot=slots[i] is not None),
                )
            )
            for i, pair in enumerate(pairs)
        ]

    def _judgement(self, seen: Seen) -> Judgement:
        """Return the verdict on a pair with its reason."""
        return Judgement(*decide(seen), seen.slot, seen.later, self.name, self.prompt_version, change=_change_of(seen))


def _change_of(seen: Seen) -> float:
    if seen.things is not None:
        return 0.0
    return max(seen.changed_chance, seen.part_chance, DENIAL_HELD * seen.is_denied)


def odds_of(change: float) -> float:
    """Return the odds of a chance below 1."""
    return change / (1 - min(change, 1 - LEAST_CHANCE))


def weighed_together(
    judgements: Mapping[K, Judgement], of_one: Mapping[K, Collection[K]] | None = None
) -> dict[K, Judgement]:
    """Return the judgements of one new statement and all its neighbours, weighed against each other.

    An update or contradiction that was read, not found by rule, stands if it is likely that this neighbour and no
    other is the one that changed (`notice_from`), and retires if it is likelier still (`retire_from`). That is its odds
    divided by those of all neighbours and 1, the odds of none (the conditional logit of McFadden 1974). Those named in
    `of_one` as about the same thing are not weighed against each other: they can change together.
    """
    # What tells of a change in passing ("can't afford Corfu, booked a caravan") reads like a change of almost anything,
    # but changes one thing at most: docs/decisions/0035.
    odds, alike = {key: odds_of(each.change) for key, each in judgements.items()}, of_one or {}
    of_all = 1 + sum(odds.values())
    shared = {key: sum(odds[other] for other in {*alike.get(key, ())} & {*odds}) for key in odds}
    return {key: _weighed(each, odds[key] / (of_all - shared[key])) for key, each in judgements.items()}


def _weighed(judgement: Judgement, share: float) -> Judgement:
    if not judgement.change or judgement.slot is not None:
        return judgement
    weighed, limits = replace(judgement, change=share), calibration().neighbours
    if judgement.verdict not in {Verdict.UPDATES, Verdict.CONTRADICTS} or share >= limits.retire_from:
        return weighed
    if share < limits.notice_from:
        return replace(weighed, verdict=Verdict.UNSURE, confidence=share, reason=OTHER_NEARER)
    return replace(weighed, confidence=min(judgement.confidence, UNSURE_UPDATE))


def _without_slips(pair: Pair) -> Pair:
    """Return a pair as it is read: with the slips of the pen of each statement that the other shows to be one."""
    a, b = in_one_spelling(pair.a.text, pair.b.text)
    return replace(pair, a=replace(pair.a, text=a), b=replace(pair.b, text=b))


def slot_of_pair(pair: Pair) -> str | None:
    """Return the slot that both statements of a pair fill with different values, None without one."""
    known, new = (pair.b, pair.a) if later(pair) == "a" else (pair.a, pair.b)
    if are_of_other_places(known.text, new.text):
        return None
    return shared_slot(known.text, new.text, subjects=(known.subject, new.subject))


def of_others(pair: Pair) -> str | None:
    """Return the reason that the statements of a pair have different subjects, None where they have not."""
    return other_subjects(pair.a.subject, pair.b.subject, (pair.a.text, pair.b.text))


def is_denied(pair: Pair) -> bool:
    """Tell whether one statement of a pair negates what the other one states of the same subject."""
    return not of_others(pair) and denied(pair.a.text, pair.b.text) is not None


def compared_exactly(pairs: Sequence[Pair], are_rivals: Sequence[object]) -> tuple[list[tuple[str, ...]], list[bool]]:
    """Return why each pair can't be duplicates, and whether it differs in nothing that can change the meaning."""
    # Guards are run only where they can matter: a distant pair without slot or denial is compatible anyway.
    alike = [is_harmless(pair) for pair in pairs]
    near = [each.similarity >= LEAST_SIMILARITY or alike[i] or are_rivals[i] for i, each in enumerate(pairs)]
    reasons = [reasons_apart(pair) if is_near else () for pair, is_near in zip(pairs, near, strict=True)]
    return reasons, [is_alike and not apart for is_alike, apart in zip(alike, reasons, strict=True)]


def reasons_apart(pair: Pair) -> tuple[str, ...]:
    """Return every reason why a pair can't be duplicates: other subjects, invisible characters, and the guards'."""
    reasons = (of_others(pair), invisible_difference(pair.a.text, pair.b.text))
    return (*filter(None, reasons), *differences(pair.a.text, pair.b.text))


def is_harmless(pair: Pair) -> bool:
    """Tell whether two statements differ only in ways that can't change the meaning."""
    return may_be_same(pair.a.text, pair.b.text)


def _kept_apart(pair: Pair, reading: Chances | None, trees: float) -> tuple[str, ...]:
    """Return the reasons of `never_same` against a pair, for one that the reader takes for the same or a change."""
    if reading is None or max(reading.same, reading.change) < UNRELATED_BELOW:
        return ()
    apart = never_same(pair.a.text, pair.b.text)
    if pair.similarity < LEAST_SIMILARITY:
        # A number in one of two distant statements does not count where the reader is sure: "the account is locked
        # after a third wrong password", "… after three".
        return () if reading.same >= SURE_OF_FAR and all(map(gives_one_number, apart)) else apart
    if apart == (NAMES_MOVED,) and trees >= TREES_SURE_FROM and reading.same >= AGREED_FROM:
        apart = ()
    return (*apart, SMALL_WORD) if other_small_words(pair.a.text, pair.b.text) else apart


def chance_of_change(pair: Pair, reading: Chances | None, *, is_long: bool | None = None) -> float:
    """Return the calibrated chance that one statement changed the other; 0 for a pair the reader did not see.

    `is_long`: whether the statements, or those that these are parts of, are long; by default as they are here.
    """
    if reading is None:
        return 0.0
    shared = shared_content(pair.a.text, pair.b.text, is_of_words=not reading.is_in_depth)
    shared += share_a_subject(pair.a.subject, pair.b.subject)
    # Two long texts have a word in common by chance, and where the reader does not know the language it goes by that.
    if not reading.is_in_depth and shared < LEAST_SHARED_OF_LONG and (_is_long(pair) if is_long is None else is_long):
        return 0.0
    return calibration().neighbours.chance(reading.change, shared=shared, is_in_depth=reading.is_in_depth)


def is_noticed(chance: float) -> bool:
    """Tell whether a calibrated chance of a change is one that a judgement goes by."""
    return chance >= calibration().neighbours.notice_from


def leave_a_part(
    pairs: Sequence[Pair], readings: Sequence[Chances | None], changed: Sequence[float], slots: Sequence[str | None]
) -> list[bool]:
    """Tell of each pair that may retire the earlier statement whether a part of it is left as it is.

    A value that the later one leaves unsaid is such a part (`left_unsaid`), unless it ends everything, and so is
    another sentence of the earlier. Otherwise each clause is read with the later statement: one has to change, and
    another, of other words, to be about something else.
    """
    limits = calibration()
    partial = [False] * len(pairs)
    clauses: dict[int, list[str]] = {}
    for at, (pair, reading, chance) in enumerate(zip(pairs, readings, changed, strict=True)):
        is_change = _is_read_as_change(reading, chance)
        slot = slots[at]
        may_leave = is_change if slot is None else NUMBER in slot  # another name takes the place of all of a name
        if may_leave and _leaves_a_value(pair, reading):
            partial[at] = True
        elif is_change and slot is None and has_sentences(_in_order(pair)[0]):
            partial[at] = True  # several sentences say several things
        elif is_change and slot is None:
            earlier = _in_order(pair)[0]
            found = [clause for clause in clauses_of(earlier) if f"{clause}:" not in earlier]  # no "Summer plan:"
            clauses |= {at: found} if len(found) > 1 else {}
    asked = [(clause, _in_order(pairs[at])[1]) for at, found in clauses.items() for clause in found]
    read = iter(read_pairs(asked))
    for at, found in clauses.items():
        parted = [(next(read), content_of(clause)) for clause in found]
        partial[at] = _leaves_a_clause(parted, content_of(_in_order(pairs[at])[1]), limits.change_at)
    return partial


def _leaves_a_clause(parted: Sequence[tuple[Chances, frozenset[str]]], said: frozenset[str], change_at: float) -> bool:
    """Tell whether a later statement of these content words speaks of one clause and leaves another as it is."""
    is_changed = any(reading.change >= change_at for reading, _ in parted)
    roots = {word[:4] for word in said}  # "comes", "come"
    for reading, words in parted:
        if roots.issuperset(word[:4] for word in words if not word.isdigit()):
            continue
        # A clause that its verb opens ("and plays the cello") is seldom read as changed: what it alone shares says so.
        is_other = reading.distinct >= LEFT_FROM and any(said & other - words for _, other in parted)
        if is_other or (is_changed and reading.change < change_at):
            return True
    return False


def changes_in_parts(
    pairs: Sequence[Pair], readings: Sequence[Chances | None], slots: Sequence[str | None]
) -> list[ReadInParts]:
    """Read longer statements part by part: those of several sentences, and those that are no sure change as a whole."""
    changed = [chance_of_change(pair, reading) for pair, reading in zip(pairs, readings, strict=True)]
    told = [_is_long(pair) and (has_sentences(pair.a.text) or has_sentences(pair.b.text)) for pair in pairs]
    found = [ReadInParts(chance, 0.0, not of_several) for chance, of_several in zip(changed, told, strict=True)]
    asked = [
        at
        for at, pair in enumerate(pairs)
        if slots[at] is None and _may_change_in_parts(pair, readings[at], changed[at], is_told_at_length=told[at])
    ]
    parts = [(at, both) for at in asked for both in parts_in_common(*_in_order(pairs[at]))]
    best = dict.fromkeys(asked, 0.0)
    for (at, both), reading in zip(parts, read_pairs([both for _, both in parts]), strict=True):
        a, b = (replace(each, text=text) for each, text in zip((pairs[at].a, pairs[at].b), both, strict=True))
        chance = chance_of_change(replace(pairs[at], a=a, b=b), reading, is_long=True)
        best[at] = max(best[at], chance)
        is_change = _is_read_as_change(reading, chance)
        is_sure = is_change and (chance >= SURE_OF_PARTS or give_two_values(*both))
        if is_sure and not _is_read_as_change(readings[at], changed[at]):
            found[at] = replace(found[at], part=max(found[at].part, chance))
        if is_change and _is_read_as_replacing(reading, chance):
            found[at] = replace(found[at], retires=True)
    for at, chance in best.items():
        if told[at] and not _is_sure_as_a_whole(readings[at], changed[at]):
            is_borne_out = is_noticed(changed[at]) and is_noticed(chance)
            found[at] = replace(found[at], whole=changed[at] if is_borne_out else chance)
    return found


def _may_change_in_parts(pair: Pair, reading: Chances | None, chance: float, *, is_told_at_length: bool) -> bool:
    """Tell whether the parts of a pair should be read: a long one in order that is no repeat and no sure change."""
    if reading is None or later(pair) is None or reading.same >= READ_LIKE_FROM or not _is_long(pair):
        return False
    return is_told_at_length or not _is_sure_as_a_whole(reading, chance)


def _is_sure_as_a_whole(reading: Chances | None, chance: float) -> bool:
    is_in_depth = reading is not None and reading.is_in_depth
    return is_in_depth and chance >= SURE_OF_WHOLE and _is_read_as_change(reading, chance)


def _is_read_as_replacing(reading: Chances, chance: float) -> bool:
    limits = calibration()
    is_sure = reading.replaces >= limits.retire_at and chance >= limits.neighbours.retire_from
    return is_sure and reading.replaces >= reading.change / 2


def _is_read_as_change(reading: Chances | None, chance: float) -> bool:
    return reading is not None and is_noticed(chance) and reading.change >= calibration().change_at


def _is_long(pair: Pair) -> bool:
    return _words(pair) > MOST_SHORT_WORDS


def _words(pair: Pair) -> int:
    """Return how many words the longer of two statements has."""
    return max(len(pair.a.text.split()), len(pair.b.text.split()))


def _leaves_a_value(pair: Pair, reading: Chances | None) -> bool:
    """Tell whether the later of two statements leaves a value of the earlier unsaid, and does not end it all."""
    if later(pair) is None or (reading is not None and reading.ends >= reading.replaces / 2):
        return False
    earlier, new = _in_order(pair)
    about = (pair.a if later(pair) == "a" else pair.b).subject or ""
    return bool(left_unsaid(f"{about}: {earlier}", f"{about}: {new}"))


def _begins(pair: Pair) -> str | None:
    new = {"a": pair.a, "b": pair.b, None: None}[later(pair)]
    return begins(new.text, new.stated_at) if new else None


def _two_things(pair: Pair, reading: Chances | None, *, is_asked: bool) -> str | None:
    """Return the two things or conditions of a pair that is asked about or looks like a change; None for one thing."""
    if not is_asked and (reading is None or reading.change < UNRELATED_BELOW):
        return None
    a, b = pair.a.text, pair.b.text
    again = None if reading is None or reading.ends >= reading.replaces / 4 else says_again(*_in_order(pair))
    return other_things(a, b) or other_numbered(a, b) or other_conditions(a, b) or other_holders(a, b) or again


def read_those(pairs: Sequence[Pair], wanted: Sequence[bool]) -> list[Chances | None]:
    """Return the reader's chances for the wanted pairs; None for others, for other subjects, and for code or data.

    The earlier statement is read first; where the order is unknown, the one that sorts first, so that the result does
    not depend on the order of the arguments.
    """
    asked = [
        at
        for at, (pair, is_wanted) in enumerate(zip(pairs, wanted, strict=True))
        if is_wanted and not of_others(pair) and not (CODE.search(pair.a.text) or CODE.search(pair.b.text))
    ]
    ordered = {at: without_starts(*map(without_asides, _in_order(pairs[at]))) for at in asked}
    readings = dict(zip(ordered, read_pairs([*ordered.values()]), strict=True))
    # Unrelated statements and exchanged roles are often read as the same in one order only, and "all rooms (but one)"
    # as every room without its aside: the lowest chance counts.
    likely = {at: without_starts(*_in_order(pairs[at])) for at in asked if readings[at].same >= READ_LIKE_FROM}
    again = [(at, each) for at, (one, other) in likely.items() for each in {(one, other), (other, one)} - {ordered[at]}]
    for (at, _), back in zip(again, read_pairs([both for _, both in again]), strict=True):
        readings[at] = readings[at].and_back(back)
    return [readings.get(at) for at in range(len(pairs))]


def _in_order(pair: Pair) -> tuple[str, str]:
    match later(pair):
        case "a":
            return pair.b.text, pair.a.text
        case "b":
            return pair.a.text, pair.b.text
        case None:
            return min(pair.a.text, pair.b.text), max(pair.a.text, pair.b.text)


def chances_of_same(pairs: Sequence[Pair], settled: Sequence[bool]) -> list[float]:
    """Return the trees' raw chance of `same` for each pair; 0 for those settled without it or below cosine 0.85."""
    open_to_doubt = [i for i, pair in enumerate(pairs) if not settled[i] and pair.similarity >= LEAST_SIMILARITY]
    rows = pair_features([(pairs[i].a.text, pairs[i].b.text, pairs[i].similarity) for i in open_to_doubt])
    chances = [0.0] * len(pairs)
    for index, chance in zip(open_to_doubt, load_model().raw_chance(rows), strict=True):
        chances[index] = float(chance)
    return chances


def later(pair: Pair) -> Literal["a", "b"] | None:
    """Return which statement was made later; None when that is unknown or the times are equal."""
    first, second = pair.a.stated_at, pair.b.stated_at
    if first is None or second is None or first == second:
        return None
    return "b" if second > first else "a"


def decide(seen: Seen) -> tuple[Verdict, float, str]:
    """Return the verdict on a pair, the chance that it is right, and its reason."""
    # In this order: what is exact, what the reader is sure of, the trees. In doubt both statements stay.
    if seen.is_harmless:
        return Verdict.SAME, HARMLESS_HELD, "the same words, but for what never changes what is said"
    if seen.things is not None:
        return Verdict.COMPATIBLE, TWO_THINGS_HELD, seen.things
    if seen.slot is not None:
        return _about_one_slot(seen)
    if seen.is_denied and (seen.reading is None or seen.reading.distinct < TWO_THINGS_FROM):
        return Verdict.CONTRADICTS, DENIAL_HELD, "one denies what the other says"
    if seen.reading is not None and (read := _as_read(seen, seen.reading)):
        return read
    return _likely(seen)


def _as_read(seen: Seen, reading: Chances) -> tuple[Verdict, float, str] | None:
    """Return the verdict the reader is sure of; None where it is not."""
    limits = calibration()
    likings = [reason for reason in seen.kept_apart if reason.startswith(PREFERENCE)]
    if likings:
        return Verdict.COMPATIBLE, 1 - limits.held("change", reading.change), "; ".join(likings)
    surer = seen.is_of_any * SURE_OF_ANY if reading.is_in_depth else SURE_OF_FOREIGN  # `is_of_any` knows English alone
    if reading.change >= max(limits.change_at, surer) and is_noticed(seen.changed_chance):
        chance = limits.held("change", reading.change)
        # Of long texts nearly everything differs, and not every noun with a capital is a name outside of English.
        is_telling = seen.kept_apart and seen.words <= MOST_EXPLAINED_WORDS and reading.is_in_depth
        what = f": {'; '.join(seen.kept_apart)}" if is_telling else ""
        if seen.later is None or reading.replaces < reading.change / 2:
            return Verdict.CONTRADICTS, chance, f"read together, the two can't both be so{what}"
        is_unsure = reading.replaces < limits.retire_at or seen.changed_chance < limits.neighbours.retire_from
        is_doubted = is_unsure or seen.is_elsewhere or not (reading.is_in_depth or seen.is_worded_alike)
        # One may have taken over from the other, or both do it; what is yet to begin retires nothing that holds today.
        if is_doubted or seen.is_kept or seen.is_partial or seen.is_of_others or seen.begins or seen.may_add:
            does = "replaces a part of" if seen.is_partial else "replaces" if seen.begins else "may replace"
            why = f"the later one {does} what the earlier says{_only_from(seen)}{what}"
            return Verdict.UPDATES, min(chance, UNSURE_UPDATE), why
        return Verdict.UPDATES, chance, f"the later one replaces what the earlier says, or ends it{what}"
    if reading.is_in_depth and not seen.kept_apart and (held := _held_same(seen, reading)):
        return Verdict.SAME, held, "the same in other words"
    return None


def _held_same(seen: Seen, reading: Chances) -> float | None:
    """Return the confidence that two statements say the same; None where that is not sure enough.

    For distant pairs the reader alone decides. For near ones the reader where it is sure, or trees and reader together.
    """
    # Comparing the cosines of the phrases in each other's place was tried too: of 45 pairs that differ in one small
    # word 17 still came out as the same.
    limits = calibration()
    if seen.is_of_any and reading.same < SAME_OF_ANY:
        return None
    if seen.similarity < LEAST_SIMILARITY:
        least = limits.same_at if seen.similarity >= LEAST_HALF_FAR else SURE_OF_FAR
        is_same = reading.same >= (least if seen.words <= MOST_SHORT_WORDS else SURE_OF_LONG)
        return FAR_SAME_HELD if is_same and seen.similarity >= LEAST_FAR and seen.words <= MOST_FAR_WORDS else None
    if seen.words < LEAST_NEAR_WORDS:
        return None
    if seen.same >= TREES_LIKE_FROM and reading.same >= AGREED_FROM:
        return max(limits.held("same", reading.same), load_model().held(seen.same))
    return limits.held("same", reading.same) if reading.same >= SURE_OF_NEAR else None


def _likely(seen: Seen) -> tuple[Verdict, float, str]:
    """Return the verdict on a pair without an exact or sure sign: both statements stay."""
    if seen.part_chance:
        return Verdict.UPDATES, UNSURE_UPDATE, "by a part of it the later one replaces a part of what the earlier says"
    clash = 1 - UNREAD_HELD
    if seen.reading is not None:
        clash = max(clash, calibration().held("change", seen.reading.change))
    is_like = seen.reading is not None and seen.reading.same >= UNRELATED_BELOW
    if is_like and seen.reading is not None and not seen.kept_apart:
        same = calibration().held("same", seen.reading.same)
        return Verdict.UNSURE, max(same, 1 - same), "perhaps the same in other words"
    if apart := seen.reasons or (seen.kept_apart if is_like else ()):
        return Verdict.COMPATIBLE, 1 - clash, "; ".join(apart)
    if clash >= DOUBTED_FROM:
        return Verdict.UNSURE, clash, "perhaps another value of what both speak of"
    return Verdict.COMPATIBLE, 1 - clash, NOTHING_SHARED


def _about_one_slot(seen: Seen) -> tuple[Verdict, float, str]:
    """Return the verdict on two values of one slot: an update where the order is known, else a contradiction."""
    why = f"the same statement but for {'; '.join(seen.reasons) or 'its value'}"
    if seen.reading is not None and seen.reading.distinct >= TWO_VALUES_FROM:
        return Verdict.UNSURE, seen.reading.distinct, f"{why}, though read together both may hold"
    if seen.later is None:
        return Verdict.CONTRADICTS, SLOT_HELD, f"{why}, order unknown"
    if seen.is_partial:
        return Verdict.UPDATES, UNSURE_UPDATE, f"{why}, of which the later one replaces a part"
    if seen.begins or seen.may_add:
        return Verdict.UPDATES, UNSURE_UPDATE, f"{why}{_only_from(seen) or ', though both may hold'}"
    return Verdict.UPDATES, SLOT_HELD, f"{why}, stated later"


def _only_from(seen: Seen) -> str:
    return f", but not before it begins (“{seen.begins}”)" if seen.begins else ""
