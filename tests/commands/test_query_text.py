"""`crisis query test TEXT` says what workers would make of a post with this text."""

from __future__ import annotations

import time

import msgspec
import pytest
from click.testing import CliRunner
from rich.console import Console

from models.bars import Bars
from models.encoders.ready import load, ready
from models.errors import QueryError
from models.feedback.records import Label
from models.filters import Where
from models.levels import MatchConfig
from models.queries import Query, load_queries
from streams.broker.labels import publish_labels
from streams.broker.queries import publish_queries
from streams.broker.topics import make_topics
from streams.commands.query import query
from streams.commands.query_text import outcomes, typed_post
from streams.config import load_settings
from tests.outputs.topics import fresh_prefix

TEXT = "Bring a boat, the river is all around us"
BOATS = Query("need.boats", "need", "boats", "Boats", {"en": [TEXT]}, threshold=0.5)
WATER = [q for q in load_queries() if q.category == "water"]


@pytest.fixture(scope="module")
def version():
    return load("flood")


def told(version, post=None, config=None, **changes):
    """Query id → outcome, of the table."""
    queries = [msgspec.structs.replace(BOATS, **changes), *WATER]
    made = ready(version, queries, config or MatchConfig())
    table = outcomes(made, post or typed_post(TEXT, "en", "sms"), 5)
    return dict(zip(table.columns[0]._cells, table.columns[-1]._cells, strict=True))


def test_a_query_that_does_not_read_such_a_post_says_why(version):
    assert told(version)[BOATS.id] == "[red]alert"
    assert told(version, where=Where(languages=["ht"]))[BOATS.id] == (
        "left out: its language is en, the query reads ht"
    )
    assert "its source is sms" in told(version, where=Where(sources=["web"]))[BOATS.id]
    assert "left out: the query ended at 2020" in told(version, expires="2020-01-01T00:00:00Z")[BOATS.id]


def test_a_bar_that_follows_the_stream_is_not_known_here(version):
    assert "unless its 5 an hour are given" in told(version, threshold=None, alerts_per_hour=5.0)[BOATS.id]
    assert "follows the stream" in told(version, threshold=None, target_precision=0.8)[BOATS.id]
    common = told(version, config=MatchConfig(target_precision=0.8), threshold=None)
    assert "follows the stream" in common[BOATS.id]
    assert told(version, config=MatchConfig(target_precision=0.8))[BOATS.id] == "[red]alert"


def test_the_outcome_is_that_of_the_match_stage(version):
    """Over bundled sentences of a few categories: alert, suggestion or nothing, query by query."""
    queries = load_queries()[::3]
    made = ready(version, queries, MatchConfig())
    posts = [typed_post(text, lang, "sms") for q in queries[::3] for lang, text in q.texts()[::12]]
    assert len(posts) > 20
    for post in posts:
        vectors = made.encoder.encode([post.text])
        live = Bars(MatchConfig()).apply(
            made.matcher.match([post.id], vectors, made.encoder.version, [post]), [post], made.matcher
        )
        table = outcomes(made, post, len(queries))
        found = dict(zip(table.columns[0]._cells, table.columns[-1]._cells, strict=True))
        assert {name: level.partition("]")[2] for name, level in found.items() if level.startswith("[")} == {
            match.query_id: match.level for match in live
        }


def test_what_people_taught_counts_and_the_language_is_found_or_given(embedded_broker, monkeypatch):
    settings = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()})
    make_topics(settings)
    publish_queries(settings, {BOATS.id: BOATS} | {q.id: q for q in WATER})
    monkeypatch.setattr("streams.commands.query.out", Console(width=200))

    def row(*options):
        done = CliRunner().invoke(query, ["test", TEXT, *options], obj=settings, catch_exceptions=False)
        return next(line for line in done.output.splitlines() if BOATS.id in line)

    def likely():
        return float(row().split("│")[2])

    before = likely()
    assert before > 0.9 and "alert" in row()
    wrong = Label(post_id="x/1", query_id=BOATS.id, verdict="wrong", by="ada", at=time.time(), text=TEXT, lang="en")
    publish_labels(settings, [wrong])
    assert likely() < before - 0.1
    publish_queries(
        settings, {BOATS.id: msgspec.structs.replace(BOATS, where=Where(languages=["ht"], sources=["sms"]))}
    )
    assert "its language is en" in row() and "its source is web" in row("--lang", "ht", "--source", "web")


def test_a_language_that_no_post_has_is_refused_and_others_are_as_posts_carry_them():
    assert typed_post("We need water", "PT", "web").lang == "pt"
    with pytest.raises(QueryError, match="xx1"):
        typed_post("We need water", "xx1", "web")


def test_a_text_that_is_no_post_is_refused():
    done = CliRunner().invoke(query, ["test", " ", "--bundled"], obj=load_settings())
    assert done.exit_code == 1 and "it would be refused" in done.output
