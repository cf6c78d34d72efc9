"""From labels to a correction of each query, which is added to what its encoder version was shipped with:

    log-odds(post, query) = shipped(post, query) + trust(language) · Σ_labels a · k(post, label)
    a = argmax  Σ_labels log p(answer) − aᵀ K a / 2            the maximum a posteriori of a Gaussian process
    k(x, y) = near · exp(sharp · (x·y − 1))                    x, y: unit vectors

With no label it *is* the shipped query, and it can only be moved from there by evidence. A label speaks of posts like
its own: of three "wrong" about calls for rescue the next call for rescue hears little, of twenty that say the same it
hears. By the maximum's own equation a lies in [−1, 1], so that labels move no post by more than Σ k(post, label).
p(answer) = e + (1 − 2e) · logistic(±log-odds): one label in 1/e is taken for a slip of the finger, so that no single
one pulls without end (Copas 1988, "Binary regression models for contaminated data", J. R. Stat. Soc. B 50, §2).
Source: Rasmussen and Williams 2006, Gaussian Processes for Machine Learning, §3.4, https://gaussianprocess.org/gpml.

A query that nothing was learnt of but its few sentences may also be moved as a whole, by as much as its labels differ:

    k(x, y) += share · (common · x'·y' + shift)      x': direction from the middle of texts that ask for nothing
    share = n / (n + both)                           n: labels of the rarer of its two answers

Labels of one side alone, however many, say nothing of where it ends. A query that was learnt from thousands of posts
is not moved so: of what the second half of the disaster messages asks for, .56 was found as shipped, .52 after 500 true
labels of alerts, about .42 with a part of that kind.

A label that speaks to another query than its own, by `instead` or as no need and no offer, weighs less, and moves none
as a whole: only those that say yes, or only those that say no, can be given that way.

A correction learnt in one language says little of another (measured: English labels moved Creole posts from .631 to
.600 average precision). trust = n / (n + BORROWED · share of labels in other languages), n the language's own labels:
1 where all labels are of that language, 0 where none is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from models.feedback.records import Label, answers

__all__ = ["Correction", "Feedback", "FeedbackConfig", "Space", "fit_feedback", "fit_query"]

LOG4 = float(np.log(4))


class FeedbackConfig(Struct, frozen=True):
    """How much labels may move a query. Chosen on sets that judge nothing (training.evaluate.feedback)."""

    near: float = 3.0  # variance of the prior: how far a label may move its own post
    sharp: float = 6.0  # how soon that ends: at a cosine of .8, .3 of it; at .5, .05
    common: float = 30.0  # variance of the part along each direction, of queries that nothing was learnt of
    shift: float = 3.0  # likewise of the constant
    both: float = 2.0  # labels of the rarer answer at which these two count half
    slips: float = 0.05  # e: share of labels taken to be wrong
    hearsay: float = 0.5  # of a label's weight that it has for another query than its own
    borrowed: float = 20.0  # labels of a language at which it is trusted half, where all others are of other languages
    most: int = 500  # labels of a query that are used, the newest
    reach: float = -LOG4  # shipped log-odds from which "no need and no offer" also speaks to queries it does not name


@dataclass(frozen=True)
class Correction:
    """What labels say about one query."""

    vectors: np.ndarray  # (m, d) float32, of the labels
    weights: np.ndarray  # (m,) float32: a · trust · near
    line: np.ndarray  # (d,) float32: along each direction from the space's middle
    constant: float
    trust: Mapping[str, float]  # of each language that has labels; others have none

    @property
    def labels(self) -> int:
        """How many there are."""
        return len(self.weights)


class Space(Struct, frozen=True):
    """Where the vectors of one encoder version lie. middle: (d,) float32."""

    middle: np.ndarray

    @classmethod
    def of(cls, background: np.ndarray) -> Space:
        """From the vectors of texts that ask for nothing, (b, d); of fewer than two: about zero."""
        if len(background) < 2:
            return cls(np.zeros(background.shape[1], np.float32))
        return cls(background.mean(axis=0).astype(np.float32))

    def directions(self, vectors: np.ndarray) -> np.ndarray:
        """(n, d) vectors → unit vectors from the middle towards them."""
        apart = vectors - self.middle
        directions: np.ndarray = apart / np.maximum(np.linalg.norm(apart, axis=1, keepdims=True), 1e-6)
        return directions


def trust_by_language(langs: Sequence[str], borrowed: float) -> dict[str, float]:
    """language → in [0, 1]: how far a correction learnt from labels in `langs` holds in each of them."""
    every = len(langs)
    return {lang: n / (n + borrowed * (1 - n / every)) for lang, n in Counter(langs).items()}


def likeness(vectors: np.ndarray, others: np.ndarray, sharp: float) -> np.ndarray:
    """(n, m) in (0, 1]: how like unit vectors (n, d) and (m, d) are; 1 where they are the same."""
    alike: np.ndarray = vectors @ others.T
    alike -= 1
    alike *= sharp
    np.exp(alike, out=alike)
    return alike


def fit_query(
    config: FeedbackConfig,
    space: Space,
    vectors: np.ndarray,
    langs: Sequence[str],
    shipped: np.ndarray,
    right: np.ndarray,
    own: np.ndarray,
    learnt: bool,
) -> Correction:
    """The correction of one query by n labelled posts.

    vectors: (n, d) of length 1; shipped: (n,) log-odds; right: (n,) bool; own: (n,) bool, labels of this very query.
    learnt: does it know more than its sentences, so that nothing moves it as a whole?
    """
    trust = trust_by_language(langs, config.borrowed)
    trusted = np.array([trust[lang] for lang in langs])
    rarer = 0 if learnt else min(int((own & right).sum()), int((own & ~right).sum()))
    share = rarer / (rarer + config.both)
    wide, directions = vectors.astype(np.float64), space.directions(vectors.astype(np.float64)) * own[:, None]
    kernel = config.near * likeness(wide, wide, config.sharp)
    kernel += share * (config.common * directions @ directions.T + config.shift * np.outer(own, own))
    kernel *= np.outer(trusted, trusted)
    weights = trusted * pulls(kernel, shipped, right, np.where(own, 1.0, config.hearsay), config.slips)
    return Correction(
        vectors.astype(np.float32),
        (config.near * weights).astype(np.float32),
        (share * config.common * weights @ directions).astype(np.float32),
        float(share * config.shift * (weights @ own)),
        trust,
    )


def pulls(
    kernel: np.ndarray, shipped: np.ndarray, right: np.ndarray, heard: np.ndarray, slips: float = 0.0
) -> np.ndarray:
    """(n,) a in [−1, 1]: how each label pulls at the posterior's maximum, where kernel @ a is added to the log-odds.

    kernel: (n, n); shipped: (n,) log-odds; right: (n,) bool; heard: (n,) the weight of each label. Without slips the
    posterior is concave and has one maximum; with them it is the one that is reached from the shipped query.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    sign = np.where(right, 1.0, -1.0)
    rows = np.linalg.cholesky(kernel + 1e-8 * max(float(kernel.max()), 1.0) * np.eye(len(kernel)))

    def posterior(found: np.ndarray) -> tuple[float, np.ndarray]:
        odds = sign * (shipped + rows @ found)  # of the answer that was given
        p = expit(odds)
        given = slips + (1 - 2 * slips) * p
        log_p = np.log(given) if slips else -np.logaddexp(0.0, -odds)
        pull: np.ndarray = heard * sign * ((1 - 2 * slips) * p * (1 - p) / given if slips else 1 - p)
        return float(found @ found / 2 - heard @ log_p), pull

    def loss(found: np.ndarray) -> tuple[float, np.ndarray]:
        value, pull = posterior(found)
        return value, found - pull @ rows

    done = minimize(loss, np.zeros(len(rows)), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return posterior(done.x)[1]


class Feedback:
    """The corrections of all queries that have labels. Immutable."""

    def __init__(self, corrections: Mapping[str, Correction], space: Space, sharp: float) -> None:
        self.corrections = dict(sorted(corrections.items()))
        self._space, self._sharp = space, sharp
        every, d = list(self.corrections.values()), len(space.middle)
        vectors = np.concatenate([np.zeros((0, d), np.float32), *(c.vectors for c in every)])
        self._vectors, places = np.unique(vectors, axis=0, return_inverse=True)  # (m, d): one of several queries once
        self._weights = np.zeros((len(self._vectors), len(every)), np.float32)  # (m, k)
        starts = np.cumsum([0, *(c.labels for c in every)])
        for k, correction in enumerate(every):
            np.add.at(self._weights[:, k], places.reshape(-1)[starts[k] : starts[k + 1]], correction.weights)
        self._moved = np.array([c.constant != 0 or bool(c.line.any()) for c in every], bool)  # as a whole
        self._lines = np.stack([np.zeros(d, np.float32), *(c.line for c in every)])[1:].T  # (d, k)
        self._constants = np.array([c.constant for c in every], np.float32)

    def added(self, query_ids: Sequence[str], vectors: np.ndarray, langs: Sequence[str]) -> np.ndarray:
        """(n, q) float32: what labels add to each query's log-odds for each post; 0 for queries nobody taught."""
        out = np.zeros((len(vectors), len(query_ids)), np.float32)
        column = {query_id: k for k, query_id in enumerate(self.corrections)}
        known = [(i, column[query_id]) for i, query_id in enumerate(query_ids) if query_id in column]
        if not known or not len(vectors):
            return out
        found: np.ndarray = likeness(vectors, self._vectors, self._sharp) @ self._weights  # (n, k)
        if self._moved.any():
            found += self._space.directions(vectors) @ self._lines + self._constants
        trust = {lang: self._trust(lang) for lang in set(langs)}
        found *= np.stack([trust[lang] for lang in langs])
        for i, k in known:
            out[:, i] = found[:, k]
        return out

    def _trust(self, lang: str) -> np.ndarray:
        return np.array([c.trust.get(lang, 0.0) for c in self.corrections.values()], np.float32)


def fit_feedback(
    config: FeedbackConfig,
    labels: Sequence[Label],
    vectors: np.ndarray,
    shipped: np.ndarray,
    query_ids: Sequence[str],
    space: Space,
    learnt: Collection[str] = (),
) -> Feedback:
    """The corrections of every query that labels speak of. Labels of queries that are not active wait for them.

    vectors: (n, d), of the labels' texts; shipped: (n, q) log-odds of `query_ids`; learnt: those of them that know
    more than their sentences.
    """
    corrections = {}
    named = {name for label in labels for name in (label.query_id, label.instead)}
    nothing = [i for i, label in enumerate(labels) if label.verdict == "none"]
    reached = shipped[nothing] >= config.reach  # (labels of nothing, q)
    for column, query_id in enumerate(query_ids):
        if query_id not in named and not reached[:, column].any():
            continue  # of very many queries most were never spoken of
        near = {i for i, read in zip(nothing, reached[:, column], strict=True) if read}
        found = answers(labels, query_id, near)
        chosen = sorted(found, key=lambda i: (labels[i].at, labels[i].post_id))[-config.most :]
        if chosen:
            corrections[query_id] = fit_query(
                config,
                space,
                vectors[chosen],
                [labels[i].lang for i in chosen],
                shipped[chosen, column].astype(np.float64),
                np.array([found[i] for i in chosen]),
                np.array([labels[i].query_id == query_id for i in chosen]),
                query_id in learnt,
            )
    return Feedback(corrections, space, config.sharp)
