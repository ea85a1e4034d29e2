"""What to do with a new statement, given its neighbours and what a judge said of them: pure decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from difflib import SequenceMatcher
from typing import Literal
from uuid import UUID

from nous_online.domain import Neighbour, NewFact
from nous_online.pairs.judging import Judgement, OfflineJudge, Pair, Statement, Verdict
from nous_online.pairs.slots import slot_key
from nous_online.pairs.subjects import other_subjects
from nous_online.policy import LearnPolicy

MAX_SLOT_CHARACTERS = 500


@dataclass(frozen=True)
class Decision:
    """What learning should do: confirm `match`, supersede it, be superseded by it, or just store."""

    action: Literal["store", "confirm", "supersede", "store_superseded"]
    reason: str
    match: Neighbour | None = None
    others: tuple[Neighbour, ...] = ()
    """Further values of the same slot that give way: what was imported without matching may hold several."""
    contradicted: tuple[Neighbour, ...] = ()
    """What can't be so together with the new one, though neither is known to be later: both stay, until decided."""

    @property
    def superseded(self) -> tuple[Neighbour, ...]:
        """Every fact that gives way to the new one."""
        return (self.match, *self.others) if self.action == "supersede" and self.match else ()


def questions(new: NewFact, neighbours: Sequence[Neighbour], policy: LearnPolicy) -> list[Neighbour]:
    """Return the neighbours only a judge can tell from `new`: the grey band, and other values of the same subject."""
    return [
        near for near in neighbours if not is_clear_repeat(new, near, policy) and is_worth_asking(new, near, policy)
    ]


def decide(
    new: NewFact, neighbours: Sequence[Neighbour], judgements: Mapping[UUID, Judgement], policy: LearnPolicy
) -> Decision:
    """Return what to do with `new`; the nearest neighbour that settles it wins, and doubt always stores."""
    on_subject = (near for near in neighbours if not other_subjects(new.subject, near.fact.subject))
    by_similarity = sorted(on_subject, key=lambda near: (-near.similarity, near.fact.id))
    for near in by_similarity:
        if is_clear_repeat(new, near, policy):
            return Decision("confirm", f"said before (similarity {near.similarity:.2f}, no difference found)", near)
        judgement = judgements.get(near.fact.id)
        if judgement is not None and judgement.verdict is Verdict.SAME and near.similarity >= policy.check_similarity:
            return Decision("confirm", f"the same in other words: {judgement.reason}", near)
    updated = [near for near in by_similarity if has_verdict(judgements.get(near.fact.id), Verdict.UPDATES)]
    denied = [near for near in by_similarity if has_verdict(judgements.get(near.fact.id), Verdict.CONTRADICTS)]
    decision = Decision("store", "nothing known says the same")
    if updated:
        decision = in_succession([succession(new, near, judgements[near.fact.id].reason) for near in updated])
    return replace(decision, contradicted=() if decision.action == "store_superseded" else tuple(denied))


def in_succession(decisions: Sequence[Decision | None]) -> Decision:
    """Return one decision of those about each value known: a newer value rules, then all older ones give way."""
    made = [decision for decision in decisions if decision is not None]
    for decision in made:
        if decision.action == "store_superseded":
            return decision
    if not made:
        return Decision("store", "what it updates is trusted more, so both stay")
    return replace(made[0], others=tuple(other.match for other in made[1:] if other.match))


def has_verdict(judgement: Judgement | None, verdict: Verdict) -> bool:
    """Tell whether a judge was asked and said so."""
    return judgement is not None and judgement.verdict is verdict


def succession(new: NewFact, near: Neighbour, reason: str) -> Decision | None:
    """Return which of two values of one slot gives way, the one stated earlier; None if that one is trusted more."""
    if new.learned_at >= near.fact.learned_at:
        return Decision("supersede", f"a newer value: {reason}", near) if new.trust >= near.fact.trust else None
    is_outranked = near.fact.trust >= new.trust
    return Decision("store_superseded", f"an older value than the one known: {reason}", near) if is_outranked else None


def is_clear_repeat(new: NewFact, near: Neighbour, policy: LearnPolicy) -> bool:
    """Tell whether the two say the same without asking anybody: guards first, then the threshold.

    The built-in classifier must agree: what is confirmed is not stored, and of the pairs in this band that differ by a
    swapped word four in five pass the guards alone (measured on PAWS).
    """
    return near.similarity >= policy.confirm_similarity and is_certainly_same(pair_of(new, near))


def is_certainly_same(pair: Pair) -> bool:
    """Tell whether two texts on one subject are equal but for white space, or the same to guards and classifier."""
    if other_subjects(pair.a.subject, pair.b.subject):
        return False
    if pair.a.text.split() == pair.b.text.split():
        return True
    return OfflineJudge().judge([pair])[0].verdict is Verdict.SAME


def is_worth_asking(new: NewFact, near: Neighbour, policy: LearnPolicy) -> bool:
    """Tell whether a judge should see the pair."""
    return near.similarity >= policy.check_similarity or same_subject(new, near, policy)


def same_subject(new: NewFact, near: Neighbour, policy: LearnPolicy) -> bool:
    """Tell whether both speak of one subject, by their slots or by subjects spelled alike."""
    if new.slot is not None and new.slot == near.fact.slot:
        return True
    if not new.subject or not near.fact.subject:
        return False
    ratio = SequenceMatcher(None, new.subject.casefold(), near.fact.subject.casefold()).ratio()
    return ratio > policy.subject_similarity


def pair_of(new: NewFact, near: Neighbour) -> Pair:
    """Return the pair as a judge wants it: the stored statement first, the new one second.

    Of two statements made in one moment the one learned second counts as said second.
    """
    known = near.fact
    stated_at = new.learned_at + (timedelta.resolution if new.learned_at == known.learned_at else timedelta())
    return Pair(
        a=Statement(text=known.content, subject=known.subject, stated_at=known.learned_at, trust=known.trust),
        b=Statement(text=new.content, subject=new.subject, stated_at=stated_at, trust=new.trust),
        similarity=near.similarity,
    )


def slot_of(content: str, subject: str | None) -> str | None:
    """Return the slot a statement fills, when it can be read off and is short enough to be one."""
    key = slot_key(content, subject)
    return key if key and len(key) <= MAX_SLOT_CHARACTERS else None
