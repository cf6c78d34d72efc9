"""The small part of the chaos suite: Redis frozen, a worker killed and a pause of 2 s, on the real services."""

from __future__ import annotations

import signal
import time

import pytest

from tests.chaos.faults import pauses
from tests.chaos.machines import frozen
from tests.chaos.scene import scene
from tests.services.needs import Missing, lacking

pytestmark = [pytest.mark.chaos, pytest.mark.kafka, pytest.mark.redis]


def everything_at_once(running):
    with frozen(running.redis):
        time.sleep(5.0)  # the fault itself: longer than a worker waits for an answer
        running.until_said(live=False)
    running.workers[0].signal(signal.SIGKILL)
    pauses(1)(running)


def test_a_frozen_redis_a_killed_worker_and_a_pause_lose_nothing_double_nothing_and_need_no_hand(monkeypatch):
    monkeypatch.setenv("CRISIS_WORKER__SESSION_S", "4")  # what a killed one held is taken over after so long
    try:
        with scene(agents=("",)) as running:
            outcome = running.measure("all", "usual", everything_at_once)
            running.until_said(live=True)
    except Missing as missing:
        lacking(missing)
    assert (outcome.lost, outcome.doubled, outcome.workers_ended) == (0, 0, [])
    assert outcome.told_s is not None, "while Redis was frozen the page said that all is well"
