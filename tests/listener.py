"""Who hears events in a test."""

from __future__ import annotations

import psycopg

from nous_online.outbox import Event


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
