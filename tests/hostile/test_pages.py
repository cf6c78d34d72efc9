"""An attacker who posts 90 or 1,000 times pushes no real alert off the first page, the list or the search."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.records import Post
from models.search import Found
from streams.dashboard.filters import Filter
from streams.dashboard.page_model import Board
from streams.dashboard.routes import SHOWN_ALERTS
from streams.dashboard.spread import spread
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


@pytest.mark.parametrize("copies", [21, 1_000, 2_200])
def test_near_copies_in_the_cluster_of_a_call_push_it_neither_off_the_first_page_nor_off_the_board(copies):
    """The words of a call with another street, town and number: they fall into its cluster, and come after it."""
    board, call = Board(), "bsky:did:plc:victim/1"
    for n in range(1_000):
        query, cluster = ("need.water", "need.food", "need.shelter", "need.search_rescue")[n % 4], f"c{n // 20}-{n % 4}"
        board.put_alert(invent(n, query, at=NOW + n, cluster_id=cluster, post_id=f"bsky:did:plc:p{n}/1"))
    rescue = {"query": "need.search_rescue", "cluster_id": "c-real"}
    board.put_alert(invent(1_000, at=NOW + 1_000, post_id=call, text="Trapped under the rubble, Oak road 12", **rescue))
    for n in range(1_001, 1_001 + copies):
        text = f"Trapped under the rubble, Elm road {n}"
        board.put_alert(invent(n, at=NOW + n, post_id=f"bsky:did:plc:new{n}/1", text=text, **rescue))
        if n % 50 == 0:
            assert call in {one.alert.post.id for one in board.find(Filter(), SHOWN_ALERTS)[0]}
    shown, _ = board.find(Filter(), SHOWN_ALERTS)
    assert call in {one.alert.post.id for one in shown} and len(shown) == SHOWN_ALERTS
    seen, before = set(), None
    while page := board.find(Filter(cluster="c-real"), SHOWN_ALERTS, before)[0]:
        seen |= {one.alert.post.id for one in page}
        before = page[-1].rank
    assert call in seen, "page by page its cluster shows it"


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
    of = [one[0].cluster_id for one in chosen]
    assert all(
        of.count(one[0].cluster_id) >= share for one in left
    )  # whoever gave way is of a crowd that has its share
    last = min((one[2] for one in chosen), default=0)
    for crowd in {one[0].cluster_id for one in left if one[2] > last}:
        ranks = [one[2] for one in kept if one[2] >= last and one[0].cluster_id == crowd]
        assert set(ranks[len(ranks) - share // 4 :]) <= {one[2] for one in chosen}, (
            "of those in reach the oldest are there"
        )


def test_who_has_a_page_with_the_oldest_of_a_crowd_goes_on_below_it_without_gap_but_for_what_is_counted_on_it():
    board = Board()
    for n in range(400):
        board.put_alert(invent(n, at=NOW + n, cluster_id="c-loud" if 200 <= n < 300 else f"c-{n}"))
    ids, before, like = [], None, 0
    while page := board.find(Filter(), 120, before)[0]:
        ids += [one.alert.post.id for one in page]
        like += max(one.like for one in page)
        before = page[-1].rank
    loud = [post_id for post_id in ids if 200 <= int(post_id[1:]) < 300]
    assert len(set(ids)) == len(ids) == 300 + len(loud) and len(loud) + like == 100
    assert ids == sorted(ids, key=lambda post_id: -int(post_id[1:]))


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
