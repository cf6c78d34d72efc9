"""py3langid's model over many texts at a time: its automaton takes one step in all of them at once.

The library walks each text byte by byte in Python and adds the rows of what it met: a third of the texts of a stream
come to it, and it took a quarter of reading a post. Source: Lui and Baldwin 2012, langid.py
(https://aclanthology.org/P12-3005/); the arithmetic is that of py3langid.langid, and a test holds the answers against
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

__all__ = ["ByteModel"]

FEW = 10  # texts that the library's own walk reads sooner: a step costs some µs, in however many texts it is taken


class ByteModel:
    """`LanguageIdentifier` of py3langid, made with norm_probs, for lists of texts."""

    def __init__(self, identifier: Any) -> None:
        self._one = identifier
        self._moves = np.asarray(identifier.tk_nextmove)  # of its array, not a copy
        self._rows = np.asarray(identifier.tk_row, np.int64) << 8  # where a state's moves begin
        self._features = np.asarray(identifier.tk_output, np.int64)  # of each state, -1 = none

    def likeliest(self, texts: Sequence[str]) -> list[tuple[str, float]]:
        """The likeliest language of each text and how likely it is, as `classify` says it."""
        if len(texts) < FEW:
            return [self._one.classify(text) for text in texts]
        scores, told = self._scores([self._one._encode(text) for text in texts]), self._one.nb_classes
        best = scores.argmax(axis=1).tolist()
        return [(told[at], likely) for at, likely in zip(best, scores.max(axis=1).tolist(), strict=True)]

    def possible(self, text: str, most: int) -> list[str]:
        """The likeliest languages of a text, so many at most, each over .01."""
        return [label for label, likely in self._one.rank(text)[:most] if likely > 0.01]

    def _scores(self, texts: Sequence[bytes]) -> np.ndarray:
        """(n, classes) float32: probabilities; a language that has two columns has it in the first."""
        one, sizes = self._one, np.array([len(text) for text in texts])
        owner, feature = self._met(texts, sizes)
        width = len(one.nb_ptc)
        met, times = np.unique(owner * width + feature, return_counts=True)
        begins = np.searchsorted(met, np.arange(len(texts) + 1) * width)
        counted = csr_array((np.log1p(times.astype(np.float32)), met % width, begins), (len(texts), width))
        scores = counted @ one.nb_ptc + one.nb_pc
        scores[begins[1:] == begins[:-1]] = 0.0  # nothing met: all are as likely
        scores *= (1 / np.sqrt(np.maximum(sizes, 1)))[:, None].astype(np.float32)
        found: np.ndarray = np.exp(scores - scores.max(axis=1, keepdims=True))
        found /= found.sum(axis=1, keepdims=True)
        for first, second in one._alias_pairs:
            found[:, first] += found[:, second]
            found[:, second] = 0.0
        return found

    def _met(self, texts: Sequence[bytes], sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The features met: of which text each is, and which it is."""
        order = np.argsort(-sizes, kind="stable")
        letters = np.zeros((len(texts), max(1, int(sizes.max()))), np.uint8)
        for row, at in enumerate(order):
            letters[row, : sizes[at]] = np.frombuffer(texts[at], np.uint8)
        left = len(texts) - np.searchsorted(np.sort(sizes), np.arange(letters.shape[1]), side="right")
        states = np.zeros(letters.shape[::-1], np.int64)  # (longest, n): in columns, the longest text first
        state = np.zeros(len(texts), np.int64)
        columns = np.ascontiguousarray(letters.T)
        for step, going in enumerate(left.tolist()):
            state = self._moves.take(self._rows.take(state[:going]) + columns[step, :going])
            states[step, :going] = state
        feature = self._features[states]
        feature[np.arange(len(feature))[:, None] >= sizes[order]] = -1
        steps, rows = np.nonzero(feature >= 0)
        return order[rows], feature[steps, rows]
