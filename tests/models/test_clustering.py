"""What the clusterer does with posts, edits, deletions, time and a change of encoder."""

from __future__ import annotations

import numpy as np
import pytest

from models.clustering import ClusterConfig, Clusterer
from models.errors import ConfigError, CrisisError, EncoderError, VersionMismatch
from models.records import Deletion, Match, MatchedFrame, Post, Repeat
from tests.models.clustering_lab import DIM, SMALL, frame, plain, post, run


def topic_stream(n, seed=0, topics=40, spread=0.25, dim=32, live=12, births=200):
    """Topics come and go: a stationary stream. -> posts, (n, dim) float16, topic numbers."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((topics, dim))
    topic = (np.arange(n) // births + rng.integers(0, live, n)) % topics
    vectors = centres[topic] / np.linalg.norm(centres[topic], axis=1, keepdims=True)
    vectors = vectors + spread * rng.standard_normal((n, dim)) / np.sqrt(dim) * 2
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    posts = [post(i, 1e6 + i, text=f"topic{t} word{t}x place{i % 7}") for i, t in enumerate(topic)]
    return posts, vectors.astype("<f2"), topic


def test_memory_stays_bounded_under_a_stationary_stream():
    config = plain(
        t_attach=0.6,
        t_merge=0.55,
        merge_every_posts=100,
        ttl_posts=600,
        ttl_s=0,
        ttl_single_posts=100,
        ttl_single_s=0,
        remember_posts=1_000,
        remember_members=300,
        remember_ids=50,
        max_clusters=64,
    )
    posts, vectors, _ = topic_stream(12_000)
    clusterer, sizes = Clusterer(config, 32, "v1"), []
    for start in range(0, len(posts), 50):
        repeat = Repeat(f"r{start}", posts[start].id, 0.0)
        clusterer.add(frame(start, posts[start : start + 50], vectors[start : start + 50], repeats=[repeat]))
        if start % 2_000 == 0:
            sizes.append(len(clusterer.snapshot()))
        assert len(clusterer.live_clusters.slots) <= 64 + 100
    assert max(sizes[3:]) < 1.1 * max(sizes[1:3])
    memory = clusterer.live_clusters.memory
    assert len(memory.placed) <= 1_000 and len(memory.members) <= 300 and len(memory.repeats) <= 1_000
    assert len(memory.redirects) <= 50 and len(memory.retired) <= 50


def test_more_clusters_than_allowed_cost_the_stalest_single_posts():
    config = plain(max_clusters=3, merge_every_posts=100, t_attach=0.9, t_merge=0.9)
    vectors = np.eye(6)[[0, 0, 1, 2, 3, 4]]
    clusterer, _ = run([post(i, 1.0) for i in range(6)], vectors, config=config)
    clusterer.settle()
    assert [c.id for c in clusterer.live()] == [clusterer.cluster_of(p) for p in ("p0", "p4", "p5")]
    assert clusterer.counters.evicted == 2


def test_planted_topics_are_found_again():
    posts, vectors, topic = topic_stream(1_500, live=8, births=10_000)
    clusterer, _ = run(posts, vectors, range(0, 1_500, 25), plain(t_attach=0.6, t_merge=0.5))
    clusterer.settle()
    found = [clusterer.cluster_of(p.id) for p in posts]
    assert len({(f, t) for f, t in zip(found, topic, strict=True)}) == len(set(topic)) == len(set(found))


def tiny(n=3, **config):
    """n posts of one happening, merged and announced."""
    config = plain(**{"merge_every_posts": n, **config})
    return run([post(i, 100.0 + i, author=f"a{i}") for i in range(n)], np.tile(np.eye(DIM)[0], (n, 1)), config=config)


def test_a_cluster_is_announced_at_three_posts_and_told_again_at_five_ten_twenty_fifty():
    posts = [post(i, 100.0) for i in range(60)]
    config = plain(merge_every_posts=1)
    _, events = run(posts, np.tile(np.eye(DIM)[0], (60, 1)), config=config)
    assert [(e.event, e.posts) for e in events] == [("new", 3), ("grow", 5), ("grow", 10), ("grow", 20), ("grow", 50)]


def test_an_event_says_what_the_cluster_is_about():
    texts = ["Flood in Riverton", "The flood reached Riverton bridge", "Riverton flood"]
    posts = [post(i, 10.0 + i, text=t, lang=("en", "en", "de")[i], source="mastodon") for i, t in enumerate(texts)]
    match = Match("p1", "need.rescue", "1", "alert", 0.5, 0.4)
    clusterer = Clusterer(plain(merge_every_posts=3), DIM, "v1")
    (event,) = clusterer.add(frame(0, posts, np.tile(np.eye(DIM)[0], (3, 1)), matches=[match]))
    assert event.event == "new" and event.posts == 3 and event.version == 1 and event.encoder_version == "v1"
    assert {"flood", "riverton"} <= set(event.label.split())
    assert (event.first_at, event.last_at) == ("1970-01-01T00:00:10.000Z", "1970-01-01T00:00:12.000Z")
    assert event.languages == {"en": 2, "de": 1} and event.sources == {"mastodon": 3}
    assert event.categories == {"need.rescue": 1}
    assert {event.medoid.text, *(e.text for e in event.examples)} == set(texts)


def test_a_merge_redirects_the_lighter_id_and_says_where_it_went():
    a, b = np.eye(DIM)[0], np.array([0.6, 0.8, 0, 0, 0, 0])
    half = (a + b) / np.linalg.norm(a + b)
    vectors = np.stack([a, a, a, b, b, b, b, *([half] * 3)])
    config = plain(t_attach=0.7, t_merge=0.65, merge_every_posts=7, merge_every_s=1e9)
    posts = [post(i, 5.0) for i in range(10)]
    clusterer, events = run(posts, vectors, config=config)
    light, heavy = (e.cluster_id for e in events)
    assert [e.event for e in events] == ["new", "new"] and clusterer.find(light) == light
    (event,) = [e for e in clusterer.settle() if e.event == "merge"]
    assert (event.cluster_id, event.into) in {(light, heavy), (heavy, light)}
    assert clusterer.find(event.cluster_id) == event.into == clusterer.cluster_of("p0") == clusterer.cluster_of("p3")


def test_the_heavier_id_survives_and_the_older_of_equals():
    x, y = np.array([1.0, 0, 0, 0, 0, 0]), np.array([0.8, 0.6, 0, 0, 0, 0])
    for counts, survivor in (((2, 3), "p2"), ((3, 2), "p0"), ((2, 2), "p0")):
        vectors = np.stack([x] * counts[0] + [y] * counts[1])
        config = plain(t_attach=0.9, t_merge=0.7)
        clusterer, _ = run([post(i, 5.0) for i in range(len(vectors))], vectors, config=config)
        expected = clusterer.cluster_of(survivor)
        clusterer.settle()
        assert {clusterer.cluster_of("p0"), clusterer.cluster_of(f"p{len(vectors) - 1}")} == {expected}


def test_a_repeat_counts_with_its_original_once_and_can_be_deleted():
    clusterer, _ = tiny(3)
    repeats = [Repeat("r1", "p0", 200.0), Repeat("r1", "p0", 200.0), Repeat("r2", "p1", 200.0), Repeat("r3", "?", 1.0)]
    clusterer.add(frame(50, [], [], repeats=repeats))
    (cluster,) = clusterer.live()
    assert cluster.posts == 5 and clusterer.counters.unplaced == 1
    assert clusterer.cluster_of("r1") == cluster.id
    clusterer.add(frame(51, [], [], deletions=[Deletion("r1", 1.0)]))
    assert cluster.posts == 4 and clusterer.cluster_of("r1") is None


def test_a_deleted_example_is_withdrawn_from_view_at_once():
    clusterer, _ = tiny(4)
    (event,) = clusterer.add(frame(50, [], [], deletions=[Deletion("p1", 1.0)]))
    assert event.event == "relabel" and event.posts == 3
    assert "p1" not in {event.medoid.post_id, *(e.post_id for e in event.examples)}


def test_a_post_sent_twice_and_then_deleted_is_shown_no_more():
    clusterer, _ = tiny(4)
    clusterer.add(frame(50, [], [], repeats=[Repeat("p1", "p1", 200.0)]))
    clusterer.add(frame(51, [], [], deletions=[Deletion("p1", 1.0)]))
    (cluster,) = clusterer.live()
    assert cluster.posts == 3 and clusterer.cluster_of("p1") is None
    assert "p1" not in {m.post_id for m in cluster.examples}


def test_a_repeat_that_is_edited_is_a_post_of_its_own():
    clusterer, _ = tiny(3)
    clusterer.add(frame(50, [], [], repeats=[Repeat("r1", "p0", 200.0)]))
    clusterer.add(frame(51, [Post("r1", "all is well", 200.0, 200.0, kind="update")], [np.eye(DIM)[3]]))
    assert clusterer.cluster_of("r1") != clusterer.cluster_of("p0")
    assert [c.posts for c in clusterer.live()] == [3, 1]


def test_deleting_every_post_ends_the_cluster():
    clusterer, _ = tiny(3)
    events = clusterer.add(frame(50, [], [], deletions=[Deletion(f"p{i}", 1.0) for i in range(3)]))
    assert events[-1].event == "expire" and clusterer.live() == []
    assert clusterer.add(frame(51, [], [], deletions=[Deletion("p0", 1.0)])) == []
    assert clusterer.counters.unplaced == 1


def test_an_edited_post_moves_to_where_its_new_text_belongs():
    vectors = np.eye(DIM)[[0, 0, 1]]
    clusterer, _ = run([post(i, 5.0) for i in range(3)], vectors)
    edited = post(1, 6.0, kind="update", text="medicine")
    clusterer.add(frame(50, [edited], np.eye(DIM)[[1]]))
    assert clusterer.cluster_of("p1") == clusterer.cluster_of("p2") != clusterer.cluster_of("p0")
    assert [c.posts for c in clusterer.live()] == [1, 2]


def test_a_lone_post_edited_again_and_again_never_gets_an_old_id():
    clusterer, ids = Clusterer(SMALL, DIM, "v1"), []
    for i in range(20):
        clusterer.add(frame(i, [post(0, 5.0, seen_at=5.0 + i // 2, kind="update")], np.eye(DIM)[[i % DIM]]))
        ids.append(clusterer.cluster_of("p0"))
    assert len(set(ids)) == 20


def test_a_clock_set_by_authors_cannot_run_ahead_of_ours():
    clusterer, _ = run([post(0, 9e9, seen_at=1_000.0), post(1, 900.0, seen_at=1_001.0)], np.eye(DIM)[:2])
    assert clusterer.clock == 1_000.0


def test_quiet_clusters_end_by_posts_and_by_time_both():
    config = plain(merge_every_posts=1, ttl_posts=10, ttl_s=100.0, ttl_single_posts=10, ttl_single_s=100.0)
    here, there = np.eye(DIM)[[0] * 3], np.eye(DIM)[[1] * 20]
    posts = [post(i, 1_000.0) for i in range(3)]
    quick = [post(i, 1_000.0 + i) for i in range(3, 23)]  # many posts, little time
    clusterer, events = run(posts + quick, np.concatenate([here, there]), config=config)
    assert "expire" not in [e.event for e in events]
    (event,) = [e for e in clusterer.add(frame(99, [post(99, 1_200.0)], np.eye(DIM)[[1]])) if e.event == "expire"]
    assert event.cluster_id == clusterer.cluster_of("p0")


def test_posts_without_times_end_by_posts_alone():
    config = plain(merge_every_posts=1, ttl_posts=10)
    posts = [post(i, 1_000.0) for i in range(15)]
    _, events = run(posts, np.eye(DIM)[[0] * 3 + [1] * 12], config=config)
    assert [e.event for e in events].count("expire") == 1


def test_a_post_is_said_to_be_in_a_cluster_only_once_that_is_announced():
    clusterer, _ = run([post(0), post(1)], np.eye(DIM)[[0, 0]])
    assert clusterer.arrival_of("p1") == clusterer.cluster_of("p1") and clusterer.announced_cluster_of("p1") is None
    clusterer.add(frame(50, [post(2)], np.eye(DIM)[[0]]))
    clusterer.settle()
    assert clusterer.announced_cluster_of("p1") == clusterer.cluster_of("p2") and clusterer.size == 1


def test_a_sudden_rush_is_a_burst_and_one_account_is_not():
    config = plain(merge_every_posts=1, quiet_s=1.0)

    def rush(authors):
        clusterer = Clusterer(config, DIM, "v1")
        calm = [post(i, 60.0 * i, author=f"x{i}") for i in range(400)]  # hours of one post a minute, several clusters
        clusterer.add(frame(0, calm, np.eye(DIM)[[1 + i % 5 for i in range(400)]]))
        loud = [post(1_000 + i, 24_000.0 + i, author=authors(i)) for i in range(40)]
        return clusterer.add(frame(1, loud, np.eye(DIM)[[0] * 40]))

    crowd, flood = rush(lambda i: f"a{i}"), rush(lambda i: "one")
    assert max(e.burst for e in crowd) > 12 and max(e.burst for e in flood) < 3
    assert sum(e.event == "grow" for e in crowd) <= 3 + 3  # five, ten, twenty posts; three levels


def test_vectors_of_another_encoder_or_shape_are_refused_before_anything_changes():
    clusterer, _ = tiny(3)
    before = clusterer.snapshot()
    good = frame(50, [post(9)], np.eye(DIM)[[0]])
    for bad, error in (
        (frame(50, [post(9)], np.eye(DIM)[[0]], version="v2"), VersionMismatch),
        (frame(50, [post(9)], np.eye(8)[[0]]), VersionMismatch),
        (frame(50, [post(9)], np.full((1, DIM), np.nan)), EncoderError),
        (MatchedFrame(good.origin, good.posts, encoder_version="v1", dim=DIM, vectors=good.vectors[:-2]), EncoderError),
    ):
        with pytest.raises(error):
            clusterer.add(bad)
        assert clusterer.snapshot() == before
    clusterer.add(good)
    assert clusterer.cluster_of("p9") == clusterer.cluster_of("p0")


@pytest.mark.parametrize("data", [b"", b"\x80", b"{}", b"not a snapshot at all"])
def test_a_broken_snapshot_is_refused_with_a_reason(data):
    with pytest.raises(CrisisError, match="snapshot"):
        Clusterer.restore(data, SMALL)


@pytest.mark.parametrize("field, value", [("t_attach", 1.0), ("t_merge", 0.0), ("ttl_s", -1.0), ("half_life_s", 0.0)])
def test_a_config_out_of_range_is_refused(field, value):
    with pytest.raises(ConfigError, match=field):
        ClusterConfig(**{field: value})


@pytest.mark.parametrize("lexical", [0.0, 0.3])
def test_clusters_keep_their_ids_over_a_change_of_encoder(lexical):
    posts, vectors, topic = topic_stream(1_200, live=10, births=10_000)
    config = plain(t_attach=0.6, t_merge=0.5, examples_kept=8, lexical=lexical)
    half = 600
    clusterer, _ = run(posts[:half], vectors[:half], range(0, half, 25), config)
    clusterer.settle()
    before = {t: clusterer.cluster_of(posts[i].id) for i, t in enumerate(topic[:half])}
    turn, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((48, 32)))  # an encoder as good, other axes
    by_text = {p.text: x for p, x in zip(posts, vectors.astype(np.float32) @ turn.T, strict=True)}
    clusterer.rebase("v2", 48, lambda texts: np.array([by_text[t] for t in texts]))
    with pytest.raises(VersionMismatch):
        clusterer.add(frame(half, posts[half:], vectors[half:]))
    restored = Clusterer.restore(clusterer.snapshot(), config)
    for one in (clusterer, restored):
        one.add(frame(half, posts[half:], np.array([by_text[p.text] for p in posts[half:]]), version="v2"))
        one.add(frame(half + 1, [], [], deletions=[Deletion("p3", 1.0)]))
        one.settle()
        after = {t: one.cluster_of(posts[half + i].id) for i, t in enumerate(topic[half:])}
        assert after == before
    assert restored.snapshot() == clusterer.snapshot()


def test_words_keep_apart_what_an_encoder_cannot():
    texts = ["flood in riverton", "flood in marisol", "quake in riverton"] * 5
    posts, vectors = [post(i, 1.0, text=t) for i, t in enumerate(texts)], np.tile(np.eye(DIM)[0], (15, 1))
    alike, _ = run(posts, vectors, config=plain(t_attach=0.7, t_merge=0.65))
    apart, _ = run(posts, vectors, config=plain(t_attach=0.7, t_merge=0.65, lexical=0.5))
    for clusterer, clusters in ((alike, 1), (apart, 3)):
        clusterer.settle()
        assert len({clusterer.cluster_of(p.id) for p in posts}) == clusters


def test_the_share_of_words_cannot_change_under_a_snapshot():
    clusterer, _ = tiny(3)
    for change in (
        lambda: Clusterer.restore(clusterer.snapshot(), plain(lexical=0.5)),
        lambda: clusterer.rebase("v2", DIM, lambda texts: np.eye(DIM)[: len(texts)], plain(lexical=0.5)),
    ):
        with pytest.raises(ConfigError, match="lexical"):
            change()


def test_an_encoder_that_answers_in_another_shape_changes_nothing():
    clusterer, _ = tiny(3)
    before = clusterer.snapshot()
    with pytest.raises(VersionMismatch):
        clusterer.rebase("v2", 8, lambda texts: np.zeros((len(texts), 9)))
    assert clusterer.snapshot() == before and clusterer.encoder_version == "v1"
