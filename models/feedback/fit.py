"""From labels to a correction of each query, which is added to what its encoder version was shipped with:

    log-odds(post, query) = shipped(post, query) + trust(language) · (v · a + words · b + c)
    (a, b, c) = argmax  Σ_labels log p(answer) − |(a, b, c)|² / 2C              the maximum a posteriori

With no label it *is* the shipped query, and it can only be moved from there by evidence: a Gaussian prior round zero.
v: the post's vector, about the middle of the background and in units of its width; words: those that two labelled posts
of the query hold at least.
p(answer) = e + (1 − 2e) · logistic(±log-odds): one label in 1/e is taken for a slip of the finger, so that no single
one pulls without end (Copas 1988, "Binary regression models for contaminated data", J. R. Stat. Soc. B 50, §2).

A correction learnt in one language says little of another (measured: English labels moved Creole posts from .631 to
.600 average precision). trust = n / (n + BORROWED · share of labels in other languages), n the language's own labels:
1 where all labels are of that language, 0 where none is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from models.clusters.labels import terms_of
from models.feedback.records import Label, answers

__all__ = ["Correction", "Feedback", "FeedbackConfig", "Space", "fit_feedback", "fit_query"]

LOG4 = float(np.log(4))


class FeedbackConfig(Struct, frozen=True):
    """How much labels may move a query. Chosen on events of HumAID that judge nothing (training.evaluate.feedback)."""

    strength: float = 3.0  # C: variance of the prior
    spread: float = 1.3  # of the vectors' part: background texts lie about as far from their middle
    words: float = 1.0  # likewise of a post whose words are all known; 0 = vectors alone
    seen: int = 2  # labelled posts of a query that hold a word before it counts
    most_words: int = 500  # of a query, the most frequent
    slips: float = 0.05  # e: share of labels taken to be wrong
    borrowed: float = 20.0  # labels of a language at which it is trusted half, where all others are of other languages
    most: int = 1000  # labels of a query that are used, the newest
    reach: float = -LOG4  # shipped log-odds from which "no need and no offer" also speaks to queries it does not name


@dataclass(frozen=True)
class Correction:
    """What labels say about one query."""

    vector: np.ndarray  # (d,) float32
    words: Mapping[str, float]
    constant: float
    trust: Mapping[str, float]  # of each language that has labels; others have none
    labels: int


class Space(Struct, frozen=True):
    """Where the vectors of one encoder version lie: (d,) float32, and the root mean square distance from there."""

    middle: np.ndarray
    width: float

    @classmethod
    def of(cls, background: np.ndarray) -> Space:
        """From the vectors of texts that ask for nothing, (b, d); of fewer than two: about zero, of width 1."""
        if len(background) < 2:
            return cls(np.zeros(background.shape[1], np.float32), 1.0)
        middle = background.mean(axis=0)
        width = float(np.sqrt(np.square(background - middle).sum(axis=1).mean()))
        return cls(middle.astype(np.float32), max(width, 1e-3))


def trust_by_language(langs: Sequence[str], borrowed: float) -> dict[str, float]:
    """language → in [0, 1]: how far a correction learnt from labels in `langs` holds in each of them."""
    every = len(langs)
    return {lang: n / (n + borrowed * (1 - n / every)) for lang, n in Counter(langs).items()}


def fit_query(
    config: FeedbackConfig,
    vectors: np.ndarray,
    terms: Sequence[Sequence[str]],
    langs: Sequence[str],
    shipped: np.ndarray,
    right: np.ndarray,
) -> Correction:
    """The correction of one query by n labelled posts.

    vectors: (n, d) about the background's middle, in units of its width; terms: of each post; shipped: (n,) log-odds;
    right: (n,) bool.
    """
    seen = Counter(word for post in terms for word in set(post)) if config.words else Counter()
    often = sorted((word for word, n in seen.items() if n >= config.seen), key=lambda w: (-seen[w], w))
    place = {word: i for i, word in enumerate(often[: config.most_words])}
    trust = trust_by_language(langs, config.borrowed)
    rows = np.zeros((len(vectors), vectors.shape[1] + len(place) + 1))  # (n, d + w + 1)
    rows[:, : vectors.shape[1]] = config.spread * vectors
    for row, post in zip(rows, terms, strict=True):
        held = [vectors.shape[1] + place[word] for word in set(post) if word in place]
        row[held] = config.words / np.sqrt(max(len(set(post)), 1))
    rows[:, -1] = 1.0
    rows *= np.array([trust[lang] for lang in langs])[:, None]
    found = map_weights(rows, shipped, right, config.strength, config.slips)
    a, b = config.spread * found[: vectors.shape[1]], config.words * found[vectors.shape[1] : -1]
    words = {word: float(b[i]) for word, i in place.items()}
    return Correction(a.astype(np.float32), words, float(found[-1]), trust, len(right))


def map_weights(
    rows: np.ndarray, shipped: np.ndarray, right: np.ndarray, strength: float, slips: float = 0.0
) -> np.ndarray:
    """(p,): the weights that maximise the posterior. rows: (n, p); shipped: (n,) log-odds; right: (n,) bool.

    Without slips it is concave and has one maximum; with them the one that is reached from the shipped query.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    sign = np.where(right, 1.0, -1.0)

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        odds = sign * (shipped + rows @ weights)  # of the answer that was given
        p = expit(odds)
        given = slips + (1 - 2 * slips) * p
        log_p = np.log(given) if slips else -np.logaddexp(0.0, -odds)
        pull = sign * ((1 - 2 * slips) * p * (1 - p) / given if slips else 1 - p)
        return float(weights @ weights / (2 * strength) - log_p.sum()), weights / strength - pull @ rows

    done = minimize(loss, np.zeros(rows.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return np.asarray(done.x)


class Feedback:
    """The corrections of all queries that have labels. Immutable."""

    def __init__(self, corrections: Mapping[str, Correction], space: Space) -> None:
        self.corrections = dict(sorted(corrections.items()))
        every = dict.fromkeys(word for c in self.corrections.values() for word in c.words)
        self._place = {word: i for i, word in enumerate(every)}
        self._words = np.zeros((len(every), len(self.corrections)), np.float32)
        for k, correction in enumerate(self.corrections.values()):
            for word, weight in correction.words.items():
                self._words[self._place[word], k] = weight
        vectors = [c.vector for c in self.corrections.values()]
        self._vectors = np.stack(vectors) if vectors else np.zeros((0, len(space.middle)), np.float32)  # (k, d)
        self._vectors = self._vectors / np.float32(space.width)
        constants = np.array([c.constant for c in self.corrections.values()], np.float32)
        self._constants = constants - self._vectors @ space.middle

    def added(
        self, query_ids: Sequence[str], vectors: np.ndarray, texts: Sequence[str], langs: Sequence[str]
    ) -> np.ndarray:
        """(n, q) float32: what labels add to each query's log-odds for each post; 0 for queries nobody taught."""
        out = np.zeros((len(vectors), len(query_ids)), np.float32)
        column = {query_id: k for k, query_id in enumerate(self.corrections)}
        known = [(i, column[query_id]) for i, query_id in enumerate(query_ids) if query_id in column]
        if not known or not len(vectors):
            return out
        found = vectors @ self._vectors.T + self._constants  # (n, k)
        if self._place:
            found += np.stack([self._of_words(text) for text in texts])
        trust = {lang: self._trust(lang) for lang in set(langs)}
        found *= np.stack([trust[lang] for lang in langs])
        for i, k in known:
            out[:, i] = found[:, k]
        return out

    def _of_words(self, text: str) -> np.ndarray:
        words = set(terms_of(text))
        rows = [self._place[word] for word in words if word in self._place]
        total: np.ndarray = self._words[rows].sum(axis=0) / np.float32(np.sqrt(max(len(words), 1)))
        return total

    def _trust(self, lang: str) -> np.ndarray:
        return np.array([c.trust.get(lang, 0.0) for c in self.corrections.values()], np.float32)


def fit_feedback(
    config: FeedbackConfig,
    labels: Sequence[Label],
    vectors: np.ndarray,
    shipped: np.ndarray,
    query_ids: Sequence[str],
    space: Space,
) -> Feedback:
    """The corrections of every query that labels speak of. Labels of queries that are not active wait for them.

    vectors: (n, d), of the labels' texts; shipped: (n, q) log-odds of `query_ids`.
    """
    terms = [terms_of(label.text) for label in labels]
    placed = (vectors.astype(np.float64) - space.middle) / space.width
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
                placed[chosen],
                [terms[i] for i in chosen],
                [labels[i].lang for i in chosen],
                shipped[chosen, column].astype(np.float64),
                np.array([found[i] for i in chosen]),
            )
    return Feedback(corrections, space)
