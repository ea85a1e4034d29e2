"""One agent: its id, database, models and rights, what all its verbs share, and the events they emit."""

from __future__ import annotations

import inspect
import logging
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, cast
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from nous_online.core.deadline import Deadline, within
from nous_online.core.domain import EmbeddingSpace, Kind, M
from nous_online.core.errors import InvalidInput, Moved, NousError, Refused, Unavailable
from nous_online.core.fields import describe
from nous_online.core.policy import LearnPolicy
from nous_online.core.rights import UNLIMITED, Rights
from nous_online.core.validation import ACTIVE_CENSORS, FRAME, checked_id, checked_optional, told_as
from nous_online.database.changes import get_memory
from nous_online.database.connection import Database, register_space
from nous_online.database.statements import statements
from nous_online.language.embedding import Embedder, checked_vectors
from nous_online.language.minilm import Vectors
from nous_online.language.pairs.judging import Judge, Judgement, Pair
from nous_online.language.writing.credentials import MARK, mask_credentials
from nous_online.memories.store import query_space, read_space, register_agent, require_space

if TYPE_CHECKING:
    from nous_online.language.writing.writer import Writer

logger = logging.getLogger(__name__)
SESSIONS = statements("nous_online.memories", "sessions.sql")
EVENTS = statements("nous_online.memories", "events.sql")
EVERYTHING = "*"
PROBE = "memory"
"""What an embedder is asked for before a new agent is stored."""
EventName = Literal[
    "fact_learned",
    "episode_closed",
    "episode_completed",
    "procedure_loaded",
    "censor_activated",
    "decision_recorded",
    "decision_failed",
    "guardrail_triggered",
    "calibration_drift",
    "event_skipped",
]


class WakeUpEvent(threading.Event):
    """Set by verbs that leave work behind; `on_ring` is called each time, to start the thread that does the work."""

    def __init__(self) -> None:
        super().__init__()
        self.on_ring: Callable[[], None] | None = None

    def set(self) -> None:
        """Wake the threads that wait, and call `on_ring`."""
        super().set()
        if self.on_ring is not None:
            self.on_ring()


@dataclass(frozen=True)
class Agent:
    """Everything a verb needs besides its arguments."""

    id: str
    database: Database
    embedder: Embedder
    judge: Judge
    writer: Writer
    policy: LearnPolicy
    deadline_s: float
    rights: Rights = UNLIMITED
    """What the caller may claim: trust, pins, other users."""
    at_work: threading.RLock = field(default_factory=threading.RLock, compare=False)
    """Held by the thread of this process that completes episodes and delivers events, so that only one does so."""
    awake: WakeUpEvent = field(default_factory=WakeUpEvent, compare=False)
    """Set by verbs that leave work behind: a closed episode, an event to deliver."""
    subscriptions: list[Subscription] = field(default_factory=list, compare=False)
    """The subscriptions made in this process."""
    unstored: threading.Event = field(default_factory=threading.Event, compare=False)
    """Set while the agent is new: the transaction of its first call stores it, so that what is refused begins none."""
    embedder_of: Callable[[EmbeddingSpace], Embedder | None] = field(default=lambda _space: None, compare=False)
    """Returns the embedder of the space the agent was moved to; None where this process has none for it."""

    def deadline(self, seconds: float | None) -> Deadline:
        """Start the clock of one call."""
        return Deadline(self.deadline_s if seconds is None else seconds)

    @contextmanager
    def transaction(
        self, deadline: Deadline, *, is_pipelined: bool = False, keeps_space: bool = False
    ) -> Generator[Connection]:
        """Yield a connection that sees this agent only."""
        modes = {"is_pipelined": is_pipelined, "keeps_space": keeps_space}
        with self.database.transaction(self.id, timeout_s=deadline.remaining(), **modes) as connection:
            if self.unstored.is_set():
                register_agent(connection, self.id, self.embedder.space.id)
            yield connection
        self.unstored.clear()

    @contextmanager
    def space_transaction(self, deadline: Deadline) -> Generator[Connection]:
        """Yield a connection for storing vectors: the agent can't be moved to another space before it ends.

        Raises `Moved` when its memories live in another space than its embedder's.
        """
        with self.transaction(deadline, keeps_space=True) as connection:
            require_space(query_space(connection, self.id), self.id, self.embedder.space)
            yield connection

    def followed(self, moved: Moved) -> Agent:
        """Return this agent with the embedder of the space it was moved to; raise `moved` where there is none."""
        embedder = self.embedder_of(moved.space)
        if embedder is None:
            raise moved
        logger.info("agent %r was re-embedded; from now on its texts are embedded for %r", self.id, moved.space.id)
        return replace(self, embedder=embedder)

    def embed(self, texts: Sequence[str], deadline: Deadline) -> Vectors:
        """Return unit vectors of `texts`, or raise `Unavailable` when the embedder fails."""
        shape = (len(texts), self.embedder.space.dimensions)
        try:
            vectors = within(deadline.remaining(), lambda: self.embedder.embed_documents(texts), name="embedder")
        except NousError:
            raise
        except Exception as error:  # an embedder may be third-party code, which raises anything
            raise Unavailable(f"the embedder failed: {error!r}; nothing was stored, mend it and try again") from error
        return checked_vectors(vectors, shape=shape)

    def embed_if_able(self, texts: Sequence[str], deadline: Deadline) -> Vectors | None:
        """Return unit vectors of `texts`; None where the embedder fails or takes half of the remaining time."""
        try:
            return self.embed(texts, Deadline(deadline.remaining() / 2))  # the other half is for a search by words
        except Unavailable as error:
            deadline.remaining()  # raises where nothing is left
            logger.warning("the embedder failed, so only words are compared: %s", error)
            return None

    def ask(self, pairs: Sequence[Pair], deadline: Deadline) -> list[Judgement] | None:
        """Return a judgement for each pair; None where the judge fails or takes half of the remaining time."""
        try:
            answer = cast(
                "Sequence[object]", within(deadline.remaining() / 2, lambda: self.judge.judge(pairs), name="judge")
            )
            judgements = [each for each in answer if isinstance(each, Judgement)]
            if not len(answer) == len(judgements) == len(pairs):
                raise ValueError(f"{len(judgements)} of {len(answer)} answers are judgements, for {len(pairs)} pairs")
        except Exception as error:  # a judge may be third-party code, and its failure must not lose a memory
            logger.warning("the judge failed, so %d pairs are left to the night: %s", len(pairs), error)
            return None
        return judgements


def register(agent: Agent, *, must_exist: bool = False, begins_late: bool = False) -> Agent:
    """Store the agent if it is new, and return it with the embedder of the space its memories live in.

    With `begins_late` a new one is stored by its first call, unless that is refused.
    Raises `NotFound` for a new one that `must_exist`, what embedding raises for a new one whose embedder fails, and
    `InvalidInput` when that is another space than its embedder's, and this process has no embedder for it.
    """
    register_space(agent.database, agent.embedder.space)
    deadline = agent.deadline(None)
    with agent.transaction(deadline) as connection:
        query = query_space(connection, agent.id)
        found = read_space(query, agent.id) if must_exist else query.fetchone()
    if found is None:
        agent.embed([PROBE], deadline)  # else the agent would be bound to a space that nothing is ever stored in
        if begins_late:
            agent.unstored.set()
            return agent
        with agent.transaction(deadline) as connection:
            found = register_agent(connection, agent.id, agent.embedder.space.id)
    if found.id == agent.embedder.space.id:
        return agent
    embedder = agent.embedder_of(found)
    if embedder is None:
        message = (
            f"agent {agent.id!r} has its memories in embedding space {found.id!r}, the embedder offers "
            f"{agent.embedder.space.id!r}; open it with the embedder it was made with, or re-embed it: nous reembed"
        )
        raise InvalidInput(message)
    register_space(agent.database, embedder.space)
    return replace(agent, embedder=embedder)


def reading_before(agent: Agent, deadline: Deadline) -> AbstractContextManager[Connection]:
    """Yield a connection to read what the check of a call's input needs, which stores no new agent."""
    return agent.database.transaction(agent.id, timeout_s=deadline.remaining(), is_pipelined=True)


def with_session_frame(agent: Agent, details: Mapping[str, Any], known: type, deadline: Deadline) -> dict[str, Any]:
    """Return details with the frame and censors of their session, for those fields of `known` they leave out."""
    given, session_id = dict(details), checked_optional("session_id", details.get("session_id"), max_characters=100)
    parameters = [each for each in (FRAME, ACTIVE_CENSORS) if each[0] in known.__annotations__]
    missing = [each[0] for each in parameters if told_as(given, each)[1] is None]
    if session_id is None or not missing:
        return given
    key = {"agent_id": agent.id, "session_id": session_id}
    with (
        reading_before(agent, deadline) as connection,
        connection.cursor(row_factory=dict_row) as cursor,
    ):
        row = cursor.execute(SESSIONS["read_situation"], key).fetchone() or {}
    return given | {name: row[name] for name in missing if row.get(name) is not None}


def hide_credentials(details: Mapping[str, Any], names: Sequence[str], rights: Rights) -> tuple[dict[str, Any], int]:
    """Return the values with credentials in the fields `names` replaced by a mark, and how many there were.

    Raises `Refused` for any where the policy is `on_credential='refuse'`.
    """
    values, count = dict(details), 0
    if rights.on_credential == "keep":
        return values, 0
    for name in (each for each in names if each in details):
        values[name], hidden_count = hide_in_value(values.get(name))
        if hidden_count and rights.on_credential == "refuse":
            raise Refused(
                f"{name} looks as if it held a credential, which the policy on_credential='refuse' keeps out: tell it "
                f"without, or with {MARK} in its place; nothing was stored"
            )
        count += hidden_count
    return values, count


def loggable(text: str, rights: Rights) -> str:
    """Return a text as logs keep it: credentials hidden, unless the policy keeps them."""
    return text if rights.on_credential == "keep" else mask_credentials(text)[0]


def hide_in_value(value: Any) -> tuple[Any, int]:
    """Return a text, or all texts in lists and mappings, with credentials hidden, and how many there were."""
    if isinstance(value, str):
        return mask_credentials(value)
    if isinstance(value, list | tuple):
        found = [hide_in_value(each) for each in cast("Sequence[object]", value)]
        return [text for text, _ in found], sum(count for _, count in found)
    if isinstance(value, Mapping):
        entries = {name: hide_in_value(each) for name, each in cast("Mapping[str, object]", value).items()}
        return {name: text for name, (text, _) in entries.items()}, sum(count for _, count in entries.values())
    return value, 0


class Verbs:
    """Base of the classes of verbs: public methods with `deadline_s`, each of which has a deadline of its own."""

    agent: Agent

    def __init_subclass__(cls) -> None:
        """Route every verb through `_call`, and add all its parameters to its help."""
        super().__init_subclass__()
        for name, verb in list(vars(cls).items()):
            is_public = inspect.isfunction(verb) and not name.startswith("_")
            if is_public and "deadline_s" in inspect.signature(verb).parameters:
                describe(verb)
                setattr(cls, name, routed_through_call(verb))

    def _call(self, verb: Callable[..., Any], arguments: Sequence[Any], details: Mapping[str, Any]) -> Any:
        """Call a verb; if the agent was moved to another space, switch to its embedder and call once more.

        Raises `Moved`, with nothing written, where this process has no embedder for that space.
        """
        deadline = self.agent.deadline(details.get("deadline_s"))
        try:
            return verb(self, *arguments, **details)
        except Moved as moved:
            self.agent = self.agent.followed(moved)
            return verb(self, *arguments, **{**details, "deadline_s": deadline.remaining()})

    def _transaction(self, deadline_s: float | None) -> AbstractContextManager[Connection]:
        """Yield a connection that sees this agent only, for a verb that needs nothing but the database."""
        return self.agent.transaction(self.agent.deadline(deadline_s))

    def _get(self, kind: Kind[M], memory_id: UUID | str, deadline_s: float | None) -> M:
        """Return one memory in any state; raise `NotFound` when this agent has none with that id."""
        known_id = checked_id(f"{kind.name}_id", memory_id)
        with self._transaction(deadline_s) as connection:
            return get_memory(connection, self.agent.id, kind, known_id)


def routed_through_call(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with the signature of a verb that goes through `_call`."""

    @wraps(verb)
    def call(self: Verbs, *arguments: Any, **details: Any) -> Any:
        return self._call(verb, arguments, details)  # pyright: ignore[reportPrivateUsage] (the method of its class)

    return call


# --- events: stored in the transaction of the change they are about, delivered from the outbox ---


@dataclass(frozen=True)
class Event:
    """Something that happened to one agent; `memory_id` is the id of the memory or decision it is about."""

    id: int
    name: str
    agent_id: str
    memory_id: UUID | None
    payload: dict[str, Any]
    created_at: datetime
    user_id: str | None = None
    """Of the memory it is about, as is the project; None where that has none, or is no memory."""
    project_id: str | None = None


Handler = Callable[[Event], object]


@dataclass(frozen=True, eq=False)
class Subscription:
    """The events one consumer receives; `cancel` ends it, and the consumer's position in the queue is kept."""

    consumer: str
    names: frozenset[str]
    handler: Handler
    among: list[Subscription] = field(repr=False)

    def cancel(self) -> None:
        """Stop delivery to this handler; cancelling twice does nothing."""
        if self in self.among:
            self.among.remove(self)

    def wants(self, event: Event) -> bool:
        """Tell whether this subscription is for such an event."""
        return not self.names.isdisjoint((EVERYTHING, event.name))


def emit(
    connection: Connection,
    agent_id: str,
    name: EventName,
    *,
    memory_id: UUID | None = None,
    payload: Mapping[str, Any] | None = None,
) -> None:
    """Store a built-in event in the transaction of the change it is about, so that both are committed or neither."""
    write_event(connection, agent_id, name, memory_id=memory_id, payload=payload or {})


def write_event(
    connection: Connection, agent_id: str, name: str, *, memory_id: UUID | None, payload: Mapping[str, Any]
) -> None:
    """Store an event of any name in the outbox."""
    row = {"agent_id": agent_id, "name": name, "memory_id": memory_id, "payload": Jsonb(dict(payload))}
    connection.execute(EVENTS["write_event"], row)
