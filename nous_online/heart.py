"""The agent's door to its memory."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Self, Unpack
from uuid import UUID

from nous_online import facts, recalling, store
from nous_online.agent import Agent, register
from nous_online.database import Database, open_url, register_space
from nous_online.domain import Fact, FactDetails, Learned
from nous_online.embedding import Embedder, LocalMiniLM, OpenAICompatible
from nous_online.judging import Judge, OfflineJudge
from nous_online.policy import LearnPolicy
from nous_online.recalling import Recall, RecallDetails
from nous_online.settings import settings
from nous_online.validation import checked_agent, checked_id


class Heart:
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

    def learn(self, content: str, *, deadline_s: float | None = None, **details: Unpack[FactDetails]) -> Learned:
        """Learn one fact: confirm the one that says the same, supersede the one it updates, or store it.

        Returns what was done and why. Raises `InvalidInput` for what can't be stored, `Conflict` when the
        idempotency key was used for another content, `DeadlineExceeded` and `Unavailable` when the database or
        embedder fails; then nothing was stored. A judge that fails never loses the fact: it is stored, and the
        night looks at the pair again.
        """
        deadline = self.agent.deadline(deadline_s)
        new = facts.new_fact(content, details, now=datetime.now(UTC))
        return facts.learn(self.agent, new, deadline)

    def learn_deferred(self, entries: Sequence[tuple[str, FactDetails]], *, deadline_s: float | None = None) -> int:
        """Store many facts at once as they are, leave all matching to the night, and return how many were new.

        Meant for histories: nothing is confirmed or superseded here, so every line can be found again and every
        later merge can be undone. All are stored, or none; raises as `learn` does.
        """
        deadline = self.agent.deadline(deadline_s)
        now = datetime.now(UTC)
        news = [facts.new_fact(content, details, now=now) for content, details in entries]
        return facts.store_deferred(self.agent, news, deadline)

    def recall(self, query: str, *, deadline_s: float | None = None, **details: Unpack[RecallDetails]) -> Recall:
        """Return what answers `query` best, best first, with the parts of each score, and remember that it was asked.

        What was encoded in the same frame counts 1.3 times, what was encoded under the same censors up to 1.2 times;
        neither hides anything. Raises `InvalidInput`, `DeadlineExceeded` or `Unavailable`.
        """
        deadline = self.agent.deadline(deadline_s)
        return recalling.ask(self.agent, query, details, deadline)

    def cite(
        self,
        recall_id: UUID,
        memory_ids: Sequence[UUID],
        *,
        at: datetime | None = None,
        deadline_s: float | None = None,
    ) -> int:
        """Say which answers of a recall were used; return how many that is news about.

        What is cited rises with the nights, and becomes a probe that no night may make harder to find.
        """
        deadline = self.agent.deadline(deadline_s)
        at = at or datetime.now(UTC)
        return recalling.give_feedback(self.agent, recall_id, memory_ids, "cited", at=at, deadline=deadline)

    def ignore(
        self,
        recall_id: UUID,
        memory_ids: Sequence[UUID],
        *,
        at: datetime | None = None,
        deadline_s: float | None = None,
    ) -> int:
        """Say which answers of a recall were of no use; return how many that is news about."""
        deadline = self.agent.deadline(deadline_s)
        at = at or datetime.now(UTC)
        return recalling.give_feedback(self.agent, recall_id, memory_ids, "ignored", at=at, deadline=deadline)

    def get(self, fact_id: UUID, *, deadline_s: float | None = None) -> Fact:
        """Return one fact in whatever state it is; raise `NotFound` when this agent has none of that id."""
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return store.get_fact(connection, self.agent.id, checked_id("fact_id", fact_id))

    def count(self, *, deadline_s: float | None = None) -> dict[str, int]:
        """Return how many facts the agent has in each state."""
        with self.agent.transaction(self.agent.deadline(deadline_s)) as connection:
            return store.count_facts(connection, self.agent.id)


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
