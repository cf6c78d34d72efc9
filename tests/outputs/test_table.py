"""Alerts as CSV with HXL hashtags."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.records import Alert, Geo, NamedPlace
from streams.outputs.printable import printable
from streams.outputs.table import csv_lines
from tests.outputs.invented import alerts, invent

HASHTAG = re.compile(r"#[a-z][a-z0-9_]*(\+[a-z][a-z0-9_]*)*")  # HXL 1.1, "Tagging conventions"
# HXL 1.1, core hashtags: those that are used here
CORE = {"item", "subsector", "sector", "meta", "description", "severity", "status", "indicator", "loc", "geo", "date"}


def read(several: list[Alert], **more: object) -> tuple[list[str], list[str], list[dict[str, str]]]:
    """(headings, hashtags, rows by heading), as a spreadsheet reads them."""
    heads, tags, *rows = csv.reader(io.StringIO("\n".join(csv_lines(several, **more)) + "\n"))
    return heads, tags, [dict(zip(heads, row, strict=True)) for row in rows]


def test_the_second_row_holds_hashtags_of_the_standard():
    heads, tags, rows = read([])
    assert len(heads) == len(tags) == len(set(heads)) == len(set(tags)) and not rows
    assert all(HASHTAG.fullmatch(tag) for tag in tags)
    assert {re.split(r"[#+]", tag)[1] for tag in tags} == CORE


@given(st.lists(alerts(), max_size=5))
def test_every_alert_is_one_row_with_its_text_on_one_line(several):
    _, _, rows = read(several)
    assert [row["alert"] for row in rows] == [alert.alert_id for alert in several]
    assert [row["text"].removeprefix("'") for row in rows] == [
        printable(alert.post.text).removeprefix("'") for alert in several
    ]


@given(st.sampled_from("=+-@").flatmap(lambda sign: st.text(max_size=20).map(lambda rest: f" {sign}{rest}")))
def test_no_cell_is_a_formula(text):
    _, _, [row] = read([invent(text=text, source=text, cluster_id=text, label=text)])
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row.values())


def test_a_place_stands_with_how_likely_it_is_meant_and_a_position_alone():
    jacmel = NamedPlace("jakmel", "Jacmel, Sud-Est, HT", "town", 18.2342, -72.5347, 8.0, 0.62)
    _, _, [named, told, nowhere] = read([invent("a", places=[jacmel]), invent("b", geo=Geo(34.2, 27.9)), invent("c")])
    place = ("place", "lat", "lon", "within km", "place probability")
    assert [named[column] for column in place] == ["Jacmel, Sud-Est, HT", "18.2342", "-72.5347", "8.0", "0.62"]
    assert [told[column] for column in place] == ["", "34.2", "27.9", "", ""]
    assert [nowhere[column] for column in place] == [""] * 5


def test_what_was_withdrawn_is_told_without_its_text():
    _, _, [row] = read([invent(text="my street", status="withdrawn", withdrawn_because="deleted")])
    assert row["status"] == "withdrawn" and row["text"] == ""


@pytest.mark.parametrize("url, told", [("https://example.org/p/1", "https://example.org/p/1"), ("javascript:x", "")])
def test_a_link_is_told_if_it_is_one(url, told):
    _, _, [row] = read([invent(url=url)])
    assert row["link"] == told


def test_what_people_said_is_a_column_where_it_is_known():
    said, silent = invent("a"), invent("b")
    heads, tags, rows = read([said, silent], judged={said.alert_id: "handled"})
    assert (heads[-1], tags[-1]) == ("judged", "#meta+judged") and [row["judged"] for row in rows] == ["handled", ""]
