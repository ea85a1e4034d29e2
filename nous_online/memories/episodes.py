"""Episodes: started, updated, closed, or recorded when they are over; each version with its event."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Unpack
from uuid import UUID, uuid4

from pgvector import Vector
from psycopg import Connection
from psycopg.types.json import Jsonb

from nous_online.core.deadline import Deadline
from nous_online.core.details import (
    BeginningDetails,
    ChangeDetails,
    EndDetails,
    EpisodeText,
    IdempotencyKey,
    RecordDetails,
    StartDetails,
    Title,
)
from nous_online.core.domain import EPISODE, Artifact, DecisionId, Episode, Outcome, Scope, SourceKind
from nous_online.core.errors import Conflict, InvalidInput, NotFound, NousError, Refused
from nous_online.core.fields import check_known, checked_as, checked_details, rows_of
from nous_online.core.policy import DEFAULT_SESSION, MAX_DETAIL_BYTES
from nous_online.core.rights import UNLIMITED, Rights
from nous_online.core.validation import checked_id, checked_moment, checked_said, checked_text
from nous_online.database.changes import Cause, Growth, add_memory, change_memory, get_memory, lock_memory, version_of
from nous_online.database.statements import fetch, statements
from nous_online.language.minilm import Vectors
from nous_online.memories import store
from nous_online.memories.agent import Agent, Verbs, emit, hide_credentials, with_session_frame
from nous_online.memories.status import check_quota, size_of
from nous_online.memories.store import KeyedCall, KeyedRequest, imported_id

SQL = statements("nous_online.memories", "episodes.sql")
LONGEST = timedelta(days=24_855)
"""An episode's duration is a column of seconds, in 32 bits."""
EMBEDDED_CHARACTERS = 2000  # of an episode without summary; the local embedder reads no further anyway
NOT_IMPORTED = ("decision_ids", "procedures_activated", "idempotency_key")
EPISODE_FIELDS = ("detail", *(name for name in rows_of(RecordDetails) if name not in NOT_IMPORTED))
LISTS = ("participants", "tags", "lessons_learned", "decision_ids", "procedures_activated")
SCALARS = ("title", "summary", "outcome", "surprise_level", "frame_used", "encoded_censors")
TEXTS = ("title", "summary", "append", "lessons_learned")
"""The fields that are searched for credentials."""


@dataclass(frozen=True)
class Beginning:
    """The checked fields that are set when an episode begins."""

    session_id: str | None
    started_at: datetime
    source: str | None
    source_kind: SourceKind
    trust: int
    is_pinned: bool
    scope: Scope
    user_id: str | None
    project_id: str | None
    idempotency_key: str | None


@dataclass(frozen=True)
class EpisodeChange:
    """A checked change of an episode; None and empty values leave a field as it is."""

    append: str | None = None
    title: str | None = None
    summary: str | None = None
    outcome: Outcome | None = None
    surprise_level: float | None = None
    frame_used: str | None = None
    encoded_censors: list[str] | None = None
    participants: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    lessons_learned: tuple[str, ...] = ()
    decision_ids: tuple[DecisionId, ...] = ()
    procedures_activated: tuple[UUID, ...] = ()
    artifacts: tuple[Artifact, ...] = ()


@dataclass(frozen=True)
class NewEpisode:
    """A closed episode, checked and ready to be stored."""

    detail: str
    change: EpisodeChange
    beginning: Beginning
    ended_at: datetime

    @property
    def idempotency_key(self) -> str | None:
        """The key it is stored under, once."""
        return self.beginning.idempotency_key

    @property
    def user_id(self) -> str | None:
        """The user it was with, if it was with one."""
        return self.beginning.user_id

    @property
    def project_id(self) -> str | None:
        """The project it belongs to, if it belongs to one."""
        return self.beginning.project_id


@dataclass(frozen=True)
class FullText:
    """The most detailed text of an episode that still exists, and where it is stored."""

    episode_id: UUID
    title: str | None
    text: str
    """Empty for an episode without any text."""
    level: Literal["detail", "summary", "compressed", "title"]
    """Which text it is: `detail` unless there never was one or it has been purged."""
    is_cold: bool
    """Whether it is in cold storage: the episode itself shows a shorter text."""
    purge_after: datetime | None
    """When a purge may delete it; None where no date is set."""


class Unwritten(NousError):
    """The writer failed at this episode; unlike an outage, that counts towards setting the episode aside."""


class EpisodeVerbs(Verbs):
    """What an agent does with episodes."""

    def start_episode(
        self, title: Title = None, *, deadline_s: float | None = None, **details: Unpack[StartDetails]
    ) -> Episode:
        """Begin an episode, in state `open` and tier `raw`.

        An open episode of the same session stays open: the one begun last is the current one. Raises `InvalidInput`,
        `NotFound` for an unknown procedure, and `Conflict` when the key was used for another title.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        check_known(details, StartDetails)
        framed = with_session_frame(agent, details, StartDetails, deadline)
        change = checked_change({**framed, "title": title}, agent.rights)
        beginning = checked_beginning(framed, now=datetime.now(UTC), rights=agent.rights)
        check_quota(agent, deadline, count=1, size=size_of(change.append))
        call = KeyedCall.of(
            "start_episode", beginning.idempotency_key, request_fields(beginning, change, is_dated=False)
        )
        cause = Cause("agent", "started", "the episode began", effective_at=beginning.started_at)
        values = {**beginning_values(beginning), **changed_values(change, None), "state": "open"}
        with agent.transaction(deadline) as connection:
            return once(connection, agent.id, call, lambda: insert_episode(connection, agent.id, values, change, cause))

    def update_episode(
        self,
        episode_id: UUID | str,
        *,
        idempotency_key: IdempotencyKey = None,
        deadline_s: float | None = None,
        **details: Unpack[ChangeDetails],
    ) -> Episode:
        """Update an episode: `append` adds a line to its detail, lists grow, single values are replaced.

        Equal values change nothing. An outcome set after the episode was completed is stored, but has no further
        effect: no procedure is counted and no censor suggested. Raises `NotFound`, `InvalidInput`, `Refused` for a line
        appended to an episode that is over, and `Conflict` when the key was used for other arguments.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        check_known(details, ChangeDetails)
        change = checked_change(details, agent.rights)
        key = checked_as(IdempotencyKey, "idempotency_key", idempotency_key)
        return update(agent, checked_id("episode_id", episode_id), change, key, deadline)

    def close_episode(
        self, episode_id: UUID | str, *, deadline_s: float | None = None, **details: Unpack[EndDetails]
    ) -> Episode:
        """End an episode; within 30 s a worker adds a title, a summary and up to twelve facts, of a chat 24.

        An episode that is over is returned unchanged; use `update_episode` to add to it. Raises `NotFound`, `Conflict`
        when it was closed with another outcome, and `InvalidInput` for an end before the beginning.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        check_known(details, EndDetails)
        change = checked_change(details, agent.rights)
        end = checked_moment("ended_at", details.get("ended_at"))
        known = get_episode(agent, checked_id("episode_id", episode_id), deadline)
        if known.state != "open":
            if change.outcome not in {None, known.outcome}:
                message = f"episode {known.id} was closed as {known.outcome!r}; update_episode(outcome=…) changes that"
                raise Conflict(message)
            return known
        agent.rights.check_may_change(known)
        ended_at = checked_end(end, started_at=known.started_at, now=datetime.now(UTC))
        vector = vector_of(agent, known, change, deadline)
        with agent.space_transaction(deadline) as connection:
            closed = close(connection, agent, known.id, change, ended_at=ended_at, vector=vector)
        agent.awake.set()
        return closed

    def record_episode(
        self, detail: EpisodeText = None, *, deadline_s: float | None = None, **details: Unpack[RecordDetails]
    ) -> Episode:
        """Store an episode that is over, in one call; it is completed as a closed one is.

        Without dates it happened now; with one of the two it began and ended at that moment. Raises `InvalidInput`,
        `NotFound` for an unknown procedure, and `Conflict` when the key was used for another content.
        """
        agent, deadline = self.agent, self.agent.deadline(deadline_s)
        check_known(details, RecordDetails)
        framed = with_session_frame(agent, details, RecordDetails, deadline)
        change = checked_change({**framed, "append": detail}, agent.rights)
        if not any(value for name, value in vars(change).items() if name not in ("frame_used", "encoded_censors")):
            raise InvalidInput("nothing to record: tell the detail, a title or a summary of what happened")
        beginning = checked_beginning(framed, now=datetime.now(UTC), rights=agent.rights)
        end = checked_moment("ended_at", details.get("ended_at") or details.get("started_at"))
        arguments = {**request_fields(beginning, change, is_dated=end is not None), "ended_at": end}
        call = KeyedCall.of("record_episode", beginning.idempotency_key, arguments)
        if (known := earlier_episode(agent, call, deadline)) is not None:
            return known
        check_quota(agent, deadline, count=1, size=size_of(change.append))
        ended_at = checked_end(end, started_at=beginning.started_at, now=datetime.now(UTC))
        vector = vector_of(agent, None, change, deadline)
        with agent.space_transaction(deadline) as connection:
            episode = once(
                connection,
                agent.id,
                call,
                lambda: record(connection, agent, beginning, change, end=ended_at, vector=vector),
            )
        agent.awake.set()
        return episode

    def retry_episode(self, episode_id: UUID | str, *, deadline_s: float | None = None) -> Episode:
        """Queue the completion of a closed episode again that was set aside after too many failures.

        Raises `NotFound`, and `Refused` for one that is complete, open or archived.
        """
        known_id = checked_id("episode_id", episode_id)
        with self._transaction(deadline_s) as connection:
            store.lock_agent(connection, self.agent.id)
            episode = lock_memory(connection, self.agent.id, EPISODE, known_id)
            if episode.state != "closed" or episode.completed_at is not None:
                found = "complete" if episode.completed_at else episode.state
                raise Refused(f"episode {known_id} is {found}; only a closed one that is not complete is tried again")
            if episode.completion_note is not None:
                episode = note_completion(connection, self.agent.id, episode, None, "queued", "it is to be tried again")
            queue_again(connection, self.agent.id, known_id)
        self.agent.awake.set()
        return episode

    def get_episode(self, episode_id: UUID | str, *, deadline_s: float | None = None) -> Episode:
        """Return one episode in whatever state it is; raise `NotFound` when this agent has none of that id."""
        return self._get(EPISODE, episode_id, deadline_s)

    def full_text(self, episode_id: UUID | str, *, deadline_s: float | None = None) -> FullText:
        """Return the most detailed text of an episode that still exists, also for one that a night condensed.

        Recall shows the short text of a condensed episode's tier; this reads cold storage, and changes nothing. Raises
        `NotFound`.
        """
        wanted = checked_id("episode_id", episode_id)
        with self._transaction(deadline_s) as connection:
            return full_text(connection, self.agent.id, wanted)

    def episode_artifacts(self, episode_id: UUID | str, *, deadline_s: float | None = None) -> list[Artifact]:
        """Return the commits, pull requests, decision records and files of an episode; raise `NotFound` if unknown."""
        wanted = checked_id("episode_id", episode_id)
        with self._transaction(deadline_s) as connection:
            get_memory(connection, self.agent.id, EPISODE, wanted)
            return fetch(connection, Artifact, SQL["artifacts_of"], {"agent_id": self.agent.id, "episode_id": wanted})


# --- checks, and columns; pure ---


def checked_change(details: Mapping[str, Any], rights: Rights = UNLIMITED) -> EpisodeChange:
    """Return a checked change of an episode; raise `InvalidInput` for the first wrong field."""
    values, _ = hide_credentials(checked_details(ChangeDetails, details), TEXTS, rights)
    lists: dict[str, Any] = {name: tuple(values.pop(name) or ()) for name in (*LISTS, "artifacts")}
    frame, censors = values.pop("frame"), values.pop("active_censors")
    return EpisodeChange(frame_used=frame, encoded_censors=censors, **values, **lists)


def checked_beginning(details: Mapping[str, Any], *, now: datetime, rights: Rights = UNLIMITED) -> Beginning:
    """Return the checked start and reach of an episode; raise `InvalidInput`, and `Forbidden` beyond the rights."""
    values = checked_details(BeginningDetails, details, now=now)
    ended_at = checked_said("ended_at", details.get("ended_at"), now=now)
    values |= {**rights.checked_claims(values), "started_at": values["started_at"] or ended_at or now}
    return Beginning(**values)


def checked_end(value: object, *, started_at: datetime, now: datetime) -> datetime:
    """Return the checked end of an episode, by default `now`; raise `InvalidInput` when it is before the beginning."""
    ended_at = checked_said("ended_at", value, now=now) or max(now, started_at)
    if ended_at < started_at:
        raise InvalidInput(f"ended_at {ended_at.isoformat()} lies before started_at {started_at.isoformat()}")
    return ended_at


def check_length(started_at: datetime, ended_at: datetime) -> None:
    """Raise `Conflict` where an episode would last longer than its duration column can hold."""
    if ended_at - started_at > LONGEST:
        message = (
            f"{started_at.isoformat()} to {ended_at.isoformat()} is more than the {LONGEST.days:,} days an episode "
            "may last; mend started_at or ended_at"
        )
        raise Conflict(message)


def changed_values(change: EpisodeChange, known: Episode | None) -> dict[str, Any]:
    """Return the columns that a change sets and that differ from the known episode.

    Raises `Refused` for a line appended to an episode that is over (all other fields may still change), and
    `InvalidInput` where its detail gets too long.
    """
    values: dict[str, Any] = {}
    if change.append is not None:
        if known is not None and known.state != "open":
            raise Refused(f"episode {known.id} is {known.state}, so its detail no longer grows; start another episode")
        grown = f"{known.detail}\n{change.append}" if known and known.detail is not None else change.append
        values["detail"] = checked_text("detail", grown, max_bytes=MAX_DETAIL_BYTES)
    for name in SCALARS:
        value = getattr(change, name)
        if value is not None and value != getattr(known, name, None):
            values[name] = value
    for name in LISTS:
        before = list[Any](getattr(known, name, ()))
        after = union(before, getattr(change, name))
        if after != before:
            values[name] = [str(entry) for entry in after]
    return values


def union(before: Iterable[Any], more: Iterable[Any]) -> list[Any]:
    """Return the union of two lists without duplicates, `before` first."""
    return list(dict.fromkeys([*before, *more]))


def text_to_embed(title: str | None, summary: str | None, detail: str | None) -> str:
    """Return the text that is embedded for an episode: title and summary, or the beginning of the detail."""
    return "\n".join(filter(None, (title, summary or (detail or "")[:EMBEDDED_CHARACTERS])))


def beginning_values(beginning: Beginning) -> dict[str, Any]:
    """Return the columns that are set when an episode begins."""
    values = {name: value for name, value in vars(beginning).items() if name != "idempotency_key"}
    return {**values, "started_at": beginning.started_at.isoformat()}


# --- retries ---


def earlier_episode(agent: Agent, call: KeyedCall, deadline: Deadline) -> Episode | None:
    """Return the episode of an earlier call with this key; raise `Conflict` if its arguments differed."""
    if call.key is None:
        return None
    with agent.transaction(deadline) as connection:
        request = store.earlier_request(connection, agent.id, call)
        return None if request is None else get_memory(connection, agent.id, EPISODE, request.memory_id)


def once(connection: Connection, agent_id: str, call: KeyedCall, act: Callable[[], Episode]) -> Episode:
    """Return the episode that `act` stores, or that of an earlier call with this key."""
    return store.act_once(
        connection, agent_id, call, read=lambda known_id: get_memory(connection, agent_id, EPISODE, known_id), act=act
    )


def request_fields(beginning: Beginning, change: EpisodeChange, *, is_dated: bool) -> dict[str, Any]:
    """Return the arguments of a new episode for the hash of a retry, with `started_at` only if the caller gave it."""
    left_out = {"idempotency_key"} if is_dated else {"idempotency_key", "started_at"}
    arguments = {**asdict(beginning), **asdict(change)}
    return {name: value for name, value in arguments.items() if name not in left_out}


# --- reading and writing ---


def get_episode(agent: Agent, episode_id: UUID, deadline: Deadline) -> Episode:
    """Return one episode; raise `NotFound` when this agent has none of that id."""
    with agent.transaction(deadline) as connection:
        return get_memory(connection, agent.id, EPISODE, episode_id)


def full_text(connection: Connection, agent_id: str, episode_id: UUID) -> FullText:
    """Return the most detailed text of an episode, condensed or not; raise `NotFound` for an unknown episode."""
    for found in fetch(connection, FullText, SQL["full_text"], {"agent_id": agent_id, "id": episode_id}):
        return found
    raise NotFound(f"agent {agent_id!r} has no episode {episode_id}")


def current_episode(connection: Connection, agent_id: str, session_id: str | None) -> Episode | None:
    """Return the open episode begun last in a session; None when there is none.

    Without a session it is one of the default session, or, where that has none, of any.
    """
    parameters = {"agent_id": agent_id, "session_id": session_id, "default_session": DEFAULT_SESSION}
    row = connection.execute(SQL["current_episode"], parameters).fetchone()
    return get_memory(connection, agent_id, EPISODE, row[0]) if row else None


def with_episode_trust(
    agent: Agent, entries: Sequence[Mapping[str, Any]], name: str, deadline: Deadline
) -> list[dict[str, Any]]:
    """Return details of memories with the trust of their source episode, the field `name`, unless they have their own.

    Raises `NotFound` for an unknown episode, and `InvalidInput` where the source kind is `episode` and there is none.
    """
    for each in entries:
        if each.get("source_kind") == "episode" and each.get(name) is None:
            raise InvalidInput(f"source_kind 'episode' needs {name}, the episode it was drawn from")
    ids = [None if each.get(name) is None else checked_id(name, each[name]) for each in entries]
    episodes: dict[UUID, Episode] = {}
    if any(ids):
        with agent.transaction(deadline) as connection:
            episodes = {each: get_memory(connection, agent.id, EPISODE, each) for each in set(ids) if each is not None}
    return [
        {**each, "trust": min(episodes[episode_id].trust, agent.rights.max_trust)}
        if episode_id is not None and each.get("source_kind") == "episode" and each.get("trust") is None
        else dict(each)
        for episode_id, each in zip(ids, entries, strict=True)
    ]


def update(agent: Agent, episode_id: UUID, change: EpisodeChange, key: str | None, deadline: Deadline) -> Episode:
    """Add to an episode; one that is over is embedded again when its title or summary changes.

    Raises `Forbidden` for an episode trusted more than the caller: facts drawn from it get its trust.
    """
    call = KeyedCall.of("update_episode", key, {**asdict(change), "episode_id": episode_id})
    if (earlier := earlier_episode(agent, call, deadline)) is not None:
        return earlier
    agent.rights.check_may_change(get_episode(agent, episode_id, deadline))
    check_quota(agent, deadline, count=0, size=size_of(change.append))
    vector = None
    if change.title or change.summary:
        known = get_episode(agent, episode_id, deadline)
        vector = None if known.state == "open" else vector_of(agent, known, change, deadline)
    at = datetime.now(UTC)
    with agent.space_transaction(deadline) as connection:
        return once(
            connection, agent.id, call, lambda: amend(connection, agent, episode_id, change, at=at, vector=vector)
        )


def vector_of(agent: Agent, known: Episode | None, change: EpisodeChange, deadline: Deadline) -> Vectors | None:
    """Return the vector of an episode as a change would leave it; None while there is nothing to embed."""
    after = changed_values(change, known)
    title, summary, detail = (after.get(name, getattr(known, name, None)) for name in ("title", "summary", "detail"))
    text = text_to_embed(title, summary, detail)
    return agent.embed([text], deadline)[0] if text else None


def record(
    connection: Connection,
    agent: Agent,
    beginning: Beginning,
    change: EpisodeChange,
    *,
    end: datetime,
    vector: Vectors | None,
) -> Episode:
    """Store an episode that is over, and queue its completion; set `agent.awake` once the transaction has ended."""
    check_length(beginning.started_at, end)
    cause = Cause("agent", "recorded", "told when it was over", effective_at=end)
    values = {**beginning_values(beginning), **changed_values(change, None), **vector_values(agent, vector)}
    values |= {"state": "closed", "ended_at": end.isoformat()}
    episode = insert_episode(connection, agent.id, values, change, cause)
    queue_completion(connection, agent.id, episode.id)
    return episode


def insert_episode(
    connection: Connection, agent_id: str, values: Mapping[str, Any], change: EpisodeChange, cause: Cause
) -> Episode:
    """Store a new episode with its artifacts; raise `NotFound` for an unknown procedure."""
    check_procedures(connection, agent_id, change.procedures_activated)
    episode = add_memory(connection, agent_id, EPISODE, values, cause=cause)
    store_artifacts(connection, agent_id, {episode.id: change.artifacts})
    return episode


def amend(
    connection: Connection,
    agent: Agent,
    episode_id: UUID,
    change: EpisodeChange,
    *,
    at: datetime,
    vector: Vectors | None = None,
) -> Episode:
    """Apply a change to an episode, if it changes anything. Raises `NotFound`, `Refused` and `InvalidInput`."""
    known = lock_memory(connection, agent.id, EPISODE, episode_id)
    values = changed_values(change, known)
    store_artifacts(connection, agent.id, {episode_id: change.artifacts})
    if not values:
        return known
    check_procedures(connection, agent.id, change.procedures_activated)
    cause = Cause("agent", "updated", f"told more: {', '.join(sorted(values))}", effective_at=at)
    return change_episode(connection, agent.id, known, values | vector_values(agent, vector), cause)


def close(
    connection: Connection,
    agent: Agent,
    episode_id: UUID,
    change: EpisodeChange,
    *,
    ended_at: datetime,
    vector: Vectors | None = None,
) -> Episode:
    """Close an episode and queue its completion; one that is over already is returned as it is.

    Set `agent.awake` once the transaction has ended. Raises `NotFound`, `InvalidInput`, and `Conflict` where it would
    have lasted too long.
    """
    known = lock_memory(connection, agent.id, EPISODE, episode_id)
    if known.state != "open":
        return known
    check_procedures(connection, agent.id, change.procedures_activated)
    end = max(ended_at, known.started_at)  # the clocks of two machines may differ
    check_length(known.started_at, end)
    values = {**changed_values(change, known), **vector_values(agent, vector)}
    values |= {"state": "closed", "ended_at": end.isoformat()}
    cause = Cause("agent", "closed", "the episode ended", effective_at=end)
    episode = change_episode(connection, agent.id, known, values, cause)
    store_artifacts(connection, agent.id, {episode_id: change.artifacts})
    queue_completion(connection, agent.id, episode_id)
    return episode


def change_episode(
    connection: Connection, agent_id: str, known: Episode, values: Mapping[str, Any], cause: Cause
) -> Episode:
    """Set columns of an episode; the event of a detail that grew keeps only the appended text."""
    before, after = known.detail, values.get("detail")
    growth = Growth("detail", len(before), after[len(before) :]) if before and after else None
    return change_memory(connection, agent_id, version_of(EPISODE, known), values, cause=cause, noted=growth)


def vector_values(agent: Agent, vector: Vectors | None) -> dict[str, Any]:
    """Return the columns of a vector; none where there is nothing to embed yet."""
    if vector is None:
        return {}
    return {"embedding": Vector(vector).to_text(), "embedding_space_id": agent.embedder.space.id}


def check_procedures(
    connection: Connection, agent_id: str, ids: Sequence[UUID], hint: str = "; store it before an episode names it"
) -> None:
    """Raise `NotFound`, which ends in `hint`, when one of these ids is no procedure of this agent."""
    if ids:
        for (absent,) in connection.execute(SQL["absent_procedures"], {"agent_id": agent_id, "ids": list(ids)}):
            raise NotFound(f"agent {agent_id!r} has no procedure {absent}{hint}")


def store_artifacts(connection: Connection, agent_id: str, named: Mapping[UUID, Sequence[Artifact]]) -> None:
    """Store the artifacts of episodes, by episode id; those stored already stay."""
    rows = [{"agent_id": agent_id, "episode_id": each, **vars(one)} for each in named for one in named[each]]
    with connection.cursor() as cursor:
        cursor.executemany(SQL["store_artifact"], rows)


def queue_completion(connection: Connection, agent_id: str, episode_id: UUID) -> None:
    """Insert an episode into the queue of completions, and emit `episode_closed`."""
    connection.execute(SQL["queue_completion"], {"agent_id": agent_id, "episode_id": episode_id})
    emit(connection, agent_id, "episode_closed", memory_id=episode_id, payload={"episode_id": str(episode_id)})


def queue_again(connection: Connection, agent_id: str, episode_id: UUID) -> None:
    """Queue the completion of an episode at once, as if it had never been tried."""
    connection.execute(SQL["queue_again"], {"agent_id": agent_id, "episode_id": episode_id})


def note_completion(
    connection: Connection, agent_id: str, episode: Episode, note: str | None, action: str, reason: str
) -> Episode:
    """Write a note on the completion of an episode, and leave the event that says so."""
    cause = Cause("agent", action, reason, effective_at=episode.ended_at or episode.started_at)
    return change_memory(connection, agent_id, version_of(EPISODE, episode), {"completion_note": note}, cause=cause)


# --- imports ---


def new_episode(detail: object, details: RecordDetails, *, now: datetime, rights: Rights = UNLIMITED) -> NewEpisode:
    """Return a checked episode that is over; raise `InvalidInput` for the first wrong argument.

    Without dates it happened at `now`; with one of the two it began and ended at that moment.
    """
    began, ended = (checked_said(name, details.get(name), now=now) for name in ("started_at", "ended_at"))
    started_at = began or ended or now
    ended_at = checked_end(ended or started_at, started_at=started_at, now=now)
    check_length(started_at, ended_at)
    checked, _ = hide_credentials(
        {"detail": checked_text("detail", detail, max_bytes=MAX_DETAIL_BYTES)}, ["detail"], rights
    )
    beginning = replace(checked_beginning(details, now=now, rights=rights), started_at=started_at)
    return NewEpisode(checked["detail"], checked_change(details, rights), beginning, ended_at)


def store_deferred(agent: Agent, news: Sequence[NewEpisode], deadline: Deadline, *, source: str | None = None) -> int:
    """Store closed episodes and queue their completion, all or none; return how many were new.

    Known idempotency keys are skipped; `source` names an import. Completions fall due in the order in which the
    episodes ended, so that facts are learned in the order they happened.
    """
    check_quota(agent, deadline, count=len(news), size=sum(size_of(new.detail) for new in news))
    texts = [text_to_embed(new.change.title, new.change.summary, new.detail) for new in news]
    vectors = agent.embed(texts, deadline)
    with agent.space_transaction(deadline) as connection:
        store.lock_agent(connection, agent.id)
        known = store.find_requests(connection, agent.id, [new.idempotency_key for new in news if new.idempotency_key])
        fresh = [
            (episode_row(agent, new, vector), new)
            for new, vector in zip(news, vectors, strict=True)
            if new.idempotency_key not in known
        ]
        with connection.cursor() as cursor:
            cursor.executemany(SQL["store_episode"], [row for row, _ in fresh])
        store_artifacts(connection, agent.id, {row["id"]: new.change.artifacts for row, new in fresh})
        requests = [
            KeyedRequest(new.idempotency_key, content_hash(new), row["id"], "stored")
            for row, new in fresh
            if new.idempotency_key
        ]
        store.store_requests(connection, agent.id, store.import_verb(source), requests)
    return len(fresh)


def episode_row(agent: Agent, new: NewEpisode, vector: Vectors) -> dict[str, Any]:
    key, change = new.idempotency_key, new.change
    return {
        **vars(new.beginning),
        **vars(change),
        **{name: list(getattr(change, name)) for name in ("participants", "tags", "lessons_learned")},
        "detail": new.detail,
        "ended_at": new.ended_at,
        "id": imported_id(agent.id, key) if key else uuid4(),
        "agent_id": agent.id,
        "encoded_censors": None if change.encoded_censors is None else Jsonb(change.encoded_censors),
        "embedding": Vector(vector),
        "space_id": agent.embedder.space.id,
        "actor": "import",
        "reason": "imported as it ended",
    }


def content_hash(new: NewEpisode) -> str:
    """Return the SHA-256 of title and detail; of a conversation without the title, which may still change."""
    title = None if new.beginning.session_id else new.change.title
    return hashlib.sha256(f"{title or ''}\n{new.detail}".encode()).hexdigest()


def stored_until(connection: Connection, agent_id: str, key: str) -> datetime | None:
    """Return the end of the episode stored under an idempotency key; None where there is none."""
    row = connection.execute(SQL["stored_until"], {"agent_id": agent_id, "key": key}).fetchone()
    return row[0] if row else None
