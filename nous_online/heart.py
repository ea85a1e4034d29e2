"""The agent's door to its memory."""

from __future__ import annotations

from typing import Self

from nous_online.agent import Agent, register
from nous_online.database import Database, open_url, register_space
from nous_online.embedding import Embedder, LocalMiniLM, OpenAICompatible
from nous_online.judging import Judge, OfflineJudge
from nous_online.policy import LearnPolicy
from nous_online.settings import settings
from nous_online.validation import checked_agent
from nous_online.verbs.censors import CensorVerbs
from nous_online.verbs.decisions import DecisionVerbs
from nous_online.verbs.episodes import EpisodeVerbs
from nous_online.verbs.facts import FactVerbs
from nous_online.verbs.history import HistoryVerbs
from nous_online.verbs.procedures import ProcedureVerbs
from nous_online.verbs.recalls import RecallVerbs
from nous_online.verbs.sessions import SessionVerbs


class Heart(
    FactVerbs, RecallVerbs, EpisodeVerbs, ProcedureVerbs, CensorVerbs, SessionVerbs, DecisionVerbs, HistoryVerbs
):
    """The memory of one agent: what it learns, it can recall; what it recalls and uses, it keeps.

    Safe to share between threads. Every call ends by its deadline with an answer or a `NousError`.
    """

    def __init__(self, agent: Agent, *, owns_database: bool = False) -> None:
        self.agent = agent
        self._owns_database = owns_database

    @classmethod
    def open(
        cls,
        agent_id: str,
        *,
        database: Database | None = None,
        embedder: Embedder | None = None,
        judge: Judge | None = None,
        policy: LearnPolicy | None = None,
        deadline_s: float | None = None,
    ) -> Self:
        """Open the memory of `agent_id`, making it when it is new.

        Without `database` the server named by NOUS_DATABASE_URL is used, or the embedded one, started if need be.
        Raises `Unavailable` when it can't be reached, `Unsupported` when it is too old, and `InvalidInput` when
        the agent's memories live in another embedding space than `embedder` offers.
        """
        name = checked_agent(agent_id)
        embedder = embedder or default_embedder()
        heart = cls(
            Agent(
                id=name,
                database=database or Database(open_url()),
                embedder=embedder,
                judge=judge or OfflineJudge(),
                policy=policy or LearnPolicy(),
                deadline_s=settings().deadline_s if deadline_s is None else deadline_s,
            ),
            owns_database=database is None,
        )
        try:
            register_space(heart.agent.database.url, embedder.space)
            register(heart.agent)
        except BaseException:
            heart.close()
            raise
        return heart

    def close(self) -> None:
        """Give back the connections that were opened here; the embedded server keeps running for others."""
        if self._owns_database:
            self.agent.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def default_embedder() -> Embedder:
    """Return the embedder the environment asks for: an OpenAI-compatible server, or MiniLM in process."""
    chosen = settings()
    if chosen.embedding_url is None:
        return LocalMiniLM()
    return OpenAICompatible(
        base_url=chosen.embedding_url,
        model=chosen.embedding_model,
        dimensions=chosen.embedding_dimensions,
        api_key=chosen.embedding_api_key.get_secret_value(),
    )
