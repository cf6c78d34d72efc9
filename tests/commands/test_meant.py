"""What was likely meant by an id that no query has."""

from __future__ import annotations

from streams.commands.meant import no_query


def test_an_id_that_no_query_has_is_told_with_the_nearest_one():
    assert no_query("need.watr", {"need.water", "need.food"}) == (
        "no query 'need.watr' (did you mean need.water?); `crisis query list` shows the 2 active ones"
    )
    assert "did you mean" not in no_query("x", {"need.water"})
