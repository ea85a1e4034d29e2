"""What Prometheus may know of how memories live: nights, work that waits, states and cost, of all agents together."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from psycopg import Connection

from nous_online.core.errors import NousError
from nous_online.database.connection import as_night
from nous_online.database.statements import statements
from nous_online.interfaces.api.hearts import LOOK_S

SQL = statements("nous_online.interfaces.api", "lifecycle_metrics.sql")
MEMORY_S = 30.0
"""Whoever asks more often is told the same: what is counted is counted over all agents."""
STATES = (
    "facts_active", "facts_superseded", "facts_archived", "episodes_raw", "episodes_summary", "episodes_compressed",
    "episodes_fossil", "episodes_archived",
)  # fmt: skip
FIGURES = {
    "agents": ("nous_agents", "Agents of this store."),
    "last_night": ("nous_last_night_timestamp_seconds", "When the last night that was applied ended."),
    "last_night_applied": ("nous_last_night_applied_timestamp_seconds", "When its changes were applied."),
    "episodes_waiting": ("nous_episodes_waiting", "Closed episodes that are not completed yet."),
    "episodes_failing": ("nous_episodes_failing", "Of them, those that failed so far."),
    "episodes_oldest": ("nous_episodes_oldest_due_seconds", "How long the oldest of those that are due has waited."),
    "contradictions_open": ("nous_contradictions_open", "Contradictions that wait for a decision."),
    "consumers_failing": (
        "nous_consumers_failing",
        "Consumers of events, webhooks among them, whose next event fails.",
    ),
    "webhooks": ("nous_webhooks", "Webhooks."),
    "database_bytes": ("nous_database_bytes", "How large the database is on disk."),
}


class LifecycleCollector(Collector):
    """Asks the database when it is scraped; one that can't be asked is `nous_lifecycle_up` 0 and tells nothing."""

    def __init__(self, url: Callable[[], str]) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._found: list[Metric] = []
        self._looked_at = -float("inf")

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: what there is to tell is known when it is asked for."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield what the last look found, looking anew when that is over."""
        with self._lock:
            if time.monotonic() - self._looked_at > MEMORY_S:
                self._found, self._looked_at = self._look(), time.monotonic()
            yield from self._found

    def _look(self) -> list[Metric]:
        is_up = GaugeMetricFamily("nous_lifecycle_up", "Whether the database told what follows.")
        try:
            with as_night(self._url(), seconds=LOOK_S) as connection:
                found = list(metrics_in(connection))
        except NousError:
            found = []
        is_up.add_metric([], 1.0 if found else 0.0)
        return [is_up, *found]


def metrics_in(connection: Connection[Any]) -> Iterator[Metric]:
    """Yield what a database tells."""
    cursor = connection.execute(SQL["figures"])
    row = cursor.fetchone() or ()
    for column, value in zip(cursor.description or (), row, strict=True):
        if value is not None:
            yield GaugeMetricFamily(*FIGURES[column.name], value=value)
    memories = GaugeMetricFamily(
        "nous_memories", "Memories by state, after the last night each agent was in.", labels=["state"]
    )
    for state, count in connection.execute(SQL["memories"], {"keys": list(STATES)}).fetchall():
        memories.add_metric([state], count)
    proposals = GaugeMetricFamily(
        "nous_night_proposals", "What the last night wanted to change, and what became of it.", labels=["kind", "state"]
    )
    for kind, state, count in connection.execute(SQL["proposals"]).fetchall():
        proposals.add_metric([kind, state], count)
    yield memories
    yield proposals
    yield from requests_in(connection)


def requests_in(connection: Connection[Any]) -> Iterator[Metric]:
    """Yield what language models were asked, and what that cost."""
    labels = ["purpose", "model"]
    asked = CounterMetricFamily("nous_llm_requests", "Requests to language models.", labels=labels)
    failed = CounterMetricFamily("nous_llm_failures", "Of them, those that failed.", labels=labels)
    tokens = CounterMetricFamily("nous_llm_tokens", "Tokens read and written.", labels=[*labels, "direction"])
    cost = CounterMetricFamily("nous_llm_cost_usd", "What they cost in US dollars.", labels=labels)
    for purpose, model, count, failures, read, written, usd in connection.execute(SQL["requests"]).fetchall():
        asked.add_metric([purpose, model], count)
        failed.add_metric([purpose, model], failures)
        tokens.add_metric([purpose, model, "in"], read)
        tokens.add_metric([purpose, model, "out"], written)
        cost.add_metric([purpose, model], usd)
    yield from (asked, failed, tokens, cost)
