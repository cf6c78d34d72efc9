"""The thresholds of a query nobody calibrated: how far above the background its scores have to be."""

from __future__ import annotations

import numpy as np
from rich.progress import track

from models.calibration import Fallback
from models.contrast import Contrast
from models.encoders.protocol import Encoder
from models.queries import Query
from training.calibrate_directions import score
from training.thresholds import weighted_quantile_over

__all__ = ["measure_fallback"]


def measure_fallback(
    rates: tuple[float, float],
    queries: list[Query],
    contrast: Contrast,
    encoder: Encoder,
    sentences: dict[str, np.ndarray],
    background: np.ndarray,
    vectors: np.ndarray,
    weights: np.ndarray,
) -> tuple[Fallback, dict]:
    """How far above its scores on the bundled background a query nobody calibrated has to be.

    rates: of ordinary posts, for alerts and for suggestions. Each bundled query plays the unknown one twice: whole, and
    as three sentences in one language, as people add them. Chosen at the ninth tenth of the queries; the rates reported
    are of queries that were left out of the choice.
    """
    needed, names, kept = [], [], []
    for query in track(queries, "fallback"):
        first = next(iter(query.sentences))
        few = query.sentences[first][:3]
        for version, langs in (
            (sentences[query.id], [lang for lang, _ in query.texts()]),
            (encoder.encode(few), [first] * len(few)),
        ):
            direction = contrast.directions(query, version, langs)
            small, large = score(direction, background), score(direction, vectors)
            mean, spread = float(small.mean()), float(small.std())
            z = [(weighted_quantile_over(large, weights, r) - mean) / spread for r in rates]
            needed.append(z)
            names.append(query.id)
            kept.append(((large - mean) / spread).astype(np.float32))
    z = np.array(needed)  # (2q, 2)
    left_out = []
    for i, name in enumerate(names):
        others = np.array([n != name for n in names])
        at = np.quantile(z[others], 0.9, axis=0)
        left_out.append([float(weights[kept[i] >= t].sum()) for t in at])
    reached = np.array(left_out)
    at = np.quantile(z, 0.9, axis=0)
    fallback = Fallback(
        alert=round(float(at[0]), 3),
        suggestion=round(float(at[1]), 3),
        alert_rate=round(float(np.quantile(reached[:, 0], 0.9)), 6),
        suggestion_rate=round(float(np.quantile(reached[:, 1], 0.9)), 6),
    )
    return fallback, {
        "alert_rate": _spread(reached[:, 0]),
        "suggestion_rate": _spread(reached[:, 1]),
        "needed_alert": _spread(z[:, 0]),
        "needed_suggestion": _spread(z[:, 1]),
    }


def _spread(values: np.ndarray) -> dict[str, float]:
    return {
        k: round(float(np.quantile(values, q)), 6) for k, q in (("median", 0.5), ("ninth_tenth", 0.9), ("worst", 1.0))
    }
