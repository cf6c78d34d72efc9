"""Small real bundles: a word-level tokenizer and a random table, so that posts that share words are near each other."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import numpy as np
from safetensors.numpy import load_file, save
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from models.encoders.bundle import ADDED, Manifest, contents, read_bundle, write_bundle
from models.queries import background_texts, load_queries
from models.text import Cleaning

DIM = 64


def in_ek(text: str) -> str:
    """The text in a made-up language that a tiny encoder knows to mean the same."""
    return " ".join(f"{word}ek" for word in re.findall(r"\w+", text.lower()))


def words_of(texts: list[str]) -> list[str]:
    """Every word of the texts, and of the bundled queries and background: what a tiny encoder can tell apart."""
    known = [text for q in load_queries() for lang, text in q.texts() if lang in ("en", "es", "fr")]
    return sorted({w for t in [*known, *background_texts(), *texts] for w in re.findall(r"\w+", t.lower())})


def tiny_bundle(path: Path, seed: int = 0, words: list[str] | None = None, dim: int = DIM, **manifest) -> str:
    """Write a static bundle over these words (default: a few); returns its id."""
    pieces = ["<unk>", *(words if words is not None else ["water", "need", "roof", "we", "help", "food"])]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(pieces)}, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("removed")]
    )
    table = np.random.default_rng(seed).normal(size=(len(pieces), dim)).astype(np.float32)
    table[1:] *= np.minimum(1.0, np.array([len(w) for w in pieces[1:]]) / 6)[:, None]  # short words say little
    table[0] *= 0.05
    place = {word: i for i, word in enumerate(pieces)}
    for word, i in place.items():  # a made-up second language: "waterek" means what "water" does
        if word.endswith("ek") and word[:-2] in place:
            table[i] = table[place[word[:-2]]] + 0.2 * table[i]
    return _write(path, table, np.eye(dim, dtype=np.float32)[-1], tokenizer.to_str(), **manifest)


def rotated_bundle(path: Path, of: Path, seed: int = 7) -> str:
    """Another version of the same quality: the table turned by a random rotation and quantised again."""
    tensors, dim = load_file(of / "model.safetensors"), read_bundle(of).manifest.dim
    table = tensors["rows"].astype(np.float32) * tensors["scales"][:, None]
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))[0].astype(np.float32)
    empty = (tensors["empty"] @ turn).astype(np.float32)
    return _rewrite(path, of, table @ turn, empty)


def shuffled_bundle(path: Path, of: Path, seed: int = 7) -> str:
    """A bad version: every word has some other word's vector."""
    tensors = load_file(of / "model.safetensors")
    table = tensors["rows"].astype(np.float32) * tensors["scales"][:, None]
    return _rewrite(path, of, np.random.default_rng(seed).permutation(table), tensors["empty"])


def shuffled_rows(path: Path, of: Path, seed: int = 3) -> str:
    """A bad version of any static bundle, with all that its manifest tells: its rows in another order."""
    read, tensors = read_bundle(of), load_file(of / "model.safetensors")
    order = np.random.default_rng(seed).permutation(len(tensors["rows"]))
    weights = save(tensors | {"rows": tensors["rows"][order], "scales": tensors["scales"][order]})
    files = {name: held for name, held in contents(read).items() if name not in ADDED} | {"model.safetensors": weights}
    return write_bundle(path, msgspec.structs.replace(read.manifest, parent=read.id), files).id


def _rewrite(path: Path, of: Path, table: np.ndarray, empty: np.ndarray) -> str:
    read = read_bundle(of)
    return _write(
        path,
        table,
        empty,
        (of / "tokenizer.json").read_text(),
        parent=read.id,
        max_length=read.manifest.max_length,
        cleaning=read.manifest.cleaning,
    )


def _write(path: Path, table: np.ndarray, empty: np.ndarray, tokenizer: str, **manifest) -> str:
    scales = (np.maximum(np.abs(table).max(1), 1e-9) / 127).astype(np.float32)
    weights = {"rows": np.rint(table / scales[:, None]).astype(np.int8), "scales": scales, "empty": empty}
    fields = {
        "backend": "static",
        "dim": table.shape[1],
        "max_length": 64,
        "cleaning": Cleaning(),
        "pooling": "sum",
        "licence": "CC0",
        **manifest,
    }
    return write_bundle(
        path, Manifest(**fields), {"model.safetensors": save(weights), "tokenizer.json": tokenizer.encode()}
    ).id
