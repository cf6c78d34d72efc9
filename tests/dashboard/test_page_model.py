"""The board: what the page shows, counted and filtered, whatever comes in what order."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.feedback.records import label_alert
from models.moments import rfc3339
from models.records import Alert, ClusterEvent, Example, Geo, Reading
from streams.dashboard.filters import Filter
from streams.dashboard.merged import Merged
from streams.dashboard.page_model import Board, Category, OpenCount, fitting
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


def test_what_somebody_said_is_not_so_counts_no_more_or_as_what_it_is_instead():
    alerts = [invent(n, at=NOW + n) for n in range(6)]
    words = [("right", ""), ("wrong", ""), ("none", ""), ("other", ""), ("other", "need.food")]
    said = [label_alert(alerts[n], verdict, "Ana", NOW, "", instead) for n, (verdict, instead) in enumerate(words)]
    board = filled(alerts)
    assert board.open_counts() == {"need.water": OpenCount(6)}
    counts = board.open_counts({label.key: label for label in said})
    assert counts == {"need.water": OpenCount(2), "need.food": OpenCount(1)}


def test_what_somebody_takes_care_of_is_open_no_longer_with_all_that_it_says_beside():
    handled, other = invent(1, at=NOW, also=[Reading("offer.boat_hire", "alert", 0.7)]), invent(2, at=NOW + 1)
    label = label_alert(handled, "handled", "Ana", NOW)
    assert filled([handled, other]).open_counts({label.key: label}) == {"need.water": OpenCount(1)}
    of_another_reading = label_alert(handled, "handled", "Ana", NOW, "offer.boat_hire")
    counts = filled([handled, other]).open_counts({of_another_reading.key: of_another_reading})
    assert counts == {"need.water": OpenCount(2)}


def test_what_fits_stands_unless_somebody_said_it_is_not_so_and_is_found_as_what_it_is_instead():
    alerts = [invent(n, at=NOW + n) for n in range(5)]
    words = [("right", ""), ("wrong", ""), ("handled", ""), ("other", "need.food")]
    labels = [label_alert(alerts[n], verdict, "Ana", NOW, "", instead) for n, (verdict, instead) in enumerate(words)]
    board, said = filled(alerts), {label.key: label for label in labels}
    water, food = Filter(category="water", lang=alerts[0].post.lang), Filter(category="food", kind="need")
    found = {f: fitting(board.kept(), f, said) for f in (Filter(), Filter(kind="need"), water, food)}
    assert [len(fits) for fits, _ in found.values()] == [5, 5, 5, 1]  # what was judged stays where one looks for it
    assert [stand for _, stand in found.values()] == [3, 3, 2, 1]
    assert not fitting(board.kept(), food)[0]


BESIDE = [Reading("need.food", "suggestion", 0.41), Reading("offer.boat_hire", "alert", 0.7)]


def test_a_category_also_finds_what_a_post_says_beside_its_main_reading_and_a_kind_alone_does_not():
    alert = invent(1, "need.water", at=NOW, also=BESIDE)
    wanted = [
        Filter(category="food"),
        Filter(category="food", kind="need"),
        Filter(category="food", level="suggestion"),
        Filter(category="boat_hire", kind="offer", level="alert", lang="en"),
    ]
    others = [
        Filter(category="food", kind="offer"),  # each reading is taken as a whole
        Filter(category="food", level="alert"),
        Filter(category="food", lang="ar"),
        Filter(kind="offer"),
        Filter(level="suggestion"),
        Filter(category="shelter"),
    ]
    assert all(f.accepts(alert) for f in wanted) and not any(f.accepts(alert) for f in others)


def test_what_posts_say_beside_is_counted_apart_and_never_twice():
    first, second = invent(1, "need.water", at=NOW, also=BESIDE), invent(2, "need.food", at=NOW + 1, also=BESIDE[:1])
    board, beside = filled([first, second]), OpenCount(also=1)
    food = OpenCount(alert=1, also=1)
    assert board.open_counts() == {"need.food": food, "need.water": OpenCount(1), "offer.boat_hire": beside}
    assert sum(c.alert + c.suggestion for c in board.open_counts().values()) == 2
    no_boats = label_alert(first, "wrong", "Ana", NOW, "offer.boat_hire")
    assert "offer.boat_hire" not in board.open_counts({no_boats.key: no_boats})
    is_food = label_alert(first, "other", "Ana", NOW, "", "need.food")
    assert board.open_counts({is_food.key: is_food}) == {"need.food": OpenCount(2), "offer.boat_hire": beside}


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
    cluster: str = "c1", version: int = 1, what: str = "grow", posts: int = 5, burst: float = 0.0, **more: object
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
        **more,
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


MERGES = [("a", "b"), ("b", "c"), ("x", "y"), ("y", "c")]


@given(st.permutations([*MERGES, *"abcxyz"]), st.booleans())
def test_an_alert_is_in_the_cluster_that_lives_on_whatever_is_told_first(told, by_event):
    board = Board()
    for one in told:
        if isinstance(one, str):
            board.put_alert(invent(ord(one), at=NOW, cluster_id=one))
        elif by_event:
            board.put_cluster(event(one[0], 2, "merge", into=one[1]))
        else:
            board.merge(*one)
    in_c = {f"p{ord(name)}" for name in "abcxy"}
    for asked in "abcxy":
        shown, _ = board.find(Filter(cluster=asked), 10)
        assert {s.alert.post.id for s in shown} == in_c and {s.alert.cluster_id for s in shown} == {"c"}
        late = board.shown(invent(1, at=NOW, cluster_id=asked), Filter(cluster="a"))
        assert late.alert.cluster_id == "c" and late.fits
    assert board.find(Filter(cluster="z"), 10)[1] == 1 and not board.shown(invent(1, at=NOW), Filter(cluster="a")).fits


def test_clusters_that_were_merged_are_one_crowd_and_what_gave_way_of_each_is_counted_on_it():
    board = Board(most_alerts=40)
    for n in range(20):
        board.put_alert(invent(n, at=NOW + n, cluster_id=f"c-{n}"))
    for n in range(20, 120):
        board.put_alert(invent(n, at=NOW + n, cluster_id=f"loud-{n % 2}"))
    board.put_cluster(event("loud-0", 2, "merge", into="loud-1"))
    board.put_alert(invent(120, at=NOW + 120, cluster_id="loud-0"))
    shown = board.find(Filter(cluster="loud-0"), 100)[0]
    assert len(shown) == 20 and {s.like for s in shown} == {101 - 20}
    assert board.find(Filter(), 100)[1] == 40 and not board._crowds._gave_way.keys() & {"cluster loud-0"}


def test_merges_are_bounded_and_a_circle_that_nobody_writes_ends():
    merged = Merged(10)
    for n in range(100):
        merged.put(f"c{n}", "all")
    assert len(merged._into) == 10 and merged.find("c99") == "all" and merged.find("c1") == "c1"
    for pair in ("ab", "bc", "ca", "aa"):
        merged.put(*pair)
    assert merged.find("a") == merged.find("b") == "c" and merged.find("c") == "c"


def test_a_card_knows_what_its_cluster_is_called_and_only_the_one_that_is_looked_at_is_told_whole():
    board, more = (
        Board(),
        {"categories": {"need.water": 3}, "languages": {"en": 3}, "examples": [Example("p", "t", "en")]},
    )
    for cluster in ("a", "b", "other"):
        board.put_cluster(event(cluster, posts=1_036, **more))
    board.put_cluster(event("gone", 2, "merge", into="b"))
    for n, cluster in enumerate(("a", "gone", "b", "unknown", None)):
        board.put_alert(invent(n, at=NOW + n, cluster_id=cluster))
    shown = board.find(Filter(), 10)[0]
    named = {c.cluster_id: c for c in board.named(shown, "a")}
    assert set(named) == {"a", "b"} and named["a"] == board.clusters["a"]
    assert named["b"] == event("b", posts=1_036)
    assert [c.cluster_id for c in board.named([], "other")] == ["other"] and board.named([]) == []


def test_growing_clusters_are_the_strongest_bursts_and_never_a_single_post():
    board = Board()
    for e in (event("a", burst=1), event("b", burst=9), event("c", posts=1, burst=50), event("d", posts=80, burst=0.5)):
        board.put_cluster(e)
    assert [c.cluster_id for c in board.growing(10)] == ["b", "d", "a"]  # a burst of 1 is none


def test_clusters_in_which_somebody_asks_or_offers_come_before_all_others():
    board = Board()
    asks = {"categories": {"need.water": 1}}
    for e in (event("loud", posts=900, burst=50), event("a", posts=3, **asks), event("b", burst=4, **asks)):
        board.put_cluster(e)
    assert [c.cluster_id for c in board.growing(10)] == ["b", "a", "loud"]


def test_repeats_are_told_when_they_change():
    board = filled([invent(1, at=NOW)])
    assert board.put_repeats(["p1"], [3]) == {"p1": 3}
    assert board.put_repeats(["p1"], [3]) == {}
    assert board.find(Filter(), 1)[0][0].repeats == 3


def test_categories_keep_their_order_and_live_queries_come_last():
    board = filled([invent(1, "need.boats", at=NOW), invent(2, at=NOW)])
    known = [Category("water", "Drinking water", "WASH"), Category("food", "Food", "Food Security")]
    assert [c.category for c in board.categories(known)] == ["water", "food", "boats"]


def test_categories_that_only_stand_beside_others_are_listed_last_by_the_best_name_there_is():
    board = filled([invent(1, at=NOW, also=BESIDE), invent(2, "need.food", at=NOW, label="Food and meals")])
    found = board.categories([Category("water", "Drinking water", "WASH")])
    assert [(c.category, c.label) for c in found] == [
        ("water", "Drinking water"),
        ("food", "Food and meals"),
        ("boat_hire", "boat hire"),
    ]


def test_the_seed_places_its_alerts_in_clusters():
    events, placed = clusters_of(several(30, NOW), NOW)
    assert events and {a.cluster_id for a in placed} <= {e.cluster_id for e in events}
