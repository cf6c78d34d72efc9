"""What the witness of the chaos suite takes for one thing, and what for two."""

import pytest

from tests.chaos.traffic import Said, one_word

SAID = Said("active", "alert", "need.water", 0.6676)


@pytest.mark.parametrize(
    ("other", "one"),
    [
        (SAID, True),
        (SAID._replace(score=0.6677), True),  # rounded, of sums over other numbers of rows
        (SAID._replace(score=0.669), False),
        (SAID._replace(level="suggestion"), False),
        (SAID._replace(query_id="need.food"), False),
        (SAID._replace(status="withdrawn"), False),
    ],
)
def test_a_revision_that_is_told_twice_is_one_word_unless_it_says_another_thing(other, one):
    assert one_word({SAID, other}) is one
