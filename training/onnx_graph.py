"""The ONNX graph of a BERT or XLM-R encoder, written node by node, with fixed-scale int8 products where they are asked
for.

Written by hand because of what was measured on one core (ONNX Runtime 1.31.1, MiniLM-L6): all tokens in one (tokens,
width) matrix, so that biases are added inside the products, is 8 % faster than torch's own export; and its quantiser's
dynamic scales make a post's vector depend on its batch. torch's exporter and `onnxruntime.transformers` cannot be told
either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from models.encoders.onnx import session
from models.encoders.packed import Layer, PackedEncoder

__all__ = ["encoder_graph", "observed_ranges", "rounded_rows"]

OPSET, IR = 20, 10  # what onnxruntime 1.18 already reads
CONTRIB = "com.microsoft"  # ONNX Runtime's own operators
MASKED = np.float32(1e9)
HALF = 127  # of what uint8 holds


class Range(NamedTuple):
    """How a tensor is rounded to uint8: values / columns from `low` to `high`."""

    low: float
    high: float
    columns: np.ndarray  # (width,) float32


class _Graph:
    """Nodes and constants; a tensor is known by its name."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def constant(self, name: str, value: object) -> str:
        self.constants[name] = np.array(value, order="C")
        return name

    def add(self, kind: str, inputs: list[str], name: str, domain: str = "", **attributes: object) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [name], domain=domain, **attributes))
        return name


def encoder_graph(
    encoder: PackedEncoder, ranges: Mapping[str, Range] | None = None, reduce_range: bool = False
) -> tuple[onnx.ModelProto, list[str]]:
    """ids (posts, length) int64, mask (posts, length) float32 → vectors (posts, dim), unit rows.

    ranges: of each tensor that enters a product, for uint8 activations by int8 weights, one scale a column; None =
    float32. reduce_range: weights of 7 bits, for processors without VNNI, whose sums of two
    products overflow. Returns the names of the tensors that enter a product too.
    """
    g, width, heads = _Graph(), encoder.width, encoder.heads
    entering: dict[str, None] = {}

    def product(x: str, name: str, weight: np.ndarray, bias: np.ndarray) -> str:
        """x @ weightᵀ + bias; weight: (out, in)."""
        weight, bias = weight.T, g.constant(f"{name}.bias", bias)
        first = x not in entering
        entering[x] = None
        if ranges is None:
            return g.add("Gemm", [x, g.constant(f"{name}.weight", weight), bias], name)
        columns = ranges[x].columns
        rounded, scales = _quantised(weight * columns[:, None], 127)
        if first:
            steps = HALF if reduce_range else 255
            scale, zero = _scale(ranges[x].low, ranges[x].high, steps)
            names = [g.constant(f"{x}.scale", scale), g.constant(f"{x}.zero", zero)]
            even = x if (columns == 1).all() else g.add("Mul", [x, g.constant(f"{x}.even", 1 / columns)], f"{x}.evened")
            whole = g.add("QuantizeLinear", [even, *names], f"{x}.whole" if reduce_range else f"{x}.uint8")
            if reduce_range:
                g.add("Clip", [whole, "", g.constant("half", np.uint8(HALF))], f"{x}.uint8")
        weights = [g.constant(f"{name}.weight", rounded), f"{x}.scale", g.constant(f"{name}.scales", scales)]
        return g.add("MatMulIntegerToFloat", [f"{x}.uint8", *weights, f"{x}.zero", "", bias], name, CONTRIB)

    def norm(x: str, name: str, weight: np.ndarray, bias: np.ndarray) -> str:
        inputs = [x, g.constant(f"{name}.weight", weight), g.constant(f"{name}.bias", bias)]
        return g.add("LayerNormalization", inputs, name, epsilon=encoder.eps)

    for name, value in {"0": [0], "1": [1], "2": [2], "-1": [-1], "1, 2": [1, 2], "width": [width]}.items():
        g.constant(name, np.array(value, np.int64))
    g.constant("heads", np.array([heads, width // heads], np.int64))
    g.constant("first", np.int64(encoder.first_position))
    g.constant("step", np.int64(1))
    g.add("Shape", ["mask"], "shape")
    g.add("Concat", ["-1", "width"], "flat", axis=0)  # (tokens, width)
    g.add("Concat", ["shape", "width"], "cube", axis=0)  # (posts, length, width)
    g.add("Concat", ["shape", "heads"], "by head", axis=0)
    g.add("Squeeze", [g.add("Slice", ["shape", "1", "2"], "lengths"), "0"], "length")
    g.add("Range", ["first", g.add("Add", ["length", "first"], "end"), "step"], "positions")
    absent = g.add("Sub", ["mask", g.constant("one", np.float32(1))], "absent")  # 0, or -1 where there is no token
    g.add("Unsqueeze", [g.add("Mul", [absent, g.constant("masked", MASKED)], "penalty"), "1, 2"], "bias")

    words = _numpy(encoder.words)
    if ranges is None:
        g.add("Gather", [g.constant("words", words), "ids"], "word")
    else:
        rounded, scales = rounded_rows(words)
        g.add("Gather", [g.constant("words", rounded), "ids"], "word.int8")
        g.add("Gather", [g.constant("words.scales", scales), "ids"], "word.scale")
        g.add("Mul", [g.add("Cast", ["word.int8"], "word.float", to=TensorProto.FLOAT), "word.scale"], "word")
    g.add("Gather", [g.constant("places", _numpy(encoder.places)), "positions"], "place")
    x = g.add("Reshape", [g.add("Add", ["word", "place"], "embedded"), "flat"], "embedded.flat")
    x = norm(x, "norm", _numpy(encoder.norm), _numpy(encoder.norm_bias))
    root = np.float32(np.sqrt(width // heads))
    for i, parameters in enumerate(encoder.layers):
        w, n = Layer(*map(_numpy, parameters)), f"layer {i} "
        scaled = (root, np.float32(1), np.float32(1))  # the query takes attention's 1 / √head width
        order = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])  # the key transposed
        parts = []
        for j, part in enumerate(("query", "key", "value")):
            rows = slice(j * width, (j + 1) * width)
            y = product(x, n + part, w.qkv[rows] / scaled[j], w.qkv_bias[rows] / scaled[j])
            y = g.add("Reshape", [y, "by head"], f"{y}.by head")
            parts.append(g.add("Transpose", [y], f"{y}.turned", perm=order[j]))
        query, key, value = parts
        y = g.add("Add", [g.add("MatMul", [query, key], n + "scores"), "bias"], n + "seen")
        y = g.add("MatMul", [g.add("Softmax", [y], n + "weights", axis=-1), value], n + "mixed")
        y = g.add("Transpose", [y], n + "mixed.turned", perm=[0, 2, 1, 3])
        y = product(g.add("Reshape", [y, "flat"], n + "mixed.flat"), n + "out", w.out, w.out_bias)
        x = norm(g.add("Add", [x, y], n + "sum"), n + "norm", w.norm, w.norm_bias)
        y = g.add("Gelu", [product(x, n + "up", w.up, w.up_bias)], n + "gelu")
        y = product(y, n + "down", w.down, w.down_bias)
        x = norm(g.add("Add", [x, y], n + "sum 2"), n + "norm 2", w.norm2, w.norm2_bias)

    g.add("Reshape", [x, "cube"], "states")
    if encoder.pooling == "cls":
        g.add("Gather", ["states", g.constant("place of cls", np.int64(0))], "pooled", axis=1)
    elif encoder.pooling == "max":
        away = g.add("Unsqueeze", ["penalty", "-1"], "away")
        g.add("ReduceMax", [g.add("Add", ["states", away], "states seen"), "1"], "pooled", keepdims=0)
    else:
        total = g.add("MatMul", [g.add("Unsqueeze", ["mask", "1"], "mask row"), "states"], "total row")
        count = g.add("ReduceSum", ["mask", "1"], "count", keepdims=1)
        g.add("Div", [g.add("Squeeze", [total, "1"], "total"), count], "pooled")
    dim = width
    if encoder.projection is None:
        g.add("LpNormalization", ["pooled"], "vectors", axis=1, p=2)
    else:
        weight, bias = map(_numpy, encoder.projection)
        dim = len(weight)
        unit = g.add("LpNormalization", ["pooled"], "pooled.unit", axis=1, p=2)
        inputs = [unit, g.constant("projection.weight", weight.T), g.constant("projection.bias", bias)]
        g.add("LpNormalization", [g.add("Gemm", inputs, "projected")], "vectors", axis=1, p=2)

    def value(name: str, kind: int, *shape: object) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, kind, list(shape))

    graph = helper.make_graph(
        g.nodes,
        "encoder",
        [value("ids", TensorProto.INT64, "posts", "length"), value("mask", TensorProto.FLOAT, "posts", "length")],
        [value("vectors", TensorProto.FLOAT, "posts", dim)],
        [numpy_helper.from_array(array, name) for name, array in g.constants.items()],
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR, producer_name="crisis-streams"), list(entering)


def observed_ranges(
    model: onnx.ModelProto, names: list[str], batches: Iterable[tuple[np.ndarray, np.ndarray]]
) -> dict[str, Range]:
    """The ranges of these (tokens, width) tensors over padded batches, padding left out."""
    seen = onnx.ModelProto()
    seen.CopyFrom(model)
    seen.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    runner = session(seen.SerializeToString())
    ends: dict[str, np.ndarray] = {}
    for ids, mask in batches:
        there = mask.ravel() > 0
        for name, tensor in zip(names, runner.run(names, {"ids": ids, "mask": mask}), strict=True):
            found = np.stack([tensor[there].min(0), tensor[there].max(0)])
            low, high = ends.get(name, np.zeros_like(found))
            ends[name] = np.stack([np.minimum(low, found[0]), np.maximum(high, found[1])])
    return {name: even_range(low, high) for name, (low, high) in ends.items()}


def even_range(low: np.ndarray, high: np.ndarray) -> Range:
    """The range of a tensor whose columns go from `low` to `high`, both (width,) and about 0.

    A transformer's widest columns are tens of times as wide as the rest, and one scale for all rounds the rest away. So
    columns wider than the median are made as narrow as it, and the weights that meet them as much larger (Xiao et al.
    2023, SmoothQuant, https://arxiv.org/abs/2211.10438, equation 4 with alpha = 1, over the median). Of 300 posts read
    by e5-small the least cosine to float32, in the evened-out space, rose from .925 to .979; cutting the ends off to
    round the rest better made it worse.
    """
    widest = np.maximum(high, -low)
    columns = np.maximum(widest / max(float(np.median(widest)), 1e-6), 1.0).astype(np.float32)
    return Range(float((low / columns).min()), float((high / columns).max()), columns)


def _numpy(tensor) -> np.ndarray:
    return tensor.detach().float().cpu().numpy()


def rounded_rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A table (n, d) in int8, and the scale of each row (n, 1)."""
    rounded, scales = _quantised(table.T, 127)
    return rounded.T, scales[:, None]


def _quantised(weight: np.ndarray, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """int8 and the scale of each column."""
    scales = np.maximum(np.abs(weight).max(0) / limit, 1e-12).astype(np.float32)
    return np.rint(weight / scales).astype(np.int8), scales


def _scale(low: float, high: float, steps: int) -> tuple[np.float32, np.uint8]:
    """Scale and zero point of uint8 over a range that holds 0, in so many steps."""
    scale = np.float32(max(high - low, 1e-12) / steps)
    return scale, np.uint8(min(steps, round(-low / scale)))
