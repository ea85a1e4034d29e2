"""The same faults for Nous and for mem0: a writer killed, two writers, texts that are none, another's id.

mem0 is run by the Python that NOUS_MEM0_PYTHON names (`pip install mem0ai` there); without it Nous stands alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.faults_kills import ROOT
from benchmarks.faults_stores import ODD
from benchmarks.faults_writer import HashedEmbedder
from nous_online.core.errors import Unavailable
from nous_online.database import postgres
from nous_online.processes import child_environment, python_module

WRITES, QUICK_WRITES = 200, 60
KILLS = 3
ACT_S = 300.0
POLL_S = 0.01
VERSION = "from importlib.metadata import version; print(version('mem0ai'))"


@dataclass(frozen=True)
class Door:
    """How to run one of the two stores: its name, a Python that has it, and where embeddings come from."""

    name: str
    python: str
    embedder: str

    def started(self, folder: Path, *act: str) -> subprocess.Popen[str]:
        """Start one act in a process of its own."""
        return subprocess.Popen(  # noqa: S603 (our own program)
            [self.python, str(ROOT / "benchmarks" / "faults_stores.py"), self.name, str(folder), self.embedder, *act],
            cwd=folder.parent,
            env=child_environment(PYTHONPATH=str(ROOT) if self.name == "nous" else "", PYTHONSAFEPATH="1"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def done(self, folder: Path, *act: str) -> Any:
        """Do one act and return what came of it; None where it failed."""
        return result_of(self.started(folder, *act))


def run(*, data: Path, quick: bool) -> dict[str, Any]:
    """Measure Nous, and mem0 where there is one."""
    count, python = QUICK_WRITES if quick else WRITES, os.environ.get("NOUS_MEM0_PYTHON", "")
    with embedding_server() as url:
        metrics = measured(Door("nous", python_module("")[0], url), count)
        beside = measured(Door("mem0", python, url), count) if python else {}
    told = subprocess.check_output([python, "-c", VERSION], cwd=ROOT, text=True).strip() if python else ""  # noqa: S603 (ours)
    return {
        "metrics": metrics,
        "peers": {f"mem0_{name}": value for name, value in beside.items()},
        "notes": [
            f"{count} texts a writer, one by one; the writer is killed with SIGKILL {KILLS} times and says again what"
            " was not acknowledged, Nous with an idempotency key, mem0 has none",
            "two writers: two processes write at once into one store; told is how many of their texts were kept;"
            " mem0's store in a folder admits one process, its answer to more is a server of Qdrant's, not tried here",
            "odd texts: one of invisible characters, an empty one, a lone surrogate, two million characters;"
            " broken: an error that is not the store's own",
            "another's id: a memory of one agent, asked for by another; in mem0 of one user, where"
            " the call by id takes none",
            f"mem0ai {told}, infer=False, its default vector store in a folder, a local embedder of the same vectors"
            if told
            else "mem0 was not there (NOUS_MEM0_PYTHON)",
        ],
    }


def measured(door: Door, count: int) -> dict[str, int]:
    """Return the figures of one store, on stores of its own."""
    with store_folder(door) as folder:
        lost, doubled = killed_writer(door, folder, count)
    with store_folder(door) as folder:
        kept = two_writers(door, folder, count)
    with store_folder(door) as folder:
        odd = Counter((door.done(folder, "odd") or dict.fromkeys(ODD, "broken")).values())
        foreign = door.done(folder, "foreign")
    return {
        "writer_killed_lost": lost,
        "writer_killed_doubled": doubled,
        "two_writers_kept_percent": 100 * kept // (2 * count),
        "odd_stored": odd["stored"],
        "odd_broken": odd["broken"],
        "foreign_told": int(bool(foreign)),
    }


def killed_writer(door: Door, folder: Path, count: int) -> tuple[int, int]:
    """Kill the writer amid its writes; return how many acknowledged texts are gone, and how many are there twice."""
    for number in range(1, KILLS + 1):
        process = door.started(folder, "write", "ada", str(count))
        wait_for(folder / "ada.ledger", number * count // (KILLS + 1), process)
        process.kill()
        process.wait()
    if door.done(folder, "write", "ada", str(count)) != count:
        raise Unavailable(f"{door.name} did not go on after its writer was killed")
    said = Counter(door.done(folder, "list"))
    return count - len(said), said.total() - len(said)


def two_writers(door: Door, folder: Path, count: int) -> int:
    """Return how many texts of two processes that write at once are there in the end."""
    running = [door.started(folder, "write", name, str(count)) for name in ("ada", "grace")]
    for process in running:
        result_of(process)
    return len(set(door.done(folder, "list")))


def wait_for(ledger: Path, wanted: int, process: subprocess.Popen[str]) -> None:
    """Wait until so many writes were acknowledged, or the writer has ended."""
    until = time.monotonic() + ACT_S
    while process.poll() is None and time.monotonic() < until:
        if ledger.exists() and len(ledger.read_bytes().splitlines()) >= wanted:
            return
        time.sleep(POLL_S)


def result_of(process: subprocess.Popen[str]) -> Any:
    """Return what a process printed as its result; None where it ended without one."""
    out, _ = process.communicate(timeout=ACT_S)
    results = [line for line in out.splitlines() if line.startswith("RESULT ")]
    return json.loads(results[-1].removeprefix("RESULT ")) if results else None


@contextmanager
def store_folder(door: Door) -> Iterator[Path]:
    """Yield an empty folder for a store; what runs in it is stopped afterwards."""
    with tempfile.TemporaryDirectory(prefix=f"faults-{door.name}-") as folder:
        try:
            yield Path(folder)
        finally:
            if door.name == "nous":
                postgres.stop(Path(folder) / "home")


@contextmanager
def embedding_server() -> Iterator[str]:
    """Yield the address of a server on this machine that speaks OpenAI's embeddings and draws them from a hash."""

    class Answer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
            body = json.dumps(
                {"object": "list", "model": "hashed", **embedded([asked] if isinstance(asked, str) else asked)}
            )
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name there)
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def embedded(texts: Sequence[str]) -> dict[str, Any]:
    """Return the vectors of texts as OpenAI's API would."""
    rows = HashedEmbedder().embed_documents(texts)
    data = [{"object": "embedding", "index": place, "embedding": row.tolist()} for place, row in enumerate(rows)]
    return {"data": data, "usage": {"prompt_tokens": 0, "total_tokens": 0}}
