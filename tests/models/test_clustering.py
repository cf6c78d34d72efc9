"""What the clusterer does with posts and time: clusters found, told, merged, ended, bounded."""

from __future__ import annotations

import numpy as np

from models.clustering import Clusterer
from models.records import Match, Repeat
from tests.models.clustering_lab import DIM, frame, plain, post, run, topic_stream


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


def test_on_a_slow_stream_what_was_quiet_for_days_ends_and_is_told():
    """Two floods months apart are alike; with few posts between them nothing else would end the first."""
    config = plain(merge_every_posts=1, ttl_posts=1_000, ttl_single_posts=1_000, ttl_most_s=1_000.0)
    posts = [*(post(i, 1_000.0 + i) for i in range(3)), post(3, 2_002.0), post(4, 2_002.5), post(5, 9_000.0)]
    clusterer, events = run(posts, np.eye(DIM)[[0, 0, 0, 1, 1, 1]], config=config)
    assert [e.cluster_id for e in events if e.event == "expire"] == [clusterer.cluster_of("p0")]
    before = clusterer.cluster_of("p0")
    clusterer.add(frame(50, [post(50, 9_001.0)], np.eye(DIM)[[0]]))
    assert clusterer.cluster_of("p50") != before


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
