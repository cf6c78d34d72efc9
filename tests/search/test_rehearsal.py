"""How long the posts span that a query is tried on, and what an hour of them costs."""

from __future__ import annotations

import pytest

from models.filters import Where
from models.queries import Query
from streams.search.rehearsal import Rehearsal

HOUR_S = 3600.0


@pytest.mark.parametrize(
    ("hours", "span"),
    [
        ([0, 1, 2, 3, 4], 4.0),
        ([0, 1, 2, 3, 4, 9_000], 4.0),
        ([-70_000, 0, 1, 2, 3, 4], 4.0),
        ([0] * 50 + [2], 2.0),
        ([0, 0.1], 0.1),
    ],
)
def test_posts_of_a_file_that_lie_far_from_the_others_lengthen_no_hours(hours, span):
    assert Rehearsal(True, [HOUR_S * hour for hour in hours]).hours == pytest.approx(span)


def test_of_a_stream_every_post_counts():
    assert Rehearsal(False, [HOUR_S * hour for hour in (0, 1, 2, 3, 4, 9_000)]).hours == 9_000


def test_what_came_in_a_quarter_of_an_hour_is_four_times_that_in_an_hour():
    assert Rehearsal(False, [0.0, 450.0, 900.0]).an_hour(49) == pytest.approx(196)
    assert Rehearsal(False, [0.0, 2 * HOUR_S]).an_hour(49) == pytest.approx(24.5)
    assert Rehearsal(False, [5.0]).an_hour(1) == 60.0  # a moment is taken for a minute
    assert Rehearsal(False).an_hour(0) == Rehearsal(False).hours == 0.0


def test_sources_that_no_post_has_are_named_with_those_there_are():
    def asking(*sources: str) -> Query:
        return Query("need.x", "need", "x", "X", {"en": ["a boat"]}, where=Where(sources=list(sources)))

    done = Rehearsal()
    assert done.unheard(asking("twiter")) == ""
    done.sources.update(["sms", "web", "sms"])
    assert done.unheard(asking("twiter", "sms")) == "None of these posts came from twiter; they came from sms, web."
    assert done.unheard(asking("sms")) == done.unheard(asking()) == ""
