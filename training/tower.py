"""A BERT whose upper layers learn, on a GPU where there is one: what shortening and adapting a sentence encoder share.

What goes in and what comes out lies on the CPU, so that who uses it need not know. Three things make it fast enough for
two cores, all measured on them. Products are in bf16 with plain attention (torch's
fused attention is ten times slower backward in bf16) where the processor has such products; where it has not, they are
seven times slower than float32's. Every batch is cut into parts of like length, each as wide as one of a few widths:
oneDNN compiles a kernel for each new shape, and with free widths most of the time went there. And what the layers that
stay give is the same in every epoch: `lower` reads it once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from rich.progress import track
from transformers import AutoTokenizer, BertModel

from models.encoders.batching import pad
from models.errors import ConfigError
from training.loop import device, fast_dtype

__all__ = ["Tower", "check_bert"]

WIDTHS = (12, 16, 20, 24, 28, 32, 40, 48, 56, 64)  # tokens a part may be wide
PARTS = 4  # of a batch, by length
AT_ONCE = 64  # texts read together where nothing is learnt


Text = list[int] | torch.Tensor  # a text's pieces, or the states the staying layers gave for them


def check_bert(folder: Path) -> None:
    """Raises ConfigError where there is no BERT, or one whose vectors are no means: both would be read as another model
    than it is, an XLM-R by its positions, which begin behind its padding piece, and nothing would tell."""
    if not (folder / "config.json").is_file():
        raise ConfigError(f"model={folder}: no folder that holds a model's config.json")
    if (kind := json.loads((folder / "config.json").read_text("utf-8")).get("model_type")) != "bert":
        raise ConfigError(f"model={folder}: its model_type is {kind}, only bert is read layer by layer")
    modules = folder / "modules.json"
    listed = json.loads(modules.read_text("utf-8")) if modules.is_file() else []  # none: sentence-transformers' mean
    for path in (folder / one["path"] for one in listed if one["type"].endswith(".Pooling")):
        told = json.loads((path / "config.json").read_text("utf-8"))
        by = told.get("pooling_mode") or [n[13:-7] for n, on in told.items() if n.startswith("pooling_mode_") and on]
        if by not in ("mean", ["mean"]):
            raise ConfigError(f"model={folder}: it is pooled by {by}, only the mean is read layer by layer")


class Tower:
    """Texts to unit vectors. `frozen` lower layers stay as they are, `learning` holds the others."""

    def __init__(self, folder: str | Path, frozen: int, keep: Sequence[int] = (), inner: int = 0) -> None:
        """folder: a BERT directory with mean pooling. keep: its layers to take, in order; none = all. inner: neurons
        that each layer's feed-forward part keeps; 0 = all.

        Raises ConfigError where it is another model, or a layer or neuron is asked for that is not there.
        """
        self.folder = Path(folder)
        check_bert(self.folder)
        self.model = BertModel.from_pretrained(folder, add_pooling_layer=False, attn_implementation="eager").eval()
        layers = self.model.encoder.layer
        if keep:
            if max(keep) >= len(layers):
                raise ConfigError(f"keep={','.join(map(str, keep))}: {folder} has layers 0 to {len(layers) - 1}")
            self.model.encoder.layer = layers = torch.nn.ModuleList(layers[i] for i in keep)
            self.model.config.num_hidden_layers = len(keep)
        if inner:
            if inner > self.model.config.intermediate_size:
                raise ConfigError(f"inner={inner}: {folder} has {self.model.config.intermediate_size} neurons a layer")
            for layer in layers:
                _narrow(layer, inner)
            self.model.config.intermediate_size = inner
        if frozen >= len(layers):
            raise ConfigError(f"frozen={frozen}: of {len(layers)} layers none is left to learn")
        self.model.requires_grad_(False).to(where := device())
        self._where = where
        self.staying, self.learning = list(layers[:frozen]), torch.nn.ModuleList(layers[frozen:])
        self.learning.requires_grad_(True)
        self._widths = [width for width in WIDTHS if width <= self.model.config.max_position_embeddings]
        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        settings = json.loads((self.folder / "config_sentence_transformers.json").read_text())
        prompts, named = settings.get("prompts", {}), settings.get("default_prompt_name")
        self._first = prompts.get(named or "", "")  # as models/encoders/transformer.py reads it

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Pieces of each text, at most as many as the widest part holds."""
        if not texts:
            return []
        given = [self._first + text for text in texts]
        return self._tokenizer(given, truncation=True, max_length=self._widths[-1])["input_ids"]

    def vectors(self, texts: Sequence[Text]) -> torch.Tensor:
        """(n, width) float32 unit rows, with gradients to the layers that learn. texts: `ids`, or what `lower` gave."""
        order = np.argsort([len(text) for text in texts], kind="stable")
        parts = [self._part([texts[i] for i in rows]) for rows in np.array_split(order, min(PARTS, len(order)))]
        return torch.cat(parts)[torch.from_numpy(np.argsort(order))]

    @torch.no_grad()
    def read(self, texts: Sequence[Text]) -> torch.Tensor:
        """(n, width) float32 unit rows of many texts, nothing learnt."""
        order = np.argsort([len(text) for text in texts], kind="stable")
        parts = [self._part([texts[i] for i in rows]) for rows in _batches(order, f"read {len(texts):,} texts")]
        return torch.cat(parts)[torch.from_numpy(np.argsort(order))]

    @torch.no_grad()
    def lower(self, ids: Sequence[list[int]]) -> list[torch.Tensor]:
        """What the layers that stay give for each text: (tokens, width) float16, 27 kB for 35 tokens of width 384."""
        order = np.argsort([len(text) for text in ids], kind="stable")
        out: list[torch.Tensor] = [torch.empty(0)] * len(ids)
        for rows in _batches(order, f"lower layers of {len(ids):,} texts"):
            states, _, _ = self._lowered([ids[i] for i in rows])
            for i, state in zip(rows, states.to("cpu", torch.float16), strict=True):
                out[i] = state[: len(ids[i])].clone()
        return out

    def _part(self, texts: Sequence[Text]) -> torch.Tensor:
        states, mask, away = self._lowered(texts)
        with _products(self._where):
            for layer in self.learning:
                states = _first(layer(states, away))
        total = (states.float() * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        return F.normalize(total, dim=-1).cpu()

    @torch.no_grad()
    def _lowered(self, texts: Sequence[Text]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What enters the layers that learn: states (n, tokens, width), mask (n, tokens), what attention adds to it."""
        width = next(size for size in self._widths if size >= max(map(len, texts)))
        ids = [text if isinstance(text, list) else [0] * len(text) for text in texts]
        arrays = pad([*ids, [0] * width])
        padded, mask = (torch.from_numpy(array)[: len(ids)].to(self._where) for array in arrays)
        away = ((mask - 1) * 1e4)[:, None, None, :]
        if not isinstance(texts[0], list):
            states = torch.zeros(len(texts), width, texts[0].shape[1])
            for i, text in enumerate(texts):
                states[i, : len(text)] = torch.as_tensor(text)
            return states.to(self._where), mask, away
        with _products(self._where):
            states = self.model.embeddings(padded)
            for layer in self.staying:
                states = _first(layer(states, away))
        return states, mask, away


def _narrow(layer: torch.nn.Module, inner: int) -> None:
    """Keep the neurons of the feed-forward part through which most can pass: norm of what enters times what leaves."""
    enter, leave = layer.intermediate.dense, layer.output.dense
    strength = enter.weight.detach().norm(dim=1) * leave.weight.detach().norm(dim=0)
    kept = strength.topk(inner).indices.sort().values
    enter.weight, enter.bias = torch.nn.Parameter(enter.weight[kept]), torch.nn.Parameter(enter.bias[kept])
    leave.weight = torch.nn.Parameter(leave.weight[:, kept])
    enter.out_features = leave.in_features = inner


def _batches(order: np.ndarray, title: str) -> Iterable[np.ndarray]:
    """Rows to read together, in this order; many are shown as a bar."""
    batches = [order[start : start + AT_ONCE] for start in range(0, len(order), AT_ONCE)]
    return track(batches, title, disable=len(batches) < 20)


def _products(where: torch.device) -> torch.autocast:
    dtype = fast_dtype()
    return torch.autocast(where.type, dtype, enabled=dtype != torch.float32)


def _first(found: object) -> torch.Tensor:
    return found[0] if isinstance(found, tuple) else found
