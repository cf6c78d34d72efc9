"""A bundle of forty pieces, made in a moment."""

import numpy as np
from safetensors.numpy import save
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from models.encoders.bundle import Manifest
from models.text import Cleaning


def tiny_files(pieces: int = 40, dim: int = 8, seed: int = 0) -> dict[str, bytes]:
    words = ["<unk>", "▁water", "▁we", "▁need", *(f"▁w{i}" for i in range(pieces - 4))]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    rng = np.random.default_rng(seed)
    weights = {
        "rows": rng.integers(-127, 128, (pieces, dim)).astype(np.int8),
        "scales": np.full(pieces, 0.01, np.float32),
        "empty": np.eye(dim, dtype=np.float32)[-1],
    }
    return {"model.safetensors": save(weights), "tokenizer.json": tokenizer.to_str().encode()}


def tiny_manifest(**changes) -> Manifest:
    fields = {
        "backend": "static",
        "dim": 8,
        "max_length": 16,
        "cleaning": Cleaning(),
        "pooling": "sum",
        "licence": "CC0",
    }
    return Manifest(**{**fields, **changes})
