"""Make a sentence encoder of a pre-trained model: multiple negatives ranking, with and without hard negatives.

    python -m training.contrastive smoke                            # a toy on the bundled queries
    python -m training.contrastive laptop base=MLM/best file=pairs.tsv.gz
    python -m training.contrastive paper base=MLM/best file=quora.tsv.gz hard_negatives=true
    python -m training.contrastive laptop base=MLM/best file=xnli.tsv.gz columns=premise_en,hypothesis_en label=label \
        positive=entailment negative=contradiction hard_negatives=true      # pairs with a label, joined to triplets

The file has the columns anchor, positive and, for hard negatives, negative (.tsv or .jsonl, .gz allowed; others by
`columns`), or two texts and a label. Source: Lamsal, Read, Karunasekera 2023, section 3.4, equations 1 and 2: batches
of 512, 2e-5, 1 % warm-up, the first 10k rows. Large batches fit by gradient caching (Gao et al. 2021);
sentence-transformers has both losses.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from msgspec import Meta, Struct
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import (
    CachedMultipleNegativesRankingLoss,
    MultipleNegativesRankingLoss,
)
from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
from transformers.utils import logging

from models.encoders.stored_cleaning import store_cleaning
from models.errors import ConfigError
from models.text import Cleaning, clean
from training import mlm
from training.bundled_posts import bundled_posts
from training.files import DataError, hash_rows, read_table
from training.jobs import Count, Positive, cache_dir, model_loaded, run, write_result
from training.loop import BEST, Pace, autocast, device, fit, load_weights
from training.run_key import run_key

__all__ = ["Config", "main"]


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the contrastive job."""

    base: str = ""  # transformers or sentence-transformers directory, or hub id; empty = a tiny one, drawn at random
    file: str = ""  # pairs or triplets; empty = sentences of the same bundled query
    columns: tuple[str, ...] = ("anchor", "positive", "negative")  # what the file calls them
    only: tuple[str, ...] = ()  # COLUMN=VALUE, several by comma: only these rows
    label: str = ""  # a column saying what two texts are; rows are joined by the first, see `joined`
    positive: str = "1"  # of these labels
    negative: str = "0"
    hard_negatives: bool = False  # equation 2; each row then needs a negative
    rows: int = 10_000  # the first rows of the file; 0 = all
    temperature: Positive = 0.05  # τ; sentence-transformers' scale is 1 / τ
    batch: Annotated[int, Meta(ge=2)] = 512  # pairs whose positives are each other's negatives
    mini_batch: int = 32  # texts in memory at a time, by gradient caching; 0 = the whole batch at once
    epochs: Positive = 20
    lr: Positive = 2e-5
    warmup: float = 0.01  # share of the steps
    max_length: Count = 128
    validation: float = 0.05  # share of the rows that is kept to validate on
    validate_every: int = 20
    checkpoint_every: Count = 20
    mention_token: str = "@USER"
    seed: int = 1
    out: str = ""  # default CRISIS_CACHE/contrastive


PRESETS = {
    "smoke": Config(rows=160, batch=16, mini_batch=8, epochs=4, lr=2e-3, max_length=32, validation=0.2),
    "laptop": Config(epochs=3, batch=128),
    "paper": Config(),
}


def read_rows(config: Config) -> list[tuple[str, ...]]:
    """(anchor, positive[, negative]) of the file, or of the bundled queries. Raises ConfigError, DataError."""
    wanted = 3 if config.hard_negatives else 2
    if not config.file:
        return bundled_rows(wanted, config.seed)[: config.rows or None]
    named = 2 if config.label else wanted
    if len(config.columns) < named:
        raise ConfigError(f"columns={','.join(config.columns)}: {named} names are needed")
    asked = [rule.partition("=") for rule in config.only]
    if wrong := [rule for rule in asked if not rule[1]]:
        raise ConfigError(f"only={wrong[0][0]}: write COLUMN=VALUE")
    extra = [*(column for column, _, _ in asked), *([config.label] if config.label else [])]
    table = read_table(Path(config.file), config.columns[:named], extra)
    table = [row for row in table if all(row.get(column) == value for column, _, value in asked)]
    cleaning = Cleaning(mention_token=config.mention_token)
    texts = [tuple(clean(row[name], cleaning) for name in config.columns[:named]) for row in table]
    rows = texts
    if config.label:
        labels = [row.get(config.label, "") for row in table]
        rows = [row[:wanted] for row in joined(texts, labels, config.positive, config.negative)]
    if not rows:
        raise DataError(f"{config.file}: no row is left of {len(table)} that only={','.join(config.only)} leaves")
    print(f"{len(rows)} rows, of which {len(rows[: config.rows or None])} are used")
    return rows[: config.rows or None]


def joined(
    pairs: Sequence[tuple[str, ...]], labels: Sequence[str], positive: str, negative: str
) -> list[tuple[str, str, str]]:
    """(anchor, positive, negative) of labelled pairs: one for each positive of a first text, its negatives in turn.

    First texts without one of either are left out, with and without hard negatives, so that both learn from the same.
    """
    found: dict[str, tuple[list[str], list[str]]] = {}
    for (first, second), label in zip(pairs, labels, strict=True):
        if label in (positive, negative):
            found.setdefault(first, ([], []))[label == negative].append(second)
    return [
        (anchor, same, others[i % len(others)])
        for anchor, (sames, others) in found.items()
        if others
        for i, same in enumerate(sames)
    ]


def bundled_rows(wanted: int, seed: int) -> list[tuple[str, ...]]:
    """Two English sentences of one query; as hard negative the same category's other kind (need for offer)."""
    rng = random.Random(seed)
    by_query: dict[str, list[str]] = {}
    for post in bundled_posts():
        if post.lang in ("en", "es", "fr", "de", "pt", "it"):
            by_query.setdefault(f"{post.query} {post.lang}", []).append(post.text)
    rows = []
    for name, texts in by_query.items():
        kind, rest = name.split(".", 1)
        others = by_query.get(f"{'offer' if kind == 'need' else 'need'}.{rest}", texts)
        for anchor, positive in zip(texts, texts[1:] + texts[:1], strict=True):
            rows.append((anchor, positive, rng.choice(others))[:wanted])
    rng.shuffle(rows)
    return rows


def plan_batches(rows: Sequence[tuple[str, ...]], size: int, epochs: float, seed: int) -> list[list[int]]:
    """Indices of the rows of every step. No text stands twice in a batch, where it would be its own negative; rows that
    do not fit wait for a later batch of the epoch, and an epoch's last, shorter batch is left out."""
    plan: list[list[int]] = []
    for epoch in range(int(np.ceil(epochs))):
        waiting = np.random.default_rng([seed, epoch]).permutation(len(rows)).tolist()
        begin = len(plan)
        while len(waiting) >= size:
            batch, texts, left = [], set(), []
            for index in waiting:
                if len(batch) < size and texts.isdisjoint(rows[index]):
                    batch.append(index)
                    texts.update(rows[index])
                else:
                    left.append(index)
            if len(batch) < size:
                break
            plan.append(batch)
            waiting = left
        if len(plan) == begin:
            raise ConfigError(f"batch={size} needs that many rows without a text in common; there are {len(rows)} rows")
        if epochs < epoch + 1:
            plan = plan[: begin + round((epochs - epoch) * (len(plan) - begin))]
    return plan


def load_base(config: Config, texts: list[str]) -> SentenceTransformer:
    """The model to train, with mean pooling."""
    if config.base:
        model = model_loaded(lambda base: SentenceTransformer(base, device=str(device())), config.base, "base")
        model.max_seq_length = config.max_length
        return model
    small = mlm.Config(pieces=800, layers=1, hidden=64, heads=2, block=config.max_length, seed=config.seed)
    tiny = mlm.random_base(small, texts, Path(config.out or cache_dir() / "contrastive"))
    transformer = Transformer(tiny, max_seq_length=config.max_length)
    pooling = Pooling(transformer.get_embedding_dimension(), "mean")
    return SentenceTransformer(modules=[transformer, pooling], device=str(device()))


def main(config: Config) -> Path:
    out = Path(config.out) if config.out else cache_dir() / "contrastive"
    rows = read_rows(config)
    data_hash = hash_rows(rows)
    order = np.random.default_rng(config.seed).permutation(len(rows))
    held_out = max(2, round(config.validation * len(rows)))
    held, train = [rows[i] for i in order[:held_out]], [rows[i] for i in order[held_out:]]
    plan = plan_batches(train, config.batch, config.epochs, config.seed)
    model = load_base(config, [text for row in rows for text in row])
    scale = 1 / config.temperature
    if config.mini_batch:
        loss = CachedMultipleNegativesRankingLoss(model, scale=scale, mini_batch_size=config.mini_batch)
    else:
        loss = MultipleNegativesRankingLoss(model, scale=scale)

    def losses(step: int) -> Iterator[torch.Tensor]:
        columns = zip(*(train[i] for i in plan[step]), strict=True)
        with autocast(model.device):
            yield loss([to_device(model.preprocess(list(texts)), model.device) for texts in columns], None)

    def validate() -> float:
        """Share of held-out anchors that do not find their positive first among all positives."""
        anchors, positives = (
            model.encode(
                [row[side] for row in held], convert_to_tensor=True, normalize_embeddings=True, show_progress_bar=False
            )
            for side in (0, 1)
        )
        return float((torch.argmax(anchors @ positives.T, 1).cpu() != torch.arange(len(held))).float().mean())

    pace = Pace(
        steps=len(plan),
        lr=config.lr,
        warmup=round(config.warmup * len(plan)),
        seed=config.seed,
        checkpoint_every=config.checkpoint_every,
        validate_every=config.validate_every,
    )
    trace = fit(model, losses, pace, out, run_key(config, data_hash), validate, title="contrast")
    logging.disable_progress_bar()
    cleaning = Cleaning(mention_token=config.mention_token)
    save_model(out / "complete", model, cleaning)
    load_weights(out / BEST, model)
    save_model(out / "best", model, cleaning)
    metrics = {
        "error_before": trace.history[0][1],
        "error_best": trace.best,
        "error_complete": trace.history[-1][1],
        "held_out": len(held),
        "rows": len(train),
        "steps": trace.step,
        "history": trace.history,
    }
    write_result(out / "run.json", config, data_hash, config.seed, metrics)
    print(f"held-out anchors that miss their positive: {trace.history[0][1]:.3f} → {trace.best:.3f} → {out}")
    return out


def save_model(folder: Path, model: SentenceTransformer, cleaning: Cleaning) -> None:
    """A sentence-transformers directory that says how its text was cleaned."""
    model.save_pretrained(str(folder), create_model_card=False)
    store_cleaning(folder, cleaning)


def to_device(features: dict, where: torch.device) -> dict:
    return {name: value.to(where) if isinstance(value, torch.Tensor) else value for name, value in features.items()}


if __name__ == "__main__":
    run(main, PRESETS)
