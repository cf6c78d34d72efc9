"""`crisis query add`: a new query, and changes to one that exists."""

from __future__ import annotations

import json
import sys
import time

import pytest
from click.testing import CliRunner
from rich.console import Console

from models.errors import QueryError
from models.filters import Where
from models.queries import load_queries
from models.records import EmbeddedFrame, Origin, Post
from streams.broker.queries import publish_queries, read_queries
from streams.broker.topics import make_topics
from streams.commands.query import query
from streams.commands.rehearsal import Arrivals
from streams.config import load_settings
from tests.outputs.topics import fresh_prefix

WATER = next(q for q in load_queries() if q.id == "need.water")


@pytest.fixture
def settings(embedded_broker):
    made = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()})
    make_topics(made)
    publish_queries(made, {WATER.id: WATER})
    return made


def added(settings, *args):
    done = CliRunner().invoke(query, ["add", *args], obj=settings, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return read_queries(settings)[args[0]]


def test_a_new_query_has_its_category_as_label_unless_one_is_given(settings):
    boats = added(settings, "need.rescue_boats", "We need a boat", "--lang", "en")
    assert (boats.label, boats.iasc, boats.hxl, boats.threshold) == ("Rescue boats", "CCCM", "", None)
    assert boats.sentences == {"en": ["We need a boat"]}
    rafts = added(
        settings, "need.rafts", "We need a raft", "--label", "Rafts!", "--iasc", "Logistics", "--hxl", "#need"
    )
    assert (rafts.label, rafts.iasc, rafts.hxl) == ("Rafts!", "Logistics", "#need")


def test_a_list_of_80_columns_hides_none_of_them(settings):
    publish_queries(settings, {q.id: q for q in load_queries()})
    words = ["need.water", "--must", "pozo,well*", "--area", "Jacmel", "--alerts-per-hour", "10", "--expires", "2d"]
    assert CliRunner().invoke(query, ["edit", *words], obj=settings).exit_code == 0
    told = CliRunner().invoke(query, ["list"], obj=settings, catch_exceptions=False).output
    assert max(map(len, told.splitlines())) <= 80
    head, _, rows = told.partition("───")
    assert [word for word in head.split() if word in ("query", "label", "languages", "version", "reads")] == [
        "query",
        "label",
        "languages",
        "version",
        "reads",
    ]
    mine = " ".join(rows[rows.index("need.water") : rows.index("offer.animals")].split())
    for shown in (WATER.version, "WASH", "75 in 25", "10 an hour", "must pozo", "well*;", "Sud-Est,", "until"):
        assert shown in mine


def test_a_listed_query_has_its_whole_id_in_a_pipe_too(settings):
    long = "need.baby_and_hygiene_supplies_for_the_school"
    added(settings, long, "We need diapers")
    done = CliRunner().invoke(query, ["list"], obj=settings, catch_exceptions=False)
    assert long in done.output and WATER.id in done.output and WATER.version in done.output


def test_sentences_are_added_to_a_query_that_exists_and_nothing_else_changes(settings):
    changed = added(settings, "need.water", "Thirst here", "--lang", "en")
    assert changed.sentences == WATER.sentences | {"en": [*WATER.sentences["en"], "Thirst here"]}
    assert (changed.label, changed.iasc, changed.hxl, changed.threshold) == (WATER.label, WATER.iasc, WATER.hxl, None)


def test_a_sentence_that_a_query_has_already_is_kept_once(settings):
    boats = added(settings, "need.boats", "We need a boat", "We need a boat")
    assert added(settings, "need.boats", "We need a boat") == boats
    assert boats.sentences == {"en": ["We need a boat"]}
    assert added(settings, "need.boats", "We need a boat", "--lang", "nl").sentences["nl"] == ["We need a boat"]


def test_a_language_that_no_post_has_is_refused_as_a_filter_and_the_query_is_not_made(settings):
    words = ["add", "need.boats", "We need a boat", "--languages"]
    done = CliRunner().invoke(query, [*words, "es,english"], obj=settings)
    assert isinstance(done.exception, QueryError)
    assert "no post has the language 'english' (did you mean en?)" in str(done.exception)
    assert "need.boats" not in read_queries(settings)
    assert added(settings, *words[1:], "EN,pt-br").where == Where(["en", "pt-BR"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--expires", "yesterday"], "expires 'yesterday': write for example"),
        (["--probability", "7"], "probability 7.0 is not between 0 and 1"),
        (["--languages", "english"], "did you mean en"),
    ],
)
def test_what_is_wrong_with_the_words_of_a_new_query_is_told_where_no_broker_is(words, told):
    alone = load_settings(broker={"bootstrap": "127.0.0.1:1"})
    done = CliRunner().invoke(query, ["add", "need.boats", "We need a boat", *words], obj=alone)
    assert isinstance(done.exception, QueryError) and told in str(done.exception)


def test_an_id_that_no_query_has_is_refused_with_the_nearest_one(settings):
    done = CliRunner().invoke(query, ["remove", "need.watr"], obj=settings)
    assert "no query 'need.watr' (did you mean need.water?)" in str(done.exception)


def test_what_is_given_beside_the_sentences_of_a_query_that_exists_is_applied(settings):
    args = ("--label", "Clean water", "--iasc", "Health", "--hxl", "#need +x", "--threshold", "0.5")
    changed = added(settings, "need.water", "Thirst here", *args)
    assert (changed.label, changed.iasc, changed.hxl, changed.threshold) == ("Clean water", "Health", "#need +x", 0.5)


def test_what_a_query_reads_and_from_where_on_it_alerts_is_edited_and_taken_away_again(settings, monkeypatch):
    def edited(*args):
        done = CliRunner().invoke(query, ["edit", "need.water", *args], obj=settings, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return read_queries(settings)["need.water"]

    words = ("--languages", "es, qu", "--area", "-18.4,-81.4,0.1,-68.6", "--must", "agua,yaku*", "--expires", "2d")
    asked = edited(*words, "--probability", "0.7")
    assert asked.where == Where(["es", "qu"], [], [-18.4, -81.4, 0.1, -68.6], ["agua", "yaku*"], [])
    assert asked.probability == 0.7 and asked.expires_at == pytest.approx(time.time() + 2 * 86_400, abs=3600)
    assert (asked.sentences, asked.version) == (WATER.sentences, WATER.version)
    again = edited("--languages", "", "--area", "", "--must", "", "--expires", "", "--alerts-per-hour", "5")
    assert (again.where, again.probability, again.alerts_per_hour, again.expires) == (None, None, 5.0, "")
    monkeypatch.setattr(sys.modules[query.callback.__module__], "out", Console(width=200))
    done = CliRunner().invoke(query, ["list"], obj=settings)
    assert "5 an hour" in done.output
    aimed = edited("--target-precision", "0.8")
    assert (aimed.target_precision, aimed.alerts_per_hour) == (0.8, None)
    assert "80% right" in CliRunner().invoke(query, ["list"], obj=settings).output


def test_an_area_is_given_by_name_and_where_that_is_not_clear_the_choices_are_told(settings):
    done = CliRunner().invoke(query, ["edit", "need.water", "--area", "Jacmel"], obj=settings, catch_exceptions=False)
    assert "posts from Jacmel, Sud-Est, HT" in done.output
    where = read_queries(settings)["need.water"].where
    assert where.place == "Jacmel, Sud-Est, HT" and where.area[0] < 18.235 < where.area[2]
    unclear = CliRunner().invoke(query, ["edit", "need.water", "--area", "Springfield"], obj=settings)
    assert "places are called 'Springfield': choose" in str(unclear.exception)
    assert read_queries(settings)["need.water"].where == where
    CliRunner().invoke(query, ["edit", "need.water", "--area", ""], obj=settings, catch_exceptions=False)
    assert read_queries(settings)["need.water"].where is None


def test_before_it_is_saved_a_query_tells_what_it_would_have_alerted_and_what_that_costs(settings, tmp_path):
    lines = [
        {"id": f"p{n}", "text": text, "lang": lang, "created_at": 1_795_000_000 + 1800 * n}
        for n, (lang, text) in enumerate(
            [
                ("en", "We need a boat, the river is all around us"),
                ("en", "what a goal!"),
                ("es", "Necesitamos un barco, el río nos rodea"),
            ]
            * 2
        )
    ]
    file = tmp_path / "posts.jsonl"
    file.write_text("".join(json.dumps(line | {"author": str(n)}) + "\n" for n, line in enumerate(lines)))
    words = ["need.boats", "We need a boat, the river is all around us", "--languages", "en", "--replay", str(file)]
    done = CliRunner().invoke(query, ["test", *words, "--threshold", "0.5"], obj=settings, env={"COLUMNS": "200"})
    assert done.exit_code == 0, done.output
    assert "2 alerts" in done.output and "6 posts of 2.5 h" in done.output and "0.8 alerts to read" in done.output
    assert "need.boats" not in read_queries(settings)
    odd = {"id": "odd", "text": "what a goal!", "created_at": "1999-01-01T00:00:00Z"}  # a clock that stood wrong
    file.write_text(file.read_text() + json.dumps(odd) + "\n")
    done = CliRunner().invoke(query, ["test", *words, "--threshold", "0.5"], obj=settings, env={"COLUMNS": "200"})
    assert "7 posts of 2.5 h" in done.output and "0.8 alerts to read" in done.output
    wrong = CliRunner().invoke(query, ["test", "need.boats", "a boat", "--replay", "nowhere.jsonl"], obj=settings)
    assert wrong.exit_code == 2 and "no file and no time span" in wrong.output


def test_the_hours_of_a_stream_are_those_in_which_its_posts_came_whatever_they_say():
    def frame(*moments):
        posts = [Post(str(at), "x", created, at) for created, at in moments]
        return EmbeddedFrame(Origin(0, 0), posts, encoder_version="v", dim=1, vectors=b"")

    came = Arrivals(from_file=False)
    frames = [frame((0.0, 1_000.0), (9e9, 1_000.0 + 2 * 3600)), frame((5.0, 1_000.0 + 6 * 3600))]
    assert list(came.noting(iter(frames))) == frames and came.hours == 6.0
    assert Arrivals(from_file=True).hours == Arrivals(from_file=False).hours == 1.0


@pytest.mark.parametrize(
    ("hours", "span"),
    [
        ([0, 1, 2, 3, 4], 4.0),
        ([0, 1, 2, 3, 4, 9_000], 4.0),
        ([-70_000, 0, 1, 2, 3, 4], 4.0),
        ([0] * 50 + [2], 2.0),
        ([0, 0.1], 1.0),
    ],
)
def test_posts_of_a_file_that_lie_far_from_the_others_lengthen_no_hours(hours, span):
    came = Arrivals(from_file=True)
    came.moments += [3600.0 * hour for hour in hours]
    assert came.hours == pytest.approx(span)
