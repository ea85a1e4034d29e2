"""Measurements of Nous against its peers: `python -m benchmarks NAME`."""

from __future__ import annotations

import json
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nous_online.core.errors import NotFound


def cases(data: Path, name: str) -> list[dict[str, Any]]:
    """Return the rows of `name`.jsonl in the folder of public cases; raise `NotFound` naming a missing file."""
    file = data / f"{name}.jsonl"
    if not file.is_file():
        message = f"{file} is missing; give the folder that holds it with --data"
        raise NotFound(message)
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]


def peak_mb() -> float:
    """Return the most memory this process ever held, in MB; its own where the system can tell it from its parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        fields = dict(line.split(":", 1) for line in status.read_text("utf-8").splitlines())
        return int(fields["VmHWM"].split()[0]) / 1024
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


@contextmanager
def server() -> Iterator[tuple[str, Path]]:
    """Yield the URL of a server of our own, as `nous up` starts it, and its home; all of it goes afterwards."""
    from nous_online.database import postgres

    with tempfile.TemporaryDirectory(prefix="nous-bench-") as folder:
        home = Path(folder) / "home"
        try:
            yield postgres.ensure(home).dsn(), home
        finally:
            postgres.stop(home)
            shutil.rmtree(postgres.data_directory(home), ignore_errors=True)  # root's data lie outside the folder
