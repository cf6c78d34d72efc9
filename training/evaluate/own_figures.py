"""How queries alert that people add, which no head was taught: each by itself, on posts that judge."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.encoders.ready import Loaded, ready
from models.encoders.registry import OWN
from models.queries import aid_queries
from models.records import AID
from training.evaluate.alert_reading import Reader
from training.evaluate.figure import Figure, figure
from training.metrics import alerting
from training.own_queries import as_people_add_them
from training.posts import LabelledPost

__all__ = ["own_figures"]


def own_figures(reader: Reader, posts: Sequence[LabelledPost], seed: int) -> list[Figure]:
    """Over all pairs of a query and a post. What is found is a lower bound: a query is narrower than its category."""
    own = as_people_add_them(aid_queries(), seed)
    loaded = Loaded(OWN, reader.encoder, reader.matcher.calibration)
    matcher = ready(loaded, [one.query for one in own]).matcher
    vectors = reader.encoder.encode([post.text for post in posts])
    scores = matcher.scores(vectors)
    likely = matcher.probabilities(vectors)
    alerted = scores >= matcher.levels.alert
    right = np.array([[one.bundled in post.right for one in own] for post in posts])
    kinds = [{name.partition(".")[0] for name in post.right} for post in posts]
    of_kind = np.array([[one.query.kind in found for one in own] for found in kinds])
    of_any = np.array([not found.isdisjoint(AID) for found in kinds])[:, None]
    one = np.ones(alerted.shape)
    found = [
        figure("alerts_right", alerting.share(right, alerted, one), int(alerted.sum())),
        figure("alerts_right_in_kind", alerting.share(of_kind, alerted, one), int(alerted.sum())),
        figure("alerts_of_the_other_kind", alerting.share(of_any & ~of_kind, alerted, one), int(alerted.sum())),
        figure("own_query", alerting.share(alerted, right, one), int(right.sum())),
        figure("others_alerted", alerting.share(alerted, ~of_kind, one), int((~of_kind).sum())),
    ]
    if likely is not None:
        rows = alerting.reliability(likely.ravel(), right.ravel(), one.ravel())
        found.append(figure("calibration_error", alerting.calibration_error(rows), right.size))
    return found
