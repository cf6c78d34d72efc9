"""Alerts as CSV with HXL hashtags."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.feedback.records import Label
from models.records import Alert, Geo, NamedPlace, Reading
from streams.outputs import Options
from streams.outputs.printable import printable
from streams.outputs.table import as_csv, csv_lines
from tests.outputs.invented import alerts, invent

HASHTAG = re.compile(r"#[a-z][a-z0-9_]*(\+[a-z][a-z0-9_]*)*")  # HXL 1.1, "Tagging conventions"
# HXL 1.1, core hashtags: those that are used here
CORE = {"item", "subsector", "sector", "meta", "description", "severity", "status", "indicator", "loc", "geo", "date"}
JACMEL = NamedPlace("jakmel", "Jacmel, Sud-Est, HT", "town", 18.2342, -72.5347, 8.0, 0.62)


def read(several: list[Alert], **more: object) -> tuple[list[str], list[str], list[dict[str, str]]]:
    """(headings, hashtags, rows by heading), as a spreadsheet reads them."""
    heads, tags, *rows = csv.reader(io.StringIO("\n".join(csv_lines(several, **more)) + "\n"))
    return heads, tags, [dict(zip(heads, row, strict=True)) for row in rows]


def test_the_second_row_holds_hashtags_of_the_standard():
    heads, tags, rows = read([])
    assert len(heads) == len(tags) == len(set(heads)) == len(set(tags)) and not rows
    assert all(HASHTAG.fullmatch(tag) for tag in tags)
    assert {re.split(r"[#+]", tag)[1] for tag in tags} == CORE


def test_a_file_begins_with_the_mark_by_which_spreadsheets_know_utf_8_and_a_stream_does_not(capsys):
    told = [(invent("a", text="señal"), None)]
    for follow in (False, True):
        as_csv(Options(follow=follow))(iter(told))
        first, _, row = capsys.readouterr().out.splitlines()
        assert first.startswith("\ufeffkind," if not follow else "kind,") and "señal" in row


@given(st.lists(alerts(), max_size=5))
def test_every_alert_is_one_row_with_its_text_on_one_line(several):
    _, _, rows = read(several)
    assert [row["alert"] for row in rows] == [alert.alert_id for alert in several]
    assert [row["text"].replace("'", "") for row in rows] == [
        printable(alert.post.text).replace("'", "") for alert in several
    ]


@given(
    st.sampled_from(["", " ", ";", "water; ", "a|", 'a;"', "a; '"]),
    st.sampled_from("=+-@＝＋－＠"),
    st.text(max_size=20),
    st.sampled_from(",;|"),
)
def test_no_cell_is_a_formula_whatever_parts_the_cells(before, sign, after, parted):
    text = f"{before}{sign}{after}"
    lines = [*csv_lines([invent(text=text, source=text, cluster_id=text, label=text)])]
    cells = [cell for row in csv.reader(io.StringIO("\n".join(lines) + "\n"), delimiter=parted) for cell in row]
    assert not [cell for cell in cells if cell.strip(' "\t').startswith(tuple("=+-@＝＋－＠"))]


def test_a_place_stands_with_how_likely_it_is_meant_and_a_position_alone():
    _, _, [named, told, nowhere] = read([invent("a", places=[JACMEL]), invent("b", geo=Geo(34.2, 27.9)), invent("c")])
    place = ("place", "lat", "lon", "within km", "place probability")
    assert [named[column] for column in place] == ["Jacmel, Sud-Est, HT", "18.2342", "-72.5347", "8.0", "0.62"]
    assert [told[column] for column in place] == ["", "34.2", "27.9", "", ""]
    assert [nowhere[column] for column in place] == [""] * 5


def test_what_was_withdrawn_is_told_without_its_text():
    gone = {"status": "withdrawn", "withdrawn_because": "deleted", "url": "https://example.org/p/1"}
    _, _, rows = read([invent("a", text="my street", geo=Geo(1.0, 2.0), **gone), invent("b", places=[JACMEL], **gone)])
    for row in rows:
        assert row["status"] == "withdrawn"
        assert [row[column] for column in ("text", "link", "place", "lat", "lon", "within km")] == [""] * 6


@pytest.mark.parametrize("url, told", [("https://example.org/p/1", "https://example.org/p/1"), ("javascript:x", "")])
def test_a_link_is_told_if_it_is_one(url, told):
    _, _, [row] = read([invent(url=url)])
    assert row["link"] == told


def test_what_people_said_is_told_in_columns_where_it_is_known_with_who_said_it_and_when():
    several = [invent("a", also=[Reading("need.food", "alert", 0.4)]), invent("b"), invent("c")]
    labels = [
        Label("a", "need.water", "handled", "=Ada", 1_795_154_400.0, "no water"),
        Label("a", "need.food", "other", "Bo", 1_795_158_000.0, "no water", instead="need.shelter"),
        Label("c", "need.food", "wrong", "Bo", 1.0, "another reading of it"),
    ]
    heads, tags, rows = read(several, said={label.key: label for label in labels})
    assert heads[-3:] == ["judged", "judged by", "judged at"]
    assert tags[-3:] == ["#meta+judged", "#meta+judged+by", "#date+judged"]
    assert all(HASHTAG.fullmatch(tag) for tag in tags) and len(set(tags)) == len(tags)
    assert [row[heads[-3]] for row in rows] == ["handled; need.food: other, need.shelter", "", ""]
    assert rows[0]["judged by"] == "'=Ada; Bo"  # no formula either
    assert rows[0]["judged at"] == "2026-11-20T06:00:00.000Z; 2026-11-20T07:00:00.000Z"
    assert heads[:-3] == read([])[0]


def test_nothing_is_told_of_what_people_said_of_a_post_that_is_gone():
    gone = invent("a", status="withdrawn", withdrawn_because="deleted")
    label = Label("a", "need.water", "right", "Ada", 1.0, "no water")
    _, _, [row] = read([gone], said={label.key: label})
    assert row["judged"] == row["judged by"] == row["judged at"] == ""
