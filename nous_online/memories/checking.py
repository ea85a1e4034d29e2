"""Whether an action is what a censor warns of: as written, nearly so, or in meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from nous_online.core.deadline import Deadline
from nous_online.core.details import Action, CheckDetails
from nous_online.core.domain import Censor
from nous_online.core.fields import check_known, checked_as, checked_details
from nous_online.core.policy import CensorPolicy
from nous_online.language.actions.action_words import MOST_CHARACTERS, variants, warned_act
from nous_online.language.actions.triggers import (
    ActionWording,
    Comparison,
    compare_words,
    folded,
    likelihood,
    log_odds,
    shares_act,
)
from nous_online.language.minilm import Vectors
from nous_online.language.pairs.reader import read_actions
from nous_online.language.writing.credentials import mask_credentials
from nous_online.memories.agent import Agent

POLICY = CensorPolicy()
Match = Literal["literal", "near", "meaning"]
PART_ENDS = re.compile(r"\n+|&&|\|\||;(?=\s)|(?<=[.!?])\s+")
LITERAL_CLOSENESS = 2.0  # above what likelihood reaches: what occurs as written is certain
NARROWEST = 0.2
"""More than an action ever gains by a clause of a trigger: what stays unlikely with it is not embedded."""
MOST_KEPT = 20_000  # vectors, 1.5 kB each
KEPT: dict[tuple[str, str], Vectors] = {}
"""Vectors of triggers with a clause left out, and of exceptions, by embedding space and text."""


@dataclass(frozen=True)
class Activation:
    """A censor an action set off, and how: the severity is the one that holds for this very action."""

    id: UUID | None
    """By which it is reported as a false alarm; None where the check only looked."""
    censor: Censor
    severity: str
    """How firmly it speaks against this action: never more than a warning for a match by meaning alone."""
    match: Match
    """`literal`: as written; `near`: same act, same object, nothing against it; `meaning`: perhaps."""
    reason: str
    message: str
    """What to tell whoever is about to act."""
    similarity: float | None
    """The cosine of the trigger and the part of the action; None for a trigger that occurs as written."""
    part: str
    """What of the action set it off."""


@dataclass(frozen=True)
class CensorCheck:
    """What speaks against an action, the firmest first; it can be iterated over.

    As a condition it is refused with `TypeError`: an empty list used to mean "allowed", so either answer would mislead.
    """

    activations: tuple[Activation, ...]

    @property
    def is_allowed(self) -> bool:
        """Whether nothing more than warns."""
        return self.severity in {None, "warn"}

    @property
    def severity(self) -> str | None:
        """The firmest severity, None where nothing speaks against the action."""
        return self.activations[0].severity if self.activations else None

    def __bool__(self) -> bool:
        raise TypeError("a check is neither true nor false: ask check.is_allowed, or check.activations")

    def __len__(self) -> int:
        return len(self.activations)

    def __iter__(self) -> Iterator[Activation]:
        return iter(self.activations)

    def __getitem__(self, place: int) -> Activation:
        return self.activations[place]


@dataclass(frozen=True)
class ActionQuestion:
    """An action to be checked, cut into its parts, and who is about to do it."""

    action: str
    parts: tuple[str, ...]
    frame: str | None
    session_id: str | None
    at: datetime
    is_recorded: bool
    user_id: str | None
    project_id: str | None


@dataclass(frozen=True)
class Suspect:
    """A censor that may be set off by a part of the action, counted from 1."""

    id: UUID
    trigger: str
    is_literal: bool
    severity: str
    trust: int
    exceptions: list[dict[str, Any]]
    part: int
    similarity: float
    read: float | None = None
    """Log odds the pair reader gives the part of doing what the trigger warns of; None where it was not asked."""


@dataclass(frozen=True)
class TriggerMatch:
    """How a censor was set off."""

    match: Match
    similarity: float | None
    part: str
    closeness: float


def checked_question(action: object, details: CheckDetails, *, now: datetime) -> ActionQuestion:
    """Check what a caller asks; raise `InvalidInput` naming what to mend."""
    check_known(details, CheckDetails)
    told = checked_details(CheckDetails, details)
    text, at = checked_as(Action, "action", action), told.pop("at") or now
    return ActionQuestion(action=text, parts=parts_of(text, most=POLICY.most_parts), at=at, **told)


def parts_of(action: str, *, most: int) -> tuple[str, ...]:
    """Return the whole action and, when it does several things, each of them: a vector of all drowns each one.

    The first and the last of very many are kept: a script says what it is about first, and does its worst last.
    """
    parts = [part.strip() for part in PART_ENDS.split(action) if part.strip()]
    if len(parts) > most:
        parts = [*parts[: most // 2], *parts[-(most - most // 2) :]]
    return tuple(dict.fromkeys((action.strip(), *parts)))


def find_matches(
    agent: Agent, asked: ActionQuestion, suspects: Sequence[Suspect], vectors: Vectors, deadline: Deadline
) -> dict[UUID, TriggerMatch]:
    """Return how each censor that fires was set off; the reader and the embedder are asked for what decides."""
    suspects = with_readings(asked, suspects, deadline)
    texts: list[str] = []
    for suspect in suspects:
        if suspect.read is None:
            continue
        deadline.remaining()
        words = compare_words(suspect.trigger, asked.parts[suspect.part - 1])
        if may_fire(replace(words, similarity=suspect.similarity, narrowness=NARROWEST), suspect.read):
            texts += [warned_act(suspect.trigger), *variants(suspect.trigger)]
            texts += [each["action"] for each in suspect.exceptions if each["action"]]
    return match_suspects(asked, suspects, vectors, cached_vectors(agent, list(dict.fromkeys(texts)), deadline))


def with_readings(asked: ActionQuestion, suspects: Sequence[Suspect], deadline: Deadline) -> list[Suspect]:
    """Return the literal suspects, and of the others the likeliest by their words, read together with their part."""
    likely: list[tuple[float, Suspect]] = []
    for suspect in suspects:
        deadline.remaining()
        part = asked.parts[suspect.part - 1]
        if suspect.is_literal or (
            suspect.similarity < POLICY.unlike_similarity and not shares_act(suspect.trigger, part)
        ):
            continue
        words = replace(compare_words(suspect.trigger, part), similarity=suspect.similarity, narrowness=NARROWEST)
        likely.append((log_odds(words), suspect))
    likely.sort(key=lambda each: (-each[0], each[1].id, each[1].part))
    chosen = [suspect for _, suspect in likely[: POLICY.most_read]]
    read = read_actions([(each.trigger, asked.parts[each.part - 1][:MOST_CHARACTERS]) for each in chosen])
    literal = [suspect for suspect in suspects if suspect.is_literal]
    return [*literal, *(replace(suspect, read=odds) for suspect, odds in zip(chosen, read, strict=True))]


def may_fire(compared: Comparison, read: float) -> bool:
    """Tell whether an action is taken for what a trigger warns of: nearly its own words, or words and reader together.

    A condition of time or amount that is not met outweighs both.
    """
    if compared.is_near and likelihood(compared) >= POLICY.firing_likelihood:
        return True
    return not compared.is_unmet and read + POLICY.words_share * log_odds(compared) >= POLICY.firing_odds


def cached_vectors(agent: Agent, texts: Sequence[str], deadline: Deadline) -> dict[str, Vectors]:
    """Return the vectors of texts that come again with every check, each embedded once a process."""
    space = agent.embedder.space.id
    missing = [text for text in texts if (space, text) not in KEPT]
    found = {text: KEPT[space, text] for text in texts if text not in missing}
    if missing:
        if len(KEPT) + len(missing) > MOST_KEPT:
            KEPT.clear()
        new = dict(zip(missing, agent.embed(missing, deadline), strict=True))
        KEPT.update({(space, text): vector for text, vector in new.items()})
        found |= new
    return found


def match_suspects(
    asked: ActionQuestion, suspects: Iterable[Suspect], vectors: Vectors, others: Mapping[str, Vectors]
) -> dict[UUID, TriggerMatch]:
    """Return how each censor that fires was set off, by its closest part; exceptions of a censor set it off no more."""
    wording = ActionWording(asked.action)
    found: dict[UUID, TriggerMatch] = {}
    for suspect in suspects:
        vector = vectors[suspect.part - 1]
        each = match_of(asked, suspect, wording, vector, others)
        if each is None or (suspect.id in found and each.closeness <= found[suspect.id].closeness):
            continue
        if not is_excepted(asked, suspect, each, vector, others):
            found[suspect.id] = each
    return found


def match_of(
    asked: ActionQuestion,
    suspect: Suspect,
    wording: ActionWording,
    vector: Vectors,
    others: Mapping[str, Vectors],
) -> TriggerMatch | None:
    """Return how one suspect is set off, None when it is not."""
    part = asked.parts[suspect.part - 1]
    if suspect.is_literal:
        is_written = wording.holds(suspect.trigger)
        return TriggerMatch("literal", None, asked.action, LITERAL_CLOSENESS) if is_written else None
    if suspect.read is None:
        return None
    words = compare_words(suspect.trigger, part)
    is_done = not (words.contradicts or words.only_looks or words.only_speaks)
    if is_done and wording.holds_all_of(suspect.trigger):
        return TriggerMatch("near", suspect.similarity, part, 1.0)
    act = warned_act(suspect.trigger)
    similarity = float(vector @ others[act]) if act in others else suspect.similarity
    gains = [similarity - float(vector @ others[text]) for text in variants(suspect.trigger) if text in others]
    compared = replace(words, similarity=similarity, narrowness=min(gains, default=0.0))
    if not may_fire(compared, suspect.read):
        return None
    return TriggerMatch("near" if compared.is_near else "meaning", suspect.similarity, part, likelihood(compared))


def is_excepted(
    asked: ActionQuestion, suspect: Suspect, found: TriggerMatch, vector: Vectors, others: Mapping[str, Vectors]
) -> bool:
    """Tell whether this action, or one like it, was reported as a false alarm of this censor.

    An agent's own reports don't open what blocks where the censor is absolute, or trusted more than the agent: nobody
    talks their own guard away. Like is what lies near and says no more of the trigger than the reported action does.
    """
    if not suspect.exceptions:
        return False
    is_guarded = found.match != "meaning" and (suspect.severity == "absolute" or suspect.trust > POLICY.agent_trust)
    said = {folded(form) for text in (found.part, asked.action) for form in (text, mask_credentials(text)[0])}
    for each in suspect.exceptions:
        action: str | None = each["action"]
        if action is None or (is_guarded and each["source_kind"] != "user"):
            continue
        if folded(action) in said:
            return True
        if found.match == "literal" or action not in others:
            continue
        now, then = compare_words(suspect.trigger, found.part), compare_words(suspect.trigger, action)
        says_more = now.coverage > then.coverage or now.is_near > then.is_near
        if float(vector @ others[action]) >= POLICY.like_similarity and not says_more:
            return True
    return False
