"""Procedures: how something is done, stored by name, activated in sessions, and rated by success and failure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Unpack
from uuid import UUID

from pgvector import Vector
from psycopg import Connection

from nous_online.core.details import ProcedureDetails, ProcedureName
from nous_online.core.domain import EPISODE, PROCEDURE, Procedure
from nous_online.core.errors import InvalidInput, NotFound, Refused
from nous_online.core.fields import check_known, checked_as, checked_details
from nous_online.core.policy import DEFAULT_SESSION
from nous_online.core.rights import UNLIMITED, Origin, Rights, origin_of
from nous_online.core.validation import (
    checked_choice,
    checked_id,
    checked_limit,
    checked_moment,
    checked_optional,
    checked_text,
)
from nous_online.database.changes import (
    Cause,
    add_memory,
    change_memory,
    get_memory,
    lock_memories,
    lock_memory,
    version_of,
)
from nous_online.database.statements import fetch, statements
from nous_online.language.minilm import Vectors
from nous_online.memories import sessions, store
from nous_online.memories.agent import Agent, Verbs, emit, hide_credentials
from nous_online.memories.episodes import check_procedures, current_episode
from nous_online.memories.levels import BANDS, hint_of, step_name
from nous_online.memories.status import check_quota

BLOCKS = statements("nous_online.memories", "procedures.sql")
RELATED_SIMILARITY = 0.4  # of the default space: below, two procedures of other domains share no more than words
STATES = ("active", "review", "archived")
TEXTS = ("name", *BANDS, "steps", "template", "trigger", "hint")
"""The fields of a procedure that are searched for credentials."""
NOTE_CHARACTERS = 1000


@dataclass(frozen=True)
class NewProcedure:
    """A procedure checked and ready to be stored; `content` are its columns, as JSON values."""

    name: str
    kind: str
    content: Mapping[str, Any]
    origin: Origin
    idempotency_key: str | None

    @property
    def embedded_text(self) -> str:
        """The text its vector is made of: name, domain, bands or steps, and trigger."""
        return text_to_embed(self.name, self.content)


class ProcedureVerbs(Verbs):
    """What an agent does with procedures."""

    def store_procedure(
        self, name: ProcedureName, *, deadline_s: float | None = None, **details: Unpack[ProcedureDetails]
    ) -> Procedure:
        """Store how something is done under a name, and return the procedure.

        The same name with other content makes a new version: counts stay, a review ends, and events keep the earlier
        content; the same content changes nothing. Raises `InvalidInput` for a procedure without steps, template or
        bands, `Refused` when the name belongs to one of another kind, another scope or more trust, `NotFound` for an
        unknown related procedure, and `Conflict` for a key used for another content.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        new = new_procedure(name, details, agent.rights)
        check_quota(agent, deadline, count=1, size=0)
        (vector,) = agent.embed([new.embedded_text], deadline)
        cause = Cause("agent", "learned", "told by the agent", effective_at=new.origin.learned_at or datetime.now(UTC))
        arguments = json.dumps([new.name, new.kind, dict(new.content)], sort_keys=True)
        content_hash = hashlib.sha256(arguments.encode()).hexdigest()
        call = store.KeyedCall("store_procedure", new.idempotency_key, content_hash)
        with agent.space_transaction(deadline) as connection:
            store.lock_agent(connection, agent.id)  # also without a key: two calls may find the name free
            return store.act_once(
                connection,
                agent.id,
                call,
                read=lambda known_id: get_memory(connection, agent.id, PROCEDURE, known_id),
                act=lambda: store_or_revise(connection, agent, new, vector, cause=cause),
            )

    def activate_procedure(
        self,
        name_or_id: str | UUID,
        *,
        session_id: str = DEFAULT_SESSION,
        at: datetime | str | None = None,
        deadline_s: float | None = None,
    ) -> Procedure:
        """Load a procedure, named by its id, its name or its slug, into the session's working memory.

        It is counted, added to the open episode, and announced as an event, in one transaction. Raises `NotFound`, and
        `InvalidInput` when a slug fits several.
        """
        agent = self.agent
        session = checked_text("session_id", session_id, max_bytes=100)
        moment = checked_moment("at", at) or datetime.now(UTC)
        wanted = checked_text("name_or_id", str(name_or_id), max_bytes=2000).strip()
        cause = Cause("agent", "activated", f"loaded in session {session!r}", effective_at=moment)
        with self._transaction(deadline_s) as connection:
            procedure_id = find(connection, agent.id, wanted)
            # Locked in this order, episode before session, as `end_session` does.
            episode_id = note_in_episode(connection, agent.id, procedure_id, session, at=moment)
            known = lock_memory(connection, agent.id, PROCEDURE, procedure_id)
            values = {
                "activation_count": known.activation_count + 1,
                "last_activated_at": max(filter(None, (known.last_activated_at, moment))).isoformat(),
            }
            loaded = change_memory(connection, agent.id, version_of(PROCEDURE, known), values, cause=cause)
            sessions.load_items(connection, agent, session, [("procedure", procedure_id)])
            payload = {
                "procedure_id": str(procedure_id),
                "name": loaded.name,
                "session_id": session,
                "episode_id": episode_id and str(episode_id),
            }
            emit(connection, agent.id, "procedure_loaded", memory_id=procedure_id, payload=payload)
        agent.awake.set()
        return loaded

    def record_procedure_success(
        self,
        procedure_id: UUID | str,
        *,
        at: datetime | str | None = None,
        note: str | None = None,
        deadline_s: float | None = None,
    ) -> Procedure:
        """Count a success of a procedure; raise `NotFound` when there is none of that id."""
        return self._record_outcome(procedure_id, at, note, deadline_s, is_success=True)

    def record_procedure_failure(
        self,
        procedure_id: UUID | str,
        *,
        at: datetime | str | None = None,
        note: str | None = None,
        deadline_s: float | None = None,
    ) -> Procedure:
        """Count a failure of a procedure; nights flag those that mostly fail for review."""
        return self._record_outcome(procedure_id, at, note, deadline_s, is_success=False)

    def _record_outcome(
        self, procedure_id: UUID | str, at: object, note: str | None, deadline_s: float | None, *, is_success: bool
    ) -> Procedure:
        action, usual = ("succeeded", "it worked") if is_success else ("failed", "it failed")
        reason = checked_optional("note", note, max_characters=NOTE_CHARACTERS) or usual
        cause = Cause("agent", action, reason, effective_at=checked_moment("at", at) or datetime.now(UTC))
        known_id = checked_id("procedure_id", procedure_id)
        with self._transaction(deadline_s) as connection:
            return record_outcome(connection, self.agent.id, known_id, is_success=is_success, cause=cause)

    def get_procedure(self, procedure_id: UUID | str, *, deadline_s: float | None = None) -> Procedure:
        """Return one procedure in whatever state it is; raise `NotFound` when this agent has none of that id."""
        return self._get(PROCEDURE, procedure_id, deadline_s)

    def list_procedures(
        self, *, domain: str | None = None, state: str | None = None, deadline_s: float | None = None
    ) -> list[Procedure]:
        """Return the procedures of a domain and a state, by default all that are not archived; the best first."""
        # Ordered by (successes + 1) / (uses + 2), the posterior mean with a Beta(1, 1) prior: one use weighs little.
        chosen = None if state is None else checked_choice("state", state, STATES)
        key = {"agent_id": self.agent.id, "domain": domain, "state": chosen}
        with self._transaction(deadline_s) as connection:
            return fetch(connection, Procedure, BLOCKS["list_procedures"], key, row="p")

    def related_procedures(
        self, procedure_id: UUID | str, *, limit: int = 5, deadline_s: float | None = None
    ) -> list[Procedure]:
        """Return procedures related to one: linked ones, then those of its domain, then those near in meaning."""
        count, known_id = checked_limit(limit), checked_id("procedure_id", procedure_id)
        with self._transaction(deadline_s) as connection:
            get_memory(connection, self.agent.id, PROCEDURE, known_id)
            key = {"agent_id": self.agent.id, "id": known_id, "similarity": RELATED_SIMILARITY, "limit": count}
            return fetch(connection, Procedure, BLOCKS["related_procedures"], key, row="p")


# --- checks, and columns; pure ---


def new_procedure(name: object, details: ProcedureDetails, rights: Rights = UNLIMITED) -> NewProcedure:
    """Return a checked procedure; raise `InvalidInput` for the first wrong field."""
    check_known(details, ProcedureDetails)
    title = " ".join(checked_text("name", name, max_bytes=2000).split())
    values, _ = hide_credentials({**checked_details(ProcedureDetails, details), "name": title}, TEXTS, rights)
    title = checked_as(ProcedureName, "name", values.pop("name"))
    bands: dict[str, list[str]] = {band: values[band] or [] for band in BANDS}
    steps: list[Any] = values["steps"] or []
    # Steps that are told but empty are missing: who tells of them does not mean a K-line.
    usual = "workflow" if values["steps"] is not None and not any(bands.values()) else "k_line"
    kind = values["kind"] if "kind" in details else usual
    if kind == "workflow" and not steps:
        raise InvalidInput(f'workflow {title!r} has no steps; give some, such as steps=["test", "build"]')
    if kind == "pattern" and not values["template"]:
        raise InvalidInput(f"pattern {title!r} has no template; give a JSON object with what is to be filled in")
    if kind == "k_line" and not any(bands.values()):
        raise InvalidInput(f"k_line {title!r} has none of {', '.join(BANDS)}; give at least one")
    content = {
        **bands,
        **{name: values[name] for name in ("domain", "template", "trigger")},
        **{name: values[name] or [] for name in ("steps", "censors", "tags")},
        **{
            name: list(dict.fromkeys(map(str, values[name] or [])))
            for name in ("related_procedures", "related_decision_ids")
        },
        "compressed": values["hint"] or hint_of(title, bands=bands, steps=steps, template=values["template"]),
    }
    return NewProcedure(title, kind, content, origin_of(details, rights), values["idempotency_key"])


def text_to_embed(name: str, content: Mapping[str, Any]) -> str:
    """Return the text that is embedded for a procedure, from its name and its columns."""
    lines = [content["domain"], *(line for band in BANDS for line in content[band])]
    steps = [step_name(step) for step in content["steps"]]
    return "\n".join(filter(None, (name, content["trigger"], *lines, *steps)))


# --- reading and writing ---


def store_or_revise(
    connection: Connection, agent: Agent, new: NewProcedure, vector: Vectors, *, cause: Cause
) -> Procedure:
    """Store a procedure, or revise the one that has its name, which ends a review.

    Its counts stay. Trust and pin only rise, as when a fact is confirmed. Raises `NotFound` for a related procedure
    that is not there, `Refused` when the name is taken by a procedure that this one may not replace, and `Forbidden`
    when the caller may not change that one.
    """
    check_procedures(connection, agent.id, new.content["related_procedures"], ", named in related_procedures")
    row = connection.execute(BLOCKS["find_named"], {"agent_id": agent.id, "name": new.name}).fetchone()
    space = {"embedding": Vector(vector).to_text(), "embedding_space_id": agent.embedder.space.id}
    if row is None:
        values = {"name": new.name, "kind": new.kind, **new.content, **new.origin.row(now=cause.effective_at)}
        return add_memory(connection, agent.id, PROCEDURE, {**values, **space}, cause=cause)
    known = lock_memory(connection, agent.id, PROCEDURE, row[0])
    before = {
        name: list(map(str, value)) if name.startswith("related_") else value
        for name in new.content
        for value in [getattr(known, name)]
    }
    changed = {name: value for name, value in new.content.items() if value != before[name]}
    check_revisable(known, new, is_changed=bool(changed))
    values = {**changed, **space} if changed else {}
    if changed and known.state == "review":
        values |= {"state": "active", "review_reason": None}
    if new.origin.trust > known.trust:
        values["trust"] = new.origin.trust
    if new.origin.is_pinned and not known.is_pinned:
        values["is_pinned"] = True
    if not values:
        return known
    agent.rights.check_may_change(known)
    revised = Cause("agent", "revised", "told again under the same name", effective_at=cause.effective_at)
    return change_memory(connection, agent.id, version_of(PROCEDURE, known), values, cause=revised)


def check_revisable(known: Procedure, new: NewProcedure, *, is_changed: bool) -> None:
    """Raise `Refused` when the name is taken by a procedure that this one may not replace."""
    taken = f"the name {new.name!r} is taken by procedure {known.id}"
    origin = new.origin
    if (known.scope, known.user_id, known.project_id) != (origin.scope, origin.user_id, origin.project_id):
        raise Refused(f"{taken}, which is for others to see; store this one under another name")
    if known.kind != new.kind:
        raise Refused(f"{taken}, a {known.kind}; store this {new.kind} under another name")
    if known.trust > origin.trust and is_changed:
        raise Refused(f"{taken}, which is trusted {known.trust}, this one {origin.trust}; store it under another name")


def find(connection: Connection, agent_id: str, name_or_id: str) -> UUID:
    """Return the id of the procedure with this id, name or slug.

    Raises `NotFound` when there is none, and `InvalidInput` when a slug fits several.
    """
    parameters = {"agent_id": agent_id, "asked": name_or_id}
    rows: list[tuple[UUID, str]] = connection.execute(BLOCKS["find_procedures"], parameters).fetchall()
    if not rows:
        raise NotFound(f"agent {agent_id!r} has no procedure {name_or_id!r}; see `Heart.list_procedures`")
    if len(rows) > 1:
        names = ", ".join(repr(name) for _, name in rows)
        raise InvalidInput(f"{name_or_id!r} fits {len(rows)} procedures: {names}; name one of them exactly")
    return rows[0][0]


def note_in_episode(
    connection: Connection, agent_id: str, procedure_id: UUID, session_id: str, *, at: datetime
) -> UUID | None:
    """Add a procedure to those of the session's open episode, and return the episode's id; None when none is open."""
    current = current_episode(connection, agent_id, None if session_id == DEFAULT_SESSION else session_id)
    if current is None:
        return None
    episode = lock_memory(connection, agent_id, EPISODE, current.id)
    if episode.state == "open" and procedure_id not in episode.procedures_activated:
        values = {"procedures_activated": [str(each) for each in (*episode.procedures_activated, procedure_id)]}
        cause = Cause("agent", "linked", "a procedure was activated in it", effective_at=at)
        change_memory(connection, agent_id, version_of(EPISODE, episode), values, cause=cause)
    return episode.id


def record_outcome(
    connection: Connection, agent_id: str, procedure_id: UUID, *, is_success: bool, cause: Cause
) -> Procedure:
    """Add one to the successes or failures of a procedure; raise `NotFound` for an unknown one."""
    found = lock_memory(connection, agent_id, PROCEDURE, procedure_id)
    counter = "success_count" if is_success else "failure_count"
    values = {counter: getattr(found, counter) + 1}
    return change_memory(connection, agent_id, version_of(PROCEDURE, found), values, cause=cause)


def flag_for_review(
    connection: Connection,
    agent_id: str,
    *,
    procedure_ids: Sequence[UUID] = (),
    domain: str | None = None,
    reason: str,
    cause: Cause,
) -> int:
    """Put the active procedures named, and those of `domain`, under review; return how many that were."""
    parameters = {"agent_id": agent_id, "ids": list(procedure_ids), "domain": domain}
    ids = [row[0] for row in connection.execute(BLOCKS["reviewable_procedures"], parameters)]
    found = [each for each in lock_memories(connection, agent_id, PROCEDURE, ids) if each.state == "active"]
    for procedure in found:
        values = {"state": "review", "review_reason": reason}
        change_memory(connection, agent_id, version_of(PROCEDURE, procedure), values, cause=cause)
    return len(found)
