"""Weigh words for an encoder: what they say of a post's class stands as a few axes beside its vector.

    python -m training.words laptop out=DIR                # the bundled encoder's bundle with words learnt anew
    python -m training.words laptop encoder=DIR out=DIR    # any bundle's
    python -m training.head laptop encoder=DIR             # then its head, which reads them

A multinomial logistic regression over words, pairs of words and beginnings of words (models/encoders/words.py), learnt
from what the head learns from. A head that is fitted on the same posts must not trust words for having seen them:
`held_out` gives each of those posts what words say that were learnt from other events.

On the needs and offers among the written posts that judge, with 88ea2ac722eb: the head's log-probability plus 1.1 of
the words' puts the right query first for .800 of them, the head alone for .747 (cross-entropy .77, .98); without
beginnings of words .788, with letters' n-grams or the tokenizer's pieces in place of words some .76.
"""

from __future__ import annotations

import hashlib
import warnings
from io import BytesIO
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from rich.progress import track

from models.encoders.bundle import (
    ADDED,
    CARD,
    CLUSTERS,
    WORD_SETTINGS,
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
from models.encoders.words import LEAST, WordedEncoder, WordScores, beside, units
from models.errors import ConfigError
from models.queries import load_queries
from models.text import clean
from training.class_material import Shares, Taught, read_material
from training.jobs import cache_dir, run, write_atomically
from training.posts import classes

__all__ = ["Config", "Learning", "fit_words", "held_out_vectors"]


class Learning(Struct, frozen=True, forbid_unknown_fields=True):
    """How words are weighed; stands in the bundle's settings, so that a head can do the same without an event."""

    features: int = 40_000  # units kept, by chi² against the classes
    strength: float = 10.0  # inverse of the l2 penalty
    iterations: int = 60
    share: float = 0.01  # length of an axis for each unit of log-probability
    folds: int = 5


class Config(Shares, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Knobs of the job."""

    encoder: str = ""  # bundle directory; empty = the bundled one
    out: str = ""  # the bundle to write
    learning: Learning = Learning()


PRESETS = {"laptop": Config(), "smoke": Config(learning=Learning(iterations=5, features=2_000))}


def fit_words(learning: Learning, cleaned: list[str], taught: Taught, names: list[str]) -> WordScores:
    """Word scores of `names`, an axis each in their order. cleaned: the texts of `taught`.

    A class that has no text is as unlikely as can be.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
    from sklearn.feature_selection import SelectKBest, chi2
    from sklearn.linear_model import LogisticRegression

    counted = CountVectorizer(analyzer=units, binary=True, min_df=2, dtype=np.float32)
    found = counted.fit_transform(cleaned)
    told = SelectKBest(chi2, k=min(learning.features, found.shape[1])).fit(found, taught.labels)
    kept = told.get_support(indices=True)
    rarity = TfidfTransformer().fit(found[:, kept])
    model = LogisticRegression(C=learning.strength, max_iter=learning.iterations)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopped early on purpose: the last steps change little
        model.fit(rarity.transform(found[:, kept]), taught.labels, sample_weight=np.array(taught.weights))
    place = [names.index(name) for name in model.classes_]
    weights, bias = np.zeros((len(kept), len(names)), np.float32), np.full(len(names), LEAST, np.float32)
    weights[:, place], bias[place] = model.coef_.T, model.intercept_
    steps = np.maximum(np.abs(weights).max(axis=0), 1e-6) / 127
    return WordScores(
        {str(unit): i for i, unit in enumerate(counted.get_feature_names_out()[kept])},
        rarity.idf_.astype(np.float32),
        np.rint(weights / steps).astype(np.int8),
        steps.astype(np.float32),
        bias,
        learning.share,
    )


def held_out_vectors(encoder: WordedEncoder, learning: Learning, taught: Taught, names: list[str]) -> np.ndarray:
    """(n, dim) of the texts of `taught`, their word axes by words learnt without the texts' groups."""
    cleaned = [clean(text, encoder.cleaning) for text in taught.texts]
    found = _held_out(learning, cleaned, taught, names)
    return beside(encoder.encoder.encode(taught.texts), encoder.words.scaled(found))


def _held_out(learning: Learning, cleaned: list[str], taught: Taught, names: list[str]) -> np.ndarray:
    """(n, classes) log-probabilities, kept in the cache: each fold takes a minute."""
    meant = msgspec.json.encode([learning, cleaned, taught, names, units("Water, ரண்டு two")])
    path = cache_dir() / "words" / f"{hashlib.sha256(meant).hexdigest()[:24]}.npz"
    if path.is_file():
        with np.load(path) as kept:
            return kept["found"]
    out = np.empty((len(cleaned), len(names)), np.float32)
    folds = np.array([_fold(group, learning.folds) for group in taught.groups])
    for fold in track(range(learning.folds), "words of other events", transient=True):
        rest, here = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        scores = fit_words(learning, [cleaned[i] for i in rest], taught.only(rest), names)
        out[here] = scores.log_probabilities([cleaned[i] for i in here])
    file = BytesIO()
    np.savez_compressed(file, found=out)
    write_atomically(path, file.getvalue())
    return out


def _fold(group: str, folds: int) -> int:
    return int.from_bytes(hashlib.blake2b(group.encode("utf-8", "surrogatepass"), digest_size=4).digest()) % folds


def learning_of(manifest: Manifest) -> Learning | None:
    """How the words of a bundle were weighed; None if it has none."""
    found = manifest.settings.get(WORD_SETTINGS)
    return None if found is None else msgspec.convert(found, Learning)


def main(config: Config) -> Manifest:
    if not config.out:
        raise ConfigError("set out=DIR, where the bundle goes")
    path = folder_of(config.encoder or None)
    encoder = load_encoder(path)
    plain = encoder.encoder if isinstance(encoder, WordedEncoder) else encoder
    taught, posts = read_material(config)
    names = classes(posts, [query.id for query in load_queries()])
    cleaned = [clean(text, plain.cleaning) for text in taught.texts]
    words = fit_words(config.learning, cleaned, taught, names)
    manifest = put_words(path, Path(config.out), plain, words, config.learning)
    size = manifest.sizes[WORDS] / 1e6
    print(f"{config.out}: {manifest.id}, {len(words.place):,} units of {len(cleaned):,} texts, {size:.1f} MB")
    return manifest


def put_words(path: Path, out: Path, plain: Encoder, words: WordScores, learning: Learning) -> Manifest:
    """The bundle at `path` with these words, written to `out`: what it was measured to do is another's, but for its
    cluster thresholds, since cosines hardly change."""
    bundle = read_bundle(path)
    inner = without_words(bundle.manifest, bundle.manifest.dim - plain.dim)
    manifest = msgspec.structs.replace(
        inner,
        dim=plain.dim + words.axes,
        settings={**inner.settings, WORD_SETTINGS: msgspec.to_builtins(learning)},
        parent=inner.id,
        evaluation={**inner.evaluation, "probes": probe_vectors(WordedEncoder(plain, words, inner.id))},
    )
    core = {name: content for name, content in contents(bundle).items() if name not in ADDED or name == CARD}
    written = write_bundle(out, manifest, {**core, WORDS: words.to_bytes()})
    clusters = read_tuned_clusters(path / CLUSTERS, bundle.id)
    if clusters is not None:
        moved = msgspec.structs.replace(clusters, encoder_version=written.id)
        written = add_file(out, CLUSTERS, msgspec.json.format(msgspec.json.encode(moved), indent=1) + b"\n")
    return written


if __name__ == "__main__":
    run(main, PRESETS)
