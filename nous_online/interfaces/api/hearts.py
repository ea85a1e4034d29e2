"""The hearts of the agents that are spoken for: opened at the first call, sharing one pool and one embedder."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from nous_online.core.errors import DeadlineExceeded
from nous_online.core.policy import ApiPolicy
from nous_online.database.connection import Database, open_url
from nous_online.heart import Heart
from nous_online.language.embedding import Embedder, default_embedder
from nous_online.language.minilm import LocalMiniLM
from nous_online.language.pairs.judging import Judge
from nous_online.language.writing.writer import Writer


def open_database() -> Database:
    """Open the database of this process with connections for many callers."""
    return Database(open_url(), max_connections=ApiPolicy.most_connections)


class Hearts:
    """The open hearts, at most so many; the one not spoken for longest makes room. Safe to share between threads."""

    def __init__(
        self,
        *,
        opened_by: Callable[[], Database] = open_database,
        embedder: Embedder | None = None,
        judge: Judge | None = None,
        writer: Writer | None = None,
        most: int = ApiPolicy.most_hearts,
        works_in_background: bool = True,
    ) -> None:
        self.embedder = embedder or default_embedder()
        self._opened_by = opened_by
        self._judge, self._writer = judge, writer
        self._most, self._works_in_background = most, works_in_background
        self._others = None if isinstance(self.embedder, LocalMiniLM) else LocalMiniLM()
        self._database: Database | None = None
        self._opening, self._lock = threading.Lock(), threading.Lock()
        self._hearts: OrderedDict[str, Heart] = OrderedDict()

    def __len__(self) -> int:
        return len(self._hearts)

    def known(self, agent_id: str) -> Heart | None:
        """Return the heart of an agent if it is open; nobody waits for this."""
        with self._lock:
            heart = self._hearts.get(agent_id)
            if heart is not None:
                self._hearts.move_to_end(agent_id)
        return heart

    def of(self, agent_id: str, *, seconds: float) -> Heart:
        """Return the heart of an agent, opened if need be; raises what opening one raises."""
        return self.known(agent_id) or self._kept(agent_id, self._opened(agent_id, seconds))

    def database(self, *, seconds: float) -> Database:
        """Return the database, opened at the first call that finds it; one that is away is tried again."""
        if not self._opening.acquire(timeout=seconds):
            raise DeadlineExceeded(f"the database was not opened within {seconds:.3g} s; see whether the server runs")
        try:
            self._database = self._database or self._opened_by()
            return self._database
        finally:
            self._opening.release()

    def close(self) -> None:
        """End what the hearts do in the background, and give the connections back."""
        with self._lock:
            hearts = [*self._hearts.values()]
            self._hearts.clear()
        for heart in hearts:
            heart.close()
        if self._database is not None:
            self._database.close()

    def _opened(self, agent_id: str, seconds: float) -> Heart:
        return Heart.open(
            agent_id,
            database=self.database(seconds=seconds),
            embedder=self.embedder,
            next_embedder=self._others,
            judge=self._judge,
            writer=self._writer,
            works_in_background=self._works_in_background,
        )

    def _kept(self, agent_id: str, heart: Heart) -> Heart:
        """Keep a heart just opened; of two that were opened at once, and of too many, one is closed again."""
        with self._lock:
            kept = self._hearts.setdefault(agent_id, heart)
            self._hearts.move_to_end(agent_id)
            gone = [] if kept is heart else [heart]
            while len(self._hearts) > self._most:
                gone.append(self._hearts.popitem(last=False)[1])
        for each in gone:
            each.close()
        return kept
