"""Checking an action against the censors of an agent: as written, nearly so, and in meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast
from uuid import UUID

from pgvector import Vector
from psycopg import Connection
from psycopg.rows import class_row

from nous_online.core.deadline import Deadline
from nous_online.core.details import Action, CheckDetails
from nous_online.core.domain import SEVERITIES, Censor
from nous_online.core.fields import check_known, checked_as, checked_details
from nous_online.core.policy import CensorPolicy
from nous_online.database.changes import Cause
from nous_online.language.actions.action_words import MOST_CHARACTERS, variants, warned_act
from nous_online.language.actions.triggers import (
    ActionWording,
    Comparison,
    compare_words,
    likelihood,
    log_odds,
    normal,
    shares_act,
)
from nous_online.language.minilm import Vectors
from nous_online.language.pairs.reader import read_actions
from nous_online.language.writing.credentials import hidden
from nous_online.memories import censors
from nous_online.memories.agent import Agent
from nous_online.memories.censors import Match
from nous_online.memories.sessions import situated
from nous_online.memories.store import ask_space, require_space
from nous_online.memories.told_texts import logged

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


def question(action: object, details: CheckDetails, *, now: datetime, policy: CensorPolicy) -> ActionQuestion:
    """Check what a caller asks; raise `InvalidInput` naming what to mend."""
    check_known(details, CheckDetails)
    told = checked_details(CheckDetails, details)
    text, at = checked_as(Action, "action", action), told.pop("at") or now
    return ActionQuestion(action=text, parts=parts_of(text, most=policy.most_parts), at=at, **told)


def parts_of(action: str, *, most: int) -> tuple[str, ...]:
    """Return the whole action and, when it does several things, each of them: a vector of all drowns each one.

    The first and the last of very many are kept: a script says what it is about first, and does its worst last.
    """
    parts = [part.strip() for part in PART_ENDS.split(action) if part.strip()]
    if len(parts) > most:
        parts = [*parts[: most // 2], *parts[-(most - most // 2) :]]
    return tuple(dict.fromkeys((action.strip(), *parts)))


def check(
    agent: Agent, action: object, details: CheckDetails, deadline: Deadline, *, policy: CensorPolicy = censors.POLICY
) -> CensorCheck:
    """Return the censors an action sets off, the firmest first, counted in one transaction."""
    told = cast("CheckDetails", situated(agent, details, CheckDetails, deadline))
    asked = question(action, told, now=datetime.now(UTC), policy=policy)
    vectors = agent.embed(asked.parts, deadline)
    with agent.transaction(deadline) as connection:
        suspects = find_suspects(connection, agent, asked, vectors, policy=policy)
        require_space(ask_space(connection, agent.id), agent.id, agent.embedder.space)
    suspects = with_readings(asked, suspects, deadline, policy=policy)
    others = kept_vectors(agent, worth_embedding(asked, suspects, deadline, policy=policy), deadline)
    found = set_off(asked, suspects, vectors, others, policy=policy)
    deadline.remaining()
    if not found:
        return CensorCheck(())
    firings = {
        censor_id: censors.Firing(each.match, logged(each.part, agent.rights)) for censor_id, each in found.items()
    }
    with agent.transaction(deadline) as connection:
        fired = recorded(connection, agent.id, asked, firings)
    activations = [activation(each, found[each.id], firings[each.id], asked) for each in fired]
    activations.sort(key=lambda each: firmness(each, found[each.censor.id], asked.frame), reverse=True)
    return CensorCheck(tuple(activations))


def with_readings(
    asked: ActionQuestion, suspects: Sequence[Suspect], deadline: Deadline, *, policy: CensorPolicy
) -> list[Suspect]:
    """Return the literal suspects, and of the others the likeliest by their words, read together with their part."""
    likely: list[tuple[float, Suspect]] = []
    for suspect in suspects:
        deadline.remaining()
        part = asked.parts[suspect.part - 1]
        if suspect.is_literal or (
            suspect.similarity < policy.unlike_similarity and not shares_act(suspect.trigger, part)
        ):
            continue
        words = replace(compare_words(suspect.trigger, part), similarity=suspect.similarity, narrowness=NARROWEST)
        likely.append((log_odds(words), suspect))
    likely.sort(key=lambda each: (-each[0], each[1].id, each[1].part))
    chosen = [suspect for _, suspect in likely[: policy.most_read]]
    read = read_actions([(each.trigger, asked.parts[each.part - 1][:MOST_CHARACTERS]) for each in chosen])
    literal = [suspect for suspect in suspects if suspect.is_literal]
    return [*literal, *(replace(suspect, read=odds) for suspect, odds in zip(chosen, read, strict=True))]


def worth_embedding(
    asked: ActionQuestion, suspects: Iterable[Suspect], deadline: Deadline, *, policy: CensorPolicy
) -> list[str]:
    """Return the texts whose vectors decide: variants of triggers that may fire, and their exceptions."""
    texts: list[str] = []
    for suspect in suspects:
        if suspect.read is None:
            continue
        deadline.remaining()
        words = compare_words(suspect.trigger, asked.parts[suspect.part - 1])
        compared = replace(words, similarity=suspect.similarity, narrowness=NARROWEST)
        if may_fire(compared, suspect.read, policy=policy):
            texts += [warned_act(suspect.trigger), *variants(suspect.trigger)]
            texts += [each["action"] for each in suspect.exceptions if each["action"]]
    return list(dict.fromkeys(texts))


def may_fire(compared: Comparison, read: float, *, policy: CensorPolicy) -> bool:
    """Tell whether an action is taken for what a trigger warns of: nearly its own words, or words and reader together.

    A condition of time or amount that is not met outweighs both.
    """
    if compared.is_near and likelihood(compared) >= policy.firing_likelihood:
        return True
    return not compared.is_unmet and read + policy.words_share * log_odds(compared) >= policy.firing_odds


def kept_vectors(agent: Agent, texts: Sequence[str], deadline: Deadline) -> dict[str, Vectors]:
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


def find_suspects(
    connection: Connection, agent: Agent, asked: ActionQuestion, vectors: Vectors, *, policy: CensorPolicy
) -> list[Suspect]:
    """Return the censors worth a closer look."""
    parameters = {
        "agent_id": agent.id,
        "space_id": agent.embedder.space.id,
        "embeddings": [Vector(vector) for vector in vectors],
        "at": asked.at,
        "user_id": asked.user_id,
        "project_id": asked.project_id,
        "floor": policy.similarity_floor,
    }
    with connection.cursor(row_factory=class_row(Suspect), binary=True) as cursor:
        return cursor.execute(censors.composed("find_suspects"), parameters).fetchall()


def set_off(
    asked: ActionQuestion,
    suspects: Iterable[Suspect],
    vectors: Vectors,
    others: Mapping[str, Vectors],
    *,
    policy: CensorPolicy,
) -> dict[UUID, TriggerMatch]:
    """Return how each censor that fires was set off, by its closest part; exceptions of a censor set it off no more."""
    wording = ActionWording(asked.action)
    found: dict[UUID, TriggerMatch] = {}
    for suspect in suspects:
        vector = vectors[suspect.part - 1]
        each = match_of(asked, suspect, wording, vector, others, policy=policy)
        if each is None or (suspect.id in found and each.closeness <= found[suspect.id].closeness):
            continue
        if not is_excepted(asked, suspect, each, vector, others, policy=policy):
            found[suspect.id] = each
    return found


def match_of(
    asked: ActionQuestion,
    suspect: Suspect,
    wording: ActionWording,
    vector: Vectors,
    others: Mapping[str, Vectors],
    *,
    policy: CensorPolicy,
) -> TriggerMatch | None:
    """Return how one suspect is set off, None when it is not."""
    part = asked.parts[suspect.part - 1]
    if suspect.is_literal:
        return (
            TriggerMatch("literal", None, asked.action, LITERAL_CLOSENESS) if wording.holds(suspect.trigger) else None
        )
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
    if not may_fire(compared, suspect.read, policy=policy):
        return None
    return TriggerMatch("near" if compared.is_near else "meaning", suspect.similarity, part, likelihood(compared))


def is_excepted(
    asked: ActionQuestion,
    suspect: Suspect,
    found: TriggerMatch,
    vector: Vectors,
    others: Mapping[str, Vectors],
    *,
    policy: CensorPolicy,
) -> bool:
    """Tell whether this action, or one like it, was reported as a false alarm of this censor.

    An agent's own reports don't open what blocks where the censor is absolute, or trusted more than the agent: nobody
    talks their own guard away. Like is what lies near and says no more of the trigger than the reported action does.
    """
    is_guarded = found.match != "meaning" and (suspect.severity == "absolute" or suspect.trust > policy.agent_trust)
    if not suspect.exceptions:
        return False
    said = {normal(form) for text in (found.part, asked.action) for form in (text, hidden(text)[0])}
    for each in suspect.exceptions:
        action: str | None = each["action"]
        if action is None or (is_guarded and each["source_kind"] != "user"):
            continue
        if normal(action) in said:
            return True
        if found.match == "literal" or action not in others:
            continue
        now, then = compare_words(suspect.trigger, found.part), compare_words(suspect.trigger, action)
        says_more = now.coverage > then.coverage or now.is_near > then.is_near
        if float(vector @ others[action]) >= policy.like_similarity and not says_more:
            return True
    return False


def recorded(
    connection: Connection, agent_id: str, asked: ActionQuestion, firings: Mapping[UUID, censors.Firing]
) -> list[Censor]:
    """Count the censors that fired, unless the caller only looks, and return them as they are then."""
    if not asked.is_recorded:
        return censors.read_censors(connection, agent_id, list(firings))
    cause = Cause("agent", "activated", "an action set it off", effective_at=asked.at)
    return censors.activate(connection, agent_id, firings, at=asked.at, cause=cause, session_id=asked.session_id)


def activation(censor: Censor, found: TriggerMatch, firing: censors.Firing, asked: ActionQuestion) -> Activation:
    """Return what is told of one censor that fired."""
    return Activation(
        id=firing.id if asked.is_recorded else None,
        censor=censor,
        severity=censors.severity_of(censor, found.match),
        match=found.match,
        reason=censor.reason,
        message=f"did you mean {censor.trigger!r}? {censor.reason}" if found.match == "meaning" else censor.reason,
        similarity=found.similarity,
        part=found.part,
    )


def firmness(each: Activation, found: TriggerMatch, frame: str | None) -> tuple[Any, ...]:
    """Return by what activations are ordered: severity, same frame, then how close the action came."""
    is_same_frame = frame is not None and each.censor.encoded_frame == frame
    return (SEVERITIES.index(each.severity), is_same_frame, found.closeness, each.censor.id)
