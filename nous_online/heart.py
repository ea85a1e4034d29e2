"""`Heart`: every verb of one agent's memory in one class, and how it is opened, limited and closed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from nous_online.context.assembling import ContextVerbs
from nous_online.core.details import (
    MAX_REASON_CHARACTERS,
    DecisionDetails,
    DecisionFilter,
    DecisionTitle,
    ProjectId,
    UserId,
)
from nous_online.core.domain import DecisionId
from nous_online.core.errors import Unavailable
from nous_online.core.fields import check_known, checked_as, checked_details
from nous_online.core.policy import LearnPolicy
from nous_online.core.rights import Rights
from nous_online.core.settings import settings
from nous_online.core.validation import (
    ACTIVE_CENSORS,
    FRAME,
    checked_agent,
    checked_choice,
    checked_decision,
    checked_optional,
    checked_said,
)
from nous_online.database.connection import Database, open_url
from nous_online.language.embedding import Embedder, LocalEmbedder, default_embedder, embedder_lookup
from nous_online.language.pairs.judging import Judge, OfflineJudge
from nous_online.memories import decisions
from nous_online.memories.agent import Agent, Verbs, register
from nous_online.memories.censors import CensorVerbs
from nous_online.memories.contradictions import ContradictionVerbs
from nous_online.memories.decisions import Decision
from nous_online.memories.doubts import DoubtVerbs
from nous_online.memories.episodes import EpisodeVerbs
from nous_online.memories.facts import FactVerbs
from nous_online.memories.memory_verbs import MemoryVerbs
from nous_online.memories.procedures import ProcedureVerbs
from nous_online.memories.sessions import SessionVerbs, WorkingMemory
from nous_online.memories.source_undo import SourceVerbs
from nous_online.memories.undoing import HistoryVerbs
from nous_online.memories.workflows import WorkflowVerbs
from nous_online.queue.outbox import EventVerbs, react_soon
from nous_online.queue.webhooks import WebhookVerbs
from nous_online.queue.worker import Background, Worked, has_work, work
from nous_online.recall.recall import RecallVerbs

if TYPE_CHECKING:
    from nous_online.language.writing.writer import Writer


class DecisionVerbs(Verbs):
    """What an agent does with its decisions."""

    def record_decision(
        self, title: DecisionTitle, *, deadline_s: float | None = None, **details: Unpack[DecisionDetails]
    ) -> Decision:
        """Record what was decided and why; it and the episode that is open now name each other.

        `reference` is what the agent itself calls it, and names it from then on wherever a decision is asked for.
        Raises `InvalidInput`, `NotFound` for an episode that is not there, and `Conflict` when the idempotency key
        was used for anything else, or the reference for another decision.
        """
        deadline = self.agent.deadline(deadline_s)
        recorded = decisions.record(self.agent, title, details, deadline)
        react_soon(self.agent, deadline)
        return decisions.reread(self.agent, recorded, deadline)  # a reaction has linked it to its episode by now

    def resolve_decision(
        self,
        decision_id: DecisionId,
        *,
        status: Literal["succeeded", "failed", "abandoned"],
        outcome: str | None = None,
        at: datetime | str | None = None,
        deadline_s: float | None = None,
    ) -> Decision:
        """Record the outcome of a decision; a failed one leaves a censor that warns of doing so again.

        Recording the same twice changes nothing. Raises `NotFound`, `InvalidInput`, and `Conflict` when it was resolved
        as something else or with another outcome.
        """
        deadline = self.agent.deadline(deadline_s)
        now, found = datetime.now(UTC), checked_choice("status", status, decisions.RESOLUTIONS)
        said = checked_optional("outcome", outcome, max_characters=MAX_REASON_CHARACTERS)
        moment, known_id = checked_said("at", at, now=now) or now, checked_decision("decision_id", decision_id)
        resolved = decisions.resolve(self.agent, known_id, found, said, at=moment, deadline=deadline)
        react_soon(self.agent, deadline)
        return resolved

    def get_decision(self, decision_id: DecisionId, *, deadline_s: float | None = None) -> Decision:
        """Return one decision by its id or reference; raise `NotFound` when this agent has none of either."""
        wanted = checked_decision("decision_id", decision_id)
        with self._transaction(deadline_s) as connection:
            return decisions.get(connection, self.agent.id, wanted)

    def decisions(self, *, deadline_s: float | None = None, **wanted: Unpack[DecisionFilter]) -> list[Decision]:
        """Return decisions, the latest first: those of a status, about a file, with a tag, of a session or episode.

        A file is the same however it is spelled: `./src//a.py` and `src\\a.py` are `src/a.py`.
        """
        check_known(wanted, DecisionFilter)
        filters = {"agent_id": self.agent.id, **checked_details(DecisionFilter, wanted)}
        with self._transaction(deadline_s) as connection:
            return decisions.find(connection, filters)


class Heart(
    FactVerbs,
    RecallVerbs,
    ContextVerbs,
    EpisodeVerbs,
    ProcedureVerbs,
    WorkflowVerbs,
    CensorVerbs,
    SessionVerbs,
    DecisionVerbs,
    EventVerbs,
    ContradictionVerbs,
    DoubtVerbs,
    HistoryVerbs,
    SourceVerbs,
    MemoryVerbs,
    WebhookVerbs,
):
    """The memory of one agent: what it learns, it can recall; what it recalls and uses, it keeps.

    Safe to share between threads. Every call ends by its deadline with an answer or a `NousError`. Work that calls
    leave behind (completing an episode, delivering an event) is done by a thread of its own, by `work`, or by a
    `nous worker`.
    """

    def __init__(self, agent: Agent, *, owns_database: bool = False, works_in_background: bool = False) -> None:
        self.agent = agent
        self._owns_database = owns_database
        if works_in_background:
            background = Background(agent)
            agent.awake.on_ring = background.start
            # A finalizer, so that a heart that is dropped without `close` ends its thread too; at exit `stop_all` does.
            self._stop_background = weakref.finalize(self, background.stop)
            self._stop_background.atexit = False
        else:
            self._stop_background = None

    @classmethod
    def open(  # noqa: PLR0913 (one parameter for each seam)
        cls,
        agent_id: str,
        *,
        database: Database | None = None,
        embedder: Embedder | None = None,
        next_embedder: Embedder | None = None,
        judge: Judge | None = None,
        writer: Writer | None = None,
        policy: LearnPolicy | None = None,
        deadline_s: float | None = None,
        works_in_background: bool = True,
        creates: bool = True,
        must_exist: bool = False,
        begins_late: bool = False,
        loads_models: bool = True,
    ) -> Self:
        """Open the memory of `agent_id`, creating it when it is new.

        With `creates=False` nothing is written and no model loaded: a heart for counting what an import would store.
        With `must_exist` an agent that is not known raises `NotFound`. With `begins_late` a new one is stored by its
        first call, in the transaction of that: a call that is refused leaves no agent behind. With
        `loads_models=False` the local models are loaded by the first call that needs them.
        Without `database` it is on the server named by NOUS_DATABASE_URL, or on the embedded one, started if need be.
        Work that calls leave behind is done by a thread, started when there is some; with `works_in_background=False`
        it is left to `work` and to other workers.
        Without `embedder` the environment's is used, or the one of the space the agent's memories live in, if the
        environment can offer that; `next_embedder` is the one of the space an agent is being moved to. The heart
        switches to the other one when the agent has been re-embedded. The local embedding model is loaded here, not
        in the first call that embeds.
        Raises `Unavailable` when the server can't be reached, or the agent is new and its embedder fails, `Unsupported`
        when the server is too old, and `InvalidInput` when the agent's memories live in another embedding space than
        these offer, NOUS_EMBEDDING_MODEL is a name that nothing here has, or the key for Claude is not valid.
        """
        # Imported here: `import nous_online` has to stay below 0.3 s.
        from nous_online.language.claude.judge import judge_factory
        from nous_online.language.claude.model_writer import writer_factory
        from nous_online.language.claude.spending import meter_of

        name, offered = checked_agent(agent_id), [each for each in (embedder, next_embedder) if each is not None]
        embedder, chosen = embedder or default_embedder(), policy or LearnPolicy()
        judge_for, writer_for = judge_factory(judge), writer_factory(writer, embedder)
        meter = meter_of(place := database or Database(open_url()), name)
        own = Agent(
            id=name,
            database=place,
            embedder=embedder,
            judge=judge_for(meter),
            writer=writer_for(meter),
            policy=chosen,
            rights=Rights(source_trust=chosen.source_trust, on_credential=chosen.on_credential),
            deadline_s=settings().deadline_s if deadline_s is None else deadline_s,
            embedder_of=embedder_lookup(offered),
        )
        heart = cls(own, owns_database=database is None, works_in_background=works_in_background)
        return heart._begun(must_exist=must_exist, begins_late=begins_late, loads=loads_models) if creates else heart

    def _begun(self, *, must_exist: bool, begins_late: bool, loads: bool) -> Self:
        """Store the agent if it is new, load the local models, and start on work an earlier process left."""
        try:
            self.agent = register(self.agent, must_exist=must_exist, begins_late=begins_late)
            local = (self.agent.embedder, self.agent.judge) if loads else ()
            for model in local:
                if isinstance(model, LocalEmbedder | OfflineJudge):
                    with suppress(Unavailable):  # verbs that need no vector work without the model; the others raise
                        model.load()
            is_known = not self.agent.unstored.is_set()
            if is_known and self._stop_background is not None and has_work(self.agent, self.agent.deadline(None)):
                self.agent.awake.set()
        except BaseException:
            self.close()
            raise
        return self

    def work(self, *, deadline_s: float | None = None) -> Worked:
        """Complete the closed episodes that are due, then deliver events; return how many of each.

        Waits for what the background thread has begun, without counting it; nothing more is begun after half of the
        time. Raises `Unavailable` when the database fails.
        """
        return work(self.agent, self.agent.deadline(deadline_s))

    def limited_to(self, rights: Rights) -> LimitedHeart:
        """Return this memory for a caller with the given rights.

        Claims beyond them are refused with `Forbidden`; the trust of sources stays that of this heart's policy.
        """
        own = self.agent.rights
        return LimitedHeart(self, replace(rights, source_trust=own.source_trust, on_credential=own.on_credential))

    def session(  # noqa: PLR0913 (one parameter for each default of the session)
        self,
        session_id: str,
        *,
        task: str | None = None,
        frame: str | None = None,
        active_censors: Sequence[str] | None = None,
        user_id: str | None = None,
        project_id: str | None = None,
        source: str | None = None,
        capacity: int | None = None,
        end: bool = False,
    ) -> HeartSession:
        """Return this memory with defaults of one session, which every verb gets that has such a parameter.

        A `with` block focuses the session, begun if need be, and with `end` ends it after the block unless that raised.
        Frame and censors are by default those of the session's last focus.
        """
        focused = {"task": task, "frame": frame, "active_censors": active_censors, "capacity": capacity}
        told = {"frame": frame, "active_censors": active_censors, "source": source}
        owner, project = checked_as(UserId, "user_id", user_id), checked_as(ProjectId, "project_id", project_id)
        whose = {"session_id": session_id, "user_id": owner, "project_id": project}
        return HeartSession(self, {**whose, **told}, focused, ends=end)

    def close(self) -> None:
        """End the background thread and close the connections opened here; work that is due is left to other workers.

        The embedded server keeps running for other processes.
        """
        if self._stop_background is not None:
            self._stop_background()
        if self._owns_database:
            self.agent.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LimitedHeart(Heart):
    """A heart with the rights of one caller; closing it leaves the heart it belongs to open."""

    def __init__(self, whole: Heart, rights: Rights) -> None:
        self._whole, self._rights = whole, rights
        self._owns_database, self._stop_background = False, None

    @property
    def agent(self) -> Agent:  # pyright: ignore[reportIncompatibleVariableOverride] (it follows the whole heart's moves)
        """The agent of the whole heart, with the caller's rights."""
        return replace(self._whole.agent, rights=self._rights)

    @agent.setter
    def agent(self, agent: Agent) -> None:
        self._whole.agent = replace(agent, rights=self._whole.agent.rights)


class HeartSession(LimitedHeart):
    """A heart with the defaults of one session; arguments of a call win over them."""

    def __init__(
        self, whole: Heart, defaults: Mapping[str, Any], focused: Mapping[str, Any], *, ends: bool = False
    ) -> None:
        super().__init__(whole, whole.agent.rights)
        self._defaults = {name: value for name, value in defaults.items() if value is not None}
        self._focused, self._ends = focused, ends

    def __enter__(self) -> Self:
        self.focus(**self._focused)
        return self

    def __exit__(self, *raised: object) -> None:
        if self._ends and raised[0] is None:
            self.end_session()

    def _call(self, verb: Callable[..., Any], arguments: Sequence[Any], details: Mapping[str, Any]) -> Any:
        """Call a verb with the session's defaults for the parameters it has and the call leaves out."""
        given = {*signature(verb).bind_partial(self, *arguments).arguments, *details}
        for names in (FRAME, ACTIVE_CENSORS):  # each has an older name too: either of them counts as given
            if any(details.get(name) is not None for name in names):
                given.add(names[0])
        defaults = {name: value for name, value in self._defaults.items() if name in takes(verb) and name not in given}
        answer = super()._call(verb, arguments, {**defaults, **details})
        # `focus` changes the session: what holds from now on is the default of later calls.
        if isinstance(answer, WorkingMemory) and answer.session_id == self._defaults["session_id"]:
            in_force = {"frame": answer.frame, "active_censors": answer.active_censors}
            self._defaults |= {name: value for name, value in in_force.items() if value is not None}
        return answer


@cache
def takes(verb: Callable[..., Any]) -> frozenset[str]:
    """Return the names of a verb's parameters."""
    return frozenset(signature(verb).parameters)
