"""Times as tables have them: read as they were meant, none where nothing tells, and never a reason to lose a call."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.moments import epoch_s, rfc3339
from streams.ingest.tables import HEAD_ROWS, read_table

TEN = epoch_s("2026-11-20T10:00:00Z")


def times(*cells: str, title: str = "created_at", notes: list[str] | None = None) -> list[float | None]:
    """Epoch seconds of each row."""
    table = f"id;text;{title}\n" + "".join(f"{n};water;{cell}\n" for n, cell in enumerate(cells))
    note = (notes if notes is not None else []).append
    posts = [json.loads(line) for line in read_table(io.BytesIO(table.encode()), "a.csv", note)]
    return [epoch_s(post["created_at"]) if "created_at" in post else None for post in posts]


@pytest.mark.parametrize(
    "cell",
    [
        "20/11/2026 10:00",
        "11/20/2026 10:00:00 AM",
        "20.11.2026, 10:00",
        "20-11-26 10:00",
        "2026/11/20 10:00",
        "2026-11-20 10:00:00 UTC",
        "2026-11-20 05:00:00 EST",
        "Fri Nov 20 10:00:00 +0000 2026",
        "1795168800",
        " 1795168800000 ",
    ],
)
def test_usual_times_are_read(cell):
    assert times(cell) == [TEN]


@given(st.integers(33_000 * 86_400, 73_000 * 86_400).map(lambda s: s / 86_400))
def test_days_since_the_end_of_1899_are_read_as_spreadsheets_count_them(serial):
    at = (serial - 25_569) * 86_400  # 25569 is 1970-01-01
    assert times(f"{serial:.6f}", f"{serial:.6f}".replace(".", ",")) == pytest.approx([at, at], abs=1)


@pytest.mark.parametrize(
    "cell", ["n/a", "NULL", "-", "?", "nan", "inf", "0", "10:00", "31/02/2026", "20 Nov 10:00 IST"]
)
def test_a_time_that_cannot_be_read_is_none_and_is_told(cell):
    notes: list[str] = []
    assert times("2026-11-20 10:00Z", cell, cell, "", notes=notes) == [TEN, None, None, None]
    assert notes[1].startswith(f"a.csv: 2 times could not be read, the first is {cell!r}")


def test_a_table_whose_times_are_all_read_or_blank_tells_of_none():
    notes: list[str] = []
    times("2026-11-20 10:00Z", "", " ", notes=notes)
    assert len(notes) == 1


def test_one_time_that_leaves_no_choice_tells_day_from_month_in_all():
    assert times("05/11/2026", "20/11/2026") == [epoch_s("2026-11-05"), epoch_s("2026-11-20")]
    assert times("05/11/2026", "11/20/2026") == [epoch_s("2026-05-11"), epoch_s("2026-11-20")]


def test_where_nothing_tells_day_from_month_there_is_no_time():
    assert times("05/11/2026", "06/11/2026") == [None, None]
    assert times("05/11/2026", "20/11/2026", "11/20/2026")[0] is None  # both are written
    assert times("05.11.2026", "11/11/2026") == [epoch_s("2026-11-05"), epoch_s("2026-11-11")]  # no choice


@pytest.mark.parametrize("before", [HEAD_ROWS - 1, HEAD_ROWS])
def test_only_the_first_rows_tell_and_every_row_is_read_once(before):
    found = times(*["05/11/2026"] * before, "20/11/2026")
    assert found[0] == (epoch_s("2026-11-05") if before < HEAD_ROWS else None)
    assert found[-1] == epoch_s("2026-11-20") and len(found) == before + 1


@pytest.mark.parametrize(
    "day, clock, at",
    [
        ("2026-11-20", "10:00", TEN),
        ("20/11/2026", "10:00 AM", TEN),
        ("Nov 20, 2026", "10:00 UTC", TEN),
        ("", "2026-11-20 10:00", TEN),
        ("n/a", "1795168800", TEN),
        ("2026-11-20", "morning", TEN - 36_000),
        ("2026-11-20", "", TEN - 36_000),
        ("", "10:00", None),
    ],
)
def test_day_and_clock_in_two_columns_are_one_time(day, clock, at):
    assert times(f"{clock};{day}", title="time;date") == [at]


def test_a_column_of_ours_stands_before_day_and_clock():
    assert times("2026-11-20 10:00;2025-01-01;11:00", title="timestamp;date;time") == [TEN]


@given(st.integers(631_152_000, 4_102_444_799))
def test_what_is_written_down_by_a_table_is_read_as_meant(at):
    iso = rfc3339(at, "seconds")
    year, month, day, clock = iso[:4], iso[5:7], iso[8:10], iso[11:19]
    told = "20/11/2026"
    assert times(iso, f"{day}/{month}/{year} {clock}", told)[:2] == [at, at]
    assert times(f"{month}/{day}/{year} {clock}", "11/20/2026")[0] == at
    assert times(f"{clock};{year}-{month}-{day}", title="time;date") == [at]


@pytest.mark.parametrize(
    "day, clock, at",
    [
        ("2026-11-20", "23:30 IST", None),  # a clock that is not understood is no midnight
        ("2026-11-20 00:00:00", "10:00:00", TEN),  # a day that was kept as a moment
        ("2026-11-20", "", TEN - 36_000),
    ],
)
def test_a_day_beside_a_clock_that_is_not_understood_is_no_time(day, clock, at):
    assert times(f"{day};{clock}", title="date;time") == [at]
