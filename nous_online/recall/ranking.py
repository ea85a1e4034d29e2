"""Ranking of candidates, and the periods a question names: pure, and every part of a score is kept.

Dates are read strictly on purpose: a number, "may" or "march" alone is not one. A library that searches for dates takes
"we", "say" and "may" for some, which costs more than it helps here: docs/decisions/0026.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Protocol, TypeVar
from uuid import UUID

from nous_online.core.patterns import regex
from nous_online.language.lexicon import ENGLISH_MONTHS, MONTH_NUMBERS
from nous_online.language.pairs.beginnings import BEGINNING, begins

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
COUNTS = ("a", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
MOST_CHARACTERS = 2_000
"""Characters of a question that are searched for dates."""
MOST_PERIODS = 8
FIRST_YEAR, LAST_YEAR = 1900, 2199


def _any(words: Sequence[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=len, reverse=True)))


_MONTH = rf"(?P<month>{_any(list(MONTH_NUMBERS))})\.?"
_YEAR = r"(?P<year>\d{4})"
_DAY = r"(?P<day>\d{1,2})"
_OF = r"(?:of\s|de\s|del\s)?"
_DATES = [
    regex(rf"(?<![\w.-]){pattern}(?![\w-]|[:.,]\d)")
    for pattern in (
        rf"{_YEAR}-(?P<month>\d\d)(?:-(?P<day>\d\d)(?:t[\d:.]{{4,15}}z?)?)?",
        rf"{_DAY}\.\s?(?P<month>\d{{1,2}})\.\s?{_YEAR}",
        rf"(?P<day>\d{{1,2}})/(?P<month>\d{{1,2}})/{_YEAR}",
        rf"(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}})/{_YEAR}",
        rf"{_DAY}(?:st|nd|rd|th|er|[.º])?\s{_OF}{_MONTH}(?:,?\s{_OF}{_YEAR})?",
        rf"{_MONTH}\s(?:the\s)?{_DAY}(?:st|nd|rd|th)?(?:,?\s{_YEAR})?",
        rf"{_MONTH},?\s{_OF}{_YEAR}",
        rf"(?:in|during|of|since|this|last|early|late|mid)\s(?P<month>{_any(ENGLISH_MONTHS)})(?!\s\d)",
        rf"(?:in|during|of|since|for|year|en|em|im|nel|jahr|año|ano|année|w|в)\s{_YEAR}",
    )
]
_DATES.append(regex(rf"(?<!\d){_YEAR}年(?:(?P<month>\d{{1,2}})月(?:(?P<day>\d{{1,2}})日)?)?"))
_AGO = regex(rf"(?<!\w)(?P<count>\d{{1,3}}|an|one|{_any(COUNTS)})\s(?P<unit>day|week|month|year)s?\sago(?!\w)")
_LATELY = regex(
    rf"(?<!\w)(?:(?P<day>the day before yesterday|yesterday|last night|today)"
    rf"|(?P<which>last|past|this)\s(?P<unit>week|weekend|month|year|{_any(WEEKDAYS)}))(?!\w)"
)


@dataclass(frozen=True)
class Period:
    """From `start` up to, but not including, `end`."""

    start: datetime
    end: datetime


def periods_in(question: str, *, at: datetime) -> tuple[Period, ...]:
    """Return the days, months and years a question names, each once, the exact ones first.

    Read are dates of any order with their month in words (eighteen languages) or in digits, a month with its year, a
    year after a preposition, and English words such as "yesterday", "last week" and "three days ago", which are
    relative to `at`. A day or month without a year is its latest up to `at`; a date in digits that could be read in
    two orders is both. Nothing is read as of a moment outside the years 1900 to 2199.
    """
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        return ()
    text = " ".join(question[:MOST_CHARACTERS].casefold().split())
    # The exact ones first: memories of the first period are nominated, the others only raise a score.
    found = dict.fromkeys([*_dated(text, at), *_ago(text, at), *_lately(text, at)])
    return tuple(found)[:MOST_PERIODS]


def _dated(text: str, at: datetime) -> Iterator[Period]:
    """Yield the periods named by a date; the span of a longer date is not matched again by a shorter pattern."""
    taken: list[tuple[int, int]] = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            start, end = match.span()
            if any(start < stop and begin < end and (begin, stop) != (start, end) for begin, stop in taken):
                continue
            taken.append((start, end))
            period = _period(match.groupdict(), at)
            if period:
                yield period


def _period(parts: dict[str, str | None], at: datetime) -> Period | None:
    """Return the year, month or day that the parts of a date name; None for a day that does not exist."""
    month = parts.get("month") or ""
    number = int(month) if month.isdigit() else MONTH_NUMBERS.get(month)
    day, year = (int(parts.get(name) or 0) for name in ("day", "year"))
    if year and not FIRST_YEAR <= year <= LAST_YEAR:
        return None
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        start = midnight.replace(year=year or at.year, month=number or 1, day=day or 1)
        if not year and start > at:  # without a year it is the latest up to `at`
            start = start.replace(year=at.year - 1)
    except ValueError:
        return None
    if day:
        return Period(start, start + timedelta(days=1))
    return Period(start, _months_later(start, 1 if number else 12))


def _ago(text: str, at: datetime) -> Iterator[Period]:
    """Yield the periods "… days, weeks, months or years ago"; the longer the unit, the wider the period."""
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    for match in _AGO.finditer(text):
        word, unit = match["count"], match["unit"]
        count = int(word) if word.isdigit() else 1 if word in ("an", "one") else COUNTS.index(word) + 1
        if unit == "day":
            start, days = midnight - timedelta(days=count), 1
        elif unit == "week":  # seven days around the day meant
            start, days = midnight - timedelta(days=7 * count + 3), 7
        elif unit == "month":  # 21 days around it
            start, days = _months_later(midnight.replace(day=1), -count) + timedelta(days=at.day - 11), 21
        else:
            start, days = midnight.replace(year=max(at.year - count, 1), month=1, day=1), 366
        yield Period(start, start + timedelta(days=days))


def _lately(text: str, at: datetime) -> Iterator[Period]:
    """Yield yesterday, and the last or this week, month, year or weekday; the last week ends where today begins."""
    midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
    day = timedelta(days=1)
    days = {"today": 0, "yesterday": 1, "last night": 1, "the day before yesterday": 2}
    for match in _LATELY.finditer(text):
        unit, is_this = match["unit"], match["which"] == "this"
        if match["day"]:
            start = midnight - days[match["day"]] * day
            yield Period(start, start + day)
        elif unit in WEEKDAYS:
            start = midnight - ((at.weekday() - WEEKDAYS.index(unit)) % 7 or (0 if is_this else 7)) * day
            yield Period(start, start + day)
        else:
            monday, first = midnight - at.weekday() * day, midnight.replace(day=1)
            begins = {"month": first, "year": first.replace(month=1)}.get(unit, monday)
            back = {"month": _months_later(first, -1), "year": begins.replace(year=max(at.year - 1, 1))}
            start = begins if is_this else back.get(unit, monday - 7 * day)
            ends = begins if unit == "year" and not is_this else midnight + is_this * day
            yield Period(start, max(ends, start + day))


def _months_later(moment: datetime, months: int) -> datetime:
    """Return the first of the month so many months later."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    return moment.replace(year=max(year, 1), month=month + 1, day=1)


AHEAD = regex(
    r"\b(?:will|won't|going to|tomorrow|upcoming|next (?:week|month|year|spring|summer|autumn|winter)|wird|werden"
    r"|demnächst|nächste[nrs]?|demain|prochaine?|mañana|próxim[oa]|volgende?)\b",
    re.IGNORECASE,
)


def asks_ahead(question: str, at: datetime) -> bool:
    """Tell whether a question asks for what is to come: "Which school will Mia go to?", "the rent from January"."""
    return bool(AHEAD.search(question)) or begins(question, at) is not None


def beginning_of(text: str, said_at: datetime) -> datetime | None:
    """Return the day from which a statement says that it holds, where that was yet to come when it was said."""
    words = begins(text, said_at)
    if words is None:
        return None
    first = said_at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    named = BEGINNING.fullmatch(words)
    if named is None:  # "next month", "next year", "after Christmas"
        is_month = any(month in words.casefold() for month in ("month", "monat", "mois", "mes", "maand"))
        return _months_later(first, 1) if is_month else first.replace(year=first.year + 1, month=1)
    month, day = MONTH_NUMBERS[named["month"].casefold()], int(named["day"] or named["day2"] or 1)
    return first.replace(year=int(named["year"] or said_at.year + (month < said_at.month)), month=month, day=day)


# --- the ranking ---

WORD = regex(r"\w+")


@dataclass(frozen=True)
class RecallPolicy:
    """How memories are found and weighed; measured on three public sets, docs/decisions/0003-hybrid-recall.md."""

    term_saturation: float = 0.9
    """k1 of BM25: how soon repeating a word stops to help."""
    length_penalty: float = 0.75
    """b of BM25: how far a long text is held to its length."""
    context_weight: float = 0.25
    """What a word said around a memory counts beside a word of the memory itself (BM25F)."""
    candidate_count: int = 20
    """How many memories each nominator (words, vectors) puts forward at least, and twice as many as are asked for."""
    dated_count: int = 80
    """The same where the question names a time, which may lift what is found further down."""
    spare_up_to: int = 160
    """From here on no more than are asked for: reading twice as many again takes longer than a context may."""
    scan_breadth: int = 64
    """hnsw.ef_search: how many neighbours the vector index keeps in sight at least; docs/decisions/0007."""
    exact_limit: int = 10_000
    """Up to so many memories all vectors of an agent are compared: a few milliseconds, and nothing is missed."""
    exact_growth: float = 16.0
    """And up to so many times the square root of all agents' memories: there both roads take as long."""
    nominating_terms: int = 3
    """Only the rarest words of a question nominate; the others still score."""
    postings_limit: int = 1_000
    """How many memories the nominating words may name together: the bound on the cost of common ones."""
    user_boost: float = 0.2
    """An agent's answer echoes the question it answers; of two equal matches the user's own words are the source."""
    subject_boost: float = 0.1
    """For a memory whose subject the question names."""
    frame_boost: float = 0.3
    """For a memory encoded in the frame of the recall (frame-tagged encoding)."""
    review_weight: float = 0.9
    """For a procedure in review, which mostly failed: one that answers nearly as well comes first."""
    time_boost: float = 0.4
    """For a memory of a time the question names: said, begun, ended or valid then; docs/decisions/0026."""
    compared_count: int = 20
    """How many of the best facts are compared with each other, to put the later of two about one thing first."""
    near_cosine: float = 0.6
    """Cosine from which two facts may be about one thing …"""
    near_cosine_in_talk: float = 0.85
    """… and for those learned with what was said around them: turns of a talk resemble each other anyway."""
    near_score: float = 0.9
    """Share of the earlier fact's relevance that the later one needs. With 0.8, 4 percent of 160 questions about
    look-alikes (Ana's extension, Ben's extension) get another one's value first, with 0.9 none; docs/decisions/0022."""
    near_reach: int = 10
    """Only so many of the best, or as many as are asked for, are put first for resembling another: from further down a
    later one would push out what answers better. Of the ten nearest of 100,000 facts 0.80 were shown without it."""
    same_score: float = 0.5
    """The same where both fill one slot; of two that contradict each other, undecided, the later always comes first.
    With 0.2 for those too the old value stands first for 0.092 of the questions of `wording`, without for 0.076."""
    doubted_score: float = 0.3
    """The same where the later one perhaps replaces the earlier, as a judge read them, in words of its own. With 0.2 a
    doubt stood above an answer four times as relevant; with 0.4 the old value stands first for 0.085 of the questions
    of `wording`, with 0.3 for 0.079."""
    changed_score: float = 0.5
    """The same for a fact that replaced, or contradicts, what an episode tells."""
    confident_cosine: float = 6.6
    confident_lead: float = 6.4
    confident_words: float = 3.6
    confident_offset: float = -5.6
    """Logistic regression of whether the best answer is one, on its cosine, its lead in cosine over those after it, and
    the share of the question's words it has. Fitted on the even half of questions asked where the answer is and where
    it is not (worded pairs in stores of 10 to 3,300 facts, LoCoMo, LongMemEval), the offset so that 0.5 keeps 0.9 of
    those with an answer; docs/decisions/0022."""
    compared_cosines: int = 10
    """How many of those after it; in a smaller store the others count as strange."""
    strange_cosine: float = 0.2
    """Cosine of a question and what has nothing to do with it, mean of English."""
    censor_boost: float = 0.2
    """For the same censors being active, in proportion to their overlap (frame-tagged encoding)."""


@dataclass(frozen=True)
class Situation:
    """What candidates are compared with besides the question's vector."""

    query: str
    frame: str | None = None
    active_censors: Sequence[str] | None = None
    periods: Sequence[Period] = ()
    """The days, months and years the question names."""


@dataclass(frozen=True)
class ScoreParts:
    """The parts of a score, which is the product of relevance, boosts and rank weight."""

    dense: float
    """Cosine of question and memory."""
    lexical: float
    """Share of the question's words found in the memory, each weighed by its rarity: 0 to 1."""
    relevance: float
    frame_boost: float
    censor_boost: float
    time_boost: float
    """1.4 for a memory of a time the question names."""
    rank_weight: float
    """By its use; a procedure in review loses a tenth."""
    score: float


class Candidate(Protocol):
    """Anything that can be ranked."""

    @property
    def id(self) -> UUID: ...
    @property
    def dense(self) -> float: ...
    @property
    def lexical(self) -> float: ...
    @property
    def subject(self) -> str | None: ...
    @property
    def source_kind(self) -> str: ...
    @property
    def encoded_frame(self) -> str | None: ...
    @property
    def encoded_censors(self) -> Sequence[str] | None: ...
    @property
    def rank_weight(self) -> float: ...
    @property
    def state(self) -> str: ...
    @property
    def learned_at(self) -> datetime: ...
    @property
    def said_at(self) -> datetime: ...
    @property
    def valid_from(self) -> datetime | None: ...
    @property
    def valid_to(self) -> datetime | None: ...


C = TypeVar("C", bound=Candidate)
LEAST_RELEVANCE = 1e-6  # a boost needs something to multiply


def rank(
    candidates: Sequence[C], situation: Situation, policy: RecallPolicy, *, limit: int
) -> list[tuple[C, ScoreParts]]:
    """Return the best `limit` candidates with the parts of their scores, best first, ties by id."""
    scored = [(candidate, score_parts(candidate, situation, policy)) for candidate in candidates]
    return sorted(scored, key=lambda pair: (-pair[1].score, pair[0].id))[:limit]


def confidence(ranked: Sequence[tuple[Covering, ScoreParts]], policy: RecallPolicy) -> float:
    """Return the chance, 0 to 1, that the best of some ranked candidates answers the question; 0 without any.

    The mean cosine of the next ones counts against it: all that is said of Ana is near to a question about Ana.
    """
    if not ranked:
        return 0.0
    (best, parts), *others = ranked[: 1 + policy.compared_cosines]
    missing = policy.compared_cosines - len(others)
    beside = (sum(its.dense for _, its in others) + missing * policy.strange_cosine) / policy.compared_cosines
    weighed = (
        policy.confident_cosine * parts.dense
        + policy.confident_lead * (parts.dense - beside)
        + policy.confident_words * best.covered
        + policy.confident_offset
    )
    return 1 / (1 + math.exp(-weighed))


class Covering(Protocol):
    """A candidate that says how many of the question's words it has."""

    @property
    def covered(self) -> float:
        """Their share, each weighed by its rarity: 0 to 1. A word that no memory has is the rarest."""
        ...


class Comparable(Protocol):
    """A candidate that was compared with the others."""

    @property
    def id(self) -> UUID: ...
    @property
    def trust(self) -> int: ...
    @property
    def near_ids(self) -> Sequence[UUID] | None:
        """Earlier facts that resemble it."""
        ...

    @property
    def doubted_ids(self) -> Sequence[UUID] | None:
        """Earlier facts that it perhaps replaces."""
        ...

    @property
    def same_ids(self) -> Sequence[UUID] | None:
        """Earlier facts that fill the same slot or contradict it."""
        ...

    @property
    def contradicted_by(self) -> Sequence[UUID] | None:
        """Facts that contradict it, undecided."""
        ...

    @property
    def changed_ids(self) -> Sequence[UUID] | None:
        """Episodes that tell what it replaced or contradicts."""
        ...


R = TypeVar("R", bound=Comparable)
K = TypeVar("K")


def is_never(_: Comparable) -> bool:
    return False


def later_first(
    ranked: Sequence[tuple[R, ScoreParts]],
    policy: RecallPolicy,
    *,
    limit: int,
    is_coming: Callable[[R], bool] = is_never,
) -> list[tuple[R, ScoreParts, UUID | None]]:
    """Return the candidates, of two facts about one thing the later one first, and what each was moved in front of.

    A later fact goes before an earlier one that resembles it, or an episode that tells what it replaced, if it answers
    about as well and its trust is no lower; of two facts in an open contradiction, the one with the higher trust goes
    first. What goes before it stays before it, and the others keep their order. A later fact that only resembles an
    earlier one must be among the `limit` best, or the best ten. One that `is_coming` at the moment of the question goes
    before none, and an earlier value of the same thing before it.
    """
    places = {candidate.id: place for place, (candidate, _) in enumerate(ranked)}
    pairs = later_pairs(ranked, places, policy, limit=limit)
    # Reading for a beginning costs more than the rest: only what would move is read.
    moved = [place for place, before in in_order(len(ranked), pairs) if before is not None]
    coming = {place for place in moved if is_coming(ranked[place][0])}
    pairs = [pair for pair in pairs if pair[0] not in coming] + current_pairs(ranked, places, is_coming)
    return [
        (*ranked[place], None if before is None else ranked[before][0].id)
        for place, before in in_order(len(ranked), pairs)
    ]


def in_order(count: int, pairs: Sequence[tuple[int, int]]) -> Iterable[tuple[int, int | None]]:
    """Return the places of a ranking, of each pair the first one first, and what each was moved in front of."""
    if all(first < then for first, then in pairs):
        return [(place, None) for place in range(count)]
    firsts: dict[int, list[int]] = {}
    for first, then in sorted(pairs):
        firsts.setdefault(then, []).append(first)
    return with_firsts(range(count), firsts).items()


def later_pairs(
    ranked: Sequence[tuple[R, ScoreParts]], places: Mapping[UUID, int], policy: RecallPolicy, *, limit: int
) -> list[tuple[int, int]]:
    """Return the places of each later or more trusted fact and of what it goes before."""
    pairs: list[tuple[int, int]] = []
    for place, (candidate, parts) in enumerate(ranked):
        is_in_reach = place < max(limit, policy.near_reach)
        shares = dict.fromkeys((candidate.near_ids or ()) if is_in_reach else (), policy.near_score)
        # A fact may be in several of these lists: the last one that has it counts.
        shares |= dict.fromkeys(candidate.doubted_ids or (), policy.doubted_score)
        shares |= dict.fromkeys(candidate.changed_ids or (), policy.changed_score)
        rivals = candidate.contradicted_by or ()
        for each in candidate.same_ids or ():
            shares[each] = 0.0 if each in rivals else policy.same_score
        for each in {*shares, *rivals} if shares or rivals else ():
            then = places.get(each)
            if then is None:
                continue
            other, its = ranked[then]
            is_later = each in shares and answers_as_well(parts, its, shares[each])
            is_firmer = each in rivals and candidate.trust > other.trust
            if (is_later and candidate.trust >= other.trust) or is_firmer:
                pairs.append((place, then))
    return pairs


def current_pairs(
    ranked: Sequence[tuple[R, ScoreParts]], places: Mapping[UUID, int], is_coming: Callable[[R], bool]
) -> list[tuple[int, int]]:
    """Return the places of each fact that holds until another one begins, and of that one."""
    coming = [place for place, (each, _) in enumerate(ranked) if each.same_ids and is_coming(each)]
    pairs = [(places[each], then) for then in coming for each in ranked[then][0].same_ids or () if each in places]
    return [
        (now, then)
        for now, then in pairs
        if ranked[now][0].trust >= ranked[then][0].trust and answers_as_well(ranked[now][1], ranked[then][1], 0)
    ]


def with_firsts(ranked: Iterable[K], firsts: Mapping[K, Sequence[K]]) -> dict[K, K | None]:
    """Return all of a ranking in its order, but each behind its `firsts`, with what it was moved in front of.

    In time linear in both; where `firsts` lead back to where they began, the order of the ranking decides.
    """
    placed: dict[K, K | None] = {}
    begun: set[K] = set()
    waiting: list[tuple[K, K | None, Iterator[K]]] = []  # no recursion: thousands of values can stand in one chain
    for each in ranked:
        if each not in begun:
            begun.add(each)
            waiting.append((each, None, iter(firsts.get(each, ()))))
        while waiting:
            last, before, rest = waiting[-1]
            for first in rest:
                if first not in begun:
                    begun.add(first)
                    waiting.append((first, last, iter(firsts.get(first, ()))))
                    break
            else:
                placed[last] = before
                waiting.pop()
    return placed


def answers_as_well(later: ScoreParts, earlier: ScoreParts, share: float) -> bool:
    """Tell whether a later fact has `share` of the earlier one's relevance and boosts as high; usage does not count."""
    return (
        later.relevance >= share * earlier.relevance
        and later.frame_boost >= earlier.frame_boost
        and later.censor_boost >= earlier.censor_boost
        and later.time_boost >= earlier.time_boost
    )


def score_parts(candidate: Candidate, situation: Situation, policy: RecallPolicy) -> ScoreParts:
    """Return the score of one candidate with its parts; boosts multiply and never filter."""
    relevance = relevance_of(candidate, situation, policy)
    frame = frame_boost(candidate.encoded_frame, situation.frame, policy)
    censors = censor_boost(candidate.encoded_censors, situation.active_censors, policy)
    time = 1 + policy.time_boost if falls_in(situation.periods, candidate) else 1.0
    weight = candidate.rank_weight * (policy.review_weight if candidate.state == "review" else 1.0)
    return ScoreParts(
        dense=candidate.dense,
        lexical=candidate.lexical,
        relevance=relevance,
        frame_boost=frame,
        censor_boost=censors,
        time_boost=time,
        rank_weight=weight,
        score=relevance * frame * censors * time * weight,
    )


def relevance_of(candidate: Candidate, situation: Situation, policy: RecallPolicy) -> float:
    """Return the mean of cosine and lexical share (0 to 1), raised for the user's own words and a named subject."""
    # Both halves have fixed bounds, so a score depends on question and memory alone, not on what else was found: Bruch,
    # Gai, Ingber 2023, "An Analysis of Fusion Functions for Hybrid Retrieval".
    fused = (max(candidate.dense, 0.0) + candidate.lexical) / 2
    if candidate.source_kind == "user":
        fused *= 1 + policy.user_boost
    if mentions(situation.query, candidate.subject):
        fused *= 1 + policy.subject_boost
    return max(fused, LEAST_RELEVANCE)


def frame_boost(encoded_frame: str | None, frame: str | None, policy: RecallPolicy) -> float:
    """Return 1.3 for a memory of the same frame and 1 for another or unknown one."""
    return 1 + policy.frame_boost if frame is not None and encoded_frame == frame else 1.0


def censor_boost(encoded: Sequence[str] | None, active: Sequence[str] | None, policy: RecallPolicy) -> float:
    """Return 1 + 0.2 · Jaccard overlap of the censors active then and now; 1 when either is unknown."""
    if not encoded or not active:
        return 1.0
    then, now = set(encoded), set(active)
    return 1 + policy.censor_boost * len(then & now) / len(then | now)


def falls_in(periods: Sequence[Period], memory: Candidate) -> bool:
    """Tell whether a memory was said, began or ended in one of the periods, or was valid when one of them begins."""
    if not periods:
        return False
    begun, ended = memory.valid_from, memory.valid_to
    moments = [moment for moment in (memory.learned_at, memory.said_at, begun, ended) if moment]
    return any(
        any(period.start <= moment < period.end for moment in moments)
        or (begun is not None and ended is not None and begun <= period.start < ended)
        for period in periods
    )


def mentions(query: str, subject: str | None) -> bool:
    """Tell whether every word of `subject` occurs in the question."""
    wanted = words(subject) if subject else None
    return bool(wanted) and wanted <= words(query)


@lru_cache(maxsize=4096)
def words(text: str) -> frozenset[str]:
    """Return the words of a text, case-folded; cached, because one question is compared with every candidate."""
    return frozenset(WORD.findall(text.casefold()))
