"""Whatever order workers come in, what stands last of an alert on the topic is what the live view knows of it."""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from models.alerts import place_in_cluster, withdraw
from models.records import Alert, Deletion
from streams.worker.keeping import keep_alerts
from tests.outputs.invented import invent

FIRST = invent()


@types.coroutine
def turn() -> Iterator[None]:
    """Somebody else may come in between."""
    yield


class World:
    """One alert on a topic, and in a view that keeps the highest revision."""

    def __init__(self) -> None:
        self.topic, self.known = [FIRST], FIRST
        self._sending: list[Alert] = []

    async def send_alerts(self, alerts: Sequence[Alert]) -> None:
        for alert in alerts:
            await turn()
            self.topic.append(alert)

    async def delivered(self) -> None:
        await turn()

    async def put_alerts(self, alerts: Sequence[Alert], told: object) -> list[Alert]:
        await turn()
        taken = [alert for alert in alerts if alert.revision > self.known.revision]
        self.known = max(self.known, *taken, key=lambda alert: alert.revision) if taken else self.known
        return taken

    async def alerts_of(self, post_ids: object) -> list[Alert]:
        await turn()
        return [self.known]


def edited(alert: Alert) -> Alert:
    post = msgspec.structs.replace(alert.post, text="water came")
    return msgspec.structs.replace(alert, revision=alert.revision + 7, post=post, cluster_id=None)


async def tell(world: World, change: Callable[[Alert], Alert], twice: bool) -> None:
    (base,) = await world.alerts_of([])
    if base.status != "active":
        return
    made = change(base)
    await world.send_alerts([made])
    await world.delivered()
    await keep_alerts(world, world, [made], lambda alert: twice)


WAYS: dict[str, tuple[Callable[[Alert], Alert], bool]] = {
    "its cluster is told": (lambda alert: place_in_cluster(alert, "c1"), False),
    "a likely one is": (lambda alert: place_in_cluster(alert, "c2", settled=False), False),
    "its frame is read again": (lambda alert: FIRST, False),
    "it is withdrawn": (lambda alert: withdraw(alert, Deletion(alert.post.id, 0.0)), True),
    "it is edited": (edited, True),
}

# One worker tells clusters. A frame that is read again in the very moment in which one is told is not held: it takes a
# kill, and may cost an alert its cluster, on the compacted topic alone.
ALONE = {"its cluster is told", "a likely one is", "its frame is read again"}


@given(
    st.lists(st.sampled_from(sorted(WAYS)), min_size=1, max_size=3).filter(
        lambda who: sum(way in ALONE for way in who) < 2
    ),
    st.lists(st.integers(0, 2), max_size=60),
)
def test_the_last_word_on_the_topic_is_that_of_the_view_whoever_tells_of_an_alert_beside_whom(who, order):
    world = World()
    running: list[Coroutine[Any, Any, None]] = [tell(world, *WAYS[way]) for way in who]
    for pick in [*order, *range(500)]:
        if not running:
            break
        one = running[pick % len(running)]
        try:
            one.send(None)
        except StopIteration:
            running.remove(one)
    assert not running
    assert (world.topic[-1].revision, world.topic[-1].status) == (world.known.revision, world.known.status)


def test_a_frame_that_is_read_again_takes_no_cluster_from_its_alert():
    world = World()
    for way in ("its cluster is told", "its frame is read again"):
        for _ in tell(world, *WAYS[way]).__await__():
            pass
    assert world.topic[-1].cluster_id == world.known.cluster_id == "c1"
