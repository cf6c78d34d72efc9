"""Posts with alerts that wait for their cluster: they are told the likely one, and what became of it."""

from __future__ import annotations

import math
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from models.clusters.unsettled import AFTER_S, UNTIL_S
from models.errors import Unreadable
from models.records import Deletion, Match, MatchedFrame, Origin, Post
from streams.pipeline.clusters import UNSETTLED, ClusterStage, place_alerts
from streams.pipeline.memory import MemoryAlerts
from tests.models.clustering_lab import plain
from tests.view.samples import alert_for

CONFIG = plain(
    t_attach=0.96, t_merge=0.8, merge_every_posts=1_000, merge_soon_posts=100, merge_every_s=60.0, merge_least_posts=1
)
NEAR = math.acos(0.85)  # to the told cluster: a full merge joins what is so near
NEARER = NEAR + 1.2 * math.acos(0.97)  # to NEAR, which it takes along
FAR, ELSEWHERE, AWAY = math.pi, -math.pi / 2, -2.0


class Lane:
    """A stage, and one frame after another of posts that all alert, at angles in a plane."""

    def __init__(self) -> None:
        self.stage, self.offset = ClusterStage.new(CONFIG, 2, "v1"), 0

    def come(self, at_s: float, *deleted: str, **angles: float) -> tuple[dict[str, str], dict[str, str | None]]:
        """What is known of their clusters, and what is likely."""
        rows = np.array([[math.cos(a), math.sin(a)] for a in angles.values()], "<f2").reshape(-1, 2)
        posts = [Post(name, f"water is needed here {name}", at_s, at_s) for name in angles]
        matches = [Match(name, "need.water", "1", "alert", 1.0, 0.5) for name in angles]
        origin, self.offset = Origin(0, self.offset), self.offset + 1
        gone = [Deletion(post_id, at_s) for post_id in deleted]
        frame = MatchedFrame(
            origin, posts, [], gone, encoder_version="v1", dim=2, vectors=rows.tobytes(), matches=matches
        )
        _, known = self.stage.add_all([frame])
        return known, self.stage.likely()

    def members(self, cluster_id: str) -> set[str]:
        return {post for post, cluster in self.stage.clusterer.assignments().items() if cluster == cluster_id}

    def restart(self, saved: dict[str, bytes], now_s: float) -> None:
        self.stage = ClusterStage.restore(saved, CONFIG, SimpleNamespace(version="v1"), now_s)


@pytest.fixture
def lane() -> Lane:
    """With a cluster of three posts that was told."""
    lane = Lane()
    lane.come(0.0, a0=0.0, a1=0.01, a2=0.02)
    known, likely = lane.come(61.0, far=FAR)
    assert known.keys() == {"a0", "a1", "a2"} and not likely
    return lane


def test_a_post_is_told_the_cluster_that_a_merge_would_put_it_into_once_it_has_waited(lane):
    told = lane.stage.clusterer.cluster_of("a0")
    assert lane.come(62.0, near=NEAR) == ({}, {})
    assert lane.come(62.0 + 2 * AFTER_S, other=ELSEWHERE) == ({}, {"near": told})
    assert lane.come(63.0, third=ELSEWHERE) == ({}, {}), "once is enough"
    assert lane.come(130.0, fourth=AWAY) == ({"near": told}, {})


def test_on_a_stream_of_a_post_a_minute_the_next_post_is_when_it_is_told(lane):
    lane.come(62.0, near=NEAR)
    assert lane.come(63.0 + UNTIL_S, other=ELSEWHERE)[1] == {"near": lane.stage.clusterer.cluster_of("a0")}


def test_at_rest_those_that_came_last_are_told_theirs_though_no_later_post_says_what_time_it_is(lane):
    told = lane.stage.clusterer.cluster_of("a0")
    assert lane.come(62.0, near=NEAR, b0=AWAY, b1=AWAY, b2=AWAY) == ({}, {})
    events, known, likely = lane.stage.rest()
    assert known.keys() == {"b0", "b1", "b2"} == {p for event in events for p in lane.members(event.cluster_id)}
    assert likely == {"near": told}
    assert lane.stage.rest() == ([], {}, {}), "once is enough"


def test_before_the_first_post_there_is_nothing_to_tell_at_rest():
    lane = Lane()
    assert lane.stage.rest() == ([], {}, {})
    lane.come(0.0, "somebody")  # no more than a deletion
    assert lane.stage.rest() == ([], {}, {})
    lane.come(1.0, a0=0.0, a1=0.01, a2=0.02)
    assert lane.stage.rest()[1].keys() == {"a0", "a1", "a2"}


def test_a_likely_cluster_of_a_rest_is_taken_back_by_the_next_merge_that_puts_the_post_elsewhere(lane):
    lane.come(62.0, near=NEAR)
    assert lane.stage.rest()[2].keys() == {"near"}
    lane.come(63.0, nearer=NEARER)
    assert lane.come(130.0, fourth=AWAY) == ({}, {"near": None})


def test_nobody_is_asked_about_for_ever(lane):
    lane.come(62.0, lone=FAR - 0.6)
    for n in range(3):
        lane.come(63.0 + n * UNTIL_S, **{f"x{n}": ELSEWHERE})
    assert "lone" not in lane.stage._unsettled.saved()[2]


def test_a_likely_cluster_that_did_not_take_the_post_in_is_taken_back(lane):
    lane.come(62.0, near=NEAR)
    assert lane.come(63.0, nearer=NEARER)[1].keys() == {"near"}
    assert lane.come(130.0, fourth=AWAY) == ({}, {"near": None})
    assert lane.stage.clusterer.cluster_of("near") == lane.stage.clusterer.cluster_of("nearer")


def test_of_a_deleted_post_nothing_is_taken_back(lane):
    lane.come(62.0, near=NEAR)
    assert lane.come(63.0, nearer=NEARER)[1].keys() == {"near"}
    assert lane.come(130.0, "near", fourth=AWAY) == ({}, {})


@pytest.mark.parametrize("deleted", ["new/1", "new"], ids=["the post", "its account"])
def test_what_was_deleted_before_it_came_waits_for_no_cluster_and_is_named_in_no_part_of_the_state(lane, deleted):
    lane.come(62.0, deleted)
    assert lane.come(63.0, **{"new/1": NEAR}) == ({}, {})
    assert lane.come(64.0, other=ELSEWHERE) == lane.come(130.0, fourth=AWAY) == ({}, {})
    assert not [name for name, part in lane.stage.changes().put.items() if b"new/1" in part]


def test_what_was_told_after_the_last_save_is_taken_back_by_who_goes_on_from_it(lane):
    lane.come(62.0, near=NEAR)
    saved = lane.stage.changes().put
    assert lane.come(63.0, nearer=NEARER)[1].keys() == {"near"}
    lane.restart(saved, 64.0)
    lane.offset -= 1
    assert lane.come(63.0, nearer=NEARER)[1].keys() <= {"near"}
    assert lane.come(130.0, fourth=AWAY)[1]["near"] is None


def test_a_merge_in_the_first_batch_after_a_restart_counts(lane):
    lane.come(62.0, near=NEAR)
    assert lane.come(63.0, nearer=NEARER)[1].keys() == {"near"}
    lane.restart(lane.stage.changes().put, 64.0)
    assert lane.come(130.0, fourth=AWAY)[1]["near"] is None


def test_of_posts_that_came_after_the_last_save_too(lane):
    saved, again = lane.stage.changes().put, lane.offset
    lane.come(62.0, near=NEAR)
    assert lane.come(63.0, nearer=NEARER)[1].keys() == {"near"}
    lane.restart(saved, 64.0)
    lane.offset = again
    lane.come(62.0, near=NEAR)
    lane.come(62.0, nearer=NEARER)  # in another framing: nobody waits long enough to be asked about
    assert {"near", "nearer"} <= lane.come(130.0, fourth=AWAY)[1].keys()


@pytest.mark.parametrize(
    ("named", "likely", "then"),
    [(None, "c2", "c2"), ("c1", "c2", "c1"), ("c1", None, None), (None, None, None)],
    ids=["told", "known before it was read again", "taken back", "nothing to take back"],
)
async def test_a_likely_cluster_fills_in_and_takes_back_but_never_contradicts(named, likely, then):
    known = MemoryAlerts()
    await known.put_alerts([alert_for("p1", cluster=named)])
    told = await place_alerts({}, known, {"p1": likely})
    assert [alert.cluster_id for alert in told] == ([] if then == named else [then])


async def test_alerts_of_another_post_are_left_alone_where_an_id_is_also_an_account():
    known = MemoryAlerts()
    await known.put_alerts([alert_for("bob"), alert_for("bob/1")])
    told = await place_alerts({}, known, {"bob": "c1"}) + await place_alerts({"bob": "c2"}, known)
    assert [(alert.post.id, alert.cluster_id) for alert in told] == [("bob", "c1"), ("bob", "c2")]


def test_what_is_not_all_there_is_told_as_unreadable(lane):
    saved = lane.stage.changes().put
    for part in (UNSETTLED, "head"):
        with pytest.raises(Unreadable):
            lane.restart({name: each for name, each in saved.items() if name != part}, 64.0)


def test_the_list_that_an_earlier_version_saved_is_read_as_posts_that_wait(lane):
    lane.come(62.0, near=NEAR)
    told = lane.stage.clusterer.cluster_of("a0")
    lane.restart(lane.stage.changes().put | {UNSETTLED: msgspec.msgpack.encode(["far", "near"])}, 64.0)
    assert lane.come(130.0, fourth=AWAY)[0] == {"near": told}


def test_where_a_merge_is_as_soon_nothing_is_guessed(lane):
    lane.come(62.0, near=NEAR)
    many = {f"m{i}": ELSEWHERE for i in range(CONFIG.merge_soon_posts)}
    assert lane.come(62.0 + 2 * AFTER_S, **many)[1] == {}
    assert not lane.stage._unsettled.saved()[2]
