"""Weights of eight bits in the form that the processor multiplies fastest, with the same results to the last bit.

onnxruntime multiplies unsigned by signed bytes with VNNI instructions where there are any. Where there are none it adds
the products up in 16 bits, which overflow: so models are stored with unsigned weights, which take twice as long.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

VNNI = frozenset({"avx512_vnni", "avx_vnni"})
PRODUCT = b"MatMulInteger"
WEIGHTS, ZERO_POINTS = 1, 3  # places among the inputs of a product
GRAPH, NODE, INITIALIZER = 7, 1, 5  # fields of ModelProto and GraphProto in onnx.proto
INPUT, OPERATOR = 1, 4  # of NodeProto
TYPE, NAME, RAW = 2, 8, 9  # of TensorProto
UNSIGNED, SIGNED = 2, 3  # values of TensorProto.data_type
VARINT, BYTES = 0, 2  # wire types of protobuf
FIXED = {1: 8, 5: 4}  # the others, and how many bytes each takes
HALF = 128
Field = tuple[int, int, int]
"""A field's number, and where its content begins and ends."""


@cache
def adds_exactly() -> bool:
    """Tell whether this processor is known to add up products of signed bytes without overflow."""
    try:
        return not VNNI.isdisjoint(Path("/proc/cpuinfo").read_text("utf-8", "replace").split())
    except OSError:  # not Linux
        return False


def with_signed_weights(model: bytes) -> bytes:
    """Return an ONNX model whose unsigned weights of integer products, and their zero points, are signed: 128 less.

    A weight counts by its distance from the zero point, so that exact sums stay the same.
    """
    changed = bytearray(model)
    (graph,) = (field for field in fields_in(model, 0, len(model)) if field[0] == GRAPH)
    parts = [*fields_in(model, *graph[1:])]
    names = {name for part in parts if part[0] == NODE for name in weights_of(model, part)}
    for tensor in (part for part in parts if part[0] == INITIALIZER):
        found = {number: (start, end) for number, start, end in fields_in(model, *tensor[1:])}
        start, end = found[NAME]
        if model[start:end] in names and model[found[TYPE][0]] == UNSIGNED:
            changed[found[TYPE][0]] = SIGNED
            start, end = found[RAW]
            changed[start:end] = (np.frombuffer(model[start:end], np.uint8) ^ HALF).tobytes()
    return bytes(changed)


def weights_of(model: bytes, node: Field) -> Iterator[bytes]:
    """Yield the names of the weights of a product and of their zero points; none for other nodes."""
    inputs = list[bytes]()
    for number, start, end in fields_in(model, *node[1:]):
        if number == INPUT:
            inputs.append(model[start:end])
        elif number == OPERATOR and model[start:end] != PRODUCT:
            return
    yield from (inputs[WEIGHTS], inputs[ZERO_POINTS])


def fields_in(message: bytes, start: int, end: int) -> Iterator[Field]:
    """Yield the fields of a part of a protobuf message."""
    while start < end:
        tag, start = varint_at(message, start)
        wire = tag & 7
        if wire == VARINT:
            _, stop = varint_at(message, start)
        elif wire == BYTES:
            length, start = varint_at(message, start)
            stop = start + length
        else:
            stop = start + FIXED[wire]
        yield tag >> 3, start, stop
        start = stop


def varint_at(message: bytes, start: int) -> tuple[int, int]:
    """Return the number at a place, seven bits a byte, and where it ends."""
    number = shift = 0
    while True:
        byte = message[start]
        number |= (byte & 0x7F) << shift
        start, shift = start + 1, shift + 7
        if byte < HALF:
            return number, start
