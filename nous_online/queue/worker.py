"""Background work: a thread beside the heart, `nous worker` and a sensor all complete episodes and deliver events."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from nous_online.core.deadline import Deadline
from nous_online.core.errors import DeadlineExceeded, Moved, NousError
from nous_online.core.policy import CompletionPolicy, LearnPolicy, WorkerPolicy
from nous_online.database.connection import Database, open_url
from nous_online.database.statements import statements
from nous_online.language.embedding import Embedder
from nous_online.language.pairs.judging import Judge
from nous_online.memories.agent import Agent
from nous_online.memories.store import query_space, require_space
from nous_online.queue.completion import complete_due
from nous_online.queue.outbox import HEART, deliver_due
from nous_online.queue.reactions import REACTIONS

if TYPE_CHECKING:
    from nous_online.language.claude.spending import Meter
    from nous_online.language.writing.writer import Writer

logger = logging.getLogger(__name__)
SQL = statements("nous_online.queue", "worker.sql")
POLICY = WorkerPolicy()
EPISODE_LIMIT = CompletionPolicy().episode_limit


def never() -> bool:
    """Return False: the default of `is_stopping`."""
    return False


@dataclass(frozen=True)
class Worked:
    """How much was done: episodes completed, events delivered."""

    completed: int = 0
    delivered: int = 0

    def __bool__(self) -> bool:
        return bool(self.completed or self.delivered)


def work(
    agent: Agent, deadline: Deadline, *, limit: int = EPISODE_LIMIT, is_stopping: Callable[[], bool] = never
) -> Worked:
    """Complete the closed episodes that are due, at most `limit`, then deliver events; raises as either does.

    Waits for another thread of this process that works for the agent, so that its work is done when this returns.
    Raises `Moved`, before anything is begun, when the agent's memories live in another space than its embedder's.
    """
    if not agent.at_work.acquire(timeout=deadline.remaining()):
        raise DeadlineExceeded(f"another thread was at work for agent {agent.id!r} until the deadline; it goes on")
    try:
        with agent.transaction(deadline) as connection:
            require_space(query_space(connection, agent.id), agent.id, agent.embedder.space)
        completed = complete_due(agent, deadline, limit=limit, is_stopping=is_stopping)
        return Worked(completed, 0 if is_stopping() else deliver_due(agent, deadline))
    finally:
        agent.at_work.release()


def has_work(agent: Agent, deadline: Deadline) -> bool:
    """Tell whether an earlier process left a closed episode to be completed, or an event to be reacted to."""
    parameters = {"agent_id": agent.id, "consumer": HEART, "names": list(REACTIONS)}
    with agent.transaction(deadline) as connection:
        return connection.execute(SQL["has_work"], parameters).fetchone() == (True,)


class Background:
    """A thread that works for one agent whenever its `awake` event is set, and at least every few seconds."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread unless it is alive; threads don't survive a fork, so a forked process starts its own."""
        with self._lock:
            if self._stopping.is_set() or (self._thread is not None and self._thread.is_alive()):
                return
            name = f"works for {self._agent.id}"
            self._thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread after its current step, waiting a few seconds for it."""
        self._stopping.set()
        self._agent.awake.set()  # it may be waiting for work
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(POLICY.stop_s)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._agent.awake.wait(POLICY.poll_s)
            self._agent.awake.clear()
            if not self._stopping.is_set() and self._work_once():
                self._agent.awake.set()

    def _work_once(self) -> bool:
        """Return whether anything was done, so that there may be more."""
        try:
            return bool(work(self._agent, Deadline(POLICY.pass_s), is_stopping=self._stopping.is_set))
        except Moved as moved:
            try:
                self._agent = self._agent.followed(moved)
            except Moved as error:
                logger.warning("the work of agent %r waits: %s", self._agent.id, error)
            else:
                return True
        except Exception as error:  # the top of a thread: whatever fails, it continues
            logger.warning("the work of agent %r failed and is tried again: %r", self._agent.id, error)
        self._stopping.wait(POLICY.rest_s)
        return False


@dataclass(frozen=True)
class Round:
    """One pass over all agents, by agent id: what was done, why an agent was skipped, why its work failed."""

    worked: Mapping[str, Worked] = field(default_factory=dict[str, Worked])
    skipped: Mapping[str, str] = field(default_factory=dict[str, str])
    failed: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def is_idle(self) -> bool:
        """Tell whether nothing was done and nothing went wrong."""
        return not any(self.worked.values()) and not self.skipped and not self.failed

    @property
    def completed(self) -> int:
        """Return how many episodes were completed."""
        return sum(each.completed for each in self.worked.values())

    @property
    def delivered(self) -> int:
        """Return how many events were delivered."""
        return sum(each.delivered for each in self.worked.values())


@dataclass(frozen=True)
class Staff:
    """The databases and models for working for all agents; `night` sees them all, `app` acts as one."""

    night: Database
    app: Database
    embedder: Embedder
    judge_for: Callable[[Meter], Judge]
    writer_for: Callable[[Meter], Writer]

    def agent(self, agent_id: str) -> Agent:
        """Return one agent to work for; requests to Claude are metered as its own."""
        from nous_online.language.claude.spending import meter_of

        meter = meter_of(self.app, agent_id)
        return Agent(
            id=agent_id,
            database=self.app,
            embedder=self.embedder,
            judge=self.judge_for(meter),
            writer=self.writer_for(meter),
            policy=LearnPolicy(),
            deadline_s=POLICY.pass_s,
        )

    def look(
        self,
        *,
        seconds: float = POLICY.pass_s,
        limit: int = EPISODE_LIMIT,
        only: str | None = None,
        is_stopping: Callable[[], bool] = never,
    ) -> Round:
        """Do the work that is due for all agents, or for `only` one, within `seconds` and at most `limit` episodes.

        An agent whose memories live in another embedding space is skipped; one whose work fails does not stop the
        others. Raises `Unavailable` when the database can't be reached.
        """
        deadline = Deadline(seconds)
        worked, skipped, failed = dict[str, Worked](), dict[str, str](), dict[str, str]()
        with self.night.transaction(timeout_s=deadline.remaining()) as connection:  # the longest waiting first
            due = connection.execute(SQL["agents_with_work"], {"consumer": HEART, "only": only}).fetchall()
        for agent_id, space_id in due:
            left = limit - sum(each.completed for each in worked.values())
            if is_stopping() or left <= 0 or deadline.remaining() < deadline.seconds * POLICY.finishing_share:
                break
            if space_id != self.embedder.space.id:
                skipped[agent_id] = f"its memories live in embedding space {space_id!r}, not {self.embedder.space.id!r}"
                continue
            try:
                rest = Deadline(deadline.remaining())
                worked[agent_id] = work(self.agent(agent_id), rest, limit=left, is_stopping=is_stopping)
            except NousError as error:
                failed[agent_id] = str(error)
        return Round(worked, skipped, failed)


@contextmanager
def open_staff(
    url: str | None = None,
    *,
    embedder: Embedder | None = None,
    judge: Judge | None = None,
    writer: Writer | None = None,
) -> Generator[Staff]:
    """Open the databases and models for working for all agents; without `url` the database of this process is used.

    Raises what opening a database raises, and `InvalidInput` when the key for Claude is not valid.
    """
    from nous_online.language.claude.judge import judge_factory
    from nous_online.language.claude.model_writer import writer_factory
    from nous_online.language.embedding import default_embedder

    embedder = embedder or default_embedder()
    judge_for, writer_for = judge_factory(judge), writer_factory(writer, embedder)
    place = url or open_url()
    with (
        closing(Database(place, role="nous_night", max_connections=1)) as night,
        closing(Database(place, max_connections=2)) as app,
    ):
        yield Staff(night, app, embedder, judge_for, writer_for)
