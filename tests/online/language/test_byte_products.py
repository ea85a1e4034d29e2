"""Weights of eight bits, signed where the processor adds exactly: the same sums, in the form it multiplies fastest."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from nous_online.language.byte_products import HALF, adds_exactly, with_signed_weights
from nous_online.language.pairs.reader import FOLDER

FLOAT, INT32, UINT8, INT8 = 1, 6, 2, 3
SMALL = np.arange(-4, 4, dtype=np.int16).reshape(4, 2)
"""Weights so small that no processor's sums overflow."""


def field(number: int, content: bytes | int) -> bytes:
    """Return a field of a protobuf message with a number below 128, or bytes."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    length = len(content)
    return bytes([number << 3 | 2, *([length] if length < HALF else [length & 0x7F | HALF, length >> 7])]) + content


def value(name: bytes, kind: int) -> bytes:
    """Return a ValueInfoProto of two dimensions of any length."""
    shape = field(1, field(2, b"n")) * 2
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def tensor(name: bytes, values: np.ndarray[Any, np.dtype[np.uint8]]) -> bytes:
    dimensions = b"".join(field(1, length) for length in values.shape)
    return dimensions + field(2, UINT8) + field(8, name) + field(9, values.tobytes())


def product_model() -> bytes:
    """Return a model of one integer product with unsigned weights, and one tensor that is no weight."""
    node = b"".join(field(1, name) for name in (b"x", b"w", b"", b"zero")) + field(2, b"y") + field(4, b"MatMulInteger")
    kept = b"".join(field(1, name) for name in (b"kept",)) + field(2, b"z") + field(4, b"Identity")
    graph = field(1, node) + field(1, kept) + field(2, b"g")
    graph += field(5, tensor(b"w", (SMALL + HALF).astype(np.uint8)))
    graph += field(5, tensor(b"zero", np.full(2, HALF, dtype=np.uint8)))
    graph += field(5, tensor(b"kept", np.full((1, 1), 200, dtype=np.uint8)))
    graph += field(11, value(b"x", UINT8)) + field(12, value(b"y", INT32)) + field(12, value(b"z", UINT8))
    return field(1, 8) + field(7, graph) + field(8, field(1, b"") + field(2, 13))


def answers(model: bytes, **feeds: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    session: Any = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def test_signed_weights_give_the_same_sums_and_leave_everything_else_alone() -> None:
    model = product_model()
    x = np.array([[1, 2, 3, 4], [9, 0, 5, 7]], dtype=np.uint8)

    signed = with_signed_weights(model)

    assert signed != model
    assert SMALL.astype(np.int8).tobytes() in signed
    assert (SMALL + HALF).astype(np.uint8).tobytes() in model
    for one, other in zip(answers(model, x=x), answers(signed, x=x), strict=True):
        assert one.tolist() == other.tolist()
    assert answers(signed, x=x)[0].tolist() == (x.astype(int) @ SMALL.astype(int)).tolist()
    assert answers(signed, x=x)[1].tolist() == [[200]]
    assert with_signed_weights(signed) == signed


@pytest.mark.skipif(not adds_exactly(), reason="this processor would add the products up in 16 bits")
def test_the_pair_reader_answers_the_same_to_the_last_bit() -> None:
    model = (FOLDER / "pair_reader.onnx").read_bytes()
    stored, signed = (
        onnxruntime.InferenceSession(each, providers=["CPUExecutionProvider"])
        for each in (model, with_signed_weights(model))
    )
    rng = np.random.default_rng(1)

    for length in (6, 17, 34, 90):
        ids = rng.integers(1_000, 20_000, (1, length))
        sides = (np.arange(length)[None] > length // 2).astype(np.int64)
        feeds = {"input_ids": ids, "token_type_ids": sides, "attention_mask": np.ones_like(ids)}

        assert np.asarray(stored.run(None, feeds)[0]).tobytes() == np.asarray(signed.run(None, feeds)[0]).tobytes()
