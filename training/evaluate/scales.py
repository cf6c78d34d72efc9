"""Ways to make a score a probability, each fitted on some events and judged on the others.

    python -m training.evaluate scales                   # the bundled encoder (CRISIS_DATA)
    python -m training.evaluate scales encoder=DIR

What ships is one line for all queries, its probabilities shifted by language (`training.head`). Here stand a line over
those log-odds, that line shifted for each language, isotonic regression over all queries, and isotonic regression for
each query, the last trusted by n / (n + 20) of n posts, as shifts are. Of every post the likeliest reading's
probability is judged, on the posts that probabilities are fitted on, a fifth of their events at a time. Log loss and
calibration error: lower is better.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from models.encoders.ready import load, ready
from models.queries import load_queries
from models.reading import logistic, logit
from training.evaluate.alert_reading import Reader
from training.files import data_dir, hash_rows
from training.head import fit_terms, that_scale
from training.jobs import cache_dir, write_result
from training.keeping import keeping
from training.languages import fit_languages, trust
from training.metrics.alerting import calibration_error, reliability
from training.posts import read_posts, written_posts

__all__ = ["Config", "PRESETS", "main"]

RESULT = Path("training/results/scales.json")
SHOWN = 0.1  # probability from which a post is shown at all
LEAST = 200  # posts of a language whose calibration error is told by itself


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the comparison."""

    encoder: str = ""  # bundle directory; empty = the bundled one
    folds: int = 5  # shares of the events
    seed: int = 1
    out: str = str(RESULT)


class Rows(Struct, frozen=True):
    """A row a post, all (n,)."""

    odds: np.ndarray  # log-odds of its likeliest reading, as shipped
    right: np.ndarray  # bool
    weight: np.ndarray  # a post's share of its set, mean 1
    language: np.ndarray
    query: np.ndarray
    event: np.ndarray

    def part(self, chosen: np.ndarray) -> Rows:
        """The rows where `chosen`, (n,) bool, is true."""
        return Rows(*(getattr(self, column)[chosen] for column in self.__struct_fields__))


Way = Callable[[Rows, Rows], np.ndarray]  # (fitted on, judged) → (n,) probabilities of the judged


def one_line(known: Rows, judged: Rows) -> np.ndarray:
    """Platt's: a line over the log-odds."""
    (slope,), bias = fit_terms(known.odds[:, None], known.right, known.weight)
    return logistic(slope * judged.odds + bias)


def line_by_language(known: Rows, judged: Rows) -> np.ndarray:
    """The line, shifted so that a language's posts hold on the mean, by what its n posts are trusted."""
    (slope,), bias = fit_terms(known.odds[:, None], known.right, known.weight)
    moved = fit_languages(slope * known.odds + bias, known.right, known.weight, known.language.tolist())
    return logistic(slope * judged.odds + bias + [moved.get(lang, 0.0) for lang in judged.language.tolist()])


def isotonic(known: Rows, judged: Rows) -> np.ndarray:
    """Whatever rises (Zadrozny, Elkan 2002), one for all queries."""
    from sklearn.isotonic import IsotonicRegression

    risen = IsotonicRegression(out_of_bounds="clip").fit(known.odds, known.right, sample_weight=known.weight)
    return risen.predict(judged.odds)


def isotonic_by_query(known: Rows, judged: Rows) -> np.ndarray:
    """One for each query beside the one for all, by what its n posts are trusted."""
    out = isotonic(known, judged)
    for query in np.unique(judged.query):
        own, asked = known.part(known.query == query), judged.query == query
        if len(own.odds):
            part = trust(len(own.odds))
            out[asked] = part * isotonic(own, judged.part(asked)) + (1 - part) * out[asked]
    return out


WAYS: dict[str, Way] = {
    "one line": one_line,
    "a line shifted by language": line_by_language,
    "isotonic": isotonic,
    "isotonic by query": isotonic_by_query,
}
PRESETS = {"laptop": Config(), "smoke": Config(folds=2)}


def compared(rows: Rows, folds: int, seed: int) -> dict[str, dict[str, float]]:
    """Figures of each of WAYS, every event judged by what the events of other folds gave."""
    events = np.random.default_rng(seed).permutation(np.unique(rows.event))
    fold = {event: i % folds for i, event in enumerate(events)}
    place = np.array([fold[event] for event in rows.event])
    found = {}
    for name, way in WAYS.items():
        told = np.empty(len(place))
        for k in range(folds):
            told[place == k] = way(rows.part(place != k), rows.part(place == k))
        found[name] = figures(rows, told)
    return found


def figures(rows: Rows, told: np.ndarray) -> dict[str, float]:
    """Log loss, and calibration error of all posts, of those shown, and of each language with enough."""
    sure = np.clip(told, 1e-4, 1 - 1e-4)
    loss = -np.average(np.where(rows.right, np.log(sure), np.log(1 - sure)), weights=rows.weight)
    groups = {"all": np.ones(len(told), bool), "shown": logistic(rows.odds) >= SHOWN}
    names, counts = np.unique(rows.language, return_counts=True)
    groups |= {str(name): rows.language == name for name, n in zip(names, counts, strict=True) if n >= LEAST}
    errors = {
        f"calibration error, {name}": calibration_error(reliability(told[at], rows.right[at], rows.weight[at]))
        for name, at in groups.items()
    }
    return {"log loss": float(loss), **errors}


def main(config: Config) -> Path:
    """Print the table and write its JSON. Returns the JSON's path."""
    loaded = load(config.encoder or None)
    encoder = keeping(loaded.encoder, cache_dir() / "vectors")
    reader = Reader(ready(dataclasses.replace(loaded, encoder=encoder), load_queries()).matcher, encoder)
    posts = that_scale(written_posts() + read_posts(data_dir()))
    read = reader.read([post.text for post in posts])
    mean = {name: np.mean([p.weight for p in posts if p.origin == name]) for name in {p.origin for p in posts}}
    rows = Rows(
        logit(read.probability),
        np.array([query in p.right for query, p in zip(read.likeliest, posts, strict=True)]),
        np.array([post.weight / mean[post.origin] for post in posts]),
        np.array([post.lang for post in posts]),
        np.array(read.likeliest),
        np.array([post.event for post in posts]),
    )
    found = compared(rows, config.folds, config.seed)
    table = Table("", *next(iter(found.values())))
    for name, told in found.items():
        table.add_row(name, *(f"{value:.4f}" for value in told.values()))
    Console(width=160).print(table)
    data_hash = hash_rows((p.text, p.gold, p.second, p.weight) for p in posts)
    metrics = {"encoder": loaded.encoder.version, "posts": len(posts), "ways": found}
    write_result(Path(config.out), config, data_hash, config.seed, metrics)
    print(f"→ {config.out}")
    return Path(config.out)
