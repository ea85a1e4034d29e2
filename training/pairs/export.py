"""Write the reader as ONNX, in int8 and 4 bits: `python -m training.pairs.export --weights FILE.pt --out DIR`.

Two files, so that a pair need not be read to the end: `pair_reader_first.onnx` gives the states after the first layers
and an early answer, `pair_reader.onnx` goes on from those states. Needs torch, onnx and onnxruntime.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor, nn

from training.pairs.network import BLOCK, END, EXITS, READER, START, Network, rounded

EXIT = 2
"""The layer after which the early answer is given: one of `EXITS`."""
OPSET = 17
"""Version of the operators."""
WORD_VECTORS = "network.first.word.weight"


class Begin(nn.Module):
    """The layers up to the early answer."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: Tensor, sides: Tensor) -> tuple[Tensor, Tensor]:
        """Return the early scores (pairs, 8), and the states to go on from (pairs, tokens, width)."""
        mask, x = torch.ones_like(ids), self.network.first(ids, sides)
        for layer in self.network.layers[:EXIT]:
            x = layer(x, None)
        return self.network.exits[EXITS.index(EXIT)](x, sides, mask)[0], x


class Finish(nn.Module):
    """The layers after it."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor, sides: Tensor) -> Tensor:
        """Return the scores (pairs, 8)."""
        for layer in self.network.layers[EXIT:]:
            x = layer(x, None)
        return self.network.head(x, sides, torch.ones_like(sides))[0]


def main() -> None:
    """Export and quantise both halves."""
    parser = argparse.ArgumentParser(prog="python -m training.pairs.export", description=__doc__)
    for name in ("weights", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    network = Network(READER)
    network.load_state_dict(torch.load(options.weights, map_location="cpu"), strict=False)
    network.float().eval()
    first, second = [START, *range(2000, 2010), END], [*range(3000, 3007), END]
    ids, sides = torch.tensor([[*first, *second]]), torch.tensor([[0] * len(first) + [1] * len(second)])
    states = Begin(network)(ids, sides)[1]
    sides_name = "token_type_ids"
    written(
        Begin(network),
        (ids, sides),
        ["input_ids", sides_name],
        ["scores", "states"],
        options.out / "pair_reader_first.onnx",
    )
    written(Finish(network), (states, sides), ["states", sides_name], ["scores"], options.out / "pair_reader.onnx")


def written(
    part: nn.Module, example: tuple[Tensor, ...], inputs: Sequence[str], outputs: Sequence[str], path: Path
) -> None:
    """Write one part: its products of matrices in int8, its word pieces in 4 bits."""
    draft = path.with_suffix(".fp32")
    axes = {name: {1: "tokens"} for name in [*inputs, *outputs] if name != "scores"}
    torch.onnx.export(
        part, example, str(draft), input_names=[*inputs], output_names=[*outputs], opset_version=OPSET, dynamo=False,
        dynamic_axes=axes,
    )  # fmt: skip
    quantize_dynamic(
        str(draft), str(path), weight_type=QuantType.QInt8, per_channel=True, op_types_to_quantize=["MatMul"]
    )
    draft.unlink()
    model = onnx.load(path)
    if any(each.name == WORD_VECTORS for each in model.graph.initializer):
        with_small_words(model, part.network.first.word.weight.data)
        onnx.save(model, path)


def with_small_words(model: onnx.ModelProto, words: Tensor) -> None:
    """Put vectors of 4 bits in the place of those of the word pieces, two values in a byte."""
    graph = model.graph
    values, scales = rounded(words)
    nibbles = (values & 0xF).to(torch.uint8)
    packed = (nibbles[:, 0::2] | nibbles[:, 1::2] << 4).contiguous()
    graph.initializer.remove(next(each for each in graph.initializer if each.name == WORD_VECTORS))
    at, gather = next((at, node) for at, node in enumerate(graph.node) if WORD_VECTORS in node.input)
    graph.initializer.extend(small_values(packed.numpy(), scales.numpy()))
    del graph.node[at]
    for place, node in enumerate(small_steps(gather.input[1], gather.output[0]), start=at):
        graph.node.insert(place, node)


def small_values(packed: NDArray[np.uint8], scales: NDArray[np.float16]) -> list[TensorProto]:
    """Return what the vectors are put together from: their bytes and scales, and the two values each byte holds."""
    signed = np.asarray([nibble - 16 * (nibble > 7) for nibble in range(16)], dtype=np.float32)  # noqa: PLR2004
    width = 2 * packed.shape[1]
    values = {
        "bytes": packed,
        "scales": scales,
        "pairs": np.stack([np.tile(signed, 16), np.repeat(signed, 16)], axis=1),
        "blocks": np.asarray([0, 0, width // BLOCK, BLOCK]),
        "width": np.asarray([0, 0, width]),
        "last": np.asarray([-1]),
    }
    return [numpy_helper.from_array(each, f"{WORD_VECTORS}.{name}") for name, each in values.items()]


def small_steps(ids: str, found: str) -> list[NodeProto]:
    """Return the steps that put them together, as `GatherBlockQuantized` does in five times the time."""
    steps: list[tuple[str, list[str], str, dict[str, int]]] = [
        ("Gather", ["bytes", ids], "byte", {}),
        ("Cast", ["byte"], "place", {"to": TensorProto.INT32}),
        ("Gather", ["pairs", "place"], "values", {}),
        ("Reshape", ["values", "blocks"], "small", {}),
        ("Gather", ["scales", ids], "half_scale", {}),
        ("Cast", ["half_scale"], "flat_scale", {"to": TensorProto.FLOAT}),
        ("Unsqueeze", ["flat_scale", "last"], "scale", {}),
        ("Mul", ["small", "scale"], "scaled", {}),
        ("Reshape", ["scaled", "width"], "exact", {}),
        ("Cast", ["exact"], "rounded", {"to": TensorProto.FLOAT16}),
        ("Cast", ["rounded"], found, {"to": TensorProto.FLOAT}),
    ]
    return [
        helper.make_node(operator, [full_name(each, ids) for each in inputs], [full_name(output, found)], **options)
        for operator, inputs, output, options in steps
    ]


def full_name(name: str, outside: str) -> str:
    """Return the name of a value in the graph, unless it comes from outside these steps."""
    return name if name == outside else f"{WORD_VECTORS}.{name}"


if __name__ == "__main__":
    main()
