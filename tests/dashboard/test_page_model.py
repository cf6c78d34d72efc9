"""The board: what the page shows, counted and filtered, whatever comes in what order."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.moments import rfc3339
from models.records import Alert, ClusterEvent, Geo
from streams.dashboard.page_model import Board, Category, Filter
from tests.dashboard.invented import HOSTILE, clusters_of, hostile, invent, several

NOW = 1_795_000_000.0

changes = st.builds(
    lambda n, bump, query, level, lang, gone: invent(
        n,
        query,
        lang,
        f"text {n}",
        at=NOW + n,
        revision=int(NOW * 1000) + bump,
        level=level,
        status="withdrawn" if gone else "active",
    ),
    st.integers(0, 6),
    st.integers(0, 5),
    st.sampled_from(["need.water", "offer.water", "need.food"]),
    st.sampled_from(["alert", "suggestion"]),
    st.sampled_from(["en", "ar"]),
    st.booleans(),
)


def filled(alerts: list[Alert], most: int = 1000) -> Board:
    board = Board(most)
    for alert in alerts:
        board.put_alert(alert)
    return board


def newest(alerts: list[Alert]) -> dict[str, Alert]:
    """The first of the highest revision of each alert."""
    found: dict[str, Alert] = {}
    for alert in alerts:
        if alert.alert_id not in found or found[alert.alert_id].revision < alert.revision:
            found[alert.alert_id] = alert
    return found


@given(st.lists(changes, max_size=30))
def test_only_the_newest_revision_of_each_alert_is_shown(alerts):
    shown, total = filled(alerts).find(Filter(), 1000)
    expected = {a.alert_id: a.revision for a in newest(alerts).values() if a.status == "active"}
    assert {s.alert.alert_id: s.alert.revision for s in shown} == expected and total == len(expected)


@given(st.lists(changes, max_size=30))
def test_telling_everything_twice_changes_nothing(alerts):
    once, twice = filled(alerts), filled(alerts + alerts)
    assert once.find(Filter(), 1000) == twice.find(Filter(), 1000)
    assert once.open_counts() == twice.open_counts()


@given(st.lists(changes, max_size=30))
def test_open_counts_are_the_alerts_one_would_count_by_hand(alerts):
    board, active = filled(alerts), [a for a in newest(alerts).values() if a.status == "active"]
    for query, count in board.open_counts().items():
        assert count.alert == sum(a.query_id == query and a.level == "alert" for a in active)
        assert count.suggestion == sum(a.query_id == query and a.level == "suggestion" for a in active)
    assert sum(c.alert + c.suggestion for c in board.open_counts().values()) == len(active)


@given(
    st.lists(changes, max_size=30),
    st.sampled_from(["", "need", "offer"]),
    st.sampled_from(["", "water"]),
    st.sampled_from(["", "alert"]),
    st.sampled_from(["", "ar"]),
)
def test_a_filter_finds_what_a_loop_over_all_alerts_finds(alerts, kind, category, level, lang):
    shown, _ = filled(alerts).find(Filter(kind=kind, category=category, level=level, lang=lang), 1000)
    expected = {
        a.alert_id
        for a in newest(alerts).values()
        if a.status == "active"
        and kind in ("", a.kind)
        and category in ("", a.category)
        and level in ("", a.level)
        and lang in ("", a.post.lang)
    }
    assert {s.alert.alert_id for s in shown} == expected


def test_newest_come_first_and_an_update_keeps_its_place():
    alerts = several(5, NOW)
    board = filled(alerts)
    board.put_alert(msgspec.structs.replace(alerts[0], revision=alerts[0].revision + 1, cluster_id="c1"))
    shown, _ = board.find(Filter(), 10)
    assert [s.alert.post.id for s in shown] == ["p4", "p3", "p2", "p1", "p0"]
    assert shown[-1].alert.cluster_id == "c1"


def test_pages_before_a_rank_join_up_without_gap_or_repeat():
    board, seen, before = filled(several(25, NOW)), [], None
    while page := board.find(Filter(), 10, before)[0]:
        seen += [s.alert.post.id for s in page]
        before = page[-1].rank
    assert seen == [f"p{n}" for n in reversed(range(25))]


def test_memory_is_bounded_and_in_a_crowd_the_oldest_go_first():
    board = filled([invent(n, at=NOW + n) for n in range(50)], most=10)
    shown, total = board.find(Filter(), 100)
    assert total == 10 and shown[-1].alert.post.id == "p40"
    assert filled(several(50, NOW), most=10).find(Filter(), 100)[1] == 10


@pytest.mark.parametrize(
    "q, fits", [("WATER", True), ("send  please", True), ("water boats", False), ("ｗａｔｅｒ", True), ("ВОДА", False)]
)
def test_text_is_found_whatever_its_case_width_and_order(q, fits):
    assert Filter(q=q).accepts(invent(1, text="Please send Water", at=NOW)) is fits


@pytest.mark.parametrize("q, text", [("straße", "STRASSE zum Hafen"), ("ВОДИ", "Немає води"), ("ΝΕΡΌ", "χωρίς νερό")])
def test_case_is_folded_in_every_script(q, text):
    assert Filter(q=q).accepts(invent(1, text=text, at=NOW))


def test_a_filter_reads_a_query_string_and_ignores_the_rest():
    assert Filter.of({"kind": "need", "q": " x " + "y" * 500, "evil": "1"}) == Filter(kind="need", q="x " + "y" * 198)


def test_a_withdrawn_alert_shows_nothing_of_its_post():
    alert = invent(
        1, text="my name and street", at=NOW, geo=Geo(1.0, 2.0), status="withdrawn", withdrawn_because="deleted"
    )
    shown = Board().shown(alert)
    assert (shown.alert.post.text, shown.alert.post.url, shown.alert.post.geo) == ("", None, None)


def test_posts_of_one_author_bear_one_name_on_the_page_and_another_on_another_dashboard():
    def named(key: bytes) -> list[str]:
        board = Board(key=key)
        people = [("masto:m.example/1", "ada"), ("masto:m.example/2", "ada"), ("masto:m.example/3", "ben")]
        nameless = [("bsky:x/4", None), ("bsky:x/5", None)]  # there the account that the id names
        return [board.shown(invent(1, at=NOW, post_id=i, author=a)).author for i, a in people + nameless]

    ada, again, ben, account, same = here = named(b"one")
    assert (ada == again) and (account == same) and len({ada, ben, account}) == 3
    assert not set(here) & set(named(b"another")) and not {"ada", "ben"} & set(here)


def test_only_web_links_reach_the_page():
    assert all(Board().shown(a).alert.post.url is None for a in hostile(NOW))
    assert Board().shown(invent(1, at=NOW)).alert.post.url == "https://example.org/p/1"


def test_hostile_text_is_not_changed_it_is_the_pages_work_to_show_it_as_text():
    assert [Board().shown(a).alert.post.text for a in hostile(NOW)] == list(HOSTILE.values())


def event(
    cluster: str = "c1", version: int = 1, what: str = "grow", posts: int = 5, burst: float = 0.0
) -> ClusterEvent:
    return ClusterEvent(
        event=what,
        cluster_id=cluster,
        version=version,
        posts=posts,
        weight=posts,
        first_at=rfc3339(NOW),
        last_at=rfc3339(NOW),
        label="x",
        encoder_version="e",
        burst=burst,
    )


@given(
    st.permutations(
        [event(version=1), event(version=2, posts=9), event(version=3, what="expire"), event("c2", 1, posts=3)]
    )
)
def test_a_cluster_that_is_gone_never_comes_back_whatever_the_order(events):
    board = Board()
    for e in events:
        board.put_cluster(e)
    assert set(board.clusters) == {"c2"}


def test_growing_clusters_are_the_strongest_bursts_and_never_a_single_post():
    board = Board()
    for e in (event("a", burst=1), event("b", burst=9), event("c", posts=1, burst=50), event("d", posts=80, burst=0.5)):
        board.put_cluster(e)
    assert [c.cluster_id for c in board.growing(10)] == ["b", "d", "a"]  # a burst of 1 is none


def test_repeats_are_told_when_they_change():
    board = filled([invent(1, at=NOW)])
    assert board.put_repeats(["p1"], [3]) == {"p1": 3}
    assert board.put_repeats(["p1"], [3]) == {}
    assert board.find(Filter(), 1)[0][0].repeats == 3


def test_categories_keep_their_order_and_live_queries_come_last():
    board = filled([invent(1, "need.boats", at=NOW), invent(2, at=NOW)])
    known = [Category("water", "Drinking water", "WASH"), Category("food", "Food", "Food Security")]
    assert [c.category for c in board.categories(known)] == ["water", "food", "boats"]


def test_the_seed_places_its_alerts_in_clusters():
    events, placed = clusters_of(several(30, NOW), NOW)
    assert events and {a.cluster_id for a in placed} <= {e.cluster_id for e in events}
