"""One form for a moment inside, RFC 3339 outside."""

import ast
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

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


def test_the_hours_after_noon_are_told_from_those_before():
    noon = epoch_s("2026-11-20T12:00:00Z")
    hours = ["12:30 AM", "1:30 AM", "11:30 a.m.", "12:30 PM", "1:30pm", "11:30 p.m.", "23:30 PM"]
    told = [epoch_s(f"Nov 20, 2026 {hour}") for hour in hours]
    assert told == [noon + 3600 * h for h in (-11.5, -10.5, -0.5, 0.5, 1.5, 11.5, 11.5)]
    assert epoch_s("2026-11-20 1:30 PM") == noon + 5400


@pytest.mark.parametrize(
    "text",
    [
        "20 Nov 2026 10:00",
        "Fri, 20 Nov 2026 10:00:00 GMT",
        "Fri, 20 Nov 2026 10:00:00 +0000 (UTC)",
        "20-Nov-2026 05:00 EST",
        "Fri, 20 Nov 2026 06:00:00 AST",
        "20 Nov 2026 11:00 CET",
        "Fri Nov 20 15:45:00 NPT 2026",
        "Friday, November 20, 2026 at 3:30 PM +0530",
        "Fri Nov 20 2026 15:30:00 GMT+0530 (India Standard Time)",  # JavaScript
        "2026-11-20 15:30:00 +0530 IST",  # Go
        "2026-11-20 15:30 UTC+5:30",
        "2026-11-20 06:30 -330",
        "Fri Nov 20 10:00:00 UTC 2026",  # date
        "Fri Nov 20 10:00:00 2026",  # C
        "2026/11/20 10:00",
        "2026-11-20 10:00:00 UTC",
    ],
)
def test_dates_in_words_are_read_with_their_zone(text):
    assert epoch_s(text) == epoch_s("2026-11-20T10:00:00Z")


@given(st.integers(631_152_000, 4_102_444_799), st.integers(-47, 47).map(lambda quarters: 900 * quarters))
def test_a_date_of_e_mail_or_twitter_is_read_as_it_was_written(at, away_s):
    here = datetime.fromtimestamp(at, timezone(timedelta(seconds=away_s)))
    assert epoch_s(format_datetime(here)) == at
    assert epoch_s(here.strftime("%a %b %d %H:%M:%S %z %Y")) == at
    assert epoch_s(here.strftime("%B %d, %Y %I:%M:%S %p %z")) == at


@pytest.mark.parametrize(
    "text",
    [
        "20 Nov 2026 10:00:00 IST",  # of India, Israel or Ireland
        "Fri Nov 20 10:00:00 BST 2026",  # of Bangladesh or Britain
        "20 Nov 2026 13:00 AM",
        "20 Nov 2026 10 PM",
        "20 Nov 2026 10:00 noon",
        "20/11/2026 10:00",  # 5/11/2026 is of May or of November
        "20 Brumaire 2026 10:00",
        "20 Nov 2026 10:00 +99",
        "30 Feb 2026",
        "10:00",
        "Nov 2026",
        "Nov 20, " + "9" * 5000,
        "(" * 50_000,
        "10:" * 50_000,
    ],
)
def test_what_is_not_understood_in_full_is_refused(text):
    with pytest.raises(Rejected):
        epoch_s(text)


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
