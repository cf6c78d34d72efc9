"""Write models/data/screen.onnx: a product of whole numbers for models/screen.py, which runs without package onnx.

python -m training.screen_graph bundled
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from training.jobs import run, write_atomically

__all__ = ["PATH", "graph"]

PATH = Path(__file__).parents[1] / "models" / "data" / "screen.onnx"


class Config(Struct, frozen=True):
    """Where it goes."""

    out: str = str(PATH)


PRESETS = {"bundled": Config()}


def graph() -> bytes:
    """(codes − zero) · weights · scale · scales + bias: (n, d) uint8 codes, (d, k) int8 weights → (n, k) float32."""
    from onnx import TensorProto, helper

    inputs = [
        ("codes", TensorProto.UINT8, ["n", "d"]),
        ("weights", TensorProto.INT8, ["d", "k"]),
        ("scale", TensorProto.FLOAT, [1]),
        ("scales", TensorProto.FLOAT, ["k"]),
        ("zero", TensorProto.UINT8, [1]),
        ("bias", TensorProto.FLOAT, ["k"]),
    ]
    names = ["codes", "weights", "scale", "scales", "zero", "", "bias"]  # the weights' own zero is 0
    node = helper.make_node("MatMulIntegerToFloat", names, ["products"], domain="com.microsoft")
    made = helper.make_graph(
        [node],
        "screen",
        [helper.make_tensor_value_info(*one) for one in inputs],
        [helper.make_tensor_value_info("products", TensorProto.FLOAT, ["n", "k"])],
    )
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    content: bytes = helper.make_model(made, opset_imports=opsets, ir_version=8).SerializeToString(deterministic=True)
    return content


def main(config: Config) -> None:
    write_atomically(Path(config.out), graph())


if __name__ == "__main__":
    run(main, PRESETS)
