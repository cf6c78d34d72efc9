"""What a subscriber is told: every revision once, and every change of what was told."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from models.errors import ConfigError
from models.records import Evidence
from streams.outputs.cap import CapConfig, CapWriter
from streams.outputs.follow import Teller, Wanted
from streams.outputs.human import show
from streams.outputs.span import seconds
from tests.outputs.invented import HOSTILE, alerts, invent, later


def shown(alert, before=None) -> str:
    console = Console(file=io.StringIO(), force_terminal=False, width=400, highlight=False)
    show(console, alert, before)
    return console.file.getvalue()


def test_a_redelivered_revision_is_told_once():
    teller, alert = Teller(Wanted()), invent()
    assert teller.news(alert) == (None,)
    assert teller.news(alert) is None


def test_an_update_comes_with_what_was_told_before_and_an_older_revision_is_skipped():
    teller, first = Teller(Wanted()), invent()
    second = later(first, cluster_id="c1")
    assert teller.news(first) == (None,)
    assert teller.news(second) == (first,)
    assert teller.news(first) is None


@given(st.lists(alerts(), max_size=8), st.randoms())
def test_of_any_order_with_repeats_each_alert_is_told_with_growing_revisions(several, random):
    told: dict[str, int] = {}
    teller = Teller(Wanted())
    states = [s for a in several for s in (a, later(a), later(later(a)))] * 2
    random.shuffle(states)
    for alert in states:
        if teller.news(alert) is not None:
            assert told.get(alert.alert_id, -1) < alert.revision
            told[alert.alert_id] = alert.revision
    assert set(told) == {a.alert_id for a in several}


@pytest.mark.parametrize(
    "wanted", [Wanted(level="suggestion"), Wanted(kind="offer"), Wanted(query="need.food"), Wanted(lang="ar")]
)
def test_what_is_not_wanted_is_not_told(wanted):
    teller, alert = Teller(wanted), invent()
    assert teller.news(alert) is None
    assert teller.news(later(alert, status="withdrawn")) is None


def test_who_was_told_hears_that_it_no_longer_fits_the_filter():
    teller, alert = Teller(Wanted(level="alert")), invent()
    assert teller.news(alert) == (None,)
    assert teller.news(later(alert, level="suggestion")) == (alert,)
    assert teller.news(later(later(alert), status="withdrawn")) is not None


def test_memory_is_bounded():
    teller = Teller(Wanted(), remembered=10)
    for i in range(100):
        teller.news(invent(f"p{i}"))
    assert len(teller._last) == 10


def test_a_person_reads_what_is_needed_where_why_and_how_sure():
    text = shown(invent(url="https://example.org/1", probability=0.83))
    for part in (
        "NEED",
        "Water",
        "0.61 ≥ 0.47",
        "83% likely right",
        "No water since Tuesday",
        "https://example.org/1",
        "“We have no drinking water” (en, 0.72)",
    ):
        assert part in text


HEADED = Evidence("We have no drinking water", "en", 0.72, terms={"bias": -1.5, "query": 0.5, "head": 0.7})
UNTAUGHT = Evidence("We need boats", "en", 0.72, terms={"bias": -1.0, "query": 1.0, "gate": 0.5})


@pytest.mark.parametrize(
    "query, evidence, numbers, told",
    [
        ("need.water", HEADED, (0.87, 0.42), "a need or offer 87% ≥ 50%, under this category 42%"),
        ("offer.water", HEADED, (0.41, 0.38), "a need or offer 41% < 50%, under this category 38%"),
        ("need.water", HEADED, (0.4988, 0.42), "a need or offer 49% < 50%, under this category 42%"),
        ("need.water", HEADED, (0.5, 0.42), "a need or offer 50% ≥ 50%, under this category 42%"),
        ("need.water", invent().evidence, (0.4988, None), "0.49 < 0.50"),
        ("warning.danger", HEADED, (0.6214, 0.621), "under this category 62% ≥ 50%"),
        ("need.boats", UNTAUGHT, (0.6214, 0.621), "under this category 62% ≥ 50%"),
        ("need.boats", UNTAUGHT, (0.6214, 0.54), "under this category 62% ≥ 50%, as a need 54%"),
        ("need.water", invent().evidence, (0.61, None), "0.61 ≥ 0.50"),
    ],
)
def test_the_number_an_alert_is_held_by_and_that_of_its_category_are_told_by_name(query, evidence, numbers, told):
    score, probability = numbers
    alert = invent(query=query, evidence=evidence, score=score, probability=probability, threshold=0.5)
    line, _, _ = shown(alert).partition("\n")
    assert line.endswith(f"  {told}") and "likely right" not in line
    assert CapWriter(CapConfig()).message(alert).infos[0].parameters_to_dict()["how_sure"] == told


def test_the_sentence_in_the_readers_language_is_told_as_the_querys_and_not_as_the_posts():
    near = Evidence("Nou bezwen dlo", "ht", 0.7, "We need water", "en")
    assert "like the query’s “We need water” (en)" in shown(invent(evidence=near))


def test_updates_and_withdrawals_are_one_line_and_do_not_repeat_the_post():
    alert = invent()
    placed, gone = (
        shown(later(alert, cluster_id="c9"), alert),
        shown(later(alert, status="withdrawn", withdrawn_because="deleted"), alert),
    )
    assert "now in cluster c9" in placed and "withdrawn, its post was deleted" in gone
    for line in (placed, gone):
        assert line.count("\n") == 1 and "Tuesday" not in line


def test_an_edited_post_is_shown_again():
    alert = invent()
    new = invent(text="No water, two weeks now", revision=alert.revision + 5)
    assert "edited" in shown(new, alert) and "two weeks" in shown(new, alert)


def test_hostile_text_and_markup_reach_the_terminal_as_plain_words():
    text = shown(invent(text=HOSTILE + "[red]x[/red]", source="\x1b[1mbad", url="javascript:alert(1)"))
    assert "\x1b" not in text and "\u202e" not in text and "\x9b" not in text
    assert "[red]x[/red]" in text and "javascript" not in text


@pytest.mark.parametrize(
    "text, expected", [("90s", 90), ("15m", 900), ("2h", 7200), ("1.5d", 129600), ("45", 45), (" 2 H ", 7200)]
)
def test_time_spans_are_read(text, expected):
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "h", "-2h", "2w", "two hours", "1e3"])
def test_what_is_no_time_span_says_how_to_write_one(text):
    with pytest.raises(ConfigError, match="write 90s, 15m"):
        seconds(text)
