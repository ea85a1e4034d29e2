"""The agent's door to its memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Self

from nous_online.core.errors import Unavailable
from nous_online.core.fields import describe
from nous_online.core.policy import LearnPolicy
from nous_online.core.rights import Rights
from nous_online.core.settings import settings
from nous_online.core.validation import ACTIVE_CENSORS, FRAME, checked_agent
from nous_online.database.connection import Database, open_url
from nous_online.language.embedding import Embedder, among, default_embedder, embedder_of
from nous_online.language.minilm import LocalMiniLM
from nous_online.language.pairs.judging import Judge, OfflineJudge
from nous_online.memories.agent import Agent, across_moves, register
from nous_online.memories.working_memory import WorkingMemory
from nous_online.queue.worker import Background, Worked, has_work, work
from nous_online.verbs.censor_verbs import CensorVerbs
from nous_online.verbs.context_verbs import ContextVerbs
from nous_online.verbs.decision_verbs import DecisionVerbs
from nous_online.verbs.episode_verbs import EpisodeVerbs
from nous_online.verbs.fact_verbs import FactVerbs
from nous_online.verbs.history_verbs import HistoryVerbs
from nous_online.verbs.memory_verbs import MemoryVerbs
from nous_online.verbs.prediction_verbs import PredictionVerbs
from nous_online.verbs.procedure_verbs import ProcedureVerbs
from nous_online.verbs.recall_verbs import RecallVerbs
from nous_online.verbs.session_verbs import SessionVerbs
from nous_online.verbs.webhook_verbs import WebhookVerbs
from nous_online.verbs.workflow_verbs import WorkflowVerbs

if TYPE_CHECKING:
    from nous_online.language.writing.writer import Writer


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
    PredictionVerbs,
    HistoryVerbs,
    MemoryVerbs,
    WebhookVerbs,
):
    """The memory of one agent: what it learns, it can recall; what it recalls and uses, it keeps.

    Safe to share between threads. Every call ends by its deadline with an answer or a `NousError`. What calls leave to
    be done (a closed episode, an event to deliver) a thread of its own does, or `work`, or whoever runs `nous worker`.
    """

    def __init__(self, agent: Agent, *, owns_database: bool = False, works_in_background: bool = False) -> None:
        self.agent = agent
        self._owns_database = owns_database
        if works_in_background:
            background = Background(agent)
            agent.awake.on_ring = background.start
            self._rest = weakref.finalize(self, background.stop)
        else:
            self._rest = None

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
    ) -> Self:
        """Open the memory of `agent_id`, making it when it is new.

        Without `database` the server named by NOUS_DATABASE_URL is used, or the embedded one, started if need be.
        What calls leave to be done a thread does, started when there is something; with `works_in_background=False`
        it is left to `work` and to other workers.
        Without `embedder` it is the one of the space the agent's memories live in, as far as the environment can
        offer it; a new agent gets the one the environment names. With one, `next_embedder` is that of the space the
        agent is being moved to. The heart goes over to the other by itself when the agent has been re-embedded.
        The local embedding model is loaded here, not in the first call that embeds.
        Raises `Unavailable` when it can't be reached, `Unsupported` when it is too old, and `InvalidInput` when
        the agent's memories live in another embedding space than these offer, or the key for Claude is no key.
        """
        from nous_online.language.claude.judge import appointed
        from nous_online.language.claude.model_writer import commissioned
        from nous_online.language.claude.spending import meter_of

        name = checked_agent(agent_id)
        offered = [each for each in (embedder, next_embedder) if each is not None]
        embedder, chosen = embedder or default_embedder(), policy or LearnPolicy()
        judge_for, writer_for = appointed(judge), commissioned(writer, embedder)
        place = database or Database(open_url())
        meter = meter_of(place, name)
        heart = cls(
            Agent(
                id=name,
                database=place,
                embedder=embedder,
                judge=judge_for(meter),
                writer=writer_for(meter),
                policy=chosen,
                rights=Rights(source_trust=chosen.source_trust, on_credential=chosen.on_credential),
                deadline_s=settings().deadline_s if deadline_s is None else deadline_s,
                embedder_of=among(offered) if offered else embedder_of,
            ),
            owns_database=database is None,
            works_in_background=works_in_background,
        )
        return heart._registered()

    def _registered(self) -> Self:
        """Make the agent known, and begin with what an earlier process left to be done."""
        try:
            self.agent = register(self.agent)
            if isinstance(self.agent.embedder, LocalMiniLM):
                with suppress(Unavailable):  # what needs no vector works without; what does will say so
                    self.agent.embedder.load()
            if isinstance(self.agent.judge, OfflineJudge):
                with suppress(Unavailable):
                    self.agent.judge.load()
            if self._rest is not None and has_work(self.agent, self.agent.deadline(None)):
                self.agent.awake.set()
        except BaseException:
            self.close()
            raise
        return self

    @across_moves
    def work(self, *, deadline_s: float | None = None) -> Worked:
        """Do what is due now: complete closed episodes, then deliver events; return how many of each.

        What the thread in the background has begun is waited for, and not counted; what is not begun in half of the
        time is left for later. Raises `Unavailable` when the database fails.
        """
        return work(self.agent, self.agent.deadline(deadline_s))

    def limited_to(self, rights: Rights) -> LimitedHeart:
        """Return this memory as a caller may use it who is believed no further than `rights` say.

        What it claims beyond them is refused with `Forbidden`; the trust of its sources is that of this heart's policy.
        """
        own = self.agent.rights
        return LimitedHeart(self, replace(rights, source_trust=own.source_trust, on_credential=own.on_credential))

    def session(  # noqa: PLR0913 (one parameter for each thing verbs are told over and over)
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
        """Return this memory as one session uses it: each verb is told these where it takes them.

        Used in a `with` block it focuses the session, begun if need be, and with `end` ends it after the block, unless
        that raised. Frame and censors are those the session goes by already, unless told.
        """
        focused = {"task": task, "frame": frame, "active_censors": active_censors, "capacity": capacity}
        told = {"frame": frame, "active_censors": active_censors, "source": source}
        whose = {"session_id": session_id, "user_id": user_id, "project_id": project_id}
        return HeartSession(self, {**whose, **told}, focused, ends=end)

    def close(self) -> None:
        """End the thread that works and give back the connections opened here; what is due is left to others.

        The embedded server keeps running for them.
        """
        if self._rest is not None:
            self._rest()
        if self._owns_database:
            self.agent.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class LimitedHeart(Heart):
    """A heart as one caller may use it; closing it leaves the heart it belongs to open."""

    def __init__(self, whole: Heart, rights: Rights) -> None:
        self._whole, self._rights = whole, rights
        self._owns_database, self._rest = False, None

    @property
    def agent(self) -> Agent:  # pyright: ignore[reportIncompatibleVariableOverride] (it follows the whole heart's moves)
        """The agent of the whole heart, believed as far as the caller is."""
        return replace(self._whole.agent, rights=self._rights)

    @agent.setter
    def agent(self, agent: Agent) -> None:
        self._whole.agent = replace(agent, rights=self._whole.agent.rights)


class HeartSession(LimitedHeart):
    """A heart as one session uses it: what verbs are told over and over is told once; a verb's own arguments win."""

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

    def tell(self, verb: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Call a verb with what the session goes by, as far as it takes that and nothing else is said."""
        given = {*signature(verb).bind_partial(self, *arguments).arguments, *named}
        for names in (FRAME, ACTIVE_CENSORS):
            if any(named.get(name) is not None for name in names):
                given.add(names[0])
        mine = {name: value for name, value in self._defaults.items() if name in takes(verb) and name not in given}
        answer = verb(self, *arguments, **mine, **named)
        if isinstance(answer, WorkingMemory) and answer.session_id == self._defaults["session_id"]:
            in_force = {"frame": answer.frame, "active_censors": answer.active_censors}
            self._defaults |= {name: value for name, value in in_force.items() if value is not None}
        return answer


def in_session(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Return a verb as a session has it."""

    @wraps(verb)
    def told(self: HeartSession, *arguments: Any, **named: Any) -> Any:
        return self.tell(verb, *arguments, **named)

    return told


@cache
def takes(verb: Callable[..., Any]) -> frozenset[str]:
    """Return the names of everything a verb may be told."""
    return frozenset(signature(verb).parameters)


for _group in Heart.__bases__:
    for _name, _verb in vars(_group).items():
        if not _name.startswith("_"):
            describe(_verb)
            setattr(HeartSession, _name, in_session(_verb))
