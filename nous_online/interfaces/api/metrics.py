"""What Prometheus may know: calls and what went wrong with them, and how memories live; nothing of what they say."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.registry import Collector

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS_S = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """The counters of one application."""

    def __init__(self, *, open_hearts: Callable[[], int], lifecycle: Collector | None = None) -> None:
        self._registry = CollectorRegistry()
        self.in_flight = Gauge("nous_http_in_flight", "Calls under way.", registry=self._registry)
        self._requests = Counter(
            "nous_http_requests", "Calls answered.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "nous_http_request_seconds", "How long calls took.", ("route",), buckets=BUCKETS_S, registry=self._registry
        )
        self._problems = Counter(
            "nous_http_problems", "Calls that failed, by problem.", ("kind",), registry=self._registry
        )
        hearts = Gauge("nous_hearts_open", "Agents kept open.", registry=self._registry)
        hearts.set_function(open_hearts)
        if lifecycle is not None:
            self._registry.register(lifecycle)

    def answered(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """Count one call."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def failed(self, kind: str) -> None:
        """Count one problem."""
        self._problems.labels(kind).inc()

    def text(self) -> bytes:
        """Return everything in Prometheus' text format."""
        return generate_latest(self._registry)
