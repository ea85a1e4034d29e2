"""What works on chunks of agents, wherever that is: results come back in the order of the chunks."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from nous_online.core.errors import DeadlineExceeded, NousError, Unavailable
from nous_online.core.settings import Settings

C = TypeVar("C")
R = TypeVar("R")
OnDone = Callable[[int, int], None]
"""Is told how many chunks of how many are done."""
MOST_LOST = 3
"""Workers that may end over one chunk before the chunk is held to be the cause."""
MOST_LATE = 2
"""Times a chunk may pass its deadline: the first time the machine may have been busy."""


class Engine(Protocol):
    """Maps a function over chunks."""

    @property
    def width(self) -> int:
        """How many chunks it works on at once."""
        ...

    @property
    def shares_memory(self) -> bool:
        """Whether functions run in this process; otherwise function, chunks and results have to be picklable."""
        ...

    @property
    def shares_settings(self) -> bool:
        """Whether workers know what this process was told; otherwise they go by their own environment."""
        ...

    def map(self, function: Callable[[C], R], chunks: Sequence[C], *, on_done: OnDone | None = None) -> list[R]:
        """Return the results of a function in the order of the chunks.

        What the function raises for a chunk is raised here, and no other chunk is begun. Raises `DeadlineExceeded`
        for a chunk that does not end in its time, and `Unavailable` when workers are lost again and again.
        """
        ...

    def close(self) -> None:
        """End what it started."""
        ...


class InProcess:
    """Works on one chunk after the other, in this process."""

    width = 1
    shares_memory = True
    shares_settings = True

    def map(self, function: Callable[[C], R], chunks: Sequence[C], *, on_done: OnDone | None = None) -> list[R]:
        """Return the results of a function in the order of the chunks."""
        found: list[R] = []
        for chunk in chunks:
            found.append(function(chunk))
            if on_done is not None:
                on_done(len(found), len(chunks))
        return found

    def close(self) -> None:
        """Do nothing: nothing was started."""


def engine_of(settings: Settings) -> Engine:
    """Return the engine that NOUS_ENGINE names.

    Raises `Unavailable` when it can't be reached, and `Unsupported` when its extra is missing or a worker differs.
    """
    kind, _, place = settings.engine.partition(":")
    if kind == "in-process":
        return InProcess()
    if kind == "processes":
        from nous_pipelines.engines.process_pool import ProcessPool

        return ProcessPool(int(place) if place else os.cpu_count() or 1, deadline_s=settings.engine_deadline_s)
    from nous_pipelines.engines.dask_engine import DaskEngine

    return DaskEngine(settings.engine, deadline_s=settings.engine_deadline_s)


def too_late(chunk: object, deadline_s: float, where: str) -> DeadlineExceeded:
    """Return what is raised for a chunk that passed its deadline."""
    return DeadlineExceeded(
        f"{chunk} took longer than {deadline_s:g} s on {where}; raise NOUS_ENGINE_DEADLINE_S, or look at its agents"
    )


def too_many_lost(chunk: object, count: int, how: str) -> Unavailable:
    """Return what is raised for a chunk over which workers end again and again."""
    return Unavailable(f"{count} workers ended over {chunk} ({how}); look for too little memory, then run it again")


def portable(error: Exception) -> Exception:
    """Return an error that comes through to another process: as it is where it can be pickled, with its traceback."""
    where = "".join(traceback.format_exception(error))
    try:
        copy = pickle.loads(pickle.dumps(error))  # noqa: S301 (our own bytes)
    except Exception:  # whatever an error's own `__reduce__` or `__init__` raises
        copy = None
    if type(copy) is not type(error) or str(copy) != str(error):
        error = Unavailable(str(error)) if isinstance(error, NousError) else RuntimeError(f"{type(error)}: {error}")
    if not isinstance(error, NousError):
        error.add_note(f"in a worker:\n{where}")
    return error
