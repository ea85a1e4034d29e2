"""Whether calls can be served now: asked of the database and the embedder themselves.

Looking takes no connection and no thread that calls wait for: that many are served is no reason to be ended.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from anyio import CapacityLimiter, to_thread

from nous_online.core.deadline import within
from nous_online.core.errors import NousError, Unavailable, Unsupported
from nous_online.core.policy import ApiPolicy
from nous_online.database.connection import act_as, as_login
from nous_online.database.migrations import is_current
from nous_online.interfaces.api.hearts import Hearts
from nous_online.memories.status import last_night_applied, over

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
        due = (over() - timedelta(days=1)).date()
        waits = f"; the night of {due} is due" if last and last < due else ""
        return f"the last was {last}{waits}" if last else "none yet"
