"""Who hears events in a test, and what the outbox says of them."""

from __future__ import annotations

import psycopg

from nous_online.memories.agent import Event


class Listener:
    """A handler that keeps what it heard, and fails as often as the test wants."""

    def __init__(self, *, failures: int = 0) -> None:
        self.heard: list[Event] = []
        self.failures = failures

    def __call__(self, event: Event) -> None:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the listener is ill")
        self.heard.append(event)

    @property
    def names(self) -> list[str]:
        return [event.name for event in self.heard]


def rested(owner: psycopg.Connection) -> None:
    owner.execute("update heart.outbox_cursors set retry_at = null")


def last_error(owner: psycopg.Connection) -> str:
    row = owner.execute("select last_error from heart.outbox_cursors where consumer = 'heart'").fetchone()
    return "" if row is None or row[0] is None else row[0]


def skipped(owner: psycopg.Connection) -> list[str]:
    query = "select payload->>'name' from heart.outbox where name = 'event_skipped' order by id"
    return [row[0] for row in owner.execute(query).fetchall()]
