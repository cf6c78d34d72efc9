"""An attacker who posts 90 or 1,000 times pushes no real alert off the first page, the list or the search."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.records import Post
from models.search import Found
from streams.dashboard.filters import Filter
from streams.dashboard.page_model import Board, spread
from streams.dashboard.routes import SHOWN_ALERTS
from streams.search.varied import ALIKE, MOST_ASKED, varied
from tests.dashboard.invented import invent

NOW = 1_795_000_000.0
QUERIES = [f"need.{category}" for category in ("water", "search_rescue", "money")]
REAL = "we are trapped on the roof of the school, water is rising"


def one_text(n, cluster):
    """Of many new accounts."""
    more = {"cluster_id": "c-flood"} if cluster else {}
    return {"text": "free hay for sale today, come and trapped get it", "post_id": f"bsky:did:plc:new{n}/1", **more}


def many_texts(n, cluster):
    """Of few accounts."""
    more = {"cluster_id": f"c-{n}"} if cluster else {}
    return {"text": f"story {n} of another trapped kind {'x' * n}", "post_id": f"bsky:did:plc:few{n % 3}/{n}", **more}


@pytest.mark.parametrize("cluster", [True, False], ids=["clustered", "not clustered yet"])
@pytest.mark.parametrize("posts", [90, 1_000])
@pytest.mark.parametrize("flood", [one_text, many_texts])
def test_a_flood_pushes_no_real_alert_off_the_first_page_or_the_search_for_its_words(flood, posts, cluster):
    board = Board()
    real = [f"bsky:did:plc:real{n}/1" for n in range(10)]
    for n, post_id in enumerate(real):
        board.put_alert(invent(n, "need.search_rescue", at=NOW + n, post_id=post_id, text=f"{REAL}, house {n}"))
    for n in range(100, 100 + posts):
        for query in QUERIES:
            board.put_alert(invent(n, query, at=NOW + n, **flood(n, cluster)))
    for wanted in (Filter(), Filter(q="trapped")):
        shown, total = board.find(wanted, SHOWN_ALERTS)
        assert set(real) <= {one.alert.post.id for one in shown} and len(shown) == SHOWN_ALERTS < total
        assert [one.rank for one in shown] == sorted((one.rank for one in shown), reverse=True)
        assert all(one.like for one in shown if "real" not in one.alert.post.id), "what is left out is counted"
    if flood is one_text and cluster:
        shown, _ = board.find(Filter(cluster="c-flood"), SHOWN_ALERTS)
        assert len(shown) == SHOWN_ALERTS, "under its cluster it is all there"
    marks = {one.copies for one in board.find(Filter(q="hay"), 10_000)[0]}
    assert flood is many_texts or min(marks) >= 60, "and marked as copies of one minute"


@given(
    crowds=st.lists(st.integers(0, 4), max_size=60),
    most=st.integers(1, 30),
    share=st.integers(1, 10),
)
def test_a_page_is_full_where_there_is_enough_in_order_and_nobody_gives_way_to_nobody(crowds, most, share):
    alerts = [invent(n, at=NOW + n, cluster_id=f"c-{crowd}") for n, crowd in enumerate(crowds)]
    kept = [(alert, alert.post.text, rank) for rank, alert in reversed(list(enumerate(alerts)))]
    chosen, left = spread(kept, most, share)
    assert len(chosen) == min(most, len(kept))
    assert [one[2] for one in chosen] == sorted((one[2] for one in chosen), reverse=True)
    assert not {one[2] for one in chosen} & {one[2] for one in left}
    if left:  # whoever gave way is of a crowd that has its share
        of = [one[0].cluster_id for one in chosen]
        assert all(of.count(one[0].cluster_id) >= share for one in left)


def found(n, text, account, score):
    return Found(Post(f"bsky:{account}/{n}", text, NOW, NOW, "en", "bluesky"), score)


@pytest.mark.parametrize("copies", [90, 1_000])
def test_copies_of_one_text_and_posts_of_one_account_leave_the_search_to_others(copies):
    flood = [found(n, f"Trapped? Call {n}!", f"new{n}", 0.9) for n in range(copies)]
    flood += [found(n, f"trapped {'x' * n}", "one", 0.8) for n in range(copies)]
    real = [found(n, f"we are trapped in house {chr(97 + n)}", f"real{n}", 0.7) for n in range(4)]
    nearest = flood + real
    got = varied(lambda most: nearest[:most], 10)
    assert {one.post.id for one in real} <= {one.post.id for one in got} and len(got) == 10
    assert [one.score for one in got] == sorted((one.score for one in got), reverse=True)


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 12))
def test_a_search_gives_as_many_as_there_are_and_the_nearest_where_none_is_alike(texts, k):
    nearest = [found(n, f"text {chr(97 + kind)}", f"a{n}", 1 - n / 100) for n, kind in enumerate(texts)]
    got = varied(lambda most: nearest[:most], k)
    assert len(got) == min(k, len(nearest))
    if max(map(texts.count, texts), default=0) <= ALIKE:
        assert got == nearest[:k]
    asked = []
    varied(lambda most: asked.append(most) or [nearest[0]] * most if nearest else [], k)
    assert max(asked, default=0) <= MOST_ASKED
