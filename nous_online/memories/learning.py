"""Decisions of `learn`: what to do with a new statement, given its neighbours and a judge's verdicts. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from difflib import SequenceMatcher
from hashlib import sha256
from itertools import combinations
from types import MappingProxyType
from typing import Literal, cast
from uuid import UUID

from nous_online.core.domain import Fact, Near, Neighbour, NewFact
from nous_online.core.errors import Conflict, NotFound, Refused
from nous_online.core.policy import LearnPolicy
from nous_online.core.validation import LARGEST_LEAD, checked_id
from nous_online.language.pairs.guards import added
from nous_online.language.pairs.judging import (
    OTHER_NEARER,
    SURE_FROM,
    JudgedStatement,
    Judgement,
    Pair,
    Verdict,
    is_harmless,
    reasons_apart,
)
from nous_online.language.pairs.reader import shared_content
from nous_online.language.pairs.slots import slot_key
from nous_online.language.pairs.wordings import other_subjects, share_a_subject, subject_words

MAX_SLOT_CHARACTERS = 500
SHARED_WORD_LEAD, MOST_SHARED = 0.05, 4
"""Cosine that each shared content word is worth, up to four: the ratio of both coefficients in a logistic regression on
3,500 pairs written for training, each among the 20 nearest of 90 statements of one hand, one statement in five changing
another."""
NOTHING_LIKE_IT = "nothing known says the same"
LEFT_TO_NIGHT = "it repeats what is known, but adds to it or is trusted more: both stay until a night joins them"
SAME_SLOT_LEAD = 1.0  # a value of the same slot or key is always read


@dataclass(frozen=True)
class LearningDecision:
    """What learning should do: confirm `match`, supersede it, be superseded by it, or just store."""

    action: Literal["store", "confirm", "supersede", "store_superseded"]
    reason: str
    match: Neighbour | None = None
    others: tuple[Neighbour, ...] = ()
    """Further facts it supersedes: other values of the same slot, and those the caller named in `replaces`."""
    contradicted: tuple[Neighbour, ...] = ()
    """Facts that can't be true together with the new one, with neither known to be later: all stay active."""

    @property
    def superseded(self) -> tuple[Neighbour, ...]:
        """Every fact that the new one supersedes."""
        return (self.match, *self.others) if self.action == "supersede" and self.match else self.others


def questions(new: NewFact, neighbours: Sequence[Neighbour], policy: LearnPolicy) -> list[Neighbour]:
    """Return the neighbours that need a judge: those of the same slot or key first, then the nearest."""
    # The rank among the nearest says more than the cosine: in people's own words a value and the one that replaces it
    # have a median cosine of 0.7, and 0.3 at the least.
    worth = [
        near for near in neighbours if not is_clear_repeat(new, near, policy) and is_worth_asking(new, near, policy)
    ]
    return sorted(worth, key=lambda near: (not has_same_slot(new, near.fact), -near.similarity, near.fact.id))


Rivals = Mapping[UUID, Collection[UUID]]
"""By fact, those about the same thing, which what changes it may change too: they say the same, or are in an open
contradiction with it."""
MOST_COMPARED = 3
"""Neighbours that one statement seems to change, and that are read with each other."""
UNKNOWN_SIMILARITY = 0.8
"""Of two neighbours, whose cosine nobody has: under that from which a judge trusts it."""


def with_rivals(near: Sequence[Neighbour], found: Sequence[tuple[UUID, Neighbour]]) -> tuple[list[Neighbour], Rivals]:
    """Return the neighbours together with their rivals, and which those are."""
    rivals = with_pairs({}, [(one, rival.fact.id) for one, rival in found])
    every = {each.fact.id: each for each in (*near, *(rival for _, rival in found))}
    return [*every.values()], rivals


def with_pairs(rivals: Rivals, pairs: Iterable[Sequence[UUID]]) -> Rivals:
    """Return rivals together with these, each of both."""
    found = defaultdict(set[UUID], {one: {*others} for one, others in rivals.items()})
    for one, other in pairs:
        found[one].add(other)
        found[other].add(one)
    return found


def changed_together(
    near: Sequence[Neighbour], judgements: Mapping[UUID, Judgement]
) -> list[tuple[Neighbour, Neighbour]]:
    """Return the pairs of neighbours that both seem to be changed, which may say the same."""
    changed = [each for each in near if is_conflict(judgements.get(each.fact.id))]
    return [*combinations(changed[:MOST_COMPARED], 2)]


def worth_reading(
    new: NewFact,
    asked: Sequence[Neighbour],
    policy: LearnPolicy,
    rivals: Rivals = MappingProxyType({}),
    known: Collection[UUID] = (),
) -> list[Neighbour]:
    """Return the neighbours that the built-in judge reads while the caller waits, the likeliest first.

    Those whose cosine plus bonus comes within `read_within` of the nearest one's cosine, then the rivals of these and
    of those `known` to matter; the night reads the rest.
    """
    if not asked:
        return []
    # Most neighbours are about something else and lie close together, far behind the one that is repeated or changed:
    # docs/decisions/0029.
    leads = {near.fact.id: near.similarity + nomination_bonus(new, near.fact) for near in asked}
    least = max(near.similarity for near in asked) - policy.read_within
    nearest = sorted((near for near in asked if leads[near.fact.id] >= least), key=lambda near: -leads[near.fact.id])
    likely = nearest[: policy.read_count]
    opposed = {rival for each in (*known, *(near.fact.id for near in likely)) for rival in rivals.get(each, ())}
    return likely + [near for near in asked if near.fact.id in opposed and near not in likely]


def nomination_bonus(new: NewFact | Fact, known: Fact) -> float:
    """Return the bonus to the cosine for shared content words, a shared subject and a shared slot or key."""
    is_of_one = share_a_subject(new.subject, known.subject)
    shared = min(shared_content(new.content, known.content) + is_of_one, MOST_SHARED)
    return SHARED_WORD_LEAD * shared + (SAME_SLOT_LEAD if has_same_slot(new, known) else 0.0)


def has_same_slot(new: NewFact | Fact, known: Fact) -> bool:
    """Tell whether two facts have the same slot or the same key."""
    of_slot = new.slot is not None and new.slot == known.slot
    return of_slot or (new.key is not None and new.key == known.key)


def decide(
    new: NewFact, neighbours: Sequence[Neighbour], judgements: Mapping[UUID, Judgement], policy: LearnPolicy
) -> LearningDecision:
    """Return what to do with `new`: the nearest neighbour with a sure verdict decides, and without one it is stored."""
    on_subject = (
        near
        for near in neighbours
        if not other_subjects(new.subject, near.fact.subject, (new.content, near.fact.content))
    )
    by_similarity = sorted(on_subject, key=lambda near: (-near.similarity, near.fact.id))
    for near in by_similarity:
        if is_clear_repeat(new, near, policy):
            return LearningDecision(
                "confirm", f"said before (similarity {near.similarity:.2f}, no difference found)", near
            )
        judgement = judgements.get(near.fact.id)
        if judgement is not None and is_surely_same(judgement, policy) and may_confirm(new, near, policy):
            return LearningDecision("confirm", f"said before: {judgement.reason}", near)
    rivals = [
        near for near in by_similarity if overlap_in_time(new, near.fact) and not are_told_together(new, near.fact)
    ]
    updated = [near for near in rivals if is_sure_update(judgements.get(near.fact.id))]
    denied = [near for near in rivals if near not in updated and is_conflict(judgements.get(near.fact.id))]
    is_repeated = any(is_surely_same(judgement, policy) for judgement in judgements.values())
    decision = LearningDecision("store", LEFT_TO_NIGHT if is_repeated else NOTHING_LIKE_IT)
    if updated:
        decision = combine_successions(
            [decide_succession(new, near, judgements[near.fact.id].reason) for near in updated]
        )
        denied += [near for near in updated if is_protected_from(new, near)]
    return replace(decision, contradicted=() if decision.action == "store_superseded" else tuple(denied))


def combine_successions(decisions: Sequence[LearningDecision | None]) -> LearningDecision:
    """Return one decision for several known values: superseded by a newer one if any, else it supersedes them all."""
    made = [decision for decision in decisions if decision is not None]
    for decision in made:
        if decision.action == "store_superseded":
            return decision
    if not made:
        return LearningDecision("store", "what it updates is trusted more, or pinned, so both stay")
    return replace(made[0], others=tuple(other.match for other in made[1:] if other.match))


def is_sure_update(judgement: Judgement | None) -> bool:
    """Tell whether a judge was asked and is sure that one of the two facts updates the other."""
    return judgement is not None and judgement.verdict is Verdict.UPDATES and judgement.confidence >= SURE_FROM


def is_conflict(judgement: Judgement | None) -> bool:
    """Tell whether a judge was asked and says that one contradicts or updates the other."""
    return judgement is not None and judgement.verdict in {Verdict.CONTRADICTS, Verdict.UPDATES}


def possible_replacements(
    new: NewFact, neighbours: Sequence[Neighbour], judgements: Mapping[UUID, Judgement], policy: LearnPolicy
) -> list[UUID]:
    """Return the ids of earlier active facts that a judge thinks, without being sure, it replaces; likeliest first."""
    chances = {
        near.fact.id: judgements[near.fact.id].change
        for near in neighbours
        if near.fact.id in judgements
        and near.fact.state == "active"
        and holds_since(new) >= holds_since(near.fact)
        and not are_told_together(new, near.fact)
    }
    return sorted((each for each in chances if chances[each] >= policy.doubt_from), key=lambda each: -chances[each])


def decide_succession(new: NewFact, near: Neighbour, reason: str) -> LearningDecision | None:
    """Return which of two values of one slot is superseded: the earlier one, unless it is pinned or trusted more.

    None where neither is: the earlier one is protected, or the later one has ended already.
    """
    # A value that has ended never supersedes one that still holds: both stay, each with its interval.
    is_over, was_over = (is_past(value, new.learned_at) for value in (new, near.fact))
    if holds_since(new) >= holds_since(near.fact):
        is_ruling = not outranks(near.fact, new) and (was_over or not is_over)
        return LearningDecision("supersede", f"a newer value: {reason}", near) if is_ruling else None
    is_outdated = not outranks(new, near.fact) and (is_over or not was_over)
    return (
        LearningDecision("store_superseded", f"an older value than the one known: {reason}", near)
        if is_outdated
        else None
    )


def outranks(one: NewFact | Fact, other: NewFact | Fact) -> bool:
    """Tell whether one fact can't be superseded by another however late: it is trusted more, or it alone is pinned."""
    return one.trust > other.trust or (one.is_pinned and not other.is_pinned)


def is_protected_from(new: NewFact, near: Neighbour) -> bool:
    """Tell whether only trust or a pin keeps the earlier of two values of one slot from being superseded."""
    with_equal_rank = replace(near, fact=replace(near.fact, trust=new.trust, is_pinned=new.is_pinned))
    return decide_succession(new, near, "") is None and decide_succession(new, with_equal_rank, "") is not None


def holds_since(fact: NewFact | Fact) -> datetime:
    """Return the moment that orders values of one slot: `valid_from`, else `learned_at`."""
    return fact.valid_from or fact.learned_at


def is_past(fact: NewFact | Fact, moment: datetime) -> bool:
    """Tell whether a fact's interval has ended by `moment`."""
    return fact.valid_to is not None and fact.valid_to <= moment


def overlap_in_time(new: NewFact, known: Fact) -> bool:
    """Tell whether the intervals of two facts overlap; each includes its start and excludes its end."""
    # A future interval counts as apart: else a date mistyped by a century would retire today's value.
    soon = max(new.learned_at, known.learned_at) + LARGEST_LEAD
    is_to_come = any(fact.valid_from is not None and fact.valid_from > soon for fact in (new, known))
    is_after = known.valid_to is not None and new.valid_from is not None and new.valid_from >= known.valid_to
    is_before = new.valid_to is not None and known.valid_from is not None and known.valid_from >= new.valid_to
    return not (is_to_come or is_after or is_before)


def check_begun(new: NewFact | Fact, known: Fact) -> None:
    """Raise `Refused` where `known` still holds until `new`, which is to take its place, begins."""
    begins, now = new.valid_from, datetime.now(UTC)
    if begins is None or begins <= max(now, holds_since(known)) or is_past(known, now):
        return
    message = f"fact {known.id} holds until {begins:%Y-%m-%d}, when the other one begins, and can't give way before"
    way = f"learn that one beside it, or rule both_valid, then: nous update {known.id} --valid-to {begins.isoformat()}"
    raise Refused(f"{message}; {way}")


def are_told_together(one: NewFact | Fact, other: Fact) -> bool:
    """Tell whether one source told both facts at the same moment: such facts do not contradict each other.

    The night leaves these pairs too (`updates._stays`).
    """
    return one.source is not None and (one.source, one.learned_at) == (other.source, other.learned_at)


def says_no_less(new: NewFact, known: Fact) -> bool:
    """Tell whether a known fact has every detail of a repetition of it, and covers its time."""
    if added(known.content, new.content):
        return False
    # Without an interval of its own a repetition is about the moment it was made.
    if new.valid_from or new.valid_to:
        return (new.valid_from, new.valid_to) == (known.valid_from, known.valid_to)
    has_begun = known.valid_from is None or known.valid_from <= new.learned_at
    return has_begun and not is_past(known, new.learned_at)


def is_surely_same(judgement: Judgement, policy: LearnPolicy) -> bool:
    """Tell whether a judge says *same* with enough confidence to confirm instead of storing."""
    return judgement.verdict is Verdict.SAME and judgement.confidence >= policy.sure_from


def may_confirm(new: NewFact, near: Neighbour, policy: LearnPolicy) -> bool:
    """Tell whether a new statement may confirm a known fact when a judge says they are the same."""
    # Confirming drops the new wording and raises the fact's trust. So where the fact is trusted less and the words
    # differ, both are stored, and the night keeps the wording that is trusted more.
    is_close = near.similarity >= policy.same_similarity and says_no_less(new, near.fact)
    return is_close and (near.fact.trust >= new.trust or equals_but_spaces(new.content, near.fact.content))


def is_clear_repeat(new: NewFact, near: Neighbour, policy: LearnPolicy) -> bool:
    """Tell whether the two say the same without a judge: near, and no difference that could matter."""
    return near.similarity >= policy.confirm_similarity and is_repeat(new, near, policy)


def is_repeat(new: NewFact, near: Neighbour, policy: LearnPolicy) -> bool:
    """Tell whether a new statement may confirm a known fact and differs in nothing that could matter."""
    pair = pair_of(new, near)
    return may_confirm(new, near, policy) and not reasons_apart(pair) and is_harmless(pair)


def equals_but_spaces(one: str, other: str) -> bool:
    """Tell whether two texts are equal but for white space."""
    return one.split() == other.split()


def is_worth_asking(new: NewFact, near: Neighbour, policy: LearnPolicy) -> bool:
    """Tell whether a judge should see the pair."""
    return near.similarity >= policy.nominate_similarity or same_subject(new, near, policy)


def same_subject(new: NewFact, near: Neighbour, policy: LearnPolicy) -> bool:
    """Tell whether both may be about one subject: the same slot, or subjects spelled nearly alike."""
    if new.slot is not None and new.slot == near.fact.slot:
        return True
    one, other = (" ".join(subject_words(subject)) for subject in (new.subject, near.fact.subject))
    if not one or not other:
        return False
    return SequenceMatcher(None, one, other).ratio() > policy.subject_similarity


def pair_of(new: NewFact | Fact, near: Neighbour) -> Pair:
    """Return the input of a judge: the stored statement first, the new one second."""
    known = near.fact
    known_since, new_since = holds_since(known), holds_since(new)
    # A judge is told an order: of two statements with one timestamp the one learned second counts as later.
    stated_at = new_since + (timedelta.resolution if new_since == known_since else timedelta())
    return Pair(
        a=JudgedStatement(text=known.content, subject=known.subject, stated_at=known_since, trust=known.trust),
        b=JudgedStatement(text=new.content, subject=new.subject, stated_at=stated_at, trust=new.trust),
        similarity=near.similarity,
    )


def statement_digest(content: str, subject: str | None) -> bytes:
    """Return the SHA-256 of a statement's text and subject: what a judge is given of it."""
    named = b"" if subject is None else b"\1" + subject.encode()
    return sha256(b"%d:%b%b" % (len(content.encode()), content.encode(), named)).digest()


def pair_hash(earlier: bytes, later: bytes, space_id: str, *, is_ordered: bool) -> str:
    """Return the key of a pair in the verdict cache, from the digests of its statements.

    With `is_ordered` the order in which they were stated is part of it.
    """
    # So is the embedding space: a verdict depends on the cosine, which differs between spaces.
    if is_ordered:
        return sha256(b">" + earlier + later + space_id.encode()).hexdigest()
    return sha256(b"=" + min(earlier, later) + max(earlier, later) + space_id.encode()).hexdigest()


def slot_of(content: str, subject: str | None) -> str | None:
    """Return the slot a statement fills; None where there is none, or it is too long for the column."""
    key = slot_key(content, subject)
    return key if key and len(key) <= MAX_SLOT_CHARACTERS else None


# --- replacing what the caller names: by id, or by a shared key ---

MOST_NEAR = 5
WORTH_SAYING = 0.4
"""Cosine from which a near fact is returned with a hint how to replace it: 89 in 100 changes of the benchmark `wording`
lie above, and one in 900 unrelated pairs."""
APART_FROM = 0.7
"""The same for a pair judged *compatible*: the median of changes in other words is 0.72."""
NOT_IN_PLACE = "agent {!r} has no fact {} of the same scope, user and project to replace"
SHOWN = 60
"""Characters of a near fact that a suggestion quotes."""


@dataclass(frozen=True)
class NamedFact:
    """A fact the caller wants replaced, and the version it was read at if the caller passed one."""

    id: UUID
    row_version: int | None = None


@dataclass(frozen=True)
class NearFacts:
    """The neighbours of a new fact: those the caller named, the active value of its key, and the rest."""

    replaced: tuple[Neighbour, ...]
    holder: Neighbour | None
    rest: tuple[Neighbour, ...]

    @property
    def named(self) -> list[UUID]:
        """The ids of those that it may replace whatever a judge says."""
        return [each.fact.id for each in (*self.replaced, self.holder) if each is not None]


def named_facts(replaces: object) -> tuple[NamedFact, ...]:
    """Return what the caller passed in `replaces`, an id, a fact or a list of them; raise `InvalidInput` for others."""
    one = () if replaces is None else (replaces,)
    given = cast("Sequence[object]", replaces) if isinstance(replaces, (list, tuple)) else one
    found = [
        NamedFact(each.id, each.row_version) if isinstance(each, Fact) else NamedFact(checked_id("replaces", each))
        for each in given
    ]
    return tuple({each.id: each for each in found}.values())


def partition_neighbours(
    new: NewFact, near: Sequence[Neighbour], named: Sequence[NamedFact], agent_id: str
) -> NearFacts:
    """Return the neighbours by role; values of other keys are left out, because they are about other things.

    Raises `NotFound` for a named fact that does not exist in the new one's scope, and `Conflict` for one that is no
    longer active or was changed since it was read.
    """
    known = {each.fact.id: each for each in near}
    for each in named:
        if each.id not in known:
            raise NotFound(NOT_IN_PLACE.format(agent_id, each.id))
        check_active(known[each.id].fact, "replaced")
        if each.row_version not in {None, known[each.id].fact.row_version}:
            raise Conflict(f"fact {each.id} was changed since it was read; read it again before it is replaced")
    replaced = {each.id for each in named}
    others = [each for each in near if each.fact.id not in replaced]
    holder = next((each for each in others if new.key and each.fact.key == new.key), None)
    rest = tuple(each for each in others if each is not holder and not (new.key and each.fact.key))
    return NearFacts(tuple(known[each.id] for each in named), holder, rest)


def audience(fact: Fact) -> tuple[str | None, str | None]:
    """Return the user and the project whose recalls find a fact; None for any."""
    wider = {"system": (None, None), "project": (None, fact.project_id)}
    return wider.get(fact.scope, (fact.user_id, fact.project_id))


def check_in_place(agent_id: str, new: Fact, old: Fact) -> None:
    """Raise `NotFound` unless whoever recalls a fact can recall the stored one that is to take its place."""
    if any(of_new not in {None, of_old} for of_new, of_old in zip(audience(new), audience(old), strict=True)):
        raise NotFound(NOT_IN_PLACE.format(agent_id, old.id))


def check_active(fact: Fact, act: str) -> None:
    """Raise `Conflict` when a fact is not active."""
    if fact.state != "active":
        successor = f" by {fact.superseded_by}" if fact.superseded_by else ""
        message = f"fact {fact.id} is {fact.state}{successor} and can't be {act}; act on what replaced it, or undo that"
        raise Conflict(message)


def decide_and_doubt(
    new: NewFact, said: NearFacts, judgements: Mapping[UUID, Judgement], policy: LearnPolicy
) -> tuple[LearningDecision, list[UUID]]:
    """Return what to do with `new`, and the ids of facts it perhaps replaces; the reason names either."""
    # By its id, not in its words: a reason is stored with the event, and words have to leave it when they are erased.
    decision = decide_with_named(new, said, judgements, policy)
    changed = (*decision.superseded, *decision.contradicted)
    left = [each for each in said.rest if each not in changed]
    if changed:  # The one thing that it changes is found.
        left = [each for each in left if each.fact.id in judgements and judgements[each.fact.id].reason != OTHER_NEARER]
    doubts = possible_replacements(new, left, judgements, policy)
    if decision.reason != NOTHING_LIKE_IT:
        return decision, doubts
    if decision.contradicted:
        other = decision.contradicted[0].fact.id
        return replace(decision, reason=f"contradicts fact {other}: both stay until somebody says which holds"), doubts
    if doubts:
        return replace(decision, reason=f"perhaps replaces fact {doubts[0]}: both stay"), doubts
    return decision, doubts


def decide_with_named(
    new: NewFact, said: NearFacts, judgements: Mapping[UUID, Judgement], policy: LearnPolicy
) -> LearningDecision:
    """Return what to do with `new`: what the caller named counts first, then the verdicts on the rest.

    Where the active value of its key is pinned or trusted more, the two contradict each other and the new one is
    stored without the key. Raises `Refused` where a fact named by its id is pinned or trusted more.
    """
    replaced = said.replaced
    if (
        said.holder is not None
        and not is_repeat(new, said.holder, policy)
        and is_protected_value(new, said.holder.fact)
    ):
        check_replaceable(new, replaced)
        decision = decide(new, said.rest, judgements, policy)
        return replace(
            decision, others=(*decision.others, *replaced), contradicted=(*decision.contradicted, said.holder)
        )
    if said.holder is not None:
        if not is_later(new, said.holder.fact):
            check_replaceable(new, replaced)
            reason = f"an older value of the key {new.key!r} than the one known"
            return LearningDecision("store_superseded", reason, said.holder, replaced)
        replaced = (*replaced, said.holder)
    again = next((each for each in replaced if is_repeat(new, each, policy)), None)
    others = tuple(each for each in replaced if each is not again)
    check_replaceable(new, others)
    if again is not None:
        reason = f"said before (similarity {again.similarity:.2f}, no difference found)"
        return LearningDecision("confirm", reason, again, others)
    decision = decide(new, said.rest, judgements, policy)
    if not replaced:
        return decision
    if decision.action in {"confirm", "store_superseded"}:
        return replace(decision, others=replaced)
    reason = "the agent said that it replaces this" if said.replaced else f"a newer value of the key {new.key!r}"
    return LearningDecision(
        "supersede", reason, replaced[0], (*replaced[1:], *decision.superseded), decision.contradicted
    )


def is_later(new: NewFact, known: Fact) -> bool:
    """Tell whether a value of a key supersedes the active one: it began later, and has not ended already."""
    is_over, was_over = (is_past(value, new.learned_at) for value in (new, known))
    return holds_since(new) >= holds_since(known) and (was_over or not is_over)


def is_protected_value(new: NewFact, holder: Fact) -> bool:
    """Tell whether the value of a key that would be superseded is trusted more, or alone pinned."""
    return outranks(holder, new) if is_later(new, holder) else outranks(new, holder)


def check_replaceable(new: NewFact, replaced: Sequence[Neighbour]) -> None:
    """Raise `Refused` for a fact that is pinned, trusted more than the new one, or holds until that begins."""
    for fact in (each.fact for each in replaced):
        check_begun(new, fact)
        if fact.is_pinned:
            raise Refused(f"fact {fact.id} is pinned and can't be replaced; unpin it first, or supersede it by its id")
        if fact.trust > new.trust:
            message = f"fact {fact.id} is trusted more ({fact.trust}) than what would replace it ({new.trust})"
            raise Refused(f"{message}; learn it with at least the same trust, or supersede the fact by its id")


def with_inherited_key(new: NewFact, decision: LearningDecision) -> NewFact:
    """Return the new fact with the key of what it supersedes, if it has none and they share one.

    It loses its own key where it contradicts the active value of that key: a key has one active value.
    """
    if new.key is not None and any(each.fact.key == new.key for each in decision.contradicted):
        return replace(new, key=None)
    keys = {each.fact.key for each in decision.superseded if each.fact.key}
    return replace(new, key=keys.pop()) if new.key is None and len(keys) == 1 else new


def near_facts(
    near: Sequence[Neighbour],
    memory: Fact,
    decision: LearningDecision,
    judgements: Mapping[UUID, Judgement],
    rivals: Rivals = MappingProxyType({}),
) -> tuple[Near, ...]:
    """Return the nearest facts that are still active beside the one learned, each with a hint how to replace it.

    First the rivals of what it superseded: what ended one side of a contradiction may have ended the other too.
    """
    gone = {each.fact.id for each in decision.superseded}
    opposed = {rival for each in gone for rival in rivals.get(each, ())}
    left = [each for each in near if each.fact.state == "active" and each.fact.id not in {memory.id, *gone}]
    nearest = sorted(left, key=lambda each: (each.fact.id not in opposed, -each.similarity, each.fact.id))[:MOST_NEAR]
    return tuple(_shown(each, judgements.get(each.fact.id), is_opposed=each.fact.id in opposed) for each in nearest)


def is_partial(reason: str | None) -> bool:
    """Tell whether a judge said that a later statement leaves something which the earlier one says."""
    return "replaces a part" in (reason or "")


def _shown(near: Neighbour, judgement: Judgement | None, *, is_opposed: bool) -> Near:
    words = " ".join(near.fact.content.split())
    quoted = words if len(words) <= SHOWN else f"{words[: SHOWN - 1]}…"
    verdict, reason = (judgement.verdict.value, judgement.reason) if judgement else (None, None)
    least = APART_FROM if verdict == Verdict.COMPATIBLE.value else WORTH_SAYING
    is_worth_saying = is_opposed or (near.similarity >= least and verdict != Verdict.SAME.value)
    does = "replaces a part of “{}”; if all of it" if is_partial(reason) else "perhaps replaces “{}”; if so"
    hint = f"{does.format(quoted)}, learn it again with replaces='{near.fact.id}'"
    return Near(near.fact, near.similarity, verdict, reason, hint if is_worth_saying else None)
