"""One memory as a program, Nous's or mem0's, so that both can be killed and told the same.

`python faults_stores.py nous|mem0 FOLDER EMBEDDER write NAME COUNT | list | odd | foreign`, as
benchmarks/faults_beside.py runs it; each imports its own library alone.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

WIDTH = 32
HUGE = "x" * 2_000_000
ODD = {"unseen": "\u200b", "empty": "", "surrogate": "Tea \ud800 helps", "huge": HUGE}


class Store(Protocol):
    """What is asked of both."""

    own: tuple[type[Exception], ...]
    """The errors that are its own: anything else is what some library below it happened to raise."""

    def add(self, text: str, owner: str) -> str:
        """Keep a text and return its id."""
        ...

    def texts(self, owner: str) -> list[str]:
        """Return every text of an owner."""
        ...

    def get(self, memory: str, owner: str) -> str | None:
        """Return the text of an id, asked for by an owner."""
        ...


class Nous:
    """Nous on its embedded server; an owner is an agent."""

    def __init__(self, folder: Path, _: str) -> None:
        from benchmarks.faults_writer import HashedEmbedder
        from nous_online.core.errors import NotFound, NousError
        from nous_online.database import postgres
        from nous_online.database.connection import Database
        from nous_online.heart import Heart

        self.own: tuple[type[Exception], ...] = (NousError,)
        self._missing = NotFound
        database = Database(postgres.ensure(folder / "home").dsn(), max_connections=2)
        self._open: Callable[[str], Heart] = lambda owner: Heart.open(
            owner, database=database, embedder=HashedEmbedder(), works_in_background=False
        )
        self._hearts: dict[str, Heart] = {}

    def _heart(self, owner: str) -> Any:
        if owner not in self._hearts:
            self._hearts[owner] = self._open(owner)
        return self._hearts[owner]

    def add(self, text: str, owner: str) -> str:
        """Learn it under a key, as a caller does who may have to say it again."""
        return str(self._heart(owner).learn(text, idempotency_key=text[:100] or None, deadline_s=30).memory.id)

    def texts(self, owner: str) -> list[str]:
        """Return the facts of an agent."""
        with self._heart(owner).agent.database.transaction(owner) as connection:
            return [row[0] for row in connection.execute("select content from heart.facts").fetchall()]

    def get(self, memory: str, owner: str) -> str | None:
        """Return a fact by its id."""
        try:
            return self._heart(owner).get_fact(memory).content
        except self._missing:
            return None


class Mem0:
    """mem0 as it comes: `infer=False`, its default vector store in a folder; an owner is a user."""

    def __init__(self, folder: Path, embedder: str) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "mem0")}
        from mem0 import Memory  # pyright: ignore[reportMissingImports]
        from mem0.exceptions import MemoryError as Mem0Error  # pyright: ignore[reportMissingImports]

        model = {"openai_base_url": embedder, "api_key": "none"}
        store = {"path": str(folder / "qdrant"), "embedding_model_dims": WIDTH, "on_disk": True}
        self.own: tuple[type[Exception], ...] = (Mem0Error, ValueError)
        self._memory: Any = Memory.from_config({
            "embedder": {"provider": "openai", "config": {**model, "model": "hashed", "embedding_dims": WIDTH}},
            "llm": {"provider": "openai", "config": model},
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": str(folder / "history.db"),
        })  # fmt: skip

    def add(self, text: str, owner: str) -> str:
        """Add it as it is."""
        return self._memory.add(text, user_id=owner, infer=False)["results"][0]["id"]

    def texts(self, owner: str) -> list[str]:
        """Return the memories of a user."""
        return [row["memory"] for row in self._memory.get_all(filters={"user_id": owner}, top_k=100_000)["results"]]

    def get(self, memory: str, owner: str) -> str | None:
        """Return a memory by its id; the call takes no user."""
        found = self._memory.get(memory)
        return found and found["memory"]


def write(store: Store, folder: Path, name: str, count: int) -> int:
    """Write one text after another, and down what was acknowledged, until there are `count`."""
    ledger = folder / f"{name}.ledger"
    number = len(ledger.read_bytes().splitlines()) if ledger.exists() else 0
    with ledger.open("ab", buffering=0) as file:
        while number < count:
            store.add(f"{name} note {number} of shelf {number * 7919}", "maya")
            number += 1
            file.write(b"acknowledged\n")
    return number


def odd(store: Store) -> dict[str, str]:
    """Return what became of each odd text: stored, refused in the store's own words, or broken by something below."""
    outcomes: dict[str, str] = {}
    for name, text in ODD.items():
        try:
            store.add(text, "maya")
            outcomes[name] = "stored"
        except store.own as error:
            outcomes[name] = "broken" if isinstance(error, UnicodeError) else "refused"
        except Exception:  # whatever it is: it is not the store's own
            outcomes[name] = "broken"
    return outcomes


def main(which: str, folder: str, embedder: str, act: str, *rest: str) -> None:
    """Do one act and print what came of it as JSON."""
    place = Path(folder)
    store: Store = Nous(place, embedder) if which == "nous" else Mem0(place, embedder)
    acts: dict[str, Callable[[], object]] = {
        "write": lambda: write(store, place, rest[0], int(rest[1])),
        "list": lambda: store.texts("maya"),
        "odd": lambda: odd(store),
        "foreign": lambda: store.get(store.add("The safe opens with 4711", "maya"), "boris") is not None,
    }
    print("RESULT " + json.dumps(acts[act]()), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
