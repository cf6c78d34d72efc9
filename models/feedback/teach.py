"""An encoder version that has heard what people said: its queries as shipped, moved by the labels' corrections."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

import numpy as np

from models.encoders.query_vectors import Known
from models.encoders.ready import Ready
from models.feedback.fit import FeedbackConfig, fit_feedback
from models.feedback.records import Label
from models.matching import Matcher
from models.pairs import reached_by_screened

__all__ = ["teach"]


def teach(
    version: Ready, labels: Sequence[Label], known: Known | None = None, config: FeedbackConfig | None = None
) -> tuple[Ready, Known]:
    """The version corrected by all these labels, and by no others; and the vectors of their texts, to be given again.

    The texts are embedded by this very version, whichever had read them when they were labelled: labels outlive
    encoders. known: vectors of an earlier call for the same version. Blocking.
    """
    plain = version.matcher.corrected_by(None)
    texts = list(dict.fromkeys(label.text for label in labels))
    known = known or {}
    unread = [text for text in texts if text not in known]
    fresh = version.encoder.encode(unread).astype("<f2").astype(np.float32)  # as frames carry them
    known = {text: known[text] for text in texts if text in known} | dict(zip(unread, fresh, strict=True))
    if not labels:
        return dataclasses.replace(version, matcher=plain), known
    vectors = np.stack([known[label.text] for label in labels])
    which = _spoken_of(plain, labels, vectors)
    ids = [plain.queries[i].id for i in which]
    shipped = plain.odds(vectors, which, [label.lang for label in labels])
    feedback = fit_feedback(config or FeedbackConfig(), labels, vectors, shipped, ids, plain.space, _learnt(plain))
    return dataclasses.replace(version, matcher=plain.corrected_by(feedback)), known


def _learnt(matcher: Matcher) -> Collection[str]:
    """The ids of queries that know more than their sentences: those a head was taught or a calibration measured."""
    measured = matcher.calibration.queries if matcher.calibration else {}
    return matcher.head.place if matcher.head else measured


def _spoken_of(matcher: Matcher, labels: Sequence[Label], vectors: np.ndarray) -> np.ndarray:
    """The queries that labels may move, indices: those scored for every post, those named, and of all others those
    that would show a post which is said to be no need and no offer. vectors: (n, d), of the labels' texts."""
    names = {name for label in labels for name in (label.query_id, label.instead)}
    named = [matcher.place[name] for name in names if name in matcher.place]
    nothing = vectors[[label.verdict == "none" for label in labels]]
    return np.union1d(np.union1d(matcher.scored, named), reached_by_screened(matcher, nothing, None).which).astype(int)
