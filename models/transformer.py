"""Any sentence-transformers or transformers model as an `Encoder`, through torch (extra [torch]).

Reads what such a directory says about itself: `modules.json` and the pooling's `config.json` where they exist, mean
pooling where they do not (what the CrisisTransformers papers use). Posts are sorted by length and batched by token
budget, so that little is computed for padding; float32 on a CPU, bfloat16 on a GPU.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer

from models.errors import EncoderError
from models.text import Cleaning, clean

TOKENS = {"cpu": 4096, "cuda": 16384}  # in a batch, padding counted; measured best in sentence vectors a second


class TransformerEncoder:
    """`Encoder` over a local directory or a hub id. The pooling is "mean" or "cls"."""

    def __init__(self, ref: str, cleaning: Cleaning | None = None, max_length: int = 128) -> None:
        # The CrisisTransformers sentence encoders of 2024 read @MENTION, all else here @USER.
        self.cleaning = cleaning or Cleaning(mention_token="@MENTION" if "CT-" in ref and ref.endswith("-SE") else "@USER")
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.pooling = _pooling(ref)
        try:
            config = AutoConfig.from_pretrained(ref)
            self._tokenizer = AutoTokenizer.from_pretrained(ref)
            dtype = torch.bfloat16 if self.device.type == "cuda" else torch.float32
            self._model = AutoModel.from_pretrained(ref, dtype=dtype).to(self.device).eval()
        except (OSError, ValueError) as error:
            raise EncoderError(f"cannot load the transformers model {ref!r}: {error}") from error
        self.dim: int = config.hidden_size
        self._max_length = min(max_length, getattr(self._tokenizer, "model_max_length", max_length))
        self.version: str = self._version()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(n, dim) float32, C-contiguous, unit rows in input order."""
        cleaned = [clean(text, self.cleaning) for text in texts]
        out = np.empty((len(texts), self.dim), np.float32)
        if not cleaned:
            return out
        ids = self._tokenizer(cleaned, truncation=True, max_length=self._max_length)["input_ids"]
        # A tokenizer without special tokens gives nothing for "": the last axis stands for it.
        out[:] = np.eye(self.dim, dtype=np.float32)[-1]
        order = sorted((i for i in range(len(ids)) if ids[i]), key=lambda i: len(ids[i]))
        with torch.inference_mode():
            start = 0
            while start < len(order):
                end, budget = start, TOKENS[self.device.type]
                while end < len(order) and (end == start or (end + 1 - start) * len(ids[order[end]]) <= budget):
                    end += 1
                rows = order[start:end]
                out[rows] = self._forward([ids[i] for i in rows])
                start = end
        return out

    def _forward(self, ids: list[list[int]]) -> np.ndarray:
        batch = self._tokenizer.pad({"input_ids": ids}, return_tensors="pt").to(self.device)
        states = self._model(**batch).last_hidden_state.float()  # (rows, length, dim)
        if self.pooling == "cls":
            pooled = states[:, 0]
        else:
            mask = batch["attention_mask"][..., None].float()
            pooled = (states * mask).sum(1) / mask.sum(1).clamp(min=1)
        return torch.nn.functional.normalize(pooled, dim=-1).cpu().numpy()

    def _version(self) -> str:
        """12 hex digits over the weights, the pooling and the cleaning: what decides the vectors."""
        digest = hashlib.sha256(repr((self.pooling, self._max_length, self.cleaning)).encode())
        for name, tensor in sorted(self._model.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        return digest.hexdigest()[:12]


def _pooling(ref: str) -> str:
    """ "mean" or "cls", as a sentence-transformers directory says; "mean" where there is no word of it."""
    modules = Path(ref) / "modules.json"
    if not modules.exists():
        return "mean"
    for module in json.loads(modules.read_text()):
        if module["type"].endswith("Pooling"):
            config = json.loads((Path(ref) / module["path"] / "config.json").read_text())
            # Written as flags by sentence-transformers before version 6, as a word since.
            if config.get("pooling_mode") == "cls" or config.get("pooling_mode_cls_token"):
                return "cls"
            if config.get("pooling_mode") == "mean" or config.get("pooling_mode_mean_tokens"):
                return "mean"
            raise EncoderError(f"{ref} pools by {config}: only mean and cls are supported")
        if not module["type"].endswith(("Transformer", "Normalize")):
            raise EncoderError(f"{ref} has a module {module['type']}, which this back-end does not run")
    return "mean"
