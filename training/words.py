"""Weigh words for an encoder: what they say of a post's class stands as a few axes beside its vector.

    python -m training.words laptop out=DIR                # the bundled encoder's bundle with words learnt anew
    python -m training.words laptop encoder=DIR out=DIR    # any bundle's
    python -m training.head laptop encoder=DIR             # then its head, which reads them

A multinomial logistic regression over words, pairs of words and beginnings of words (models/encoders/words.py), learnt
from what the head learns from.

On the needs and offers among the written posts that judge, with 88ea2ac722eb and words learnt of needs and offers
alone: the head's log-probability plus 1.1 of the words' puts the right query first for .800 of them, the head alone
for .747 (cross-entropy .77, .98); without beginnings of words .788, with letters' n-grams or the tokenizer's pieces in
place of words some .76. Units chosen by chi² instead of by how many texts they stand in lose on real posts (right query
.37 against .43).
"""

from __future__ import annotations

import warnings
from pathlib import Path

import msgspec
import numpy as np

from models.encoders.bundle import (
    ADDED,
    CARD,
    CLUSTERS,
    WORDS,
    Manifest,
    add_file,
    contents,
    read_bundle,
    without_words,
    write_bundle,
)
from models.encoders.cluster_thresholds import read_tuned_clusters
from models.encoders.load import folder_of, load_encoder
from models.encoders.probes import probe_vectors
from models.encoders.protocol import Encoder
from models.encoders.words import LEAST, WordedEncoder, WordScores, units
from models.errors import ConfigError
from models.queries import load_queries
from models.text import clean
from training.class_material import Shares, Taught, read_material
from training.jobs import run
from training.posts import classes

__all__ = ["Config", "fit_words", "put_words"]


class Config(Shares, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Knobs of the job."""

    encoder: str = ""  # bundle directory; empty = the bundled one
    out: str = ""  # the bundle to write
    least: int = 6  # texts that a unit must stand in; 5 and 8 did worse (right query .740, .748, .747 with 5, 6, 8)
    strength: float = 10.0  # inverse of the l2 penalty
    iterations: int = 60
    share: float = 0.005  # length of an axis for each unit of log-probability


PRESETS = {"laptop": Config(), "smoke": Config(iterations=5, least=20, most=1_500, everyday=2)}


def fit_words(config: Config, cleaned: list[str], taught: Taught, names: list[str]) -> WordScores:
    """Word scores of `names`, an axis each in their order. cleaned: the texts of `taught`.

    A class that has no text is as unlikely as can be.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
    from sklearn.linear_model import LogisticRegression

    counted = CountVectorizer(analyzer=units, binary=True, min_df=config.least, dtype=np.float32)
    found = counted.fit_transform(cleaned)
    rarity = TfidfTransformer().fit(found)
    model = LogisticRegression(C=config.strength, max_iter=config.iterations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose: the last steps change little
        model.fit(rarity.transform(found), taught.labels, sample_weight=np.array(taught.weights))
    place = [names.index(name) for name in model.classes_]
    weights, bias = np.zeros((found.shape[1], len(names)), np.float32), np.full(len(names), LEAST, np.float32)
    weights[:, place], bias[place] = model.coef_.T, model.intercept_
    steps = np.maximum(np.abs(weights).max(axis=0), 1e-6) / 127
    return WordScores(
        names,
        {str(unit): i for i, unit in enumerate(counted.get_feature_names_out())},
        rarity.idf_.astype(np.float32),
        np.rint(weights / steps).astype(np.int8),
        steps.astype(np.float32),
        bias,
        config.share,
    )


def main(config: Config) -> Manifest:
    if not config.out:
        raise ConfigError("set out=DIR, where the bundle goes")
    path = folder_of(config.encoder or None)
    encoder = load_encoder(path)
    plain = encoder.encoder if isinstance(encoder, WordedEncoder) else encoder
    taught, _, posts = read_material(config)
    names = classes(posts, [query.id for query in load_queries()])
    cleaned = [clean(text, plain.cleaning) for text in taught.texts]
    words = fit_words(config, cleaned, taught, names)
    manifest = put_words(path, Path(config.out), plain, words)
    size = manifest.sizes[WORDS] / 1e6
    print(f"{config.out}: {manifest.id}, {len(words.place):,} units of {len(cleaned):,} texts, {size:.1f} MB")
    return manifest


def put_words(path: Path, out: Path, plain: Encoder, words: WordScores) -> Manifest:
    """The bundle at `path` with these words, written to `out`: what it was measured to do is another's, but for its
    cluster thresholds, since cosines hardly change."""
    bundle = read_bundle(path)
    inner = without_words(bundle.manifest, bundle.manifest.dim - plain.dim)
    manifest = msgspec.structs.replace(
        inner,
        dim=plain.dim + words.axes,
        parent=inner.id,
        evaluation={**inner.evaluation, "probes": probe_vectors(WordedEncoder(plain, words, inner.id))},
    )
    core = {name: content for name, content in contents(bundle).items() if name not in ADDED or name == CARD}
    written = write_bundle(out, manifest, {**core, WORDS: words.to_bytes()})
    if CLUSTERS in bundle.manifest.files:
        clusters = read_tuned_clusters(path / CLUSTERS, bundle.id)
        moved = msgspec.structs.replace(clusters, encoder_version=written.id)
        written = add_file(out, CLUSTERS, msgspec.json.format(msgspec.json.encode(moved), indent=1) + b"\n")
    return written


if __name__ == "__main__":
    run(main, PRESETS)
