"""The way in: whose memory a request is for, opened when first needed, closed when the last call has left."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from uuid import uuid4

from nous_online.core.errors import NousError, Unavailable
from nous_online.heart import Heart
from nous_online.interfaces.mcp.acts import Visit

logger = logging.getLogger(__name__)
SESSION_HEADER = "nous-session"
CONNECTION_HEADER = "mcp-session-id"
MOST_CHARACTERS = 80


class Threshold:
    """Where calls come in and leave, until it is closed for good."""

    def __init__(self) -> None:
        self._is_closed = False
        self._inside = 0
        self._lock = threading.Condition()

    @contextmanager
    def crossed(self) -> Generator[None]:
        """Count one call as inside; raise `Unavailable` once the server is stopping."""
        with self._lock:
            if self._is_closed:
                raise Unavailable("the server is stopping; start it again, then repeat the call")
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                self._lock.notify_all()

    def close(self) -> None:
        """Let nobody in, and wait for the calls that are inside: each ends by its deadline."""
        with self._lock:
            self._is_closed = True
            self._lock.wait_for(lambda: not self._inside)


class SharedHeart:
    """One agent's memory for many calls at once.

    It is opened by the first call, so that a client is greeted at once and a database that is away is named by the
    call that needed it; the next call tries again.
    """

    def __init__(self, opening: Callable[[], Heart], visit: Visit) -> None:
        self.visit = visit
        self._opening = opening
        self._heart: Heart | None = None
        self._threshold = Threshold()
        self._open_lock = threading.Lock()

    @contextmanager
    def entered(self) -> Generator[Heart]:
        """Yield the heart to one call; raise `Unavailable` once the server is stopping."""
        with self._threshold.crossed():
            yield self._opened()

    def _opened(self) -> Heart:
        with self._open_lock:
            if self._heart is None:
                self._heart = self._opening()
            return self._heart

    def warm_up(self) -> None:
        """Open the heart before anybody calls, if that is possible now."""
        warm_up(self.entered)

    def close(self) -> None:
        """Let nobody in, wait for the calls that are inside, and close the heart."""
        self._threshold.close()
        heart, self._heart = self._heart, None
        if heart is not None:
            heart.close()


def warm_up(entered: Callable[[], AbstractContextManager[object]]) -> None:
    """Come in once and leave; what stands in the way goes to the log, and the first call will tell it."""
    try:
        with entered():
            pass
    except NousError as error:
        logger.warning("%s", error)


def new_session() -> str:
    """Return a name for the session of a connection."""
    return f"mcp-{uuid4().hex[:12]}"


def session_of(headers: Mapping[str, str], usual: str) -> str:
    """Return the session of an HTTP request: the one it names, that of its connection, or the server's."""
    named = headers.get(SESSION_HEADER)
    if named:
        return named[:MOST_CHARACTERS]
    connection = headers.get(CONNECTION_HEADER)
    return f"mcp-{connection[:MOST_CHARACTERS]}" if connection else usual
