"""The measure of what labels of alerts do to later ones: its arithmetic, and a stream made up."""

import numpy as np
import pytest

from models.encoders.ready import load, ready
from models.queries import Query
from models.records import Post
from training.evaluate.later import ONE_SIDED, Stream, alerts, at_the_bar, label, later_alerts, one_sided

WATER = Query("need.water", "need", "water", "Water", {"en": ["We need drinking water", "Our taps are dry"]})
NEWS = [f"The minister spoke about football in district {n}" for n in range(10)]
ASKS = [f"We need drinking water at house {n}" for n in range(10)]


@pytest.fixture(scope="module")
def version():
    return ready(load("flood"), [WATER])


@pytest.fixture(scope="module")
def stream(version):
    texts = [text for pair in zip(ASKS, NEWS, strict=True) for text in pair]
    posts = [Post(f"p{i}", text, 0.0, 0.0, "en") for i, text in enumerate(texts)]
    right = [frozenset({"need.water"} if text in ASKS else ()) for text in texts]
    return Stream(posts, right, version.encoder.encode(texts).astype(np.float32))


def test_shares_at_the_bar_are_of_first_readings_of_queries_and_of_posts_that_alerted_rightly():
    right = [frozenset({"a"}), frozenset({"a", "b"}), frozenset(), frozenset({"b"})]
    found = at_the_bar(right, [["a"], ["c", "b"], ["a"], []], shipped=[["a"], [], [], ["b"]])
    assert found == {"alerts": 3, "right": 0.3333, "found": 0.5, "silenced": 0.5}
    assert at_the_bar(right[:1], [[]], [[]]) == {"alerts": 0, "right": 0.0, "found": 0.0, "silenced": 0.0}


def test_who_knows_says_right_or_what_it_is_instead_or_nothing():
    post = Post("p", "text", 0.0, 0.0, "en")
    said = [
        label(post, "need.water", right, 0.0)
        for right in (frozenset({"need.water"}), frozenset({"b", "a"}), frozenset())
    ]
    assert [(x.verdict, x.instead) for x in said] == [("right", ""), ("other", "a"), ("none", "")]


def test_honest_labels_of_what_alerts_rightly_silence_nothing(version, stream):
    assert [bool(named) for named in alerts(version, stream)] == [bool(right) for right in stream.right]
    told = later_alerts(version, stream, [3])
    assert (told["posts"], told["labels"]) == (20, 5)
    assert told["0"] == told["3"] == {"alerts": 5, "right": 1.0, "found": 1.0, "silenced": 0.0}


def test_the_mislabelled_are_not_among_those_counted(version, stream):
    found = one_sided(version, stream)
    assert found["alerts"] == len(ASKS) - ONE_SIDED and 0 <= found["kept"] <= found["alerts"]
