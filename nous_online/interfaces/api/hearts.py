"""A cache of open hearts that share one connection pool and one embedder, and the readiness probe."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from anyio import CapacityLimiter, to_thread

from nous_online.core.deadline import within
from nous_online.core.errors import DeadlineExceeded, NotFound, NousError, Unavailable, Unsupported
from nous_online.core.policy import ApiPolicy
from nous_online.database.connection import Database, as_login, as_night, open_url
from nous_online.database.schema import is_current
from nous_online.heart import Heart
from nous_online.language.embedding import Embedder, default_embedder
from nous_online.language.pairs.judging import Judge
from nous_online.language.writing.writer import Writer
from nous_online.memories.status import nights_of_all, unknown_agent


def open_database() -> Database:
    """Open the database of this process with a pool for many callers."""
    return Database(open_url(), max_connections=ApiPolicy.most_connections)


class Hearts:
    """An LRU cache of open hearts by agent, at most `most`. Safe to share between threads.

    Without `embedder` the environment's is used; raises `InvalidInput`, at the start of a server, when it names none.
    """

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
        self._embedder = embedder
        self.embedder_of_new()
        self._opened_by = opened_by
        self._judge, self._writer = judge, writer
        self._most, self._works_in_background = most, works_in_background
        self._database: Database | None = None
        self._opening, self._lock = threading.Lock(), threading.Lock()
        self._hearts: OrderedDict[str, Heart] = OrderedDict()

    def __len__(self) -> int:
        return len(self._hearts)

    def find_open(self, agent_id: str) -> Heart | None:
        """Return the heart of an agent if it is open, without blocking on the database."""
        with self._lock:
            heart = self._hearts.get(agent_id)
            if heart is not None:
                self._hearts.move_to_end(agent_id)
        return heart

    def of(self, agent_id: str, *, seconds: float, must_exist: bool = False) -> Heart:
        """Return the heart of an agent, opened if need be; raises as `Heart.open` does."""
        return self.find_open(agent_id) or self._add(agent_id, self._open(agent_id, seconds, must_exist=must_exist))

    def database(self, *, seconds: float) -> Database:
        """Return the database, opened at the first call; where that fails, the next call tries again."""
        # One thread opens it; a lock with a timeout, so that the others keep their deadlines.
        if not self._opening.acquire(timeout=seconds):
            raise DeadlineExceeded(f"the database was not opened within {seconds:.3g} s; see whether the server runs")
        try:
            self._database = self._database or self._opened_by()
            return self._database
        finally:
            self._opening.release()

    def embedder_of_new(self) -> Embedder:
        """Return the embedder of agents that are new."""
        return self._embedder or default_embedder()

    def close(self) -> None:
        """Stop the background work of all hearts and close the connection pool."""
        with self._lock:
            hearts = [*self._hearts.values()]
            self._hearts.clear()
        for heart in hearts:  # outside the lock: closing waits for a thread
            heart.close()
        if self._database is not None:
            self._database.close()

    def _open(self, agent_id: str, seconds: float, *, must_exist: bool) -> Heart:
        database = self.database(seconds=seconds)
        try:
            with database.transaction(timeout_s=seconds):  # opening a heart waits longer for a server that is away
                pass
            return Heart.open(
                agent_id,
                database=database,
                embedder=self._embedder,
                judge=self._judge,
                writer=self._writer,
                works_in_background=self._works_in_background,
                must_exist=must_exist,
                begins_late=True,
            )
        except NotFound:
            raise unknown_agent(database.url, agent_id) from None

    def _add(self, agent_id: str, heart: Heart) -> Heart:
        """Cache a new heart, or return the one another thread cached meanwhile; evict the least recently used."""
        with self._lock:
            kept = self._hearts.setdefault(agent_id, heart)
            self._hearts.move_to_end(agent_id)
            surplus = [] if kept is heart else [heart]
            while len(self._hearts) > self._most:
                surplus.append(self._hearts.popitem(last=False)[1])
        for each in surplus:
            each.close()
        return kept


logger = logging.getLogger(__name__)
PROBE_S = 3.0
NOT_LOOKED_AT = "not looked at"


@dataclass(frozen=True)
class HealthCheck:
    """The result of one check: its name, whether it passed, and what was found or is to be done."""

    name: str
    is_ok: bool
    message: str


class ReadinessProbe:
    """Checks everything a call needs; results are cached for `ready_memory_s`."""

    def __init__(self, hearts: Hearts, *, policy: ApiPolicy) -> None:
        self._hearts = hearts
        self._memory_s = policy.ready_memory_s
        self._one = CapacityLimiter(1)  # a thread of its own: calls that wait for the database can't hold it up
        self._checks: tuple[HealthCheck, ...] = ()
        self._checked_at = -float("inf")

    async def checks(self) -> tuple[HealthCheck, ...]:
        """Return the results of all checks, run again once the cached ones expired; one thread runs them at a time."""
        return await to_thread.run_sync(self._run_checks, limiter=self._one)

    def _run_checks(self) -> tuple[HealthCheck, ...]:
        if time.monotonic() - self._checked_at > self._memory_s:
            checks = {
                "database": self._database,
                "schema": self._schema,
                "embedder": self._embedder,
                "nights": self._nights,
            }
            self._checks = tuple(self._run(name, check) for name, check in checks.items())
            self._checked_at = time.monotonic()
        return self._checks

    def _run(self, name: str, check: Callable[[], str]) -> HealthCheck:
        try:
            return HealthCheck(name, is_ok=True, message=check())
        except NousError as error:
            logger.warning("not ready: %s: %s", name, error)
            return HealthCheck(name, is_ok=False, message=str(error))

    def _database(self) -> str:
        """Open a connection."""
        with as_login(self._hearts.database(seconds=PROBE_S).url, seconds=PROBE_S):
            return "answers"

    def _schema(self) -> str:
        """Compare the migrations in the database with those of this version."""
        with as_login(self._hearts.database(seconds=PROBE_S).url, seconds=PROBE_S) as connection:
            if not is_current(connection):
                raise Unsupported("the schema is not the one of this version; run `nous up`, or start the newer one")
        return "current"

    def _embedder(self) -> str:
        """Embed a word."""
        embedder = self._hearts.embedder_of_new()
        try:
            within(PROBE_S, lambda: embedder.embed_query("memory"), name="embedder")
        except NousError:
            raise
        except Exception as error:  # an embedder may be anybody's code
            raise Unavailable(f"the embedder failed: {error!r}; mend it") from error
        return f"{embedder.space.id} answers"

    def _nights(self) -> str:
        """Return which night was the last, and what waits for one; never fails, as calls don't need the nights."""
        try:
            with as_night(self._hearts.database(seconds=PROBE_S).url, seconds=PROBE_S) as connection:
                return nights_of_all(connection)
        except NousError:
            return NOT_LOOKED_AT
