"""Batches as the local server keeps them: in progress for as many looks as the play says, then a file of lines."""

from __future__ import annotations

import json
import random
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from benchmarks.anthropic_server.plays import BatchPlay, Play
from nous_online.language.claude.replies import Request

LIFETIME = timedelta(hours=24)
RESULTS_KEPT = timedelta(days=29)
OUTCOMES = ("succeeded", "errored", "canceled", "expired")
Answered = Callable[[Request, Play], Mapping[str, Any]]
"""Gives the result of one item that is carried out: its message, or why there is none."""


@dataclass
class StoredBatch:
    """One batch with what was sent; `lines` is the file of its results, once it has ended."""

    requests: Sequence[tuple[str, Request]]
    play: BatchPlay
    created_at: datetime
    id: str = field(default_factory=lambda: f"msgbatch_{uuid.uuid4().hex}")
    looks: int = 0
    cancelled_at: datetime | None = None
    is_expired: bool = False
    ended_at: datetime | None = None
    counts: Counter[str] = field(default_factory=Counter)
    lines: bytes = b""
    _ending: threading.Lock = field(default_factory=threading.Lock)

    @property
    def status(self) -> str:
        """`in_progress`, `canceling` or `ended`."""
        if self.ended_at:
            return "ended"
        return "canceling" if self.cancelled_at else "in_progress"

    def look(self, answered: Answered, *, at: datetime) -> None:
        """Count a look at the batch, and end it where it was the one after the last in progress, or a day is over."""
        is_done = self.play.looks is not None and self.looks >= self.play.looks
        self.looks += 1
        self.is_expired = not is_done and at >= self.created_at + LIFETIME
        if is_done or self.cancelled_at or self.is_expired:
            self.end(answered, at=at)

    def cancel(self, *, at: datetime) -> None:
        """Begin to cancel; the next look finds the batch ended."""
        self.cancelled_at = at

    def end(self, answered: Answered, *, at: datetime) -> None:
        """Carry out what is left and write the file of results."""
        with self._ending:
            if not self.ended_at:
                self._carry_out(answered, at=at)

    def _carry_out(self, answered: Answered, *, at: datetime) -> None:
        results = [self._result(position, answered) for position in range(len(self.requests))]
        self.counts = Counter(outcome if outcome in OUTCOMES else "errored" for _, outcome, _ in results)
        self.lines = b"".join(line + b"\n" for line in self._written(results, answered))
        self.ended_at = at

    def _result(self, position: int, answered: Answered) -> tuple[str, str, Mapping[str, Any]]:
        custom_id, request = self.requests[position]
        play = self.play.of(position, custom_id, request)
        if self.cancelled_at and position >= self.play.done_before_cancel:
            play = Play(outcome="canceled")
        elif self.is_expired:
            play = Play(outcome="expired")
        result = answered(request, play)
        return custom_id, result["type"], result

    def _written(self, results: Sequence[tuple[str, str, Mapping[str, Any]]], answered: Answered) -> list[bytes]:
        lines = [json.dumps({"custom_id": custom_id, "result": result}).encode() for custom_id, _, result in results]
        kept = [line for position, line in enumerate(lines) if position not in self.play.missing]
        again = [lines[position] for position in self.play.duplicated]
        strangers = [
            json.dumps({"custom_id": custom_id, "result": answered(self.requests[0][1], Play())}).encode()
            for custom_id in self.play.unknown
        ]
        written = [*kept, *again, *strangers, *self.play.extra_lines]
        if self.play.is_shuffled:
            random.Random(self.id).shuffle(written)
        return written

    def has_results(self, *, at: datetime) -> bool:
        """Whether the file of results can be had: from the end of the batch until 29 days after its creation."""
        return self.ended_at is not None and at < self.created_at + RESULTS_KEPT

    def as_json(self, url: str, *, at: datetime) -> dict[str, Any]:
        """Return the batch as the API describes it; nothing but `processing` is counted before it has ended."""
        archived_at = self.created_at + RESULTS_KEPT
        counts = dict.fromkeys(OUTCOMES, 0) | {"processing": 0 if self.ended_at else len(self.requests)}
        return {
            "type": "message_batch",
            "id": self.id,
            "processing_status": self.status,
            "request_counts": counts | dict(self.counts),
            "created_at": self.created_at.isoformat(),
            "expires_at": (self.created_at + LIFETIME).isoformat(),
            "cancel_initiated_at": self.cancelled_at and self.cancelled_at.isoformat(),
            "ended_at": self.ended_at and self.ended_at.isoformat(),
            "archived_at": archived_at.isoformat() if at >= archived_at else None,
            "results_url": f"{url}/v1/messages/batches/{self.id}/results" if self.has_results(at=at) else None,
        }
