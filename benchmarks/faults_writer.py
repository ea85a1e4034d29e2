"""A program that learns until it is killed, and writes down each call before it begins and once it was acknowledged.

`python -m benchmarks.faults_writer HOME LEDGER AGENT NAME [--forgetful]`, as benchmarks/faults_kills.py runs it.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nous_online.core.details import FactDetails
from nous_online.core.domain import EmbeddingSpace
from nous_online.core.errors import DeadlineExceeded, Unavailable
from nous_online.database import connection, postgres
from nous_online.heart import Heart
from nous_online.language.minilm import Vectors, tokenizer, unit_rows

BATCH = 100
"""Facts of a batch; each round of calls learns one fact by itself and one batch."""
ROUND = BATCH + 1
DEADLINE_S = 20.0
PAUSE_S = 0.05
WORDS_A_TEXT = 6
DURABLE, FORGETFUL = "'synchronous_commit', 'on'", "'synchronous_commit', 'off'"


class HashedEmbedder:
    """A deterministic embedder: a text's vector is drawn from a seed that is the text's hash."""

    space = EmbeddingSpace(id="hashed-32", model="hashed", weights_sha256="", dimensions=32)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return a unit vector for each text."""
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") for text in texts]
        rows = [np.random.default_rng(seed).standard_normal(self.space.dimensions) for seed in seeds]
        return unit_rows(np.asarray(rows, dtype=np.float32))

    def embed_query(self, text: str) -> Vectors:
        """Return the unit vector of one question."""
        return self.embed_documents([text])[0]


def main(home: str, ledger: str, agent: str, name: str, mode: str = "") -> None:
    """Learn one call after another; one that failed, or was cut short, is said again with the same keys."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    parent = os.getppid()
    database = connection.Database(postgres.ensure(Path(home)).dsn(), max_connections=2)
    heart = Heart.open(agent, database=database, embedder=HashedEmbedder(), works_in_background=False)
    if mode == "--forgetful":  # from here on: the agent itself is to stay known
        commit_asynchronously()
    words = sorted(word for word in tokenizer().get_vocab() if word.isascii() and word.isalpha() and len(word) > 3)
    number = acknowledged(Path(ledger))
    with Path(ledger).open("ab", buffering=0) as file:
        while os.getppid() == parent:
            count = size_of_call(number)
            try:
                learn(heart, name, range(number, number + count), words)
            except (Unavailable, DeadlineExceeded):
                time.sleep(PAUSE_S)
                continue
            number += count
            file.write(f"{number}\n".encode())


def commit_asynchronously() -> None:
    """Take back, in this process, what makes every call wait for the disk: the control has to lose something."""
    durable = connection.SQL["begin_call"]
    if DURABLE not in durable:
        raise AssertionError(f"no {DURABLE} in begin_call: the control would not control anything")
    connection.SQL = {**connection.SQL, "begin_call": durable.replace(DURABLE, FORGETFUL)}


def acknowledged(ledger: Path) -> int:
    """Return how many writes of a ledger were acknowledged; a line that was cut off acknowledges nothing."""
    whole = ledger.read_bytes().rpartition(b"\n")[0] if ledger.exists() else b""
    return int(whole.rpartition(b"\n")[2] or 0)


def size_of_call(number: int) -> int:
    """Return how many facts the call that begins with a number learns: calls are cut alike by every process."""
    return 1 if number % ROUND == 0 else BATCH


def learn(heart: Heart, name: str, numbers: range, words: Sequence[str]) -> None:
    """Learn the facts of one call, each under a key of its own."""
    told = [(text_of(name, number, words), details_of(name, number)) for number in numbers]
    if len(told) == 1:
        ((content, details),) = told
        heart.learn(content, deadline_s=DEADLINE_S, **details)
    else:
        heart.learn_deferred(told, deadline_s=DEADLINE_S)


def details_of(name: str, number: int) -> FactDetails:
    """Return what is said of one write beside its text; its source is how it is found again."""
    return {"source": f"{name}/{number}", "idempotency_key": f"{name}/{number}"}


def text_of(name: str, number: int, words: Sequence[str]) -> str:
    """Return the text of one write: drawn words, and the same in every process."""
    drawn = random.Random(f"{name}/{number}").choices(words, k=WORDS_A_TEXT)
    return f"{' '.join(drawn)} {name} {number}"


if __name__ == "__main__":
    main(*sys.argv[1:])
