"""The paper's students: transformers taught the teacher's vectors by mean squared error alone.

Source: Lamsal, Read, Karunasekera 2024, equation 1 and "Sentence encoders": student(en) → teacher(en) and
student(xx) → teacher(en), at most 500k pairs a file, AdamW with 20k warm-up steps, 128 pieces.
We differ: pairs are drawn by `corpus.pair_weights`, as for the static student, so that thin languages are not lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from models.errors import ConfigError
from models.text import Cleaning, clean
from training.data import Pairs, unique_texts
from training.loop import Pace, autocast, device, fit, run_key

if TYPE_CHECKING:
    from training.distill import Config, Corpus

# The paper's names for what a hub id would say.
KNOWN = {"xlmr": "FacebookAI/xlm-roberta-base", "mbert": "google-bert/bert-base-multilingual-cased"}

PAPER_CLEANING = Cleaning(mention_token="@MENTION")


def capped(pairs: Pairs, cap: int, seed: int) -> np.ndarray:
    """Places of the pairs kept: at most `cap` of each language and source, chosen by the seed."""
    _, group = unique_texts([f"{lang}\t{source}" for lang, source in zip(pairs.lang, pairs.source, strict=True)])
    order = np.random.default_rng(seed).permutation(len(group))
    order = order[np.argsort(group[order], kind="stable")]
    _, first, counts = np.unique(group[order], return_index=True, return_counts=True)
    rank = np.arange(len(order)) - np.repeat(first, counts)
    return np.sort(order[rank < cap])


def distil_transformer(config: Config, corpus: Corpus, out: Path) -> Path:
    """Train, and save a sentence-transformers directory in `out`/model."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    torch.manual_seed(config.seed)
    body = Transformer(KNOWN.get(config.student, config.student), max_seq_length=128)
    width = body.get_embedding_dimension()
    if width < corpus.target.shape[1]:
        raise ConfigError(f"{config.student} is {width} wide, the targets {corpus.target.shape[1]}: choose dim={width}")
    # A wider student learns the teacher's vector with zeros behind it: every cosine stays what it was.
    target = np.pad(corpus.target, [(0, 0), (0, width - corpus.target.shape[1])])
    model = SentenceTransformer(modules=[body, Pooling(width, "mean")])
    where = device()
    model.to(where)
    chances = np.cumsum(corpus.chance)

    def vectors(texts: list[str]) -> torch.Tensor:
        features = {k: v.to(where) for k, v in model.preprocess(texts).items() if isinstance(v, torch.Tensor)}
        with autocast(where):
            return model(features)["sentence_embedding"].float()

    def losses(step: int) -> Iterator[torch.Tensor]:
        rng = np.random.default_rng([config.seed, step])
        chosen = np.searchsorted(chances, rng.random(config.batch) * chances[-1])
        goal = torch.from_numpy(target[corpus.english_id[chosen]]).to(where)
        english = [clean(corpus.english[corpus.english_id[i]], PAPER_CLEANING) for i in chosen]
        text = [clean(corpus.texts[corpus.text_id[i]], PAPER_CLEANING) for i in chosen]
        for texts in (english, text):
            yield torch.nn.functional.mse_loss(vectors(texts), goal)

    pace = Pace(config.steps, config.lr, config.warmup, config.seed, config.checkpoint_every)
    fit(model, losses, pace, out, run_key(config, corpus.data_hash), title=f"distilling {config.student}")
    model.save(str(out / "model"))
    return out / "model"
