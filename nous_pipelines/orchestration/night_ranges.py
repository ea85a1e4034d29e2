"""Runs night after night: what the database lost on the way is tried again, and a night that fails ends the range."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from typing import Protocol

from nous_online.core.errors import Unavailable
from nous_pipelines.orchestration.running import NightOutcome

WAITS_S = (2.0, 10.0, 30.0, 60.0, 120.0)
"""How long a lost database is waited for before the night is tried again: a restart, or a network that comes back."""
LOOK_S = 0.2
MINUTE_S, HOUR_S = 60, 3600


class Stop(Protocol):
    """Whether somebody asked to stop."""

    def is_asked(self) -> bool:
        """Tell whether somebody did."""
        ...

    def rest(self, seconds: float) -> None:
        """Wait, unless somebody asks to stop."""
        ...


def run_nights(
    nights: Sequence[date],
    run: Callable[[date], NightOutcome],
    *,
    stop: Stop,
    tell: Callable[[str], None],
    waits_s: Sequence[float] = WAITS_S,
) -> Iterator[NightOutcome]:
    """Run nights in order and yield how each ended, up to one that is stopped, or until somebody asks to stop.

    A night is never left half-done: it is run in a thread of its own, so that a signal is heard when it is over.
    Where the database is lost on the way, the night is run again after each of `waits_s`. `tell` is told what a person
    would want to know meanwhile. Raises what `run` raises.
    """

    def attempt(night: date) -> NightOutcome:
        return uninterrupted(lambda: run(night), stop=stop, tell=tell)

    for night in nights:
        if stop.is_asked():
            return
        outcome = tried(night, attempt, waits_s=waits_s, stop=stop, tell=tell)
        if outcome is None:
            return
        yield outcome
        if outcome.is_stopped:
            return


def tried(
    night: date,
    attempt: Callable[[date], NightOutcome],
    *,
    waits_s: Sequence[float],
    stop: Stop,
    tell: Callable[[str], None],
) -> NightOutcome | None:
    """Run one night, again while the database is lost on the way, and return how the last attempt ended.

    None where somebody asked to stop while the database was waited for: nobody wants another attempt then.
    """
    for wait_s in waits_s:
        try:
            outcome = attempt(night)
            if not outcome.is_lost:
                return outcome
            why = outcome.failures[0]
        except Unavailable as error:
            if isinstance(error.__cause__, OSError):
                raise
            why = str(error)
        tell(f"night {night} lost the database ({why}); it is tried again in {wait_s:g} s")
        stop.rest(wait_s)
        if stop.is_asked():
            return None
    return attempt(night)


def uninterrupted(work: Callable[[], NightOutcome], *, stop: Stop, tell: Callable[[str], None]) -> NightOutcome:
    """Return what a function returns, run where no signal ends it; say once that a request to stop was heard."""
    ended: list[NightOutcome] = []
    failed: list[BaseException] = []

    def attempt() -> None:
        try:
            ended.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=attempt, name="night", daemon=True)
    thread.start()
    is_told = stop.is_asked()
    while thread.is_alive():
        thread.join(LOOK_S)
        if stop.is_asked() and not is_told:
            is_told = True
            tell("ending when this night is whole; once more ends at once, and the next run finishes it")
    for error in failed:
        raise error
    return ended[0]


def time_left(done: int, total: int, *, seconds: float) -> str:
    """Say how far a range has come and how long the rest takes at that pace."""
    left_s = seconds / done * (total - done)
    if left_s < MINUTE_S:
        rest = f"{left_s:.0f} s"
    elif left_s < HOUR_S:
        rest = f"{left_s / MINUTE_S:.0f} min"
    else:
        rest = f"{left_s / HOUR_S:.1f} h"
    return f"{done} of {total} nights, about {rest} left"
