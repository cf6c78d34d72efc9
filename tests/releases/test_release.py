"""The release state: every change is a revision, nothing is forgotten, rollback undoes."""

import asyncio
import threading
from types import SimpleNamespace

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from models.encoders.registry import OWN
from models.errors import ConfigError, EncoderError
from streams.broker.topics import make_topics
from streams.config import load_settings
from streams.releases.release import KEPT, Release, Staged, canary_partitions
from streams.releases.topic import KEY, change_release, follow_release, latest, read_release
from tests.waiting import PATIENCE_S

V1, V2, V3 = "111111111111", "222222222222", "333333333333"


def test_use_remembers_and_rollback_goes_back_step_by_step():
    release = Release().use(V1, 1.0).use(V2, 2.0)
    assert (release.current, release.previous, release.revision) == (V2, V1, 2)
    release = release.rollback(3.0)
    assert (release.current, release.previous) == (V1, OWN)
    release = release.rollback(4.0)
    assert (release.current, release.previous, release.revision) == (OWN, None, 4)
    with pytest.raises(EncoderError, match="no version before own"):
        release.rollback(5.0)


def test_rollback_ends_a_canary_first_and_leaves_the_current_version():
    release = Release().use(V1, 1.0).stage(V2, 2.0, canary=0.25)
    release = release.rollback(3.0)
    assert (release.current, release.staged) == (V1, None)
    shadowed = release.stage(V2, 4.0, shadow=0.1).rollback(5.0)
    assert (shadowed.current, shadowed.staged.version) == (OWN, V2)


def test_using_the_staged_version_ends_its_trial_and_another_trial_goes_on():
    release = Release().stage(V2, 1.0)
    assert release.use(V2, 2.0).staged is None
    assert release.use(V1, 2.0).staged.version == V2


def test_a_refusal_ends_only_the_canary_it_was_made_for():
    release = Release().stage(V2, 1.0, canary=0.5)
    refused = release.refuse(release.staged, "errors", 2.0)
    assert (refused.staged, refused.refused.version, refused.refused.reason) == (None, V2, "errors")
    assert "rolled back by itself: errors" in refused.change
    assert refused.refuse(release.staged, "errors", 3.0) is refused
    other = release.stage(V3, 2.0, canary=0.5)
    assert other.refuse(release.staged, "errors", 3.0) is other


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ConfigError, match="canary is 1.5"):
        Release().stage(V1, 0.0, canary=1.5)
    with pytest.raises(EncoderError, match="current version already"):
        Release().use(V1, 0.0).stage(V1, 0.0)
    with pytest.raises(EncoderError, match="current version already"):
        Release().use(V1, 0.0).use(V1, 0.0)
    with pytest.raises(EncoderError, match="no version is staged"):
        Release().unstage(0.0)


@pytest.mark.parametrize(
    ("share", "partitions", "served"),
    [
        (0.0, 4, []),
        (0.25, 4, [0]),
        (0.3, 4, [0, 1]),
        (0.01, 4, [0]),
        (0.99, 4, [0, 1, 2]),
        (1.0, 4, [0, 1, 2, 3]),
        (0.5, 1, [0]),
        (0.0, 1, []),
    ],
)
def test_a_canary_serves_the_lowest_partitions_at_least_one_and_not_all(share, partitions, served):
    assert list(canary_partitions(share, partitions)) == served


class Operators(RuleBasedStateMachine):
    """Whatever operators do, in any order."""

    def __init__(self):
        super().__init__()
        self.release = Release()
        self.done = 0

    def attempt(self, change):
        before = self.release
        try:
            self.release = change()
        except EncoderError:
            return
        assert self.release.revision == before.revision + 1

    @rule(version=st.sampled_from([V1, V2, V3]), share=st.floats(0, 1), canary=st.floats(0, 1))
    def stage(self, version, share, canary):
        self.attempt(lambda: self.release.stage(version, 1.0, share, canary))

    @rule(version=st.sampled_from([V1, V2, V3]))
    def use(self, version):
        before = self.release
        self.attempt(lambda: self.release.use(version, 1.0))
        if self.release is not before and not before.staged:
            back = self.release.rollback(2.0)
            assert back.current == before.current
            assert back.earlier == before.earlier[-(KEPT - 1) :]

    @rule()
    def rollback(self):
        self.attempt(lambda: self.release.rollback(1.0))

    @rule()
    def unstage(self):
        self.attempt(lambda: self.release.unstage(1.0))

    @invariant()
    def the_state_is_sound_and_survives_the_wire(self):
        release = self.release
        assert len(release.earlier) <= KEPT
        assert release.staged is None or release.staged.version != release.current
        assert latest(Release(), [SimpleNamespace(key=KEY, value=msgspec.json.encode(release))]) == release


TestOperators = Operators.TestCase


def test_a_record_nobody_can_read_changes_nothing(caplog):
    known = Release().use(V1, 1.0)
    bad = [SimpleNamespace(key=KEY, value=b"{"), SimpleNamespace(key=b"other", value=b"{}")]
    assert latest(known, bad) == known
    assert "ignored a record" in caplog.text
    assert latest(known, [SimpleNamespace(key=KEY, value=None)]) == Release()


@pytest.fixture
def settings(broker, tmp_path):
    prefix = f"{tmp_path.name}."
    settings = load_settings(broker={"bootstrap": broker}, topics={"prefix": prefix, "partitions": 1})
    make_topics(settings)
    return settings


def test_changes_are_written_and_read_back(settings):
    assert read_release(settings) == Release()
    change_release(settings, lambda r: r.use(V1, 1.0))
    release = change_release(settings, lambda r: r.stage(V2, 2.0, canary=0.25))
    assert read_release(settings) == release
    assert release.staged == Staged(V2, 0.1, 0.25)
    with pytest.raises(EncoderError):
        change_release(settings, lambda r: r.use(V1, 3.0))
    assert read_release(settings) == release


def test_of_two_changes_at_the_same_moment_neither_is_lost(settings):
    barrier = threading.Barrier(2)

    def change(make):
        first = iter([True])

        def applied(known):
            if next(first, False):
                barrier.wait(PATIENCE_S)  # both have read the same state
            return make(known)

        change_release(settings, applied)

    threads = [
        threading.Thread(target=change, args=(lambda r: r.use(V1, 1.0),)),
        threading.Thread(target=change, args=(lambda r: r.stage(V2, 1.0),)),
    ]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    release = read_release(settings)
    assert (release.current, release.staged.version, release.revision) == (V1, V2, 2)


async def test_a_follower_sees_the_state_and_then_each_change(settings):
    await asyncio.to_thread(change_release, settings, lambda r: r.use(V1, 1.0))
    seen: asyncio.Queue[Release] = asyncio.Queue()
    async with follow_release(settings, seen.put) as release:
        assert release.current == V1
        await asyncio.to_thread(change_release, settings, lambda r: r.use(V2, 2.0))
        assert (await seen.get()).current == V2
