"""What is refused does not flood what is kept of it: a line of two bytes is not a record of its own."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from models.pseudonyms import OFFLINE
from models.records import Origin, Reject
from streams.pipeline import stages
from streams.pipeline.stages.normalising import REJECTS_EACH, REJECTS_SUMMED

MOST = REJECTS_EACH + 2


def of(reason, line):
    return Reject(reason, "why", "normalise", Origin(0, 1), line, "2001-09-09T01:46:40.000Z", b"{}")


def test_a_record_of_empty_objects_makes_no_record_of_each():
    parsed = stages.parse(b"{}\n" * 10_000, Origin(0, 1), 1e9, OFFLINE)
    sent = stages.sum_up(parsed.rejects)
    assert parsed.read == len(parsed.rejects) == 10_000  # counted one by one
    assert len(sent) <= MOST + 10 and sum(len(msgspec.json.encode(r)) for r in sent) < 4 * 30_000  # 57 times, it was


def test_a_few_stay_as_they_are():
    rejects = [of("bad_json", n) for n in range(REJECTS_EACH)]
    assert stages.sum_up(rejects) == rejects


@given(st.lists(st.sampled_from(["bad_json", "missing_id", "bad_time"]), max_size=4_000))
def test_every_line_is_told_once_whatever_it_was_refused_for(reasons):
    rejects = [of(reason, line) for line, reason in enumerate(reasons)]
    sent = stages.sum_up(rejects)
    told = [(r.reason, line) for r in sent for line in (r.line, *r.also)]
    assert sorted(told) == sorted((r.reason, r.line) for r in rejects)
    assert all(len(r.also) < REJECTS_SUMMED for r in sent)
    assert not any(r.also for r in rejects)  # the caller's own are left as they were
