"""A BERT or XLM-R forward over packed posts: all tokens of a batch in one (tokens, width) matrix, none of them padding.

The linear layers never see padding; attention is `torch.nn.attention.varlen` (part of torch since 2.10) on a GPU; on a
CPU attention alone is padded. Compare ByteTransformer (Zhai et al. 2023, https://arxiv.org/abs/2210.03052), which does
the same by its own kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from models.errors import EncoderError

__all__ = ["Layer", "Packed", "PackedEncoder", "refusal"]

POOLINGS = ("mean", "cls", "max")
MODEL_TYPES = ("bert", "roberta", "xlm-roberta", "camembert")  # the same post-LN layers; positions start elsewhere


class Packed(NamedTuple):
    """Posts laid end to end."""

    ids: Tensor  # (tokens,) int32
    positions: Tensor  # (tokens,) int32, as the model numbers them
    starts: Tensor  # (posts + 1,) int32: post i is tokens starts[i] to starts[i + 1]
    longest: int  # tokens of the longest post


class Layer(NamedTuple):
    """Weights of one layer, (out, in), and biases; query, key and value stacked, as in one product."""

    qkv: Tensor
    qkv_bias: Tensor
    out: Tensor
    out_bias: Tensor
    norm: Tensor
    norm_bias: Tensor
    up: Tensor
    up_bias: Tensor
    down: Tensor
    down_bias: Tensor
    norm2: Tensor
    norm2_bias: Tensor


def refusal(config: Any) -> str:
    """Why a transformers configuration cannot be run here; empty if it can."""
    if config.model_type not in MODEL_TYPES:
        return f"model_type {config.model_type!r} is not one of {', '.join(MODEL_TYPES)}"
    if config.hidden_act != "gelu":
        return f"hidden_act {config.hidden_act!r} is not gelu"
    if getattr(config, "position_embedding_type", None) not in (None, "absolute"):
        return f"position_embedding_type {config.position_embedding_type!r} is not absolute"
    if getattr(config, "is_decoder", False):
        return "it is a decoder"
    return ""


class PackedEncoder(torch.nn.Module):
    """The weights of a transformers BERT or XLM-R, run packed. Raises EncoderError for another shape.

    projection: a linear map of the pooled unit rows, made unit again: how a trained space is turned and evened out.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        pooling: str = "mean",
        dtype: torch.dtype = torch.float32,
        projection: torch.nn.Linear | None = None,
    ) -> None:
        super().__init__()
        config: Any = model.config  # transformers types a part of a model as a tensor or a module: Any says more
        if why := refusal(config):
            raise EncoderError(f"cannot run {type(model).__name__} packed: {why}")
        if pooling not in POOLINGS:
            raise EncoderError(f"cannot pool by {pooling!r}: one of {', '.join(POOLINGS)}")
        self.pooling = pooling
        self.width: int = config.hidden_size
        self.heads: int = config.num_attention_heads
        self.eps: float = config.layer_norm_eps
        # RoBERTa and its kin number positions from after the padding token's id.
        self.first_position: int = 0 if config.model_type == "bert" else config.pad_token_id + 1

        def held(tensor: Tensor) -> torch.nn.Parameter:
            return torch.nn.Parameter(tensor.detach().to(dtype).contiguous(), requires_grad=False)

        table: Any = model.embeddings
        layers: Any = model.encoder
        self.words = held(table.word_embeddings.weight)
        # Every post is of token type 0: its row is the same for all and goes into the positions'.
        self.places = held(table.position_embeddings.weight + table.token_type_embeddings.weight[0])
        self.norm = held(table.LayerNorm.weight)
        self.norm_bias = held(table.LayerNorm.bias)
        self.layers = torch.nn.ModuleList(
            torch.nn.ParameterList([held(tensor) for tensor in _layer(layer)]) for layer in layers.layer
        )
        self.projection: torch.nn.ParameterList | None = None
        if projection is not None:
            bias = projection.weight.new_zeros(len(projection.weight)) if projection.bias is None else projection.bias
            self.project(held(projection.weight), held(bias))

    def project(self, weight: Tensor, bias: Tensor) -> None:
        """From here on vectors are normalise(v @ weightᵀ + bias). weight: (dim, width); bias: (dim,)."""
        parts = [torch.nn.Parameter(part.contiguous(), requires_grad=False) for part in (weight, bias)]
        self.projection = torch.nn.ParameterList(parts)

    def forward(self, ids: Tensor, positions: Tensor, starts: Tensor, longest: int) -> Tensor:
        """`Packed` → (posts, dim) float32, unit rows; dim is the width, or the projection's."""
        x = self._states(ids, positions, starts, longest)
        if self.pooling == "cls":
            pooled = x[starts[:-1].long()].float()
        else:
            lengths = starts.diff().long()
            pooled = torch.segment_reduce(x.float(), self.pooling, lengths=lengths, axis=0, unsafe=True)
        pooled = F.normalize(pooled, dim=1)
        if self.projection is None:
            return pooled
        weight, bias = (part.float() for part in self.projection)
        return F.normalize(F.linear(pooled, weight, bias), dim=1)

    def start(self, packed: Packed) -> Callable[[], np.ndarray]:
        """Start a batch; what is returned waits for its vectors. On a GPU the copy back is queued behind the
        forward.
        """
        vectors: Tensor = self(*packed)
        if not vectors.is_cuda:
            return lambda: vectors.numpy()
        host = torch.empty(vectors.shape, dtype=vectors.dtype, pin_memory=True)
        host.copy_(vectors, non_blocking=True)
        done = torch.cuda.Event()  # type: ignore[no-untyped-call]
        done.record()

        def wait() -> np.ndarray:
            done.synchronize()
            return host.numpy()

        return wait

    def _states(self, ids: Tensor, positions: Tensor, starts: Tensor, longest: int) -> Tensor:
        """(tokens, width): what the last layer says of each token."""
        shape = (self.width,)
        x = F.embedding(ids, self.words) + F.embedding(positions, self.places)
        x = F.layer_norm(x, shape, self.norm, self.norm_bias, self.eps)
        for parameters in self.layers:
            w = Layer(*cast(torch.nn.ParameterList, parameters))
            query, key, value = F.linear(x, w.qkv, w.qkv_bias).view(len(x), 3, self.heads, -1).unbind(1)
            mixed = _attend(query, key, value, starts, longest).reshape(x.shape)
            x = F.layer_norm(x + F.linear(mixed, w.out, w.out_bias), shape, w.norm, w.norm_bias, self.eps)
            inner = F.gelu(F.linear(x, w.up, w.up_bias))
            x = F.layer_norm(x + F.linear(inner, w.down, w.down_bias), shape, w.norm2, w.norm2_bias, self.eps)
        return x

    def pack(self, ids: Sequence[Sequence[int]]) -> Packed:
        """Lay posts end to end, on the device of the weights. No post may be empty."""
        device = self.words.device
        lengths = torch.tensor([len(post) for post in ids], dtype=torch.int32)
        starts = F.pad(lengths.cumsum(0), (1, 0)).to(torch.int32)
        flat = torch.tensor([token for post in ids for token in post], dtype=torch.int32)
        within = torch.arange(len(flat), dtype=torch.int32) - torch.repeat_interleave(starts[:-1], lengths.long())
        laid, places = flat, within + self.first_position
        if device.type == "cuda":  # pinned, so that the copy does not wait for the batch that is being computed
            laid, places, starts = (part.pin_memory().to(device, non_blocking=True) for part in (laid, places, starts))
        return Packed(laid, places, starts, int(lengths.max()))


def _attend(query: Tensor, key: Tensor, value: Tensor, starts: Tensor, longest: int) -> Tensor:
    """(tokens, heads, head width) each → the same shape: every post attends to itself alone."""
    if query.is_cuda:
        from torch.nn.attention.varlen import varlen_attn

        return cast(Tensor, varlen_attn(query, key, value, starts, starts, longest, longest))
    seen = torch.arange(longest)[None] < starts.diff()[:, None]  # (posts, longest)

    def padded(tensor: Tensor) -> Tensor:
        out = tensor.new_zeros(*seen.shape, *tensor.shape[1:])
        out[seen] = tensor
        return out.transpose(1, 2)  # (posts, heads, longest, head width)

    mixed = F.scaled_dot_product_attention(padded(query), padded(key), padded(value), attn_mask=seen[:, None, None, :])
    return mixed.transpose(1, 2)[seen]


def _layer(layer: Any) -> Layer:
    """The twelve tensors of one transformers layer."""
    attention = layer.attention.self
    return Layer(
        torch.cat([attention.query.weight, attention.key.weight, attention.value.weight]),
        torch.cat([attention.query.bias, attention.key.bias, attention.value.bias]),
        layer.attention.output.dense.weight,
        layer.attention.output.dense.bias,
        layer.attention.output.LayerNorm.weight,
        layer.attention.output.LayerNorm.bias,
        layer.intermediate.dense.weight,
        layer.intermediate.dense.bias,
        layer.output.dense.weight,
        layer.output.dense.bias,
        layer.output.LayerNorm.weight,
        layer.output.LayerNorm.bias,
    )
