"""Thresholds measured per query and encoder version, and the probability a score stands for.

Made by `python -m training.calibrate laptop`, with a head by `training.head`; stored as calibration.json beside the
encoder bundle.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from models.errors import BundleError
from models.queries import Query
from models.reading import Head

__all__ = ["Calibration", "Fallback", "QueryCalibration", "fallback_thresholds", "material_hash", "read_calibration"]

# For an encoder nobody calibrated: about what the bundled one needs (see Fallback).
UNMEASURED_ALERT, UNMEASURED_SUGGESTION = 6.0, 3.5


class QueryCalibration(Struct, frozen=True, omit_defaults=True):
    """What was measured for one query version."""

    query_version: str
    alert: float  # score at and above which a match is an alert
    suggestion: float
    basis: str  # "precision" (labelled posts) or "rate" (background posts): which of the two bounds decided `alert`
    target: float  # the precision aimed at, or the share of background posts allowed over the threshold
    posts: int  # labelled or background posts measured on
    reached: float  # precision or rate measured at `alert` on posts that did not set it
    curve: list[tuple[float, float]] = []  # (score, precision at and near it), rising in both
    direction: list[
        float
    ] = []  # w and b, fitted on labelled posts and near misses too; empty = the query's sentences alone


class Fallback(Struct, frozen=True):
    """For a query that was never calibrated: thresholds by the mean and spread of its scores on the bundled background.

    `alert` and `suggestion` are in standard deviations above that mean; measured by treating each calibrated query
    as unknown in turn.
    """

    alert: float
    suggestion: float
    alert_rate: float  # share of background posts over the alert threshold, the worst tenth of the queries left out
    suggestion_rate: float


class Calibration(Struct, frozen=True):
    """Every query's calibration for one encoder version."""

    encoder_version: str
    material: str  # hash of the background and the bundled sentences, which every direction depends on
    queries: dict[str, QueryCalibration]
    fallback: Fallback
    contrast: float = 0.75  # the setting all of it was measured with (MatchConfig.contrast)
    head: Head | None = None  # what `training.head` learnt of posts; None = directions and thresholds alone

    def thresholds(self, query: Query) -> tuple[float, float] | None:
        """(alert, suggestion) if this very version of the query was calibrated."""
        known = self._known(query)
        return (known.alert, known.suggestion) if known else None

    def direction(self, query: Query) -> np.ndarray | None:
        """(d + 1,) float32 if labelled posts gave this very version of the query one."""
        known = self._known(query)
        return np.array(known.direction, np.float32) if known and known.direction else None

    def probabilities(self, query: Query, scores: np.ndarray) -> list[float] | None:
        """Calibrated precision at these scores (m,), to three digits; None where no labels allowed one."""
        if not (curve := self.curve(query)):
            return None
        at, precision = zip(*curve, strict=True)
        return [round(p, 3) for p in np.interp(scores, at, precision).tolist()]

    def curve(self, query: Query) -> list[tuple[float, float]]:
        """(score, precision) measured for this very version of the query, rising in both; empty where none was."""
        known = self._known(query)
        return known.curve if known else []

    def _known(self, query: Query) -> QueryCalibration | None:
        known = self.queries.get(query.id)
        return known if known and known.query_version == query.version else None


def fallback_thresholds(usual: tuple[float, float] | None, calibration: Calibration | None) -> tuple[float, float]:
    """(alert, suggestion) for a query nobody calibrated: so many standard deviations above its background scores.

    usual: their mean and spread; None where there are none.
    """
    alert, suggestion = UNMEASURED_ALERT, UNMEASURED_SUGGESTION
    if calibration:
        alert, suggestion = calibration.fallback.alert, calibration.fallback.suggestion
    if usual is None:
        return 0.5, 0.4  # half-way between what a query wants (1) and what it must not answer to (0)
    mean, spread = usual
    return mean + alert * spread, mean + suggestion * spread


def material_hash(background: Sequence[str], contrast: Sequence[Query]) -> str:
    """8 hex digits over the texts every direction depends on."""
    return blake2b(
        msgspec.msgpack.encode([list(background), sorted(q.version for q in contrast)]), digest_size=4
    ).hexdigest()


def read_calibration(path: Path, encoder_version: str) -> Calibration:
    """The calibration stored beside a bundle. Raises BundleError if it is not there, damaged, or another encoder's."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Calibration)
    except OSError as error:
        raise BundleError(f"{path} is not there: {error.strerror}") from None
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise BundleError(f"{path}: {error}") from error
    if found.encoder_version != encoder_version:
        raise BundleError(f"{path} was made for {found.encoder_version}, the encoder is {encoder_version}: recalibrate")
    return found
