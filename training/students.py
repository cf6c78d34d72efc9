"""The paper's students: transformers taught the teacher's vectors by mean squared error alone.

Source: Lamsal, Read, Karunasekera 2024, equation 1 and "Sentence encoders": student(en) → teacher(en) and
student(xx) → teacher(en) (or teacher(xx): `Corpus.goals`), at most 500k pairs a file, AdamW with 20k warm-up steps,
128 pieces.
We differ: pairs are drawn by `corpus.pair_weights`, as for the static student, so that thin languages are not lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from models.encoders.stored_cleaning import store_cleaning
from models.errors import ConfigError
from models.text import Cleaning, clean
from training.corpus import Corpus
from training.loop import BEST, Pace, Trace, autocast, device, fit, load_weights

__all__ = ["distil_transformer"]

# The paper's names for what a hub id would say.
KNOWN = {"xlmr": "FacebookAI/xlm-roberta-base", "mbert": "google-bert/bert-base-multilingual-cased"}

PAPER_CLEANING = Cleaning(mention_token="@MENTION")


def distil_transformer(
    student: str, corpus: Corpus, pace: Pace, batch: int, key: str, out: Path, validation: int
) -> Trace:
    """Train, and save in `out`/model a sentence-transformers directory with the weights that validated best.

    student: a name of KNOWN, a transformers directory or a hub id; batch: pairs a step; key: names the run, see `fit`;
    validation: English sentences that are set aside with their translations, at most a tenth of all.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    torch.manual_seed(pace.seed)
    body = Transformer(KNOWN.get(student, student), max_seq_length=128)
    width = body.get_embedding_dimension()
    if width < corpus.target.shape[1]:
        raise ConfigError(f"{student} is {width} wide, the targets {corpus.target.shape[1]}: choose dim={width}")
    model = SentenceTransformer(modules=[body, Pooling(width, "mean")])
    where = device()
    model.to(where)
    held, chance = set_aside(corpus, validation, pace.seed)
    chances = np.cumsum(chance)

    def vectors(texts: list[str]) -> torch.Tensor:
        features = {k: v.to(where) for k, v in model.preprocess(texts).items() if isinstance(v, torch.Tensor)}
        with autocast(where):
            return model(features)["sentence_embedding"].float()

    def terms(pairs: np.ndarray) -> Iterator[torch.Tensor]:
        """Of the English sides, then of the texts."""
        english, text = corpus.english_id[pairs], corpus.text_id[pairs]
        for goal, texts in (
            (corpus.target[english], [corpus.english[i] for i in english]),
            (corpus.goals(pairs), [corpus.texts[i] for i in text]),
        ):
            # A wider student learns the teacher's vector with zeros behind it: every cosine stays what it was.
            wide = torch.from_numpy(np.pad(goal, [(0, 0), (0, width - goal.shape[1])])).to(where)
            yield torch.nn.functional.mse_loss(vectors([clean(text, PAPER_CLEANING) for text in texts]), wide)

    def losses(step: int) -> Iterator[torch.Tensor]:
        rng = np.random.default_rng([pace.seed, step])
        chosen = np.searchsorted(chances, rng.random(batch) * chances[-1])
        yield from terms(chosen)

    def validate() -> float:
        """The two terms of the loss, of the pairs set aside."""
        total = 0.0
        for rows in np.array_split(held, -(-len(held) // batch)):
            total += sum(term.item() for term in terms(rows)) * len(rows)
        return total / len(held)

    trace = fit(model, losses, pace, out, key, validate, title=f"distilling {student}")
    load_weights(out / BEST, model)
    model.save(str(out / "model"))
    store_cleaning(out / "model", PAPER_CLEANING)
    return trace


def set_aside(corpus: Corpus, most: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(pairs to validate by, (pairs,) chance of being drawn, 0 for those): of `most` English sentences, at most a tenth
    of all, every pair is left out of training, and one of each validates.
    """
    rng = np.random.default_rng(seed)
    english = rng.permutation(len(corpus.english))[: max(1, min(most, len(corpus.english) // 10))]
    away = np.isin(corpus.english_id, english)
    order = rng.permutation(np.flatnonzero(away))
    _, first = np.unique(corpus.english_id[order], return_index=True)
    return np.sort(order[first]), np.where(away, 0.0, corpus.chance)
