"""Benchmark `hooks`: what the hooks of Claude Code add to a session, as the processes it starts."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any

import numpy as np

from benchmarks import server
from benchmarks.api import AGENT, opened
from benchmarks.drawn_memories import World
from nous_online.core.errors import Unavailable
from nous_online.interfaces.hooks.client_settings import launcher
from nous_online.interfaces.hooks.hook import SOCKET
from nous_online.processes import child_environment, stop_all

STORED, QUICK_STORED = 10_000, 500
WARM, QUICK_WARM = 100, 20
COLD, QUICK_COLD = 10, 3
READY_S = 60.0


@dataclass(frozen=True)
class Machine:
    """A home of hooks: how one is called, and its memory let go."""

    home: Path
    url: str

    def call(self, event: str, prompt: str) -> tuple[float, bool]:
        """Start one hook as Claude Code does; return its seconds, and whether it had something to say."""
        told = json.dumps({"session_id": "s-1", "hook_event_name": event, "cwd": str(self.home), "prompt": prompt})
        environment = child_environment(NOUS_DATABASE_URL=self.url, NOUS_HOME=str(self.home), NOUS_AGENT=AGENT)
        began = perf_counter()
        ended = subprocess.run(  # noqa: S603 (the command is ours)
            [*launcher(), "hook", event],
            input=told.encode(),
            stdout=subprocess.PIPE,
            cwd=self.home,
            env=environment,
            check=True,
        )
        return perf_counter() - began, bool(ended.stdout)

    def warm_up(self) -> None:
        """Wait until the hook server listens; raise `Unavailable` where it never does."""
        self.call("SessionStart", "")
        ends_at = monotonic() + READY_S
        while not self.call("SessionStart", "")[1]:
            if monotonic() > ends_at:
                raise Unavailable(f"the hook server was not ready within {READY_S:g} s; see {self.home / 'hooks.log'}")
            sleep(0.2)

    def let_go(self) -> None:
        """End the hook server, as after an hour without a session."""
        stop_all(self.home)
        (self.home / SOCKET).unlink(missing_ok=True)


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Measure the start of a session and a prompt with the memory open, and the start of one without."""
    stored, warm, cold = (QUICK_STORED, QUICK_WARM, QUICK_COLD) if quick else (STORED, WARM, COLD)
    world = World(5)
    prompts = world.questions(warm).texts
    with server() as (url, _), opened(url, world.memories(stored).texts), machine(url) as here:
        colds = [cold_start(here) for _ in range(cold)]
        here.warm_up()
        starts = [here.call("SessionStart", "") for _ in range(warm)]
        asked = [here.call("UserPromptSubmit", prompt) for prompt in prompts]
    metrics = {
        **figures("session_start", starts),
        **figures("prompt", asked),
        "cold_ms": figures("cold", colds)["cold_p95_ms"],
        "session_start_answered_ratio": float(np.mean([is_answer for _, is_answer in starts])),
        "cold_answered_ratio": float(np.mean([is_answer for _, is_answer in colds])),
    }
    return {"metrics": metrics, "peers": {}, "notes": notes(stored, warm, cold)}


@contextmanager
def machine(url: str) -> Iterator[Machine]:
    """Yield a home of its own."""
    with tempfile.TemporaryDirectory(prefix="nous-hooks-") as folder:
        here = Machine(Path(folder), url)
        try:
            yield here
        finally:
            here.let_go()


def cold_start(here: Machine) -> tuple[float, bool]:
    """Return what the start of a session takes while nothing but the database runs."""
    here.let_go()
    return here.call("SessionStart", "")


def figures(name: str, calls: list[tuple[float, bool]]) -> dict[str, float]:
    """Return the middle and the slowest twentieth, in milliseconds."""
    seconds = [each for each, _ in calls]
    return {f"{name}_p{share}_ms": float(np.percentile(seconds, share)) * 1000 for share in (50, 95)}


def notes(stored: int, warm: int, cold: int) -> list[str]:
    """Return what a reader must know to compare the figures."""
    return [
        f"one agent with {stored:,} drawn facts; {warm} warm and {cold} cold calls, each a process of its own from its"
        " start to its end, Python's start included",
        "warm: the hook server holds the memory open; cold: the database runs and nothing else, and a start that has"
        " no answer by 1.5 s says nothing, as the answered ratio tells",
    ]
