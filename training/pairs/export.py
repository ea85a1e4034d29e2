"""Write the reader as ONNX, in int8 and 4 bits: `python -m training.pairs.export --weights FILE.pt --out DIR`.

Two files, so that a pair need not be read to the end: `pair_reader_first.onnx` gives the states after the first layers
and an early answer, `pair_reader.onnx` goes on from those states. Needs torch, onnx and onnxruntime.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import onnx
import torch
from onnx import TensorProto, helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from torch import Tensor, nn

from training.pairs.network import BLOCK, END, EXITS, READER, START, Network, rounded

EXIT = 2
"""The layer after which the early answer is given: one of `EXITS`."""
OPSET, IR_VERSION = 17, 10
"""Versions of the operators, and of the file: the first that knows values of four bits."""
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
    """Put vectors of 4 bits in the place of those of the word pieces."""
    graph = model.graph
    values, scales = rounded(words)
    pairs = (values & 0xF).to(torch.uint8)
    packed = (pairs[:, 0::2] | pairs[:, 1::2] << 4).contiguous()
    own = next(each for each in graph.initializer if each.name == WORD_VECTORS)
    graph.initializer.remove(own)
    graph.initializer.extend([
        helper.make_tensor(
            f"{WORD_VECTORS}.values", TensorProto.INT4, [*words.shape], packed.numpy().tobytes(), raw=True
        ),
        helper.make_tensor(
            f"{WORD_VECTORS}.scales", TensorProto.FLOAT16, [*scales.shape], scales.numpy().tobytes(), raw=True
        ),
    ])  # fmt: skip
    at, gather = next((at, node) for at, node in enumerate(graph.node) if WORD_VECTORS in node.input)
    found = f"{WORD_VECTORS}.found"
    graph.node.insert(at + 1, helper.make_node("Cast", [found], [*gather.output], to=TensorProto.FLOAT))
    graph.node[at].CopyFrom(helper.make_node(
        "GatherBlockQuantized", [f"{WORD_VECTORS}.values", gather.input[1], f"{WORD_VECTORS}.scales"], [found],
        domain="com.microsoft", gather_axis=0, quantize_axis=1, block_size=BLOCK,
    ))  # fmt: skip
    model.ir_version = IR_VERSION
    if not any(each.domain == "com.microsoft" for each in model.opset_import):
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


if __name__ == "__main__":
    main()
