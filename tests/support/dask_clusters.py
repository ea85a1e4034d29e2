"""A scheduler of Dask and its workers as processes on 127.0.0.1, which a test may kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil

WAIT_S = 60.0
SETTINGS = {
    "DASK_LOGGING__DISTRIBUTED": "error",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
    "DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD": "forkserver",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
}
"""A worker that is started again loads no module again that the one before had, and none looks at itself: a scheduler
and two workers with nothing to do take a fifth of a core to do so."""


class DaskCluster:
    """One scheduler and some workers, each with a nanny that starts it again when it ends."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = {**os.environ, **SETTINGS, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
        self._processes: list[subprocess.Popen[bytes]] = []
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def engine(self) -> str:
        """What NOUS_ENGINE is set to."""
        return f"dask://127.0.0.1:{self.port}"

    def start_scheduler(self) -> None:
        """Start the scheduler; a second one listens where the first did."""
        file = self._folder / "scheduler.json"
        file.unlink(missing_ok=True)
        self.scheduler = self._start("scheduler", "--port", str(self.port), "--scheduler-file", str(file))
        until = time.monotonic() + WAIT_S
        while not file.exists() or not file.read_text("utf-8").endswith("}"):
            assert time.monotonic() < until, "no scheduler"
            time.sleep(0.02)
        self.port = int(json.loads(file.read_text("utf-8"))["address"].rpartition(":")[2])

    def stop_scheduler(self) -> None:
        """End the scheduler, as if its machine was lost."""
        assert self.scheduler is not None
        self.stop(self.scheduler)

    def start_workers(self, count: int) -> subprocess.Popen[bytes]:
        """Start workers of one thread, whose nannies share a process."""
        return self._start_worker("--nworkers", str(count))

    def start_bare_worker(self, *, path: Path | None = None) -> subprocess.Popen[bytes]:
        """Start a worker that nobody starts again; what lies in `path` is found before all else."""
        found = self._environment["PYTHONPATH"]
        more = {} if path is None else {"PYTHONPATH": f"{path}{os.pathsep}{found}"}
        return self._start_worker("--no-nanny", environment=more)

    def _start_worker(self, *more: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        address = f"tcp://127.0.0.1:{self.port}"
        options = (*more, "--nthreads", "1", "--memory-limit", "0")
        own = ("--local-directory", str(self._folder))
        return self._start("worker", address, *options, *own, environment=environment)

    def worker_pids(self) -> list[int]:
        """Return the ids of the processes that work, not of their nannies, nor of what the workers are forked from."""
        return [
            worker.pid
            for process in self._processes
            if process is not self.scheduler and process.poll() is None
            for child in psutil.Process(process.pid).children()
            for worker in child.children()
        ]

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        """End one of the processes, and what it started."""
        children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        for each in (process, *children):
            try:
                os.kill(each.pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()

    def close(self) -> None:
        """End all of them."""
        for process in self._processes:
            self.stop(process)

    def _start(self, *arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *arguments, "--host", "127.0.0.1", "--no-dashboard"]
        log = (self._folder / "dask.log").open("ab")
        with log:
            process = subprocess.Popen(
                command, env={**self._environment, **(environment or {})}, stdout=log, stderr=log, cwd=self._folder
            )
        self._processes.append(process)
        return process


@contextmanager
def dask_cluster(folder: Path, *, is_bare: bool = False, **environment: str) -> Iterator[DaskCluster]:
    """Run a scheduler for the length of a block, and two workers, or a bare one."""
    cluster = DaskCluster(folder, environment)
    try:
        cluster.start_scheduler()
        if is_bare:
            cluster.start_bare_worker()
        else:
            cluster.start_workers(2)
        yield cluster
    finally:
        cluster.close()
