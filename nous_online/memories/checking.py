"""Matching an action against the triggers of censors: as written, nearly so, or in meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from heapq import nlargest
from itertools import chain
from typing import Any, Literal
from uuid import UUID

from nous_online.core.deadline import Deadline
from nous_online.core.details import Action, CheckDetails
from nous_online.core.domain import Censor
from nous_online.core.fields import check_known, checked_as, checked_details
from nous_online.core.policy import CensorPolicy
from nous_online.language.actions.action_words import MOST_CHARACTERS, in_english, variants, warned_act, worded
from nous_online.language.actions.commands import is_place, read_command
from nous_online.language.actions.conditions import alternatives, asks_for_consent, part_trigger, says_instead, stances
from nous_online.language.actions.rules import read_rule
from nous_online.language.actions.triggers import (
    ActionWording,
    Comparison,
    compare_words,
    folded,
    likelihood,
    log_odds,
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
    """A censor that an action triggered, and how; the severity is the one for this action."""

    id: UUID | None
    """The id for reporting it as a false alarm; None where the check was not recorded."""
    censor: Censor
    severity: str
    """Its severity for this action: at most a warning for a match by meaning alone."""
    match: Match
    """`literal`: as written; `near`: same act, same object, nothing against it; `meaning`: perhaps."""
    reason: str
    message: str
    """The message for the caller."""
    similarity: float | None
    """The cosine of the trigger and the part of the action; None for a trigger that occurs as written."""
    part: str
    """The part of the action that triggered it."""


@dataclass(frozen=True)
class CensorCheck:
    """The censors that an action triggered, the strictest first; it can be iterated over.

    Its truth value raises `TypeError`: an empty list used to mean "allowed", so either value would mislead.
    """

    activations: tuple[Activation, ...]

    @property
    def is_allowed(self) -> bool:
        """Whether there is nothing stricter than a warning."""
        return self.severity in {None, "warn"}

    @property
    def severity(self) -> str | None:
        """The strictest severity, None where no censor was triggered."""
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
    """An action to check, with its parts, and the session, user and project of the caller."""

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
    """A censor that a part of the action may trigger; parts are counted from 1."""

    id: UUID
    trigger: str
    is_literal: bool
    severity: str
    trust: int
    exceptions: list[dict[str, Any]] | None
    """None where there are none, which is nearly always so: nothing is parsed then."""
    part: int
    similarity: float
    read: float | None = None
    """Log odds the pair reader gives the part of doing what the trigger warns of; None where it was not asked."""
    unsaid: tuple[str, ...] | None = None
    """Conditions the action says nothing of; then `trigger` is the act alone. None for a whole trigger."""
    names_instead: bool = False
    """Whether the action speaks of what is to be done instead."""


@dataclass(frozen=True)
class TriggerMatch:
    """How an action triggered a censor."""

    match: Match
    similarity: float | None
    part: str
    closeness: float
    unsaid: tuple[str, ...] = ()
    """The conditions of the trigger that the action says nothing of."""


def checked_question(action: object, details: CheckDetails, *, now: datetime) -> ActionQuestion:
    """Return a checked question; raise `InvalidInput` for the first wrong argument."""
    check_known(details, CheckDetails)
    values = checked_details(CheckDetails, details)
    text, at = checked_as(Action, "action", action), values.pop("at") or now
    return ActionQuestion(action=text, parts=parts_of(text, most=POLICY.most_parts), at=at, **values)


def parts_of(action: str, *, most: int) -> tuple[str, ...]:
    """Return the whole action and, if it does several things, each of them, which one vector of all would hide.

    Of very many the first and the last are kept: a script says what it is for first, and does its worst last.
    """
    parts, place = list[str](), ""
    for part in (part.strip() for part in PART_ENDS.split(action) if part.strip()):
        if is_place(part):  # "git checkout main": where the parts behind it work
            place = f"{part} && "
        else:
            parts.append(f"{place}{part}")
    parts = parts or [action.strip()]
    if len(parts) > most:
        parts = [*parts[: most // 2], *parts[-(most - most // 2) :]]
    return tuple(dict.fromkeys((action.strip(), *parts)))


def find_matches(
    agent: Agent, question: ActionQuestion, suspects: Sequence[Suspect], vectors: Vectors, deadline: Deadline
) -> dict[UUID, TriggerMatch]:
    """Return how each censor was triggered, with the pair reader and the embedder for the doubtful ones."""
    suspects = with_readings(question, suspects, deadline)
    texts: list[str] = []
    for suspect in suspects:
        if suspect.read is None:
            continue
        deadline.remaining()
        words = compare_words(suspect.trigger, question.parts[suspect.part - 1])
        similarity = suspect.similarity if suspect.unsaid is None else 1.0  # that of the act is not known yet
        if may_fire(replace(words, similarity=similarity, narrowness=NARROWEST), suspect):
            texts += [warned_act(suspect.trigger), *variants(suspect.trigger)]
            texts += [each["action"] for each in suspect.exceptions or () if each["action"]]
    return match_suspects(question, suspects, vectors, cached_vectors(agent, list(dict.fromkeys(texts)), deadline))


def most_read(question: ActionQuestion) -> int:
    """Return how many of the closest triggers are read with an action."""
    return POLICY.most_read + len(question.parts) - 1


def with_readings(question: ActionQuestion, suspects: Sequence[Suspect], deadline: Deadline) -> list[Suspect]:
    """Return the literal suspects, and the closest others, read together with their part.

    By cosine alone: of 104 doings among 180 triggers three reached by the likeliest words find 65, three by cosine 77.
    """
    others = (suspect for suspect in suspects if not suspect.is_literal)
    closest = nlargest(most_read(question), others, key=lambda each: (each.similarity, each.id, -each.part))
    deadline.remaining()
    chosen, reading = list[Suspect](), list[Iterable[float]]()
    for suspect in closest:
        part = question.parts[suspect.part - 1]
        forms = all_forms_of(suspect, question)
        chosen += forms
        reading.append(read_actions([(as_read(each.trigger, part), part[:MOST_CHARACTERS]) for each in forms]))
    for each in chosen:  # what will be asked of each, and is kept, while other threads read
        compare_words(each.trigger, question.parts[each.part - 1])
    read = chain.from_iterable(reading)
    literal = [suspect for suspect in suspects if suspect.is_literal]
    return [*literal, *(replace(suspect, read=odds) for suspect, odds in zip(chosen, read, strict=True))]


def as_read(trigger: str, part: str) -> str:
    """Return a trigger as the reader is given it: what a rule forbids, or the act alone where the action repeats it.

    The reader finds "never push to main" less like a push to main than "push to main", and knows little of amounts and
    times: where these are met, it is asked about the rest.
    """
    compared = compare_words(trigger, part)
    if not compared.is_near or read_command(part[:MOST_CHARACTERS]):  # which it knows well
        return read_rule(trigger).forbids
    parted = part_trigger(trigger) if compared.is_met else None
    return parted.act if parted and len(parted.conditions) == 1 else warned_act(trigger)


def all_forms_of(suspect: Suspect, question: ActionQuestion) -> list[Suspect]:
    """Return the forms of a suspect and of each act it names; none where the action is what it asks for instead."""
    part = question.parts[suspect.part - 1]
    said = says_instead(suspect.trigger, part)
    if said == "unsaid" and asks_for_consent(suspect.trigger):  # who agreed may be told in another sentence
        said = says_instead(suspect.trigger, question.action)
    if said == "done":
        return []
    known = replace(suspect, names_instead=said == "mentioned")
    each_of = (suspect.trigger, *alternatives(suspect.trigger))
    return [form for each in each_of for form in forms_of(replace(known, trigger=each), question)]


def forms_of(suspect: Suspect, question: ActionQuestion) -> list[Suspect]:
    """Return a suspect to be compared whole and, unless the action speaks of its condition, by its act alone.

    Neither of them where the action keeps the condition: what Dana approved is not done without approval.
    """
    parted, part = part_trigger(suspect.trigger), question.parts[suspect.part - 1]
    if parted is None or ActionWording(part).holds_all_of(warned_act(suspect.trigger)):
        return [suspect]
    said = stances(parted, part)
    elsewhere = stances(parted, question.action)
    said = {each: elsewhere[each] if found == "unsaid" else found for each, found in said.items()}
    if "kept" in said.values():
        return []
    if "mentioned" in said.values() or compare_words(suspect.trigger, part).contradicts:
        return [suspect]
    return [
        suspect,
        replace(suspect, trigger=parted.act, unsaid=tuple(each for each in said if said[each] == "unsaid")),
    ]


def may_fire(compared: Comparison, suspect: Suspect) -> bool:
    """Tell whether an action matches a trigger: in nearly its words, or by words and pair reader together.

    A condition of time or amount that is not met outweighs both; an act alone must have nothing at all against it.
    """
    odds = (suspect.read or 0.0) + POLICY.words_share * log_odds(compared)
    is_likely = compared.is_near and likelihood(compared) >= POLICY.firing_likelihood
    if suspect.unsaid is not None:
        least = POLICY.firing_odds_of_act if suspect.unsaid else POLICY.firing_odds
        return not compared.is_against and (is_likely or odds >= least)
    return is_likely or (not compared.is_unmet and odds >= POLICY.firing_odds)


def cached_vectors(agent: Agent, texts: Sequence[str], deadline: Deadline) -> dict[str, Vectors]:
    """Return the vectors of texts that recur in every check, each embedded once in a process."""
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
    question: ActionQuestion, suspects: Iterable[Suspect], vectors: Vectors, others: Mapping[str, Vectors]
) -> dict[UUID, TriggerMatch]:
    """Return how each censor was triggered, by its closest part; reported false alarms don't trigger it again."""
    wording = ActionWording(question.action)
    matches: dict[UUID, TriggerMatch] = {}
    for suspect in sorted(suspects, key=lambda each: each.unsaid is not None):  # whole triggers come first
        known = matches.get(suspect.id)
        vector = vectors[suspect.part - 1]
        each = match_of(question, suspect, wording, vector, others)
        if each is None or (known and (suspect.unsaid is not None or each.closeness <= known.closeness)):
            continue
        if not is_excepted(question, suspect, each, vector, others):
            matches[suspect.id] = each
    return matches


def match_of(
    question: ActionQuestion,
    suspect: Suspect,
    wording: ActionWording,
    vector: Vectors,
    others: Mapping[str, Vectors],
) -> TriggerMatch | None:
    """Return how one suspect is triggered, None when it is not."""
    part = question.parts[suspect.part - 1]
    if suspect.is_literal:
        is_written = wording.holds(suspect.trigger)
        return TriggerMatch("literal", None, question.action, LITERAL_CLOSENESS) if is_written else None
    if suspect.read is None:
        return None
    words = compare_words(suspect.trigger, part)
    is_done = not (words.contradicts or words.only_looks or words.only_speaks)
    if is_done and suspect.unsaid is None and wording.holds_all_of(suspect.trigger):
        return TriggerMatch("near", suspect.similarity, part, 1.0)
    act = warned_act(suspect.trigger)
    similarity = float(vector @ others[act]) if act in others else suspect.similarity
    gains = [similarity - float(vector @ others[text]) for text in variants(suspect.trigger) if text in others]
    compared = replace(words, similarity=similarity, narrowness=min(gains, default=0.0))
    if not may_fire(compared, suspect):
        return None
    is_whole = suspect.unsaid is None and not suspect.names_instead
    is_repeated = worded(act) == worded(in_english(part))
    is_sure = compared.is_near and is_whole and (is_repeated or (suspect.read or 0.0) >= POLICY.blocking_odds)
    match: Match = "near" if is_sure else "meaning"
    return TriggerMatch(match, suspect.similarity, part, likelihood(compared), suspect.unsaid or ())


def is_excepted(
    question: ActionQuestion, suspect: Suspect, match: TriggerMatch, vector: Vectors, others: Mapping[str, Vectors]
) -> bool:
    """Tell whether this action, or one like it, was reported as a false alarm of this censor.

    An agent's own reports don't count against a censor that is absolute, or trusted more than the agent: it must not
    remove its own guard. Actions are alike when they are near and this one has no more of the trigger's words.
    """
    if not suspect.exceptions:
        return False
    is_guarded = match.match != "meaning" and (suspect.severity == "absolute" or suspect.trust > POLICY.agent_trust)
    forms = {folded(form) for text in (match.part, question.action) for form in (text, mask_credentials(text)[0])}
    for each in suspect.exceptions:
        action: str | None = each["action"]
        if action is None or (is_guarded and each["source_kind"] != "user"):
            continue
        if folded(action) in forms:
            return True
        if match.match == "literal" or action not in others:
            continue
        now, then = compare_words(suspect.trigger, match.part), compare_words(suspect.trigger, action)
        says_more = now.coverage > then.coverage or now.is_near > then.is_near
        if float(vector @ others[action]) >= POLICY.like_similarity and not says_more:
            return True
    return False
