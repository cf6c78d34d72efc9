"""The ranking of an event's posts by an urgency that saw none of them."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from training.evaluate import left_out
from training.evaluate.alert_material import Timed
from training.posts import LabelledPost


def test_the_line_that_ranks_an_event_has_learnt_no_post_of_it_nor_of_the_same_event_under_another_name(monkeypatch):
    def labelled(text, event, origin="crisislex-t26", judges=False):
        return LabelledPost(text, "en", event, "need.water", None, None, "urgent", origin, "read", judges=judges)

    posts = [
        labelled("shared", "2013_Flood"),
        labelled("its neighbour", "2013_Flood"),
        labelled("other", "2014_Quake"),
        labelled("judges", "2015_Fire", judges=True),
        labelled("may not", "2016_Storm", origin="humaid"),
        LabelledPost("written", "en", "e", "none", None, "news", None, "written", "stream"),
    ]
    timed = [Timed("shared", "floodTREC", 0.0, 2.0), Timed("unlabelled", "quakeTREC", 1.0, 0.0)]
    learnt: list[set[str]] = []

    def fitted(_config, vectors, kept):
        assert len(vectors) == len(kept)
        learnt.append({post.text for post in kept})
        return [float(len(learnt)), 0.0, 0.0]

    monkeypatch.setattr(left_out, "fit_urgency", fitted)
    encoder = SimpleNamespace(encode=lambda texts: np.ones((len(texts), 2), np.float32))
    found = left_out.urgency_left_out(encoder, timed, posts)
    assert learnt == [{"other", "written"}, {"shared", "its neighbour", "other", "written"}]
    np.testing.assert_allclose(found, [1 / (1 + np.exp(-1)), 1 / (1 + np.exp(-2))], rtol=1e-5)
