"""The hearts of the agents that are spoken for, sharing one pool and one embedder, and whether calls can be served."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from anyio import CapacityLimiter, to_thread

from nous_online.core.deadline import within
from nous_online.core.errors import DeadlineExceeded, NousError, Unavailable, Unsupported
from nous_online.core.policy import ApiPolicy
from nous_online.database.connection import Database, act_as, as_login, open_url
from nous_online.database.migrations import is_current
from nous_online.heart import Heart
from nous_online.language.embedding import Embedder, default_embedder
from nous_online.language.minilm import LocalMiniLM
from nous_online.language.pairs.judging import Judge
from nous_online.language.writing.writer import Writer
from nous_online.memories.status import last_night_applied, last_night_end


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


logger = logging.getLogger(__name__)
LOOK_S = 3.0


@dataclass(frozen=True)
class HealthCheck:
    """One look: at what, whether it is in order, and what was found or is to be done."""

    name: str
    is_ok: bool
    message: str


class ReadinessProbe:
    """Looks at everything a call needs; an answer stands for a moment."""

    def __init__(self, hearts: Hearts, *, policy: ApiPolicy) -> None:
        self._hearts = hearts
        self._memory_s = policy.ready_memory_s
        self._one = CapacityLimiter(1)
        self._found: tuple[HealthCheck, ...] = ()
        self._looked_at = -float("inf")

    async def looked(self) -> tuple[HealthCheck, ...]:
        """Return what the last look found, looking anew when that is over; one looks at a time."""
        return await to_thread.run_sync(self._looked, limiter=self._one)

    def _looked(self) -> tuple[HealthCheck, ...]:
        if time.monotonic() - self._looked_at > self._memory_s:
            self._found = tuple(self._look(name, look) for name, look in self._looks().items())
            self._looked_at = time.monotonic()
        return self._found

    def _looks(self) -> dict[str, Callable[[], str]]:
        return {"database": self._database, "schema": self._schema, "embedder": self._embedder, "nights": self._nights}

    def _look(self, name: str, look: Callable[[], str]) -> HealthCheck:
        try:
            return HealthCheck(name, is_ok=True, message=look())
        except NousError as error:
            logger.warning("not ready: %s: %s", name, error)
            return HealthCheck(name, is_ok=False, message=str(error))

    def _database(self) -> str:
        """Make a connection, which the server answers."""
        with as_login(self._hearts.database(seconds=LOOK_S).url, seconds=LOOK_S):
            return "answers"

    def _schema(self) -> str:
        """Compare the migrations in the database with those of this version."""
        with as_login(self._hearts.database(seconds=LOOK_S).url, seconds=LOOK_S) as connection:
            if not is_current(connection):
                raise Unsupported("the schema is not the one of this version; run `nous up`, or start the newer one")
        return "current"

    def _embedder(self) -> str:
        """Have a word embedded."""
        embedder = self._hearts.embedder
        try:
            within(LOOK_S, lambda: embedder.embed_query("memory"), name="embedder")
        except NousError:
            raise
        except Exception as error:  # an embedder may be anybody's code
            raise Unavailable(f"the embedder failed: {error!r}; mend it") from error
        return f"{embedder.space.id} answers"

    def _nights(self) -> str:
        """Say which night was the last, and whether one is due; neither that nor not knowing ends the serving."""
        try:
            url = self._hearts.database(seconds=LOOK_S).url
            with as_login(url, seconds=LOOK_S) as connection, connection.transaction():
                act_as(connection, "nous_app")
                last = last_night_applied(connection)
        except NousError:
            return "not looked at"
        due = (last_night_end() - timedelta(days=1)).date()
        waits = f"; the night of {due} is due" if last and last < due else ""
        return f"the last was {last}{waits}" if last else "none yet"
