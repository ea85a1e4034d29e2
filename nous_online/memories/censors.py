"""Censors: warnings against actions, stored once, counted when they fire, and stricter when they keep firing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Unpack, cast
from uuid import UUID, uuid4

from pgvector import Vector
from psycopg import Connection
from psycopg.rows import class_row, dict_row

from nous_online.core.details import (
    Action,
    CensorChanges,
    CensorDetails,
    CensorFields,
    CensorReason,
    CheckDetails,
    Trigger,
)
from nous_online.core.domain import CENSOR, SEVERITIES, Censor, DecisionId, Severity
from nous_online.core.errors import Conflict, NotFound, Refused
from nous_online.core.fields import check_known, checked_as, checked_details, rows_of
from nous_online.core.policy import MAX_CONTENT_BYTES
from nous_online.core.rights import UNLIMITED, Origin, Rights, origin_of
from nous_online.core.validation import checked_choice, checked_id, checked_moment, checked_optional, checked_text
from nous_online.database.changes import (
    Alteration,
    Cause,
    add_memory,
    change_memories,
    change_memory,
    json_values,
    lock_memories,
    lock_memory,
    version_of,
)
from nous_online.database.statements import fetch, fill_columns, statements
from nous_online.language.actions.triggers import checked_literal, folded
from nous_online.language.minilm import Vectors
from nous_online.language.pairs.guards import differences
from nous_online.language.writing.credentials import mask_credentials
from nous_online.memories.agent import Agent, Verbs, emit, hide_credentials, loggable, with_session_frame
from nous_online.memories.checking import (
    POLICY,
    ActionQuestion,
    Activation,
    CensorCheck,
    Match,
    Suspect,
    TriggerMatch,
    checked_question,
    find_matches,
    most_read,
)
from nous_online.memories.episodes import with_episode_trust
from nous_online.memories.status import check_quota
from nous_online.memories.store import lock_agent, query_space, require_space

BLOCKS = statements("nous_online.memories", "censors.sql")
REACH = statements("nous_online.memories", "reach.sql")
REPORTERS = ("agent", "user")
COMPARED = 5  # how many of the nearest censors a new one is compared with
NOTE_CHARACTERS = 1000


@dataclass(frozen=True)
class NewCensor:
    """A censor checked and ready to be stored."""

    trigger: str
    reason: str
    severity: Severity
    is_literal: bool
    escalation_threshold: int | None
    learned_from_decision_id: DecisionId | None
    learned_from_episode_id: UUID | None
    expires_at: datetime | None
    origin: Origin


@dataclass(frozen=True)
class Firing:
    """One activation of a censor to be counted; `id` is what a false alarm is reported by."""

    match: Match | None = None
    """How it matched; None where a guardrail event named the censor."""
    action: str | None = None
    user_id: str | None = None
    """For whom it was checked: erasing everything of this user takes the action from the censor."""
    id: UUID = field(default_factory=uuid4)


class CensorVerbs(Verbs):
    """What an agent does with censors."""

    def add_censor(
        self,
        trigger: Trigger,
        reason: CensorReason,
        *,
        deadline_s: float | None = None,
        **details: Unpack[CensorDetails],
    ) -> Censor:
        """Store a warning against an action, and return the censor.

        An active censor of the same reach that says the same is returned instead, made stricter where the new one
        is. Raises `InvalidInput`, `NotFound` for an episode this agent has not, `Forbidden` for `absolute` from a
        caller trusted less than the user and for a stricter one than a censor trusted more than the caller,
        `DeadlineExceeded` or `Unavailable`; then nothing was stored.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        (told,) = with_episode_trust(agent, [details], "learned_from_episode_id", deadline)
        new = new_censor(trigger, reason, cast("CensorDetails", told), agent.rights)
        check_quota(agent, deadline, count=1, size=0)
        (vector,) = agent.embed([new.trigger], deadline)
        cause = Cause("agent", "learned", "taught by hand", effective_at=new.origin.learned_at or datetime.now(UTC))
        with agent.space_transaction(deadline) as connection:
            return store_censor(connection, agent, new, vector, cause=cause)

    def check_censors(
        self, action: Action, *, deadline_s: float | None = None, **details: Unpack[CheckDetails]
    ) -> CensorCheck:
        """Return the censors that an action sets off, the strictest first: `is_allowed` means go ahead.

        A match by meaning alone only warns and asks "did you mean"; literal and near matches have the severity of their
        censor. Each censor that fires is counted, and a warning that reaches its threshold by literal or near matches
        blocks from this action on.

        Raises `InvalidInput`, `DeadlineExceeded` or `Unavailable`: a check that failed permits nothing.

        All but embedding takes one round trip, and a second one when something fires. To measure it without the
        embedding, open the Heart with an embedder that looks its vectors up.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        told = cast("CheckDetails", with_session_frame(agent, details, CheckDetails, deadline))
        asked = checked_question(action, told, now=datetime.now(UTC))
        vectors = agent.embed(asked.parts, deadline)
        with agent.transaction(deadline, is_pipelined=True) as connection:
            suspects = find_suspects(connection, agent, asked, vectors)
        found = find_matches(agent, asked, suspects, vectors, deadline)
        deadline.remaining()  # raises if matching took too long
        if not found:
            return CensorCheck(())
        user_id = asked.user_id
        firings = {each: Firing(m.match, loggable(m.part, agent.rights), user_id) for each, m in found.items()}
        with agent.transaction(deadline) as connection:
            fired = record_firings(connection, agent.id, asked, firings)
        if fired and asked.is_recorded:
            agent.awake.set()

        def firmness(each: Activation) -> tuple[int, bool, float, UUID]:
            is_same_frame = asked.frame is not None and each.censor.encoded_frame == asked.frame
            return (SEVERITIES.index(each.severity), is_same_frame, found[each.censor.id].closeness, each.censor.id)

        activations = [
            Activation(
                id=firings[each.id].id if asked.is_recorded else None,
                censor=each,
                severity=severity_of(each, match.match),
                match=match.match,
                reason=each.reason,
                message=message_of(each, match),
                similarity=match.similarity,
                part=match.part,
            )
            for each in fired
            for match in [found[each.id]]
        ]
        return CensorCheck(tuple(sorted(activations, key=firmness, reverse=True)))

    def report_false_positive(  # noqa: PLR0913 (one parameter for each thing a report may say)
        self,
        censor_id: UUID | str,
        *,
        activation_id: UUID | str | None = None,
        action: str | None = None,
        note: str | None = None,
        source_kind: str = "agent",
        at: datetime | str | None = None,
        deadline_s: float | None = None,
    ) -> Censor:
        """Report an activation as a false alarm: that action, and similar ones, no longer set the censor off.

        It is the activation with this id; else the latest one of this action, or the latest of all, not reported yet.
        It no longer counts towards a block, and nights retire a censor of which most activations were reported. An
        action that set nothing off becomes an exception and counts nothing. An agent's report does not lift the block
        of a censor that is absolute or trusted more than 50: that takes a person, `source_kind="user"`. Raises
        `Conflict` for an activation that was reported before, `NotFound` where there is none to report, `Forbidden` for
        a censor trusted more than the caller, and for `source_kind="user"` from one trusted less than the user.
        """
        said = checked_optional("note", note, max_characters=NOTE_CHARACTERS) or "it fired where it should not have"
        cause = Cause("agent", "reported", said, effective_at=checked_moment("at", at) or datetime.now(UTC))
        text = None if action is None else checked_text("action", action, max_bytes=MAX_CONTENT_BYTES)
        reporter = checked_choice("source_kind", source_kind, REPORTERS)
        fired_as = None if activation_id is None else checked_id("activation_id", activation_id)
        known_id = checked_id("censor_id", censor_id)
        with self._transaction(deadline_s) as connection:
            found = lock_memory(connection, self.agent.id, CENSOR, known_id)
            self.agent.rights.check_may_change(found)
            if reporter == "user":
                self.agent.rights.check_may_speak_for_user()
            activation = reported_activation(connection, self.agent.id, found, fired_as, text)
            exception = {
                "action": activation["action"] if activation else text,
                "activation_id": activation and activation["id"],
                "user_id": activation and activation.get("user_id"),
                "source_kind": reporter,
                "reported_at": cause.effective_at.isoformat(),
            }
            values = report_values(found, exception, None if activation is None else activation["match"])
            return change_memory(connection, self.agent.id, version_of(CENSOR, found), values, cause=cause)

    def update_censor(
        self,
        censor_id: UUID | str,
        *,
        note: str | None = None,
        deadline_s: float | None = None,
        **changes: Unpack[CensorChanges],
    ) -> Censor:
        """Change the severity, threshold, expiry or pin of a censor; the only way down, and to `absolute` and back.

        A lowered severity stays until new activations reach the threshold.

        Trigger and reason never change: to say something else, let it expire and add another. Raises
        `InvalidInput`, `NotFound` when there is none of that id, `Forbidden` when it is trusted more than the caller,
        and for `absolute` and back from one trusted less than the user.
        """
        check_known(changes, CensorChanges)
        rows = rows_of(CensorChanges)
        values: dict[str, Any] = {name: rows[name].checked(value) for name, value in changes.items()}
        if "escalation_threshold" in values:
            values["escalation_threshold"] = values["escalation_threshold"] or POLICY.escalation_threshold
        said = checked_optional("note", note, max_characters=NOTE_CHARACTERS) or "changed by hand"
        cause = Cause("agent", "changed", said, effective_at=datetime.now(UTC))
        rights, known_id = self.agent.rights, checked_id("censor_id", censor_id)
        with self._transaction(deadline_s) as connection:
            found = lock_memory(connection, self.agent.id, CENSOR, known_id)
            rights.check_may_change(found)
            if values.get("is_pinned"):
                rights.check_may_pin()
            for severity in {values.get("severity", found.severity)} ^ {found.severity}:
                rights.check_may_set(severity)
            if "severity" in values:  # set by hand: it no longer counts as escalated by activations
                if SEVERITIES.index(values["severity"]) < SEVERITIES.index(found.severity):
                    values["forgiven_count"] = found.activation_count
                values["is_escalated"] = False
            return set_values(connection, self.agent.id, found, values, cause=cause)

    def get_censor(self, censor_id: UUID | str, *, deadline_s: float | None = None) -> Censor:
        """Return one censor in whatever state it is; raise `NotFound` when this agent has none of that id."""
        return self._get(CENSOR, censor_id, deadline_s)

    def list_censors(self, *, state: str = "active", deadline_s: float | None = None) -> list[Censor]:
        """Return the censors that are `active` or `archived`, the firmest first."""
        chosen = checked_choice("state", state, ("active", "archived"))
        with self._transaction(deadline_s) as connection:
            return fetch(connection, Censor, BLOCKS["list_censors"], {"agent_id": self.agent.id, "state": chosen})


def new_censor(trigger: object, reason: object, details: CensorDetails, rights: Rights = UNLIMITED) -> NewCensor:
    """Return a checked censor; raise `InvalidInput`, and `Refused` for a credential in its trigger."""
    check_known(details, CensorDetails)
    text = checked_as(Trigger, "trigger", trigger).strip()
    told = checked_details(CensorFields, details)
    if told["is_literal"]:
        checked_literal(text)
    rights.check_may_set(told["severity"])
    why = checked_as(CensorReason, "reason", reason).strip()
    if rights.on_credential != "keep" and mask_credentials(text)[1]:
        raise Refused(
            "trigger looks as if it held a credential: name what it is for, such as 'posting the deploy key', for a "
            "censor without it would never be set off; nothing was stored"
        )
    why = hide_credentials({"reason": why}, ["reason"], rights)[0]["reason"]
    return NewCensor(trigger=text, reason=why, origin=origin_of(details, rights), **told)


def store_censor(connection: Connection, agent: Agent, new: NewCensor, vector: Vectors, *, cause: Cause) -> Censor:
    """Store a censor and return it; an active one of the same reach that says the same is returned instead.

    That one is changed only where the new one is stricter: severity, threshold, expiry, trust and pin.
    """
    lock_agent(connection, agent.id)
    known = find_same(connection, agent, new, vector, at=cause.effective_at)
    if known is not None:
        locked = lock_memory(connection, agent.id, CENSOR, known.id)  # a check may be counting it at this moment
        wanted = stricter_values(locked, new)
        if any(value != getattr(locked, name) for name, value in wanted.items()):
            agent.rights.check_may_change(locked)
        return set_values(connection, agent.id, locked, wanted, cause=cause)
    row = {
        **new.origin.row(now=cause.effective_at),
        **json_values({name: value for name, value in vars(new).items() if name != "origin"}),
        "escalation_threshold": new.escalation_threshold or POLICY.escalation_threshold,
        "embedding": Vector(vector).to_text(),
        "embedding_space_id": agent.embedder.space.id,
    }
    return add_memory(connection, agent.id, CENSOR, row, cause=cause)


def find_same(connection: Connection, agent: Agent, new: NewCensor, vector: Vectors, *, at: datetime) -> Censor | None:
    """Return the nearest active censor of the same reach that says the same as a new one; None where none does.

    Two triggers say the same when they are spelled alike, or their cosine is high and no guard fires.
    """
    parameters = {
        "agent_id": agent.id,
        "space_id": agent.embedder.space.id,
        "embedding": Vector(vector),
        "trigger": new.trigger,
        "is_literal": new.is_literal,
        "scope": new.origin.scope,
        "user_id": new.origin.user_id,
        "project_id": new.origin.project_id,
        "at": at,
        "limit": COMPARED,
    }
    with connection.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(fill_columns(BLOCKS["nearest_censors"], Censor), parameters).fetchall()
    for row in rows:
        is_close = row.pop("similarity") >= POLICY.same_similarity and not new.is_literal
        known = Censor(**row)
        if folded(known.trigger) == folded(new.trigger):
            return known
        if is_close and not differences(known.trigger, new.trigger):
            return known
    return None


def set_values(
    connection: Connection, agent_id: str, known: Censor, wanted: Mapping[str, Any], *, cause: Cause
) -> Censor:
    """Set the values that differ from the censor's, in one version; no version when none differs."""
    values = json_values({name: value for name, value in wanted.items() if value != getattr(known, name)})
    return change_memory(connection, agent_id, version_of(CENSOR, known), values, cause=cause) if values else known


def stricter_values(known: Censor, new: NewCensor) -> dict[str, Any]:
    """Return the stricter of both values for each column."""
    expiries = (known.expires_at, new.expires_at)
    return {
        "severity": max(known.severity, new.severity, key=SEVERITIES.index),
        "escalation_threshold": min(known.escalation_threshold, new.escalation_threshold or known.escalation_threshold),
        "expires_at": None if None in expiries else max(filter(None, expiries)),
        "trust": max(known.trust, new.origin.trust),
        "is_pinned": known.is_pinned or new.origin.is_pinned,
    }


# --- checks and activations ---


def find_suspects(connection: Connection, agent: Agent, asked: ActionQuestion, vectors: Vectors) -> list[Suspect]:
    """Return the censors in reach that are literal, and the closest of those near enough to a part of the action.

    Raises `Moved` when the agent's memories live in another space than its embedder's.
    """
    parameters = {
        "agent_id": agent.id,
        "space_id": agent.embedder.space.id,
        "embeddings": [Vector(vector) for vector in vectors],
        "at": asked.at,
        "user_id": asked.user_id,
        "project_id": asked.project_id,
        "floor": POLICY.similarity_floor,
        "most": most_read(asked),
    }
    connection.execute(BLOCKS["prepare_check"], prepare=True)
    with connection.cursor(row_factory=class_row(Suspect), binary=True) as cursor:
        query = fill_columns(BLOCKS["find_suspects"], Censor, in_reach=REACH["in_reach"])
        cursor.execute(query, parameters, prepare=True)
        space = query_space(connection, agent.id)  # after the search: a move in between would leave bad answers
        suspects = cursor.fetchall()
    require_space(space, agent.id, agent.embedder.space)
    return suspects


def record_firings(
    connection: Connection, agent_id: str, asked: ActionQuestion, firings: Mapping[UUID, Firing]
) -> list[Censor]:
    """Count the censors that fired, unless the check is not recorded, and return them as they are afterwards."""
    if not asked.is_recorded:
        return fetch(connection, Censor, BLOCKS["read_censors"], {"agent_id": agent_id, "ids": list(firings)})
    cause = Cause("agent", "activated", "an action set it off", effective_at=asked.at)
    return count_activations(connection, agent_id, firings, cause=cause, session_id=asked.session_id)


def count_activations(
    connection: Connection,
    agent_id: str,
    firings: Mapping[UUID, Firing],
    *,
    cause: Cause,
    session_id: str | None = None,
) -> list[Censor]:
    """Count activations, turn warnings that reach their threshold into blocks, and emit an event for each; return them.

    The activation that reaches the threshold is the first that blocks. Archived censors are left out.
    """
    found = lock_memories(connection, agent_id, CENSOR, list(firings))
    active = [each for each in found if each.state == "active"]
    counted = [
        Alteration(version_of(CENSOR, each), activation_values(each, firings[each.id], cause), cause) for each in active
    ]
    change_memories(connection, agent_id, counted)
    key = {"agent_id": agent_id, "ids": [each.id for each in active]}
    fired = fetch(connection, Censor, BLOCKS["read_censors"], key)
    with connection.pipeline():  # one round trip for all events
        for censor in fired:
            severity = severity_of(censor, firings[censor.id].match)
            payload = {
                "censor_id": str(censor.id),
                "activation_id": str(firings[censor.id].id),
                "severity": severity,
                "was_blocked": severity != "warn",
                "session_id": session_id,
            }
            emit(connection, agent_id, "censor_activated", memory_id=censor.id, payload=payload)
    return fired


def message_of(censor: Censor, match: TriggerMatch) -> str:
    """Return what a caller is told; a match by meaning asks, also about a condition that the action leaves open."""
    if match.match != "meaning":
        return censor.reason
    unsaid = " and ".join(repr(each.removeprefix("without ")) for each in match.unsaid)
    asked = f" The action says nothing of {unsaid}." if unsaid else ""
    reason = "" if censor.reason == censor.trigger else f" {censor.reason}"
    return f"did you mean {censor.trigger!r}?{asked}{reason}"


def severity_of(censor: Censor, match: Match | None) -> str:
    """Return the severity of an activation; a match by meaning alone only warns."""
    return "warn" if match == "meaning" else censor.severity


def activation_values(censor: Censor, firing: Firing, cause: Cause) -> dict[str, Any]:
    """Return the columns that one activation sets on a locked censor."""
    # An activation by meaning alone is forgiven at once, so that it never counts towards a block.
    count, forgiven = censor.activation_count + 1, censor.forgiven_count + (firing.match == "meaning")
    action = firing.action and firing.action[: POLICY.most_action_characters]
    values: dict[str, Any] = {
        "activation_count": count,
        "forgiven_count": forgiven,
        "last_activated_at": max(filter(None, (censor.last_activated_at, cause.effective_at))).isoformat(),
        "last_activation": {"id": str(firing.id), "match": firing.match, "action": action, "user_id": firing.user_id},
    }
    if censor.severity == "warn" and count - forgiven >= censor.escalation_threshold:
        values |= {"severity": "block", "is_escalated": True}
    return values


def reported_activation(
    connection: Connection, agent_id: str, censor: Censor, activation_id: UUID | None, action: str | None
) -> dict[str, Any] | None:
    """Return the activation that a report is about; None for an action that set nothing off."""
    parameters = {
        "agent_id": agent_id,
        "censor_id": censor.id,
        "activation_id": activation_id and str(activation_id),
        "limit": 1 if activation_id else POLICY.most_exceptions + 1,
    }
    known: list[dict[str, Any]] = [row[0] for row in connection.execute(BLOCKS["activations_of"], parameters)]
    reported = {each["activation_id"] for each in censor.exceptions}
    if action is not None:
        known = [each for each in known if each["action"] is not None and folded(each["action"]) == folded(action)]
    left = [each for each in known if each["id"] not in reported]
    if left:
        return left[0]
    if known:
        raise Conflict(f"activation {known[0]['id']} of censor {censor.id} was reported as a false alarm before")
    if activation_id is not None:
        raise NotFound(f"censor {censor.id} has no activation {activation_id}; check_censors returns the ids")
    if action is None:
        raise NotFound(f"censor {censor.id} has not fired yet; name the action it should let pass: action=…")
    return None


def report_values(found: Censor, exception: Mapping[str, Any], match: str | None) -> dict[str, Any]:
    """Return the columns that a report sets on a censor: an exception, and one activation less towards a block."""
    values: dict[str, Any] = {"exceptions": [*found.exceptions, exception][-POLICY.most_exceptions :]}
    if exception["activation_id"] is None:
        return values
    values["false_positive_count"] = found.false_positive_count + 1
    if match != "meaning":  # those never counted towards a block
        values["forgiven_count"] = min(found.forgiven_count + 1, found.activation_count)
        if found.is_escalated and found.activation_count - values["forgiven_count"] < found.escalation_threshold:
            values |= {"severity": "warn", "is_escalated": False}
    return values
