"""The seam to the night: who runs it is found through an entry point, so that nothing here needs the pipeline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.metadata import entry_points
from typing import Any, Literal, Protocol

CONSOLIDATORS_GROUP = "nous.consolidators"
RunState = Literal["running", "succeeded", "failed"]


@dataclass(frozen=True)
class PlannedNight:
    """What a dry run came to: counts of the very plan the night would apply."""

    night: date
    plan_hash: str
    counts: Mapping[str, int]
    is_success: bool
    failures: tuple[str, ...]
    notices: tuple[str, ...] = ()
    """Whom the night would leave out, and why."""


@dataclass(frozen=True)
class BackgroundNight:
    """A night under way in the background, or over."""

    run: str
    night: date
    state: RunState
    interface: str
    """Where the Dagster interface shows runs, when it is up."""
    counts: Mapping[str, int] | None = None
    failures: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    """Whom the night left out, and why; it was applied for all others."""


@dataclass(frozen=True)
class TakenBack:
    """What became of nights that were to be taken back, the newest first."""

    undone: Mapping[date, int]
    """How many proposals of each night were taken back."""
    refused: Mapping[str, str]
    """Which proposal was not, and why; nights before it stand as they were."""


class Consolidator(Protocol):
    """Plans and runs nights over one database."""

    def plan(self, url: str, *, night: date | None, agent_id: str | None, seconds: float) -> PlannedNight:
        """Return what a night would do, changing nothing."""
        ...

    def start(self, url: str, *, night: date | None, agent_id: str | None) -> BackgroundNight:
        """Start a night in the background."""
        ...

    def state(self, run: str) -> BackgroundNight:
        """Return how a night started here stands; raise `NotFound` for one that was not."""
        ...

    def report(self, url: str, *, night: date | None, agent_id: str | None, seconds: float) -> Mapping[str, Any]:
        """Return the report of a night, of all agents or of one alone; raise `NotFound` when it did not run."""
        ...

    def undo(
        self,
        url: str,
        *,
        nights: tuple[date, date],
        kind: str | None,
        agent_id: str | None,
        reason: str,
        seconds: float,
    ) -> TakenBack:
        """Take back the nights from the first to the last, newest first, as far as nothing was built on them."""
        ...


@cache
def installed_consolidator() -> Callable[[], Consolidator] | None:
    """Return what makes a `Consolidator` here, looked for in every package once; None without the extra."""
    return next((point.load() for point in entry_points(group=CONSOLIDATORS_GROUP)), None)
