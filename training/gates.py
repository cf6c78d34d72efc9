"""The gates a new encoder version must pass: figures of two versions, compared through one table of tolerances. Pure.

Figures are {metric: {language or set: value}}; the table knows each metric's direction and how much worse it may get by
measuring alone. Only languages both versions were measured in are compared, and what was left out is told.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from random import Random

import numpy as np
from msgspec import Struct

from models.encoders.protocol import Encoder
from models.queries import Query
from training.evaluate.needs import average_precision
from training.noise.mix import transform

__all__ = ["Figures", "TOLERANCES", "Verdict", "compare", "pack_figures"]

NOISE_RATE = 0.3  # of the mix: three times the paper's, since the packs' sentences are few and short

Figures = dict[str, dict[str, float]]


class Tolerance(Struct, frozen=True):
    """How much worse a metric may get. `share`: of the current value; else in its own units."""

    worse: float
    higher_is_better: bool = True
    share: bool = False
    why: str = ""


# Loose enough that retraining with another seed passes, tight enough that a language that breaks is seen.
TOLERANCES: dict[str, Tolerance] = {
    "query_matching": Tolerance(0.08, why="38 queries a language: one query more or less is .026"),
    "matching": Tolerance(0.03, why="1,012 sentences: two standard errors at .7"),
    "relatedness": Tolerance(0.05, why="Spearman on 100 to 300 pairs: a standard error is .06 to .1"),
    "need_offer_ap": Tolerance(0.08, why="a few sentences a query and language"),
    "need_precision": Tolerance(0.05, why="average precision of single labels moves .02 between seeds"),
    "noise_matching": Tolerance(0.08, why="about 100 sentences a language"),
    "posts_per_core_s": Tolerance(0.3, share=True, why="machines are shared: a third slower is measuring noise"),
}


class Regression(Struct, frozen=True):
    """One figure that got worse than allowed."""

    metric: str
    where: str  # language, label or "all"
    current: float
    candidate: float
    allowed: float

    def __str__(self) -> str:
        return f"{self.where}: {self.metric} {self.current:.3f} → {self.candidate:.3f}, allowed {self.allowed:.3f}"


class Verdict(Struct, frozen=True):
    """What was compared and what got worse."""

    regressions: list[Regression]
    compared: int
    left_out: list[str]  # "metric where": measured on one side only, or not served


def compare(
    current: Figures, candidate: Figures, served: Collection[str] = (), tolerances: Mapping[str, Tolerance] = TOLERANCES
) -> Verdict:
    """Every figure of both, worst first. `served`: languages that count; empty = all. Labels and "all" always count.

    A figure the candidate lacks, or that is not a number, is a regression: a language must not drop out unseen.
    """
    regressions, compared, left_out = [], 0, []
    for metric, figures in current.items():
        tolerance = tolerances.get(metric)
        for where, value in figures.items():
            if tolerance is None or (served and _is_language(metric) and where not in served):
                left_out.append(f"{metric} {where}")
                continue
            other = candidate.get(metric, {}).get(where, float("nan"))
            slack = tolerance.worse * abs(value) if tolerance.share else tolerance.worse
            allowed = value - slack if tolerance.higher_is_better else value + slack
            compared += 1
            if not (other >= allowed if tolerance.higher_is_better else other <= allowed):
                regressions.append(Regression(metric, where, value, other, allowed))
    left_out += [f"{m} {w}" for m, found in candidate.items() for w in found if w not in current.get(m, {})]
    regressions.sort(key=lambda r: (-_size(r), r.metric, r.where))
    return Verdict(regressions, compared, sorted(left_out))


def _is_language(metric: str) -> bool:
    return metric not in ("need_precision", "posts_per_core_s")


def _size(regression: Regression) -> float:
    return abs(regression.current - regression.candidate) if regression.candidate == regression.candidate else np.inf


def pack_figures(
    encoder: Encoder, queries: Sequence[Query], background: Mapping[str, Sequence[str]], seed: int = 1
) -> Figures:
    """What can be measured with the query packs alone, by language, so that every version can be gated anywhere.

    query_matching: how often a sentence finds its own query among all; need_offer_ap: mean average precision of a
    query over the sentences and background texts of the language; both with the queries told in the *other*
    languages, which is what matching does all day. noise_matching: how often a noised sentence finds itself among all
    of its language (not the mean distance it moves, which says more of an encoder's spread than of its robustness).
    """
    texts = [(i, lang, text) for i, q in enumerate(queries) for lang, text in q.texts()]
    vectors = encoder.encode([text for _, _, text in texts])  # (n, d)
    owner = np.array([i for i, _, _ in texts])
    langs = np.array([lang for _, lang, _ in texts])
    figures: Figures = {"query_matching": {}, "need_offer_ap": {}, "noise_matching": {}}
    for lang in sorted({lang for _, lang, _ in texts}):
        mine = langs == lang
        sums = np.zeros((len(queries), encoder.dim), np.float32)
        np.add.at(sums, owner[~mine], vectors[~mine])
        centroids = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)  # (q, d)
        scores = vectors[mine] @ centroids.T  # (m, q)
        figures["query_matching"][lang] = float((scores.argmax(1) == owner[mine]).mean())
        others = encoder.encode(list(background.get(lang, ()))) @ centroids.T  # (b, q)
        ranked, own = np.vstack([scores, others]), np.concatenate([owner[mine], np.full(len(others), -1)])
        figures["need_offer_ap"][lang] = float(
            np.mean([average_precision(ranked[:, q], own == q) for q in sorted(set(owner[mine]))])
        )
        said = [text for _, its, text in texts if its == lang]
        noised = encoder.encode([transform("mix_all", t, Random(f"{seed} {t}"), NOISE_RATE, lang) for t in said])
        figures["noise_matching"][lang] = float(((noised @ vectors[mine].T).argmax(1) == np.arange(len(said))).mean())
    return figures
