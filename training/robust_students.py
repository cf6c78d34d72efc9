"""What the robust job teaches: the static encoder's table, a transformer over pieces, one over letters.

Source of the latter two: Nishimwe, Sagot, Bawden 2024 (RoLASER, c-RoLASER), section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
import torch
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer
from transformers.utils import logging

from models.encoders.characters import CharacterEncoder, Shape, words_of
from models.encoders.stored_cleaning import store_cleaning
from models.text import Cleaning, clean
from training.corpus import Bags, to_bags
from training.jobs import write_atomically
from training.loop import autocast, device
from training.runs import read_run
from training.static_table import Static, start_table, with_dropout

__all__ = ["CharStudent", "Frozen", "StaticStudent", "Student", "TokenStudent"]


class Student(Protocol):
    """What is taught. `prepare` is done once for all texts, `embed` every step."""

    module: torch.nn.Module
    cleaning: Cleaning

    def prepare(self, texts: list[str]) -> Any: ...

    def embed(self, prepared: Any, index: np.ndarray, rng: np.random.Generator | None) -> torch.Tensor:
        """(len(index), d); rng: for what is left out at random, None when measuring."""
        ...

    def save(self, folder: Path, record: dict) -> None: ...


GROUP = 128  # texts of like length that a torch student reads at a time: of a batch in one piece most is padding


def in_groups(lengths: Sequence[int], embed: Callable[[np.ndarray], torch.Tensor], size: int = GROUP) -> torch.Tensor:
    """(n, d): `embed` of the places 0 to n - 1, in their order, called with at most `size` of like length at a time."""
    order = np.argsort(lengths, kind="stable")
    parts = [embed(rows) for rows in np.array_split(order, max(1, -(-len(order) // size)))]
    return torch.cat(parts)[torch.from_numpy(np.argsort(order))]


class StaticStudent:
    """The static encoder's table, from a run of training.distill or a bundle."""

    def __init__(self, base: Path, drop: float) -> None:
        self._run, self._drop = read_run(base), drop
        run = self._run
        self.cleaning = run.cleaning
        self.module = Static(*run.table.shape, seed=0)
        self.module.table.data.copy_(torch.from_numpy(run.table))
        self.dim: int = run.table.shape[1]

    def turn_to(self, prepared: Bags, target: np.ndarray) -> None:
        """Begin near the (n, dim) targets of these texts, on the axes of a wider teacher, the widest first."""
        table = start_table(self._run, prepared, target, is_bundle=True)
        self.module.table.data.copy_(torch.from_numpy(table))
        # As distillation leaves it: the narrowest axis is the one nearest to no sentence.
        self._run = msgspec.structs.replace(self._run, table=table, empty=np.eye(self.dim, dtype=np.float32)[-1])

    def prepare(self, texts: list[str]) -> Any:
        return to_bags(self._run.reader, texts)

    def embed(self, prepared: Any, index: np.ndarray, rng: np.random.Generator | None) -> torch.Tensor:
        bag = prepared.take(index)
        filled = np.diff(prepared.starts)[index] > 0
        if rng is None or not filled.all():
            return self.module(*bag)
        return self.module(*with_dropout(bag, rng, self._drop))

    def save(self, folder: Path, record: dict) -> None:
        """A run as training.distill leaves it, so that training.bundle makes a bundle of it."""
        folder.mkdir(parents=True, exist_ok=True)
        run = self._run
        tensors = {"table": self.module.table.data.contiguous(), "empty": torch.from_numpy(run.empty)}
        save_file(tensors, folder / "model.safetensors")
        write_atomically(folder / "tokenizer.json", run.tokenizer.to_str().encode())
        whole = {**run.record, "reading": msgspec.to_builtins(run.reading)}
        whole["training"] = {**run.record.get("training", {}), "robust": record}
        write_atomically(folder / "run.json", msgspec.json.encode(whole))


class TokenStudent:
    """RoLASER: a transformer over pieces, a linear layer to the teacher's width on every token, then pooling."""

    def __init__(self, base: str, dim: int, pooling: str, max_length: int, seed: int) -> None:
        """base: a transformers directory or hub id; dim: the teacher's; max_length: pieces it reads."""
        self.cleaning = Cleaning()
        transformer = Transformer(base, max_seq_length=max_length)
        width = transformer.get_embedding_dimension()
        torch.manual_seed(seed)
        dense = Dense(width, dim, activation_function=None, module_input_name="token_embeddings")
        self.module = SentenceTransformer(modules=[transformer, dense, Pooling(dim, pooling)], device=str(device()))

    def prepare(self, texts: list[str]) -> list[str]:
        return [clean(text, self.cleaning) for text in texts]

    def embed(self, prepared: list[str], index: np.ndarray, rng: np.random.Generator | None) -> torch.Tensor:
        texts = [prepared[i] for i in index]
        return in_groups([len(text) for text in texts], lambda rows: self._embed([texts[i] for i in rows]))

    def _embed(self, texts: list[str]) -> torch.Tensor:
        features = self.module.preprocess(texts)
        features = {n: v.to(self.module.device) if isinstance(v, torch.Tensor) else v for n, v in features.items()}
        with autocast(self.module.device):
            return self.module(features)["sentence_embedding"].float()

    def save(self, folder: Path, record: dict) -> None:
        logging.disable_progress_bar()
        self.module.save_pretrained(str(folder), create_model_card=False)
        store_cleaning(folder, self.cleaning)


class CharStudent:
    """c-RoLASER: the same over letters."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self.cleaning, self._max_words = Cleaning(), shape.max_words
        torch.manual_seed(seed)
        self.module = CharacterEncoder(shape).to(device())

    def prepare(self, texts: list[str]) -> list[list[list[int]]]:
        return [words_of(clean(text, self.cleaning), self._max_words) for text in texts]

    def embed(self, prepared: Any, index: np.ndarray, rng: np.random.Generator | None) -> torch.Tensor:
        texts = [prepared[i] for i in index]
        with autocast(device()):
            return in_groups(
                [len(words) for words in texts], lambda rows: self.module([texts[i] for i in rows])
            ).float()

    def save(self, folder: Path, record: dict) -> None:
        self.module.save(folder)
        store_cleaning(folder, self.cleaning)


class Frozen:
    """A static student as an encoder, before training."""

    def __init__(self, student: StaticStudent) -> None:
        self._student = student
        self.version, self.cleaning = "base", student.cleaning
        self.dim = student.dim

    def encode(self, texts: list[str]) -> np.ndarray:
        bags = self._student.prepare(list(texts))
        parts = np.array_split(np.arange(len(texts)), max(1, len(texts) // 16_384))
        with torch.no_grad():
            return np.concatenate([self._student.embed(bags, part, None).numpy() for part in parts])
