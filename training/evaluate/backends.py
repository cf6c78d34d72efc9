"""The CPU back-ends beside sentence-transformers' own `encode`: one model, the same texts, one core, one run.

python -m training.evaluate.backends minilm out=x.json      # exports fp32 and int8, measures, writes the JSON

Texts are cleaned before they are timed, so that all read the same tokens. Rounds are interleaved and the best of each
is kept; processor time is what counts on a machine that others use too.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from msgspec import Struct

from models.encoders.load import load_encoder
from models.errors import ConfigError
from models.text import clean
from training.files import data_dir, read_rows, read_table
from training.jobs import read_config, run, write_result
from training.metrics.ranks import spearman

__all__ = ["Config", "main", "useful_flops"]

Encode = Callable[[list[str]], np.ndarray]


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the comparison."""

    model: str = "minilm"  # sentence-transformers directory, or the teacher
    out: str = ""  # where the JSON goes; empty = only printed
    posts: int = 1000  # of HumAID, whose lengths are a real mix: mean 33, p95 63 MiniLM pieces
    rounds: int = 3
    core: int = 0  # everything runs on this one
    stsb: bool = True  # Spearman on the English test of the STS benchmark
    seed: int = 1


def useful_flops(width: int, layers: int, inner: int, lengths: np.ndarray) -> float:
    """Multiply-adds, times 2, of a forward over posts of these lengths, padding not counted."""
    n = np.asarray(lengths, np.float64)
    return float(layers * (n.sum() * 4 * (2 * width * width + width * inner) + 4 * width * (n * n).sum()))


def timed(
    variants: dict[str, Encode], texts: list[str], rounds: int
) -> tuple[dict[str, dict[str, float]], dict[str, np.ndarray]]:
    """Posts a second of each by processor and by wall clock, and the vectors."""
    for encode in variants.values():
        encode(texts[:32])
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in variants}
    vectors = {}
    for _ in range(rounds):
        for name, encode in variants.items():
            wall, processor = time.perf_counter(), time.process_time()
            vectors[name] = encode(texts)
            spent[name].append((time.process_time() - processor, time.perf_counter() - wall))
    figures = {
        name: {
            "posts_per_core_s": round(len(texts) / min(processor for processor, _ in found), 1),
            "posts_per_s": round(len(texts) / min(wall for _, wall in found), 1),
            "spread": round(max(p for p, _ in found) / min(p for p, _ in found), 3),
        }
        for name, found in spent.items()
    }
    return figures, vectors


def ceiling_gflops(width: int, inner: int, rows: int = 512) -> float:
    """What one core reaches in torch's float32 product of the model's largest layer: no float32 forward
    can be faster.
    """
    import torch

    x, weight = torch.randn(rows, width), torch.randn(inner, width)
    best = float("inf")
    with torch.inference_mode():
        for _ in range(30):
            start = time.process_time_ns()
            torch.nn.functional.linear(x, weight)
            best = min(best, time.process_time_ns() - start)
    return 2 * rows * width * inner / best


def stsb(encode: Encode, root: Path) -> float:
    """Spearman of cosine and score on the English test pairs."""
    rows = [
        r for r in read_rows(root / "stsb-multi" / "stsb_multi.tsv.gz") if r["lang"] == "en" and r["split"] == "test"
    ]
    left, right = (encode([row[side] for row in rows]) for side in ("sentence1", "sentence2"))
    return spearman((left * right).sum(1), np.array([float(row["score_0_5"]) for row in rows]))


def _posts(path: Path) -> list[str]:
    return [row["text"] for row in read_table(path, ["text"])]


def main(config: Config) -> dict:
    os.sched_setaffinity(0, {config.core})
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import torch
    from sentence_transformers import SentenceTransformer

    from models.encoders.transformer import TransformerEncoder
    from training import export_onnx
    from training.teacher import teacher_path

    torch.set_num_threads(1)
    root = data_dir()
    path = str(teacher_path()) if config.model == "minilm" else config.model
    ours = TransformerEncoder(path)
    texts = sorted({clean(text, ours.cleaning) for text in _posts(root / "humaid" / "tweets.jsonl.gz")})
    if len(texts) < config.posts:
        raise ConfigError(f"posts={config.posts}, there are {len(texts)}")
    texts = [texts[i] for i in np.random.default_rng(config.seed).permutation(len(texts))[: config.posts]]
    model = SentenceTransformer(path, device="cpu")
    with TemporaryDirectory() as folder:
        variants: dict[str, Encode] = {
            "sentence-transformers": lambda x: model.encode(x, show_progress_bar=False, normalize_embeddings=True),
            "torch": ours.encode,
        }
        for precision in ("fp32", "int8"):
            out = f"{folder}/{precision}"
            export_onnx.main(export_onnx.Config(config.model, out, precision))
            variants[f"onnx {precision}"] = load_encoder(out).encode
        figures, vectors = timed(variants, texts, config.rounds)
        for name, found in figures.items():
            found["times_sentence_transformers"] = round(
                found["posts_per_core_s"] / figures["sentence-transformers"]["posts_per_core_s"], 2
            )
            cosines = (vectors[name] * vectors["sentence-transformers"]).sum(1)
            found["cosine_mean"], found["cosine_least"] = (
                round(float(cosines.mean()), 5),
                round(float(cosines.min()), 5),
            )
            if config.stsb:
                found["stsb_spearman"] = round(float(stsb(variants[name], root)), 4)
    lengths = np.array([len(ids) for ids in ours._ids(texts)])
    shape = model[0].auto_model.config
    flops = useful_flops(shape.hidden_size, shape.num_hidden_layers, shape.intermediate_size, lengths) / len(texts)
    ceiling = ceiling_gflops(shape.hidden_size, shape.intermediate_size)
    metrics = {
        "texts": {
            "set": "HumAID, cleaned",
            "posts": len(texts),
            "tokens_mean": round(float(lengths.mean()), 1),
            "tokens_p95": float(np.percentile(lengths, 95)),
        },
        "float32_ceiling": {"gflops": round(ceiling, 1), "posts_per_core_s": round(ceiling * 1e9 / flops, 1)},
        "backends": figures,
    }
    for name, found in figures.items():
        print(f"{name:22}", *(f"{key} {value}" for key, value in found.items()))
    print("float32 ceiling", metrics["float32_ceiling"], metrics["texts"])
    if config.out:
        write_result(Path(config.out), config, "", config.seed, metrics)
    return metrics


def read_words(words: Sequence[str]) -> Config:
    """`MODEL key=value …` as a config. Raises ConfigError."""
    return read_config({words[0]: Config(model=words[0])}, words)


if __name__ == "__main__":
    run(main, {"MODEL": Config()}, sys.argv[1:] or ["minilm"], read=read_words)
