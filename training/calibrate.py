"""Measure what the matcher needs to know about one encoder: directions from labels, thresholds, probabilities.

    python -m training.calibrate laptop                        # flood; writes calibration.json into it
    python -m training.calibrate laptop encoder=DIR result=training/results/calibrate-x.json

Per query, two bounds decide a threshold and the higher one wins:
- rate: the share of ordinary posts over it, languages and sets of chatter each weighing the same, and no language far
  above the rest;
- precision: on labelled posts, where the category has labels and the target can be reached with enough posts.

Labelled scores are cross-fitted (the direction that scores a message never saw it), and the precision reported comes
from the other half of the messages. The demo stream is reported, never used. What is reported of ordinary posts is how
well the rates were met on the posts that set them; some of these (T26 and HumAID chatter, as negatives) are also in the
test
sets.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from rich.progress import track

from models.calibration import Calibration, QueryCalibration, material_hash
from models.contrast import Contrast, bundled_queries
from models.encoders.bundle import CALIBRATION, add_file
from models.encoders.load import folder_of
from models.encoders.protocol import Encoder
from models.encoders.ready import Loaded, load, ready
from models.encoders.registry import OWN
from models.errors import ConfigError
from models.matching import MatchConfig
from models.queries import Query, background_texts
from models.query_ridge import solve
from training.calibrate_directions import labelled_groups, score, with_near_misses
from training.calibrate_fallback import measure_fallback
from training.calibrate_figures import by_language, on_demo, on_test_set, precision_recall, ranking, show
from training.demo import DEMO
from training.files import data_dir
from training.jobs import cache_dir, run, write_atomically, write_result
from training.labels import Messages, disaster_messages, ordinary, test_sets
from training.taught import read_taught, with_taught
from training.thresholds import (
    group_weights,
    lowest_reaching,
    probability_curve,
    rate_threshold,
)

__all__ = ["Config", "main"]


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the calibration job."""

    encoder: str = ""  # bundle directory; empty = the bundled static one, flood (the reader has a head: training.head)
    out: str = ""  # the calibration; default calibration.json in the bundle, or, with install=false, in CRISIS_CACHE
    install: bool = True  # put the calibration into the bundle
    labels: str = ""  # what people taught, as `crisis label export` printed it: half of the posts teach, half judge
    result: str = ""  # what was measured; default training/results/calibrate.json for flood, else only printed
    alert_rate: float = 0.001  # of ordinary posts, per query: with 36 queries some alert on 1 or 2 posts in 100
    suggestion_rate: float = 0.01
    language_factor: float = 5.0  # no language may exceed a rate by more
    alert_precision: float = 0.6  # on labelled posts, where it can be reached
    suggestion_precision: float = 0.15
    enough: int = 40  # labelled posts over a threshold before its precision is believed
    contrast: float = MatchConfig.contrast
    label_weight: float = 2.0  # of labelled posts against the query's own sentences
    near: float = 1.0  # weight of near misses: the everyday sentences a query scores highest
    near_share: float = 0.01  # of the everyday sentences, per query
    reported: float = 0.6  # target of a post that reports a need without asking; asking is 1
    per_language: int = 1_500  # ordinary texts
    per_chatter: int = 6_000
    seed: int = 1


# A smoke test says nothing of thresholds: nothing that is shipped is written.
PRESETS = {"laptop": Config(), "smoke": Config(per_language=30, per_chatter=200, install=False)}
RESULT = Path("training/results/calibrate.json")


class Measured(Struct):
    """One query on its way to a calibration."""

    query: Query
    plain: np.ndarray  # (languages, d + 1): directions without labels and near misses
    direction: np.ndarray  # (d + 1,): the common part with them
    accent: np.ndarray  # (languages, d + 1): what each language adds to it
    crossed: np.ndarray | None = None  # cross-fitted scores of the labelled posts


def fit_directions(
    config: Config,
    queries: list[Query],
    contrast: Contrast,
    sentences: dict[str, np.ndarray],
    everyday: np.ndarray,
    train: Messages,
    vectors: np.ndarray,
) -> list[Measured]:
    """Every query's direction; the labelled ones with their cross-fitted scores."""
    found = []
    for query in track(queries, "directions"):
        groups = contrast.groups(query, sentences[query.id])
        plain = contrast.directions(query, sentences[query.id], [lang for lang, _ in query.texts()])
        accent = plain - solve(groups)
        near = (everyday, config.near, config.near_share)
        about = train.labels.get(query.id)
        if about is None or about.sum() < 2 * config.enough:
            found.append(Measured(query, plain, with_near_misses(groups, accent, *near), accent))
            continue
        args = (config.label_weight, config.reported)
        crossed = np.zeros(len(vectors), np.float32)
        for fold in (0, 1):
            seen = train.fold != fold
            half = labelled_groups(vectors[seen], about[seen], train.asks[seen], *args)
            direction = with_near_misses([*groups, *half], accent, *near)
            crossed[~seen] = score(direction + accent, vectors[~seen])
        whole = labelled_groups(vectors, about, train.asks, *args)
        found.append(Measured(query, plain, with_near_misses([*groups, *whole], accent, *near), accent, crossed))
    return found


def calibrate_query(
    config: Config,
    one: Measured,
    rated: np.ndarray,
    weights: np.ndarray,
    groups: np.ndarray,
    train: Messages,
    held: tuple[np.ndarray, Messages],
) -> QueryCalibration:
    """Thresholds by both bounds. rated: (n,) scores of ordinary posts. held: scores and messages of the other half."""
    alert, suggestion = (
        rate_threshold(rated, weights, groups, rate, config.language_factor)
        for rate in (config.alert_rate, config.suggestion_rate)
    )
    common = {"query_version": one.query.version}
    direction = [round(float(x), 5) for x in one.direction]
    if one.crossed is None:
        return QueryCalibration(
            **common,
            alert=round(alert, 4),
            suggestion=round(suggestion, 4),
            basis="rate",
            target=config.alert_rate,
            posts=len(rated),
            reached=round(float(weights[rated >= round(alert, 4)].sum()), 6),
            direction=direction,
        )
    wanted = train.labels[one.query.id] & train.asks
    precise = lowest_reaching(one.crossed, wanted, config.alert_precision, config.enough)
    probable = lowest_reaching(one.crossed, wanted, config.suggestion_precision, config.enough)
    by_precision = precise is not None and precise > alert
    alert = round(precise if by_precision else alert, 4)
    if probable is not None and probable < alert:  # otherwise suggestions would be alerts, and the rate decides
        suggestion = max(suggestion, probable)
    suggestion = round(min(alert, suggestion), 4)
    scores, messages = held
    over = scores >= alert
    precision = float((messages.labels[one.query.id] & messages.asks)[over].mean()) if over.any() else 0.0
    return QueryCalibration(
        **common,
        alert=alert,
        suggestion=suggestion,
        basis="precision" if by_precision else "rate",
        target=config.alert_precision if by_precision else config.alert_rate,
        posts=len(one.crossed) if by_precision else len(rated),
        reached=round(precision if by_precision else float(weights[rated >= alert].sum()), 6),
        curve=probability_curve(one.crossed, wanted, suggestion),
        direction=direction,
    )


def main(config: Config) -> Calibration:
    path = folder_of(config.encoder or "flood")
    loaded = load(path)
    encoder, known = loaded.encoder, loaded.calibration
    if known and known.head and config.install and not config.out:
        raise ConfigError(
            f"{path} has a head, which thresholds alone would take the place of: run `python -m training.head laptop "
            f"encoder={path}`, or measure it as it is with install=false"
        )
    root = data_dir()
    queries, background = list(bundled_queries()), background_texts()
    train, held = disaster_messages(root, True), disaster_messages(root, False)
    if config.labels:
        said = read_taught(Path(config.labels))
        names = {query.id for query in queries}
        train, held = with_taught(train, said, names, True), with_taught(held, said, names, False)
    usual = ordinary(root, config.per_language, config.per_chatter, config.seed)
    sets = test_sets(root)
    digest = hashlib.sha256("\x1e".join([*train.texts, *held.texts, *usual.texts]).encode()).hexdigest()
    vectors = {
        name: _encode(encoder, texts, name)
        for name, texts in (
            ("background", background),
            ("train", train.texts),
            ("held", held.texts),
            ("usual", usual.texts),
        )
    }
    sentences = {q.id: encoder.encode([t for _, t in q.texts()]) for q in queries}
    contrast = Contrast(vectors["background"], [(q, sentences[q.id]) for q in queries], config.contrast)
    everyday, measuring = vectors["usual"][usual.shapes], vectors["usual"][~usual.shapes]
    groups = usual.groups[~usual.shapes]
    weights = group_weights(groups)

    measured = fit_directions(config, queries, contrast, sentences, everyday, train, vectors["train"])
    found = {
        one.query.id: calibrate_query(
            config,
            one,
            score(one.direction + one.accent, measuring),
            weights,
            groups,
            train,
            (score(one.direction + one.accent, vectors["held"]), held),
        )
        for one in measured
    }
    fallback, fallback_rates = measure_fallback(
        (config.alert_rate, config.suggestion_rate),
        queries,
        contrast,
        encoder,
        sentences,
        vectors["background"],
        measuring,
        weights,
    )
    calibration = Calibration(encoder.version, material_hash(background, queries), found, fallback, config.contrast)
    match = MatchConfig(contrast=config.contrast)
    matcher = ready(Loaded(OWN, encoder, calibration), queries, match).matcher
    plain = np.stack([score(one.plain, vectors["held"]) for one in measured], 1)
    held_scores = matcher.scores(vectors["held"])
    metrics = {
        "ranking": ranking(matcher.queries, held_scores, held),
        "ranking_without_labels": {k: v["mean"] for k, v in ranking(matcher.queries, plain, held).items()},
        "held_out": {
            q.id: {
                level: precision_recall(held_scores[:, i] >= at, held.labels[q.id] & held.asks)
                for level, at in (
                    ("alert", matcher.thresholds[i].alert),
                    ("suggestion", matcher.thresholds[i].suggestion),
                )
            }
            for i, q in enumerate(matcher.queries)
            if q.id in held.labels
        },
        "test_sets": {s.name: on_test_set(matcher, s, matcher.scores(_encode(encoder, s.texts, s.name))) for s in sets},
        "ordinary_by_language": by_language(matcher, matcher.scores(measuring), groups),
        "fallback": fallback_rates,
        "thresholds": {
            k: {"alert": v.alert, "suggestion": v.suggestion, "basis": v.basis, "reached": v.reached}
            for k, v in found.items()
        },
    }
    if DEMO.exists():
        metrics["demo"] = on_demo(matcher, encoder, DEMO)
    content = msgspec.json.encode(calibration) + b"\n"
    if config.out or not config.install:
        write_atomically(Path(config.out) if config.out else cache_dir() / CALIBRATION, content)
    else:
        add_file(path, CALIBRATION, content)
    show(metrics)
    result = config.result or (str(RESULT) if config.install and not (config.encoder or config.out) else "")
    if result:
        write_result(Path(result), config, digest, config.seed, {"encoder": encoder.version, **metrics})
    return calibration


def _encode(encoder: Encoder, texts: list[str], name: str, at_once: int = 8192) -> np.ndarray:
    parts = [encoder.encode(texts[i : i + at_once]) for i in track(range(0, len(texts), at_once), f"encode {name}")]
    return np.vstack(parts) if parts else np.zeros((0, encoder.dim), np.float32)


if __name__ == "__main__":
    run(main, PRESETS)
