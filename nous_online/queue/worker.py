"""Background work: a thread beside the heart, `nous worker` and a sensor all complete episodes and deliver events.

An episode is completed exactly once: it gets a title, a summary and facts, and its procedures and censors. Every step
can be repeated after a crash: the draft is stored before it is used, each fact has an idempotency key of its own, and
everything that is counted happens in the one transaction that marks the episode as complete.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import logging
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID
from weakref import WeakSet

from psycopg import Connection
from psycopg.types.json import Jsonb

from nous_online.core.deadline import Deadline, pause_s, within
from nous_online.core.details import FactDetails, OriginDetails
from nous_online.core.domain import EPISODE, PROCEDURE, DecisionId, EmbeddingSpace, Episode, NewFact, decision_of
from nous_online.core.errors import Conflict, DeadlineExceeded, InvalidInput, Moved, NousError, Unavailable
from nous_online.core.policy import DEFAULT_SESSION, CompletionPolicy, LearnPolicy, WorkerPolicy
from nous_online.database.changes import Cause, change_memory, lock_memories, lock_memory, version_of
from nous_online.database.connection import Database, open_url
from nous_online.database.statements import fetch, statements
from nous_online.language.embedding import Embedder, default_embedder, embedder_lookup
from nous_online.language.minilm import Vectors
from nous_online.language.pairs.judging import Judge
from nous_online.memories import censors, facts, procedures, store
from nous_online.memories.agent import Agent, emit
from nous_online.memories.censors import CensorDetails, NewCensor
from nous_online.memories.episodes import (
    Unwritten,
    full_text,
    get_episode,
    note_completion,
    text_to_embed,
    union,
    vector_values,
)
from nous_online.memories.store import query_space, require_space
from nous_online.memories.tombstones import erased_at
from nous_online.queue.outbox import HEART, REACTIONS, deliver_due
from nous_online.recall.recall import refresh_statistics

if TYPE_CHECKING:
    from nous_online.language.claude.spending import Meter
    from nous_online.language.writing.writer import Draft, Writer


logger = logging.getLogger(__name__)
SQL = statements("nous_online.queue", "worker.sql")
COMPLETION = CompletionPolicy()
LONGEST_NOTE = 500  # characters of a completion note
NOTHING_TOLD = "skipped: the episode has neither a detail nor a summary to draw from"
DRAWN_FROM = ("outcome", "detail", "summary")
"""The fields of an episode its draft depends on: when one of them changes, the draft is written again."""


@dataclass(frozen=True)
class Task:
    """A closed episode, leased to be completed."""

    episode_id: UUID
    attempt_count: int
    draft: dict[str, Any] | None
    failure_count: int = 0
    """Attempts that failed other than by an outage, this one included."""


@dataclass(frozen=True)
class Drawn:
    """What was extracted from an episode and is still to be stored; facts are stored already."""

    draft: Draft | None = None
    facts: Sequence[UUID] = ()
    vector: Vectors | None = None
    censors: Sequence[tuple[NewCensor, Vectors]] = ()


def complete_due(
    agent: Agent,
    deadline: Deadline,
    *,
    limit: int = COMPLETION.episode_limit,
    is_stopping: Callable[[], bool] = lambda: False,
) -> int:
    """Complete the closed episodes that are due, at most `limit`, and return how many are complete now.

    None is begun after half of the time, or once `is_stopping` returns true. An episode whose writer or embedder fails
    is tried again later, with the reason in `last_error`. Raises `Unavailable` and `DeadlineExceeded` when the database
    fails; an episode leased then falls due again when its lease ends.
    """
    completed = 0
    for _ in range(limit):
        if is_stopping() or deadline.remaining() < deadline.seconds * COMPLETION.finishing_share:
            break
        task = lease_next(agent, deadline)
        if task is None:
            break
        completed += attempt(agent, task, deadline)
    return completed


def lease_next(agent: Agent, deadline: Deadline) -> Task | None:
    """Lease the episode that has been due the longest; None when none is due."""
    parameters = {"agent_id": agent.id, "lease_s": COMPLETION.lease_s, "longest_wait_s": COMPLETION.longest_wait_s}
    with agent.transaction(deadline) as connection:
        return next(iter(fetch(connection, Task, SQL["take_due"], parameters)), None)


def attempt(agent: Agent, task: Task, deadline: Deadline) -> bool:
    """Complete one episode, or reschedule it with the reason; return whether it is complete.

    The pause doubles with each failure; after `most_failures` the episode is set aside.
    """
    # An attempt is counted when it is leased, so one that killed its process counts too: its successor finds more
    # failures than there may be, and sets the episode aside without trying.
    failure_count, is_outage = COMPLETION.most_failures, False
    reason = "every attempt ended its process"
    if task.failure_count <= COMPLETION.most_failures:
        try:
            return complete(agent, task, deadline)
        except NousError as error:
            logger.warning("episode %s of agent %r was not completed: %s", task.episode_id, agent.id, error)
            failure_count, reason = task.failure_count, str(error)
            is_outage = isinstance(error, Unavailable | Conflict)
    if is_outage or failure_count < COMPLETION.most_failures:
        wait_s = pause_s(task.attempt_count, first_s=COMPLETION.first_wait_s, longest_s=COMPLETION.longest_wait_s)
        row = {"agent_id": agent.id, "episode_id": task.episode_id, "wait_s": wait_s, "is_outage": is_outage}
        with agent.transaction(deadline) as connection:
            connection.execute(SQL["put_off"], {**row, "error": reason})
    else:
        logger.error("episode %s of agent %r is set aside; `nous retry` queues it again", task.episode_id, agent.id)
        set_aside(agent, task.episode_id, failure_count=failure_count, reason=reason, deadline=deadline)
    return False


def set_aside(agent: Agent, episode_id: UUID, *, failure_count: int, reason: str, deadline: Deadline) -> None:
    """End the attempts to complete an episode, with the reason in its note unless it was undone meanwhile."""
    note = f"set aside after {failure_count} attempts: {reason}"[:LONGEST_NOTE]
    with agent.transaction(deadline) as connection:
        store.lock_agent(connection, agent.id)  # before the episode, as completing one does
        episode = lock_memory(connection, agent.id, EPISODE, episode_id)
        if episode.state == "closed" and episode.completed_at is None:
            note_completion(connection, agent.id, episode, note, "set_aside", note)
        connection.execute(SQL["end_attempts"], {"agent_id": agent.id, "episode_id": episode_id, "note": note})


def complete(agent: Agent, task: Task, deadline: Deadline) -> bool:
    """Write the draft of an episode or continue a stored one, store what it says, and return whether it is complete.

    An episode whose start was undone is left as it is, and its task ends with a note that says so.
    """
    episode = source = get_episode(agent, task.episode_id, deadline)
    # A night may have condensed it meanwhile: the draft still comes from the most detailed text, wherever that is.
    if not episode.detail and episode.compression_tier != "raw":
        with agent.transaction(deadline) as connection:
            found = full_text(connection, agent.id, episode.id)
        source = replace(episode, detail=None if found.level == "title" else found.text)
    if episode.completed_at or episode.state != "closed" or not (source.detail or source.summary):
        return finish(agent, episode, Drawn(), deadline)
    draft = get_or_write_draft(agent, source, task, deadline)
    check_unchanged(episode, get_episode(agent, episode.id, deadline))  # the writer may have taken long
    # Facts are stored before the last transaction, one by one: after a crash their keys keep them from coming twice.
    news = not_taken_out(agent, episode, new_facts(episode, draft), deadline)
    learned = [facts.learn(agent, new, deadline).memory.id for new in news]
    text = text_to_embed(source.title or draft.title, source.summary or draft.summary, source.detail)
    warnings = new_censors(source, draft) if source.outcome == "failure" else []
    vectors = agent.embed([text, *(new.trigger for new in warnings)], deadline)
    drawn = Drawn(draft, learned, vectors[0], list(zip(warnings, vectors[1:], strict=True)))
    return finish(agent, episode, drawn, deadline)


# --- the draft ---


def get_or_write_draft(agent: Agent, episode: Episode, task: Task, deadline: Deadline) -> Draft:
    """Return the stored draft of an episode; where there is none for its current text, write and store one first.

    Raises `InvalidInput` when the stored draft has another format.
    """
    from nous_online.language.writing.writer import Draft

    texts = [getattr(episode, name) for name in DRAWN_FROM]
    source = hashlib.sha256(json.dumps(texts).encode()).hexdigest()
    kept = task.draft
    if kept is None or kept.get("drawn_from") != source:
        own = {**write_draft(agent, episode, deadline), "drawn_from": source}
        row = {"agent_id": agent.id, "episode_id": episode.id, "lease_s": COMPLETION.lease_s, "drawn_from": source}
        with agent.transaction(deadline) as connection:
            # Returns the draft another worker stored first, if one did: all attempts must use the same.
            stored = connection.execute(SQL["keep_draft"], {**row, "draft": Jsonb(own)}).fetchone()
        kept = stored[0] if stored else own
    return Draft.from_json({name: value for name, value in kept.items() if name != "drawn_from"})


def write_draft(agent: Agent, episode: Episode, deadline: Deadline) -> dict[str, Any]:
    """Return the draft the writer makes of an episode, as JSON.

    Raises `Unwritten` when the writer fails or exceeds its time, and the writer's own `NousError`, as for an outage.
    """
    from nous_online.language.writing.writer import Draft, EndedEpisode

    ended = EndedEpisode(
        detail=episode.detail or episode.summary or "",
        title=episode.title,
        outcome=episode.outcome,
        participants=episode.participants,
        lessons=episode.lessons_learned,
        ended_at=episode.ended_at,
    )
    try:
        seconds = deadline.remaining() * COMPLETION.writer_share
        draft = within(seconds, lambda: agent.writer.write(ended), name="writer")
        if not isinstance(cast("object", draft), Draft):
            raise TypeError(f"it returned a {type(draft).__name__}, which is no Draft")
        return draft.as_json()
    except DeadlineExceeded as error:
        raise Unwritten(str(error)) from error
    except NousError:
        raise
    except Exception as error:  # a writer may be third-party code, and its failure must not lose an episode
        raise Unwritten(f"the writer failed: {error!r}") from error


def new_facts(episode: Episode, draft: Draft) -> list[NewFact]:
    """Return the facts of a draft, checked, with the episode's trust and scope.

    The idempotency key of each is a hash of its content, so it is the same in every draft that has this fact.
    """
    details, ended_at = inherited_details(episode), end_of(episode)
    news: list[NewFact] = []
    for place, fact in enumerate(draft.facts[: COMPLETION.most_facts]):
        key = f"episode:{episode.id}:{hashlib.sha256(json.dumps(fact.content).encode()).hexdigest()}"
        own: FactDetails = {
            "subject": fact.subject,
            "category": fact.category,
            "context": fact.context,
            "idempotency_key": key,
        }
        try:
            new = facts.new_fact(fact.content, {**details, **own}, now=ended_at)
        except InvalidInput as error:
            logger.warning("fact %d of episode %s was left out: %s", place, episode.id, error)
            continue
        news.append(replace(new, source_episode_id=episode.id))
    return news


def not_taken_out(agent: Agent, episode: Episode, news: Sequence[NewFact], deadline: Deadline) -> list[NewFact]:
    """Return the facts of an episode but those that somebody erased or forgot after it ended.

    All of them where the episode itself had been erased: somebody brought it back.
    """
    ended_at, kept = end_of(episode), list[NewFact]()
    with agent.transaction(deadline) as connection:
        of_episode, *erased = erased_at(connection, agent.id, [episode, *news])
        for new, at in zip(news, erased, strict=True):
            _, forgotten_at = store.forgotten_fact(connection, agent.id, new) or (None, None)
            if of_episode or not any(moment and moment >= ended_at for moment in (at, forgotten_at)):
                kept.append(new)
    return kept


def new_censors(episode: Episode, draft: Draft) -> list[NewCensor]:
    """Return the censors a failed episode suggests, checked; they only warn."""
    details: CensorDetails = {**inherited_details(episode), "severity": "warn", "learned_from_episode_id": episode.id}
    news: list[NewCensor] = []
    for candidate in draft.censors:
        try:
            news.append(censors.new_censor(candidate.trigger, candidate.reason, details))
        except InvalidInput as error:
            logger.warning("a censor of episode %s was left out: %s", episode.id, error)
    return news


def inherited_details(episode: Episode) -> OriginDetails:
    """Return the fields that facts and censors of an episode inherit: its trust, scope, time, frame and censors."""
    return {
        "source": f"episode:{episode.id}",
        "source_kind": "episode",
        "trust": episode.trust,
        "learned_at": end_of(episode),
        "encoded_frame": episode.frame_used,
        "encoded_censors": episode.encoded_censors,
        "scope": episode.scope,
        "user_id": episode.user_id,
        "project_id": episode.project_id,
    }


def end_of(episode: Episode) -> datetime:
    """Return when an episode ended; only an open one has no end, and falls back to its start."""
    return episode.ended_at or episode.started_at


# --- storing the results ---


def finish(agent: Agent, read: Episode, drawn: Drawn, deadline: Deadline) -> bool:
    """Store all results in one transaction, unless another worker did; return whether the episode is complete now.

    Nothing is stored for an episode that was undone. Raises `Conflict` when it changed since it was read.
    """
    with agent.space_transaction(deadline) as connection:
        store.lock_agent(connection, agent.id)  # before the episode, as learning from one does
        episode = lock_memory(connection, agent.id, EPISODE, read.id)
        is_standing = episode.completed_at is not None or episode.state == "closed"
        if is_standing:
            check_unchanged(read, episode)
        if is_standing and episode.completed_at is None:
            write_results(connection, agent, episode, drawn)
        note = None if is_standing else f"not completed: the episode is {episode.state}"
        connection.execute(SQL["end_attempts"], {"agent_id": agent.id, "episode_id": read.id, "note": note})
    return is_standing


def check_unchanged(read: Episode, now: Episode) -> None:
    """Raise `Conflict` when an episode that is not complete has changed since it was read."""
    is_changed = any(getattr(read, name) != getattr(now, name) for name in (*DRAWN_FROM, "title", "state"))
    if is_changed and now.completed_at is None:
        raise Conflict(f"episode {read.id} was updated or undone while it was completed; it is tried again")


def write_results(connection: Connection, agent: Agent, episode: Episode, drawn: Drawn) -> None:
    """Complete the episode, count its procedures, store its censors, link its decisions and emit the event."""
    by = f"drawn by {drawn.draft.writer}" if drawn.draft else NOTHING_TOLD
    cause = Cause("agent", "completed", by, effective_at=end_of(episode))
    decisions = link_decisions(connection, agent.id, episode)
    values = completed_values(agent, episode, drawn, decisions)
    change_memory(connection, agent.id, version_of(EPISODE, episode), values, cause=cause)
    if episode.outcome in ("success", "failure"):
        reason = f"episode {episode.id} ended in {episode.outcome}"
        counted, is_success = replace(cause, action=episode.outcome, reason=reason), episode.outcome == "success"
        # Locked first: those erased since are left out then, where counting them by id would raise.
        for procedure in lock_memories(connection, agent.id, PROCEDURE, episode.procedures_activated):
            procedures.record_outcome(connection, agent.id, procedure.id, is_success=is_success, cause=counted)
    suggested = replace(cause, action="suggested", reason=f"episode {episode.id} failed")
    stored = [censors.store_censor(connection, agent, new, vector, cause=suggested) for new, vector in drawn.censors]
    payload = {
        "episode_id": str(episode.id),
        "facts": [str(fact_id) for fact_id in dict.fromkeys(drawn.facts)],
        "censors": [str(censor_id) for censor_id in dict.fromkeys(censor.id for censor in stored)],
    }
    emit(connection, agent.id, "episode_completed", memory_id=episode.id, payload=payload)


def link_decisions(connection: Connection, agent_id: str, episode: Episode) -> list[DecisionId]:
    """Link the decisions made during an episode to it, and return all it has."""
    during = {
        "agent_id": agent_id,
        "episode_id": episode.id,
        "session_id": episode.session_id,
        "default_session": DEFAULT_SESSION,
        "started_at": episode.started_at,
        "ended_at": end_of(episode),
    }
    found = [decision_of(row[0]) for row in connection.execute(SQL["decisions_during"], during)]
    linked = union(episode.decision_ids, found)
    names = {
        "ids": [each for each in linked if isinstance(each, UUID)],
        "references": [each for each in linked if isinstance(each, str)],
    }
    # Skips locked decisions: their own reaction is linking them, and may be waiting for this very episode.
    connection.execute(SQL["link_decisions"], {"agent_id": agent_id, "episode_id": episode.id, **names})
    return linked


def completed_values(agent: Agent, episode: Episode, drawn: Drawn, decisions: Sequence[DecisionId]) -> dict[str, Any]:
    """Return the columns of a completed episode; a title and summary given by the agent stay."""
    values: dict[str, Any] = {"completed_at": datetime.now(UTC).isoformat()}
    if list(decisions) != episode.decision_ids:
        values["decision_ids"] = [str(decision_id) for decision_id in decisions]
    draft = drawn.draft
    if draft is None:
        return {**values, "completion_note": NOTHING_TOLD}
    texts = {
        "title": episode.title or draft.title or None,
        "summary": episode.summary or draft.summary or None,
        "compressed": draft.compressed or None,
        "index_word": draft.index_word or None,
    }
    # A night may have condensed the episode already: texts that its tier has given up must not come back.
    gone = {"compressed": ("summary",), "fossil": ("summary", "compressed")}.get(episode.compression_tier, ())
    kept = {name: text for name, text in texts.items() if name not in gone}
    return {**values, **vector_values(agent, drawn.vector), **kept}


# --- the work of an agent, and of all ---

WORKER = WorkerPolicy()


@dataclass(frozen=True)
class Worked:
    """How much was done: episodes completed, events delivered."""

    completed: int = 0
    delivered: int = 0

    def __bool__(self) -> bool:
        return bool(self.completed or self.delivered)


def work(
    agent: Agent,
    deadline: Deadline,
    *,
    limit: int = COMPLETION.episode_limit,
    is_stopping: Callable[[], bool] = lambda: False,
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
        delivered = 0 if is_stopping() else deliver_due(agent, deadline)
        if not is_stopping():
            count_words(agent, deadline)
        return Worked(completed, delivered)
    finally:
        agent.at_work.release()


def count_words(agent: Agent, deadline: Deadline) -> None:
    """Count the words of what changed where that is much: a store that never has a night must not only pile it up."""
    parameters = {"agent_id": agent.id, "uncounted": WORKER.uncounted}
    with agent.transaction(deadline) as connection:
        if connection.execute(SQL["are_words_uncounted"], parameters).fetchone() == (True,):
            refresh_statistics(connection, agent.id)


def has_work(agent: Agent, deadline: Deadline) -> bool:
    """Tell whether an earlier process left a closed episode, an event nobody reacted to, or many words uncounted."""
    parameters = {"agent_id": agent.id, "consumer": HEART, "names": list(REACTIONS), "uncounted": WORKER.uncounted}
    with agent.transaction(deadline) as connection:
        return connection.execute(SQL["has_work"], parameters).fetchone() == (True,)


class Background:
    """A thread that works for one agent whenever its `awake` event is set, and at least every few seconds."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        BACKGROUNDS.add(self)

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
            thread.join(WORKER.stop_s)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._agent.awake.wait(WORKER.poll_s)
            self._agent.awake.clear()
            if not self._stopping.is_set() and self._work_once():
                self._agent.awake.set()

    def _work_once(self) -> bool:
        """Return whether anything was done, so that there may be more."""
        try:
            return bool(work(self._agent, Deadline(WORKER.pass_s), is_stopping=self._stopping.is_set))
        except Moved as moved:
            try:
                self._agent = self._agent.followed(moved)
            except Moved as error:
                logger.warning("the work of agent %r waits: %s", self._agent.id, error)
            else:
                return True
        except Exception as error:  # the top of a thread: whatever fails, it continues
            logger.warning("the work of agent %r failed and is tried again: %r", self._agent.id, error)
        self._stopping.wait(WORKER.rest_s)
        return False


BACKGROUNDS: WeakSet[Background] = WeakSet()
"""Those of all hearts in this process."""


def stop_all() -> None:
    """End the threads of all hearts."""
    for each in list(BACKGROUNDS):
        each.stop()


# As the interpreter ends, before `concurrent.futures` closes the pools that their work needs: that one is registered at
# its import, and what is registered last runs first. Python documents no way to it, so another one may lack it.
import_module("concurrent.futures.thread")
getattr(threading, "_register_atexit", atexit.register)(stop_all)


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
    embedder_of: Callable[[EmbeddingSpace], Embedder | None]
    judge_for: Callable[[Meter], Judge]
    writer_for: Callable[[Meter], Writer]

    def agent(self, agent_id: str, embedder: Embedder) -> Agent:
        """Return one agent to work for; requests to Claude are metered as its own."""
        from nous_online.language.claude.spending import meter_of

        meter = meter_of(self.app, agent_id)
        return Agent(
            id=agent_id,
            database=self.app,
            embedder=embedder,
            judge=self.judge_for(meter),
            writer=self.writer_for(meter),
            policy=LearnPolicy(),
            deadline_s=WORKER.pass_s,
        )

    def look(
        self,
        *,
        seconds: float = WORKER.pass_s,
        limit: int = COMPLETION.episode_limit,
        only: str | None = None,
        is_stopping: Callable[[], bool] = lambda: False,
    ) -> Round:
        """Do the work that is due for all agents, or for `only` one, within `seconds` and at most `limit` episodes.

        An agent is skipped whose memories live in an embedding space that this process has no embedder for; one whose
        work fails does not stop the others. Raises `Unavailable` when the database can't be reached.
        """
        deadline = Deadline(seconds)
        worked, skipped, failed = dict[str, Worked](), dict[str, str](), dict[str, str]()
        with self.night.transaction(timeout_s=deadline.remaining()) as connection:  # the longest waiting first
            due = connection.execute(SQL["agents_with_work"], {"consumer": HEART, "only": only}).fetchall()
        for agent_id, *space in due:
            left = limit - sum(each.completed for each in worked.values())
            if is_stopping() or left <= 0 or deadline.remaining() < deadline.seconds * WORKER.finishing_share:
                break
            embedder = self.embedder_of(EmbeddingSpace(*space))
            if embedder is None:
                skipped[agent_id] = f"its memories live in embedding space {space[0]!r}, which has no embedder here"
                continue
            try:
                rest = Deadline(deadline.remaining())
                worked[agent_id] = work(self.agent(agent_id, embedder), rest, limit=left, is_stopping=is_stopping)
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

    found = embedder_lookup([embedder] if embedder else [])
    judge_for, writer_for = judge_factory(judge), writer_factory(writer, embedder or default_embedder())
    place = url or open_url()
    with (
        closing(Database(place, role="nous_night", max_connections=1)) as night,
        closing(Database(place, max_connections=2)) as app,
    ):
        yield Staff(night, app, found, judge_for, writer_for)
