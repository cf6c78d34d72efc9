"""One form for a moment inside, RFC 3339 outside."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import Rejected
from models.moments import epoch_s, has_zone, rfc3339, told
from tests.checks.discovery import ROOT

TURNED = ("fromisoformat", "isoformat", "strptime", "fromtimestamp", "gmtime", "parsedate_to_datetime")
ELSEWHERE = {"streams/outputs/cap.py"}  # CAP has a form of its own
moments = st.integers(0, 4_102_444_800_000).map(lambda ms: ms / 1000)  # 1970 to 2100


@given(moments)
def test_what_goes_out_comes_back_to_the_millisecond(at):
    assert abs(epoch_s(rfc3339(at)) - at) <= 0.001 and has_zone(rfc3339(at))


@given(moments, moments)
def test_moments_outside_are_in_order_as_text(one, other):
    if one <= other:
        assert rfc3339(one) <= rfc3339(other)


def test_a_moment_is_written_in_utc():
    assert rfc3339(1_795_154_400.25) == "2026-11-20T06:00:00.250Z"
    assert rfc3339(1_795_154_400.25, "seconds") == "2026-11-20T06:00:00Z"
    assert told(1_795_154_400.25) == "2026-11-20 06:00"


def test_a_time_without_a_zone_is_read_as_utc_and_is_told_from_one_with():
    assert epoch_s("2026-11-20 06:00:00") == epoch_s("2026-11-20T07:00:00+01:00") == 1_795_154_400.0
    assert not has_zone("2026-11-20 06:00:00") and not has_zone("tomorrow")


def test_what_is_no_time_is_refused():
    with pytest.raises(Rejected):
        epoch_s("yesterday")


def test_nothing_else_turns_moments():
    """Every other module has its moments in seconds, or asks models/moments.py for the other form."""
    found = {
        (name, node.attr)
        for package in ("models", "streams", "training")
        for path in (ROOT / package).rglob("*.py")
        if (name := path.relative_to(ROOT).as_posix()) not in {"models/moments.py", *ELSEWHERE}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in TURNED
    }
    assert not found
