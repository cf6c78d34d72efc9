"""The corpus in the repository: what its data card promises."""

from collections import Counter

import pytest

from models.queries import aid_queries, load_queries
from training.files import DataError
from training.posts import HERE, NEAR, READS_AS, LabelledPost, classes, read_posts, written_posts

POSTS = written_posts()
QUERIES = {query.id for query in aid_queries()}
NOTICES = {query.id for query in load_queries()} - QUERIES


def test_every_event_has_posts_of_every_use_in_the_promised_numbers():
    for event, count in Counter(post.event for post in POSTS).items():
        uses = Counter(post.use for post in POSTS if post.event == event)
        number = int(event.partition("-")[0])
        if number <= 26:
            assert (count, uses) == (160, {"stream": 80, "needs and offers": 40, "near misses": 40}), event
        elif event.startswith(("105-", "106-")):  # several things at once
            assert (count, uses.keys()) == (25 if event.startswith("105-") else 14, {"several"}), event
        elif event.startswith(("61-", "75-", "87-", "101-", "149-")):
            assert (count, uses) == (40, {"needs and offers": 24, "near misses": 16}), event
        elif 120 <= number <= 132:
            assert (count, uses) == (150, {"stream": 80, "needs and offers": 40, "near misses": 30}), event
        elif number >= 95:
            assert 30 <= count <= 150 and "stream" not in uses and uses["near misses"] >= count // 8, event
        else:
            assert 150 <= count <= 165 and uses["needs and offers"] >= 65 and uses["near misses"] >= 35, event


def test_every_label_is_a_query_or_a_kind_of_post_and_only_needs_and_offers_are_urgent_or_not():
    for post in POSTS:
        assert post.gold in QUERIES | {"none"} and (post.second is None or post.second in QUERIES)
        assert (post.near in NEAR) == (post.gold == "none")
        assert QUERIES.issuperset(post.also) and not {post.gold, post.second} & set(post.also)
        assert post.urgency in (
            {"urgent", "soon", "routine"} if post.gold != "none" else {"urgent", "soon", "routine", None}
        )


def test_no_text_stands_twice_and_events_that_judge_are_a_tenth():
    assert len({post.text for post in POSTS}) == len(POSTS)
    assert 0.08 <= sum(post.judges for post in POSTS) / len(POSTS) <= 0.16


def test_all_categories_are_needed_and_offered():
    assert {post.gold for post in POSTS} == QUERIES | {"none"}


def test_near_misses_are_none_of_the_queries():
    assert all(post.gold == "none" for post in POSTS if post.use == "near misses")


def test_labels_of_real_posts_hold_no_text():
    header = (HERE / "read.tsv").read_text(encoding="utf-8").splitlines()[0].split("\t")
    assert "text" not in header and header[:2] == ["set", "id"]


def test_classes_are_the_queries_then_the_kinds_of_post():
    names = classes(POSTS, sorted(QUERIES | NOTICES))
    kinds = [READS_AS.get(near, near) for near in NEAR]
    assert names[: len(QUERIES)] == sorted(QUERIES) and names[len(QUERIES) :] == [*kinds, "ordinary"]
    odd = LabelledPost("x", "en", "e", "need.nothing", None, None, None, "written", "stream")
    with pytest.raises(DataError, match=r"need\.nothing"):
        classes([odd], sorted(QUERIES))


def test_warnings_orders_and_damage_are_classes_of_their_notices_and_count_as_no_need_and_no_offer():
    assert set(READS_AS.values()) < NOTICES
    for post in POSTS:
        assert (post.label in NOTICES) == (post.near in READS_AS)
        assert post.gold == "none" or post.label == post.gold


@pytest.mark.data
def test_every_post_that_was_read_is_in_its_set(data_dir):
    posts = read_posts(data_dir)
    held_out = 443  # disaster messages of the half that judges: see test_what_was_learnt.py
    assert len(posts) == 12_227 - held_out and all(post.text for post in posts)


@pytest.mark.data
def test_no_event_of_crisislex_judges_in_one_set_and_teaches_in_the_other(data_dir):
    uses: dict[str, set[bool]] = {}
    for post in read_posts(data_dir):
        if post.origin.startswith("crisislex"):
            uses.setdefault(post.event.casefold(), set()).add(post.judges)
    assert uses and all(len(judges) == 1 for judges in uses.values())
