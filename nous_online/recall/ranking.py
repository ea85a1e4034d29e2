"""Ranking of candidates: pure arithmetic that keeps every part of a score."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Protocol, TypeVar
from uuid import UUID

from nous_online.recall.periods import Period

WORD = re.compile(r"\w+")


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
    """The same where both fill one slot; of two that contradict each other, undecided, the later always comes first."""
    doubted_score: float = 0.2
    """The same where the later one perhaps replaces the earlier, as a judge read them, in words of its own."""
    confident_cosine: float = 13.9
    confident_words: float = 4.5
    confident_offset: float = -8.4
    """Logistic regression of whether the best answer is one, on its cosine and its lexical share: questions of LoCoMo,
    LongMemEval and worded pairs, asked where the answer is and where it is not; docs/decisions/0022."""
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


def confidence(parts: ScoreParts, policy: RecallPolicy) -> float:
    """Return the chance, 0 to 1, that a best answer with these parts is an answer at all."""
    weighed = policy.confident_cosine * parts.dense + policy.confident_words * parts.lexical + policy.confident_offset
    return 1 / (1 + math.exp(-weighed))


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


R = TypeVar("R", bound=Comparable)


def later_first(
    ranked: Sequence[tuple[R, ScoreParts]], policy: RecallPolicy, *, limit: int
) -> list[tuple[R, ScoreParts, UUID | None]]:
    """Return the candidates, of two facts about one thing the later one first, and the fact each was moved in front of.

    A later fact takes the place of the first earlier one that resembles it, if it answers about as well and its trust
    is no lower; of two facts in an open contradiction, the one with the higher trust comes first. The others keep their
    order. A later fact that only resembles an earlier one must be among the `limit` best, or the best ten.
    """
    placed: list[tuple[R, ScoreParts, UUID | None]] = []
    for standing, (candidate, parts) in enumerate(ranked):
        is_in_reach = standing < max(limit, policy.near_reach)
        shares = dict.fromkeys((candidate.near_ids or ()) if is_in_reach else (), policy.near_score)
        # A fact may be in several of these lists: the last one that has it counts.
        shares |= dict.fromkeys(candidate.doubted_ids or (), policy.doubted_score)
        for each in candidate.same_ids or ():
            shares[each] = 0.0 if each in (candidate.contradicted_by or ()) else policy.same_score
        rivals = candidate.contradicted_by or ()
        for place, (other, its, _) in enumerate(placed if shares or rivals else ()):
            is_later = other.id in shares and answers_as_well(parts, its, shares[other.id])
            is_firmer = other.id in rivals and candidate.trust > other.trust
            if (is_later and candidate.trust >= other.trust) or is_firmer:
                placed.insert(place, (candidate, parts, other.id))
                break
        else:
            placed.append((candidate, parts, None))
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
    return ScoreParts(
        dense=candidate.dense,
        lexical=candidate.lexical,
        relevance=relevance,
        frame_boost=frame,
        censor_boost=censors,
        time_boost=time,
        rank_weight=candidate.rank_weight,
        score=relevance * frame * censors * time * candidate.rank_weight,
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
