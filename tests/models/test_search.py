"""The search index finds what a plain loop over all posts finds, forgets by whole segments, and serves many readers."""

from __future__ import annotations

import threading

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import VersionMismatch
from models.records import Deletion, Match, MatchedFrame, Origin, Post
from models.search import COARSE_FROM, SEGMENTS_AT_LEAST, SearchIndex

DIM = 8
LANGS = ("ar", "tr", "en")


def post(number: int, at: float, lang: str = "en", text: str = "water") -> Post:
    return Post(id=f"p{number}", text=text, created_at=at, seen_at=at, lang=lang)


def unit(n: int, seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, DIM))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype("<f2")


@st.composite
def histories(draw):
    """Blocks of posts, some edited again later, with times, languages and kinds, and ids to hide."""
    n = draw(st.integers(1, 80))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    times = 1e6 + np.cumsum(rng.choice([0.0, 1.0, 30.0], n))
    numbers = [int(rng.integers(0, n)) if rng.random() < 0.2 else i for i in range(n)]
    posts = [post(k, float(t), LANGS[rng.integers(3)]) for k, t in zip(numbers, times, strict=True)]
    kinds = [[("need", "offer")[i] for i in range(2) if rng.random() < 0.4] for _ in posts]
    hidden = [f"p{k}" for k in rng.integers(0, n, draw(st.integers(0, 10)))]
    return posts, unit(n, int(rng.integers(1e9))), kinds, hidden, draw(st.integers(1, 30))


@given(
    histories(),
    st.integers(1, 20),
    st.none() | st.sampled_from(LANGS),
    st.none() | st.sampled_from(["need", "offer"]),
    st.none() | st.floats(0, 500),
)
@settings(max_examples=80, deadline=None)
def test_it_equals_a_plain_loop_whatever_the_blocks_filters_edits_and_deletions(history, k, lang, kind, since):
    posts, vectors, kinds, hidden, size = history
    since = None if since is None else 1e6 + since
    index = SearchIndex(DIM, "v1", segment_s=100.0, window_s=1e9)
    for start in range(0, len(posts), size):
        end = start + size
        index.add(posts[start:end], vectors[start:end], kinds[start:end])
    index.hide(hidden)
    latest = {p.id: i for i, p in enumerate(posts)}
    asked = unit(1, 5)[0].astype(np.float32)
    expected = sorted(
        (
            -float(vectors[i].astype(np.float32) @ asked)
            for i, p in enumerate(posts)
            if latest[p.id] == i
            and p.id not in hidden
            and (lang is None or p.lang == lang)
            and (kind is None or kind in kinds[i])
            and (since is None or p.created_at >= since)
        )
    )[:k]
    found = index.search(asked, k, lang=lang, kind=kind, since=since)
    np.testing.assert_allclose([-f.score for f in found], expected, atol=1e-6)
    for one in found:
        assert one.post == posts[latest[one.post.id]]
        assert one.score == pytest.approx(float(vectors[latest[one.post.id]].astype(np.float32) @ asked), abs=1e-6)


def test_old_segments_leave_whole_and_memory_follows():
    index = SearchIndex(DIM, "v1", segment_s=10.0, window_s=50.0)
    vectors = unit(300, 1)
    for i in range(300):
        index.add([post(i, 1_000.0 + i)], vectors[i : i + 1])
        if i > 60:
            assert 50 <= len(index) <= 61
    oldest = min(f.post.created_at for f in index.search(vectors[0], 300))
    assert 1_299.0 - 61.0 <= oldest <= 1_299.0 - 49.0


def test_a_late_post_is_kept_as_long_as_the_posts_it_came_with():
    index = SearchIndex(DIM, "v1", segment_s=10.0, window_s=50.0)
    index.add([post(0, 1_000.0), post(1, 10.0)], unit(2, 1))
    assert {f.post.id for f in index.search(unit(1, 2)[0], 5)} == {"p0", "p1"}
    assert [f.post.id for f in index.search(unit(1, 2)[0], 5, since=500.0)] == ["p0"]


def test_full_segments_give_what_a_scan_of_every_row_gives_filtered_or_hidden_as_they_are():
    dim, n, rng = 32, 3 * COARSE_FROM, np.random.default_rng(3)
    topics = rng.standard_normal((200, dim))
    vectors = topics[rng.integers(0, 200, n)] + 0.5 * rng.standard_normal((n, dim))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("<f2")
    index = SearchIndex(dim, "v1", max_posts=SEGMENTS_AT_LEAST * COARSE_FROM)
    posts = [post(i, 5.0, LANGS[i % 8 % 3]) for i in range(n)]
    for start in range(0, n, 700):
        index.add(posts[start : start + 700], vectors[start : start + 700])
    assert sum(segment.coarse is not None for segment in index._segments) == 2
    index.hide(f"p{i}" for i in range(0, n, 3))
    floats, found, expected, numbers = vectors.astype(np.float32), 0, 0, np.arange(n)
    turkish = numbers % 8 % 3 == LANGS.index("tr")
    for asked in topics[:40]:
        asked = (asked / np.linalg.norm(asked)).astype(np.float32)
        for lang in (None, "tr"):
            shown = (numbers % 3 > 0) & (turkish if lang else True)
            near = np.argsort(np.where(shown, -(floats @ asked), 1.0))[:10]
            hits = index.search(asked, 10, lang=lang)
            assert [f.score for f in hits] == pytest.approx(sorted((f.score for f in hits), reverse=True))
            assert all(f.score == pytest.approx(float(floats[int(f.post.id[1:])] @ asked), abs=1e-5) for f in hits)
            found, expected = found + len({f"p{i}" for i in near} & {f.post.id for f in hits}), expected + 10
    assert found >= 0.99 * expected


def test_it_never_holds_more_than_max_posts():
    index = SearchIndex(DIM, "v1", max_posts=160)
    for start in range(0, 2_000, 7):
        index.add([post(i, 5.0) for i in range(start, start + 7)], unit(7, start))
        assert len(index) <= 160
    assert len(index) >= 130


def of_accounts(*ids: str, at: float = 5.0) -> list[Post]:
    return [Post(id=i, text="water", created_at=at, seen_at=at) for i in ids]


def shown(index: SearchIndex) -> set[str]:
    return {f.post.id for f in index.search(unit(1, 2)[0], 100)}


@given(
    st.lists(st.sampled_from(["a/1", "a/2", "ab/1", "b/1", "b/2", "c", "a", "b", "ab"]), max_size=30),
    st.sets(st.sampled_from(["a", "b", "ab", "c", "a/1", "b/2"])),
    st.integers(1, 9),
)
def test_a_hidden_account_takes_all_its_posts_along_whatever_the_blocks(ids, hidden, size):
    index = SearchIndex(DIM, "v1", max_posts=1_000)
    for start in range(0, len(ids), size):
        block = of_accounts(*ids[start : start + size])
        index.add(block, unit(len(block), start))
    index.hide(sorted(hidden, reverse=True))  # a post before its account: of an id that is both, only the post goes
    kept = {i for i in ids if i not in hidden and (i == (a := i.partition("/")[0]) or a not in hidden or a in ids)}
    assert shown(index) == kept and len(index) == len(kept)


def test_a_deleted_accounts_posts_that_are_read_after_the_deletion_stay_hidden_for_the_window():
    index = SearchIndex(DIM, "v1", segment_s=10.0, window_s=50.0)
    index.hide(["a"])  # nothing was read yet
    index.add(of_accounts("a/1", "b/1"), unit(2, 1))
    index.hide(["b"])
    index.add(of_accounts("a/2", "b/2", "c/1", at=20.0), unit(3, 2))
    assert shown(index) == {"c/1"}
    index.add(of_accounts("c/2", at=100.0), unit(1, 3))
    index.hide(["c"])
    index.add(of_accounts("a/3", "b/3", at=101.0), unit(2, 4))  # they came back
    assert shown(index) == {"a/3", "b/3"}


def test_a_deleted_post_that_is_read_after_its_deletion_or_once_more_stays_hidden_for_the_window():
    index = SearchIndex(DIM, "v1", segment_s=10.0, window_s=50.0)
    index.hide(["a/1"])  # nothing was read yet
    index.add(of_accounts("a/1", "a/2"), unit(2, 1))
    index.hide(["b/1", "c"])
    index.add(of_accounts("b/1", "b/2", "c", at=20.0), unit(3, 2))
    index.hide(["b/2"])
    index.add(of_accounts("b/2", at=20.0), unit(1, 3))  # read over again, as after a broken connection
    assert shown(index) == {"a/2"} and len(index) == 1
    assert not [p for segment in index._segments for p in segment.posts if p and b"a/2" not in p]
    index.add(of_accounts("d/1", at=100.0), unit(1, 4))
    index.hide(["d/1"])
    index.add(of_accounts("a/1", "b/1", "d/1", at=101.0), unit(3, 5))  # sent anew, long after
    assert shown(index) == {"a/1", "b/1"}


def test_of_deleted_posts_no_more_are_remembered_than_posts_are_held_and_no_closed_account_is_pushed_out():
    index = SearchIndex(DIM, "v1", max_posts=160)
    index.hide(["a", *(f"x/{n}" for n in range(500))])
    index.add(of_accounts("a/1", "x/1", "x/499"), unit(3, 1))
    assert shown(index) == {"x/1"} and len(index._gone) == 160


def test_nothing_of_the_words_of_a_hidden_or_edited_post_is_left():
    index = SearchIndex(DIM, "v1")
    index.hide(["b"])
    said = [post(n, 5.0, text=f"zebrafish {n}") for n in range(3)]
    index.add([*said, *of_accounts("a/1", "b/1")], unit(5, 1))
    index.hide(["p0", "a"])
    index.add([post(1, 6.0, text="edited")], unit(1, 2))
    held = [packed for segment in index._segments for packed in segment.posts if packed]
    assert sorted(msgspec.msgpack.decode(packed, type=Post).text for packed in held) == ["edited", "zebrafish 2"]
    assert shown(index) == {"p1", "p2"}


def test_a_frame_brings_kinds_and_deletions_and_a_redelivery_changes_nothing():
    vectors = unit(3, 3)
    matches = [Match("p0", "need.water", "1", "alert", 0.5, 0.4), Match("p1", "offer.water", "1", "alert", 0.5, 0.4)]
    first = MatchedFrame(
        Origin(0, 0),
        [post(i, 5.0) for i in range(3)],
        encoder_version="v1",
        dim=DIM,
        vectors=vectors.tobytes(),
        matches=matches,
    )
    gone = MatchedFrame(Origin(0, 1), [], deletions=[Deletion("p2", 6.0)], encoder_version="v1", dim=DIM, vectors=b"")
    index = SearchIndex(DIM, "v1")
    for frame in (first, first, gone, gone):
        index.add_frame(frame)
    assert len(index) == 2
    assert [f.post.id for f in index.search(vectors[2], 9, kind="need")] == ["p0"]
    assert [f.post.id for f in index.search(vectors[2], 9, kind="offer")] == ["p1"]


def test_vectors_of_another_encoder_or_dimension_are_refused():
    index = SearchIndex(DIM, "v1")
    other = MatchedFrame(Origin(0, 0), [post(0, 5.0)], encoder_version="v2", dim=DIM, vectors=unit(1, 1).tobytes())
    for wrong in (
        lambda: index.add_frame(other),
        lambda: index.add([post(0, 5.0)], np.zeros((1, 9))),
        lambda: index.search(np.zeros(9)),
        lambda: index.search(np.zeros(DIM), encoder_version="v2"),
    ):
        with pytest.raises(VersionMismatch):
            wrong()
    assert index.search(np.zeros(DIM)) == []


def test_an_unknown_language_finds_nothing():
    index = SearchIndex(DIM, "v1")
    index.add([post(0, 5.0)], unit(1, 1))
    assert (
        index.search(unit(1, 1)[0], 3, lang="xx") == [] and len(index.search(unit(1, 1)[0], 3, lang=["xx", "en"])) == 1
    )


def test_readers_are_served_while_posts_are_written():
    index, stop, wrong = SearchIndex(DIM, "v1", segment_s=20.0, window_s=200.0), threading.Event(), []

    def read(seed: int) -> None:
        asked = unit(1, seed)[0].astype(np.float32)
        while not stop.is_set():
            found = index.search(asked, 5, since=0.0)
            scores = [f.score for f in found]
            if scores != sorted(scores, reverse=True):
                wrong.append(scores)

    readers = [threading.Thread(target=read, args=(seed,)) for seed in range(3)]
    for reader in readers:
        reader.start()
    for start in range(0, 3_000, 10):
        index.add([post(i, 1_000.0 + i) for i in range(start, start + 10)], unit(10, start))
        index.hide([f"p{start}"])
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong and len(index) > 0
