"""`crisis query add`: a new query, and changes to one that exists."""

from __future__ import annotations

import json
import sys
import time

import msgspec
import pytest
from click.testing import CliRunner
from kafka import KafkaProducer
from rich.console import Console

from models.encoders.load import load_encoder
from models.errors import QueryError
from models.filters import Where
from models.queries import load_queries
from models.records import Frame, MatchedFrame, Origin, Post
from streams.broker.queries import publish_queries, read_queries
from streams.broker.topics import make_topics
from streams.commands.query import query
from streams.commands.query_fields import changed
from streams.config import load_settings
from streams.pipeline import stages
from streams.pipeline.frames import encode_frame
from tests.outputs.topics import fresh_prefix
from tests.waiting import PATIENCE_S

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
    done = CliRunner().invoke(query, ["test", *words, "--sources", "twiter"], obj=settings, env={"COLUMNS": "200"})
    assert "None of these posts came from twiter; they came from unknown." in done.output
    wrong = CliRunner().invoke(query, ["test", "need.boats", "a boat", "--replay", "nowhere.jsonl"], obj=settings)
    assert wrong.exit_code == 2 and "no file and no time span" in wrong.output


def test_a_bundled_query_that_was_removed_comes_back_as_it_was_shipped(settings):
    rescue = next(q for q in load_queries() if q.id == "need.search_rescue")
    done = CliRunner().invoke(query, ["add", rescue.id, "We are trapped in the lift"], obj=settings)
    assert "it begins as it was shipped" in done.output
    back = read_queries(settings)[rescue.id]
    assert (back.label, back.iasc, back.hxl) == (rescue.label, "Protection", rescue.hxl)
    assert back.sentences == rescue.sentences | {"en": [*rescue.sentences["en"], "We are trapped in the lift"]}
    publish_queries(settings, {rescue.id: None})
    assert added(settings, rescue.id) == rescue
    again = CliRunner().invoke(query, ["add", rescue.id], obj=settings)
    assert isinstance(again.exception, QueryError) and "crisis query remove need.search_rescue" in str(again.exception)
    assert CliRunner().invoke(query, ["add", "need.boats"], obj=settings).exit_code == 2


def test_an_end_that_is_past_is_refused_and_a_query_that_ended_says_so(settings):
    before = read_queries(settings)
    for words in (["edit", "need.water"], ["add", "need.boats", "We need a boat"]):
        done = CliRunner().invoke(query, [*words, "--expires", "2020-01-01T00:00:00Z"], obj=settings)
        assert "that is past" in str(done.exception)
    assert read_queries(settings) == before
    publish_queries(settings, {WATER.id: msgspec.structs.replace(WATER, expires="2020-01-01T00:00:00Z")})
    told = CliRunner().invoke(query, ["list"], obj=settings).output
    assert "ended" in told and "until" not in told
    done = CliRunner().invoke(query, ["edit", "need.water", "--label", "Wells"], obj=settings)
    assert "ended at 2020-01-01T00:00:00Z: it reads nothing" in done.output and "is live" not in done.output
    done = CliRunner().invoke(query, ["edit", "need.water", "--expires", ""], obj=settings)
    assert "need.water is live" in done.output


def test_what_a_bundled_query_leaves_out_from_now_on_is_told_and_the_way_back(settings):
    done = CliRunner().invoke(query, ["edit", "need.water", "--must", "pozo,well*"], obj=settings)
    assert "reads only posts that fit: must pozo, well*" in done.output
    assert (
        "`crisis query edit need.water --must ''`" in done.output and "crisis query add need.water_here" in done.output
    )
    for words in (["edit", "need.water", "--must", ""], ["edit", "need.water", "--probability", "0.7"]):
        assert "only posts" not in CliRunner().invoke(query, words, obj=settings).output
    own = CliRunner().invoke(query, ["add", "need.wells", "Is there a well?", "--must", "well*"], obj=settings)
    assert "only posts" not in own.output and own.exit_code == 0


def test_the_language_of_sentences_is_one_that_posts_have(settings):
    done = CliRunner().invoke(query, ["add", "need.boats", "We need a boat", "--lang", "xx"], obj=settings)
    assert "no post has the language 'xx'" in str(done.exception)
    assert list(added(settings, "need.boats", "We need a boat", "--lang", "EN").sentences) == ["en"]


def test_of_two_who_edit_one_query_at_the_same_time_both_are_heard(settings, monkeypatch):
    module, theirs = sys.modules[query.callback.__module__], ["--must", "tent,roof"]

    def meanwhile(*args):
        made = changed(*args)
        monkeypatch.setattr(module, "changed", changed)
        assert CliRunner().invoke(query, ["edit", "need.water", *theirs], obj=settings).exit_code == 0
        return made

    monkeypatch.setattr(module, "changed", meanwhile)
    done = CliRunner().invoke(query, ["edit", "need.water", "--alerts-per-hour", "7"], obj=settings)
    assert "at the same time" in done.output
    found = read_queries(settings)["need.water"]
    assert (found.where, found.alerts_per_hour) == (Where(must=["tent", "roof"]), 7.0)


def test_of_a_stream_its_hours_are_those_in_which_posts_came_and_of_a_file_those_in_which_they_were_written(settings):
    def frame(number, *moments):
        posts = [Post(f"{number}-{at}", "what a goal!", created, at, "en") for created, at in moments]
        plain = stages.embed(Frame(Origin(0, number), posts), load_encoder("flood"))
        return MatchedFrame(**{name: getattr(plain, name) for name in plain.__struct_fields__})

    frames = [frame(0, (0.0, 1_000.0), (9e9, 1_000.0 + 2 * 3600)), frame(1, (5.0, 1_000.0 + 6 * 3600))]
    producer = KafkaProducer(bootstrap_servers=settings.broker.bootstrap)
    for one in frames:
        producer.send(settings.topics.name("posts.matched"), value=encode_frame(one), partition=0).get(PATIENCE_S)
    producer.close()
    words = ["test", "need.boats", "We need a boat", "--replay", "6h"]
    done = CliRunner().invoke(query, words, obj=settings, env={"COLUMNS": "200"}, catch_exceptions=False)
    assert "3 posts of 6.0 h" in done.output
