"""What to do with a new statement, given its neighbours and what a judge said of them: pure decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from hashlib import sha256
from typing import Literal, cast
from uuid import UUID

from nous_online.core.domain import Fact, Near, Neighbour, NewFact
from nous_online.core.errors import Conflict, NotFound, Refused
from nous_online.core.policy import LearnPolicy
from nous_online.core.validation import LARGEST_LEAD, checked_id
from nous_online.language.pairs.guards import added
from nous_online.language.pairs.judging import (
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
from nous_online.language.pairs.wordings import other_subjects, subject_words

MAX_SLOT_CHARACTERS = 500
SHARED_WORD_LEAD, MOST_SHARED = 0.05, 4
"""Cosine that each shared content word is worth, up to four: the ratio of both coefficients in a logistic regression on
3,500 pairs written for training, each among the 20 nearest of 90 statements of one hand, one statement in five changing
another."""
SAME_SLOT_LEAD = 1.0  # a value of the same slot or key is always read


@dataclass(frozen=True)
class LearningDecision:
    """What learning should do: confirm `match`, supersede it, be superseded by it, or just store."""

    action: Literal["store", "confirm", "supersede", "store_superseded"]
    reason: str
    match: Neighbour | None = None
    others: tuple[Neighbour, ...] = ()
    """What else gives way to it: further values of the same slot, and what the caller says it replaces."""
    contradicted: tuple[Neighbour, ...] = ()
    """What can't be so together with the new one, though neither is known to be later: both stay, until decided."""

    @property
    def superseded(self) -> tuple[Neighbour, ...]:
        """Every fact that gives way to the one learned."""
        return (self.match, *self.others) if self.action == "supersede" and self.match else self.others


def questions(new: NewFact, neighbours: Sequence[Neighbour], policy: LearnPolicy) -> list[Neighbour]:
    """Return the neighbours only a judge can tell from `new`: those of its slot or key first, then the nearest.

    Where it ranks among the nearest says more than how near it is: in people's own words a value and the one that
    takes its place have a cosine of 0.7 in the median, and of 0.3 at the least.
    """
    worth = [
        near for near in neighbours if not is_clear_repeat(new, near, policy) and is_worth_asking(new, near, policy)
    ]
    return sorted(worth, key=lambda near: (not has_same_slot(new, near.fact), -near.similarity, near.fact.id))


def worth_reading(new: NewFact, asked: Sequence[Neighbour], policy: LearnPolicy) -> list[Neighbour]:
    """Return which neighbours the built-in judge reads while the caller waits, the likeliest first.

    Those that stand nearly as near as the nearest, the nearer the fewer words they share: most neighbours speak of
    something else and stand together, far behind the one that a statement repeats or changes. The night reads the rest.
    """
    if not asked:
        return []
    leads = {near.fact.id: near.similarity + nomination_bonus(new, near.fact) for near in asked}
    least = max(near.similarity for near in asked) - policy.read_within
    likely = sorted((near for near in asked if leads[near.fact.id] >= least), key=lambda near: -leads[near.fact.id])
    return likely[: policy.read_count]


def nomination_bonus(new: NewFact | Fact, known: Fact) -> float:
    """Return what shared content words, a subject among them, and a shared slot are worth beside the cosine."""
    is_of_one = new.subject is not None and new.subject == known.subject
    shared = min(shared_content(new.content, known.content) + is_of_one, MOST_SHARED)
    return SHARED_WORD_LEAD * shared + (SAME_SLOT_LEAD if has_same_slot(new, known) else 0.0)


def has_same_slot(new: NewFact | Fact, known: Fact) -> bool:
    """Tell whether two facts are known to be values of one thing, by slot or by key."""
    of_slot = new.slot is not None and new.slot == known.slot
    return of_slot or (new.key is not None and new.key == known.key)


def decide(
    new: NewFact, neighbours: Sequence[Neighbour], judgements: Mapping[UUID, Judgement], policy: LearnPolicy
) -> LearningDecision:
    """Return what to do with `new`; the nearest neighbour that settles it wins, and doubt always stores."""
    on_subject = (near for near in neighbours if not other_subjects(new.subject, near.fact.subject))
    by_similarity = sorted(on_subject, key=lambda near: (-near.similarity, near.fact.id))
    for near in by_similarity:
        if is_clear_repeat(new, near, policy):
            return LearningDecision(
                "confirm", f"said before (similarity {near.similarity:.2f}, no difference found)", near
            )
        judgement = judgements.get(near.fact.id)
        if judgement is not None and is_surely_same(judgement, policy) and may_confirm(new, near, policy):
            return LearningDecision("confirm", f"said before: {judgement.reason}", near)
    rivals = [near for near in by_similarity if overlap_in_time(new, near.fact)]
    updated = [near for near in rivals if is_sure_update(judgements.get(near.fact.id))]
    denied = [near for near in rivals if near not in updated and is_conflict(judgements.get(near.fact.id))]
    decision = LearningDecision("store", "nothing known says the same")
    if updated:
        decision = combine_successions(
            [decide_succession(new, near, judgements[near.fact.id].reason) for near in updated]
        )
        denied += [near for near in updated if is_protected_from(new, near)]
    return replace(decision, contradicted=() if decision.action == "store_superseded" else tuple(denied))


def combine_successions(decisions: Sequence[LearningDecision | None]) -> LearningDecision:
    """Return one decision of those about each value known: a newer value rules, then all older ones give way."""
    made = [decision for decision in decisions if decision is not None]
    for decision in made:
        if decision.action == "store_superseded":
            return decision
    if not made:
        return LearningDecision("store", "what it updates is trusted more, or pinned, so both stay")
    return replace(made[0], others=tuple(other.match for other in made[1:] if other.match))


def is_sure_update(judgement: Judgement | None) -> bool:
    """Tell whether a judge was asked and is sure that one of the two takes the place of the other."""
    return judgement is not None and judgement.verdict is Verdict.UPDATES and judgement.confidence >= SURE_FROM


def is_conflict(judgement: Judgement | None) -> bool:
    """Tell whether a judge was asked and says that one contradicts or updates the other."""
    return judgement is not None and judgement.verdict in {Verdict.CONTRADICTS, Verdict.UPDATES}


def possible_replacements(
    new: NewFact, neighbours: Sequence[Neighbour], judgements: Mapping[UUID, Judgement], policy: LearnPolicy
) -> list[UUID]:
    """Return the earlier facts that a new one may replace, by a judge who is not sure of it; the likeliest first."""
    chances = {
        near.fact.id: judgements[near.fact.id].change
        for near in neighbours
        if near.fact.id in judgements and near.fact.state == "active" and holds_since(new) >= holds_since(near.fact)
    }
    return sorted((each for each in chances if chances[each] >= policy.doubt_from), key=lambda each: -chances[each])


def decide_succession(new: NewFact, near: Neighbour, reason: str) -> LearningDecision | None:
    """Return which of two values of one slot gives way, the earlier; None if it stands firmer or the later is over.

    What is over never takes the place of what still holds: both stay, each in its time.
    """
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
    """Tell whether one fact gives way to another for no later date: it is trusted more, or it alone is pinned."""
    return one.trust > other.trust or (one.is_pinned and not other.is_pinned)


def is_protected_from(new: NewFact, near: Neighbour) -> bool:
    """Tell whether, of two values of one slot, the earlier would give way if it stood no firmer than the later."""
    as_firm = replace(near, fact=replace(near.fact, trust=new.trust, is_pinned=new.is_pinned))
    return decide_succession(new, near, "") is None and decide_succession(new, as_firm, "") is not None


def holds_since(fact: NewFact | Fact) -> datetime:
    """Return the moment that orders two values of one slot: when a value began to hold, else when it was learned."""
    return fact.valid_from or fact.learned_at


def is_past(fact: NewFact | Fact, moment: datetime) -> bool:
    """Tell whether a fact has ceased to hold by `moment`."""
    return fact.valid_to is not None and fact.valid_to <= moment


def overlap_in_time(new: NewFact, known: Fact) -> bool:
    """Tell whether there is a moment at which both would hold; an interval holds from its start up to its end.

    One that has yet to begin counts as apart: else a date mistyped by a century would retire what holds today.
    """
    soon = max(new.learned_at, known.learned_at) + LARGEST_LEAD
    is_to_come = any(fact.valid_from is not None and fact.valid_from > soon for fact in (new, known))
    is_after = known.valid_to is not None and new.valid_from is not None and new.valid_from >= known.valid_to
    is_before = new.valid_to is not None and known.valid_from is not None and known.valid_from >= new.valid_to
    return not (is_to_come or is_after or is_before)


def says_no_less(new: NewFact, known: Fact) -> bool:
    """Tell whether a known fact says all that a repetition of it says: no less in detail, and of the same time.

    Without an interval of its own a repetition speaks of the moment it was made.
    """
    if added(known.content, new.content):
        return False
    if new.valid_from or new.valid_to:
        return (new.valid_from, new.valid_to) == (known.valid_from, known.valid_to)
    has_begun = known.valid_from is None or known.valid_from <= new.learned_at
    return has_begun and not is_past(known, new.learned_at)


def is_surely_same(judgement: Judgement, policy: LearnPolicy) -> bool:
    """Tell whether a judge is sure enough that two say the same for the second not to be kept."""
    return judgement.verdict is Verdict.SAME and judgement.confidence >= policy.sure_from


def may_confirm(new: NewFact, near: Neighbour, policy: LearnPolicy) -> bool:
    """Tell whether a known fact may take up a new one when a judge says they are the same.

    What is confirmed is not stored and lends its trust, so no judge's word turns a statement into one that is trusted
    less: but for the same words both stay, and the night keeps the wording that is trusted more.
    """
    is_close = near.similarity >= policy.same_similarity and says_no_less(new, near.fact)
    return is_close and (near.fact.trust >= new.trust or equals_but_spaces(new.content, near.fact.content))


def is_clear_repeat(new: NewFact, near: Neighbour, policy: LearnPolicy) -> bool:
    """Tell whether the two say the same without asking anybody: near, and nothing differs that could matter."""
    return near.similarity >= policy.confirm_similarity and is_repeat(new, near, policy)


def is_repeat(new: NewFact, near: Neighbour, policy: LearnPolicy) -> bool:
    """Tell whether a known fact may take up a new one, of which nothing differs that could matter."""
    pair = pair_of(new, near)
    return may_confirm(new, near, policy) and not reasons_apart(pair) and is_harmless(pair)


def equals_but_spaces(one: str, other: str) -> bool:
    """Tell whether two texts are equal but for white space."""
    return one.split() == other.split()


def is_worth_asking(new: NewFact, near: Neighbour, policy: LearnPolicy) -> bool:
    """Tell whether a judge should see the pair."""
    return near.similarity >= policy.nominate_similarity or same_subject(new, near, policy)


def same_subject(new: NewFact, near: Neighbour, policy: LearnPolicy) -> bool:
    """Tell whether both may speak of one subject, by slots or by subjects spelled alike: then a judge is asked."""
    if new.slot is not None and new.slot == near.fact.slot:
        return True
    one, other = (" ".join(subject_words(subject)) for subject in (new.subject, near.fact.subject))
    if not one or not other:
        return False
    return SequenceMatcher(None, one, other).ratio() > policy.subject_similarity


def pair_of(new: NewFact, near: Neighbour) -> Pair:
    """Return the pair as a judge wants it: the stored statement first, the new one second.

    Of two statements made in one moment the one learned second counts as said second.
    """
    known = near.fact
    known_since, new_since = holds_since(known), holds_since(new)
    stated_at = new_since + (timedelta.resolution if new_since == known_since else timedelta())
    return Pair(
        a=JudgedStatement(text=known.content, subject=known.subject, stated_at=known_since, trust=known.trust),
        b=JudgedStatement(text=new.content, subject=new.subject, stated_at=stated_at, trust=new.trust),
        similarity=near.similarity,
    )


def statement_digest(content: str, subject: str | None) -> bytes:
    """Return the fingerprint of a statement as a judge is told it: SHA-256 over text and subject."""
    named = b"" if subject is None else b"\1" + subject.encode()
    return sha256(b"%d:%b%b" % (len(content.encode()), content.encode(), named)).digest()


def pair_hash(earlier: bytes, later: bytes, space_id: str, *, is_ordered: bool) -> str:
    """Return the fingerprint of a pair, of those of its statements.

    Whether the order they were stated in is known counts, and the space both live in: a verdict rests on how near they
    are there, and in another space they are nearer or farther.
    """
    if is_ordered:
        return sha256(b">" + earlier + later + space_id.encode()).hexdigest()
    return sha256(b"=" + min(earlier, later) + max(earlier, later) + space_id.encode()).hexdigest()


def slot_of(content: str, subject: str | None) -> str | None:
    """Return the slot a statement fills, when it can be read off and is short enough to be one."""
    key = slot_key(content, subject)
    return key if key and len(key) <= MAX_SLOT_CHARACTERS else None


# --- what it takes the place of because the caller says so, by id or by the key both have ---

MOST_NEAR = 5
WORTH_SAYING = 0.4
"""Cosine from which a near fact comes with how to replace it: of the changes of `wording` 89 in 100 lie above, of pairs
that have nothing to do with each other one in 900."""
APART_FROM = 0.7
"""The same of two that were judged to be two statements: a change in other words is at 0.72 in the middle."""
SHOWN = 60
"""Characters of a near fact that a suggestion quotes."""


@dataclass(frozen=True)
class NamedFact:
    """A fact the caller says is replaced, and the version it was read at where the caller has it."""

    id: UUID
    row_version: int | None = None


@dataclass(frozen=True)
class NearFacts:
    """What is near a new fact: what the caller says it replaces, the active value of its key, and the rest."""

    replaced: tuple[Neighbour, ...]
    holder: Neighbour | None
    rest: tuple[Neighbour, ...]


def named_facts(replaces: object) -> tuple[NamedFact, ...]:
    """Check what the caller says is replaced: an id, a fact as it was read, or several; raise `InvalidInput`."""
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
    """Part what is near by what the caller said.

    Raises `NotFound` for a named fact that is not there for whom the new one is meant, and `Conflict` for one that is
    no longer active or not at the version it was read. Values of other keys are about other things.
    """
    known = {each.fact.id: each for each in near}
    for each in named:
        if each.id not in known:
            raise NotFound(f"agent {agent_id!r} has no fact {each.id} of the same scope, user and project to replace")
        check_active(known[each.id].fact, "replaced")
        if each.row_version not in {None, known[each.id].fact.row_version}:
            raise Conflict(f"fact {each.id} was changed since it was read; read it again before it is replaced")
    replaced = {each.id for each in named}
    others = [each for each in near if each.fact.id not in replaced]
    holder = next((each for each in others if new.key and each.fact.key == new.key), None)
    rest = tuple(each for each in others if each is not holder and not (new.key and each.fact.key))
    return NearFacts(tuple(known[each.id] for each in named), holder, rest)


def check_active(fact: Fact, act: str) -> None:
    """Raise `Conflict` when a fact has left recall."""
    if fact.state != "active":
        successor = f" by {fact.superseded_by}" if fact.superseded_by else ""
        message = f"fact {fact.id} is {fact.state}{successor} and can't be {act}; act on what replaced it, or undo that"
        raise Conflict(message)


def decide_with_named(
    new: NewFact, said: NearFacts, judgements: Mapping[UUID, Judgement], policy: LearnPolicy
) -> LearningDecision:
    """Return what to do with `new`: first what the caller said, then what is found of the rest.

    Two values of one key of which the earlier stands firmer contradict each other; the new one goes without the key.
    Raises `Refused` where it would replace, by its id, what is pinned or trusted more.
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
    """Tell whether a value of a key takes the place of the one known: it holds since later, and is not over already."""
    is_over, was_over = (is_past(value, new.learned_at) for value in (new, known))
    return holds_since(new) >= holds_since(known) and (was_over or not is_over)


def is_protected_value(new: NewFact, holder: Fact) -> bool:
    """Tell whether, of two values of a key, the earlier is trusted more than the later, or it alone is pinned."""
    return outranks(holder, new) if is_later(new, holder) else outranks(new, holder)


def check_replaceable(new: NewFact, replaced: Sequence[Neighbour]) -> None:
    """Raise `Refused` for the first fact that is pinned, or trusted more than the new one."""
    for fact in (each.fact for each in replaced):
        if fact.is_pinned:
            raise Refused(f"fact {fact.id} is pinned and can't be replaced; unpin it first, or supersede it by its id")
        if fact.trust > new.trust:
            message = f"fact {fact.id} is trusted more ({fact.trust}) than what would replace it ({new.trust})"
            raise Refused(f"{message}; learn it with at least the same trust, or supersede the fact by its id")


def with_inherited_key(new: NewFact, decision: LearningDecision) -> NewFact:
    """Return a new fact under the key of what it replaces, unless it has one of its own or they differ in theirs.

    Beside a value of its own key, which it contradicts, it has none.
    """
    if new.key is not None and any(each.fact.key == new.key for each in decision.contradicted):
        return replace(new, key=None)
    keys = {each.fact.key for each in decision.superseded if each.fact.key}
    return replace(new, key=keys.pop()) if new.key is None and len(keys) == 1 else new


def near_facts(
    near: Sequence[Neighbour], memory: Fact, decision: LearningDecision, judgements: Mapping[UUID, Judgement]
) -> tuple[Near, ...]:
    """Return the nearest facts that are still active beside the one learned, with how to say that it replaces them."""
    gone = {memory.id, *(each.fact.id for each in decision.superseded)}
    left = [each for each in near if each.fact.state == "active" and each.fact.id not in gone]
    nearest = sorted(left, key=lambda each: (-each.similarity, each.fact.id))[:MOST_NEAR]
    return tuple(_shown(each, judgements.get(each.fact.id)) for each in nearest)


def _shown(near: Neighbour, judgement: Judgement | None) -> Near:
    words = " ".join(near.fact.content.split())
    quoted = words if len(words) <= SHOWN else f"{words[: SHOWN - 1]}…"
    verdict, reason = (judgement.verdict.value, judgement.reason) if judgement else (None, None)
    least = APART_FROM if verdict == Verdict.COMPATIBLE.value else WORTH_SAYING
    is_worth_saying = near.similarity >= least and verdict != Verdict.SAME.value
    hint = f"perhaps replaces “{quoted}”; if so, learn it again with replaces='{near.fact.id}'"
    return Near(near.fact, near.similarity, verdict, reason, hint if is_worth_saying else None)
