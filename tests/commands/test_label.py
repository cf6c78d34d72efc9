"""`crisis label`: give, list, undo, export, import."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from click.testing import CliRunner

from models.errors import LabelError, QueryError
from models.moments import has_zone
from models.queries import load_queries
from streams.broker.labels import read_labels
from streams.broker.queries import publish_queries
from streams.broker.topics import make_topics
from streams.commands.label import label
from streams.config import load_settings
from streams.view.connect import connect
from streams.view.live import LiveView
from tests.dashboard.invented import invent
from tests.outputs.topics import fresh_prefix


@pytest.fixture
def settings(embedded_broker, embedded_redis_url):
    made = load_settings(
        broker={"bootstrap": embedded_broker}, redis={"url": embedded_redis_url}, topics={"prefix": fresh_prefix()}
    )
    make_topics(made)
    publish_queries(made, {q.id: q for q in load_queries() if q.kind == "need"})
    return made


def run(settings, *args, **more):
    done = CliRunner().invoke(label, args, obj=settings, catch_exceptions=False, **more)
    assert done.exit_code == 0, done.output
    return done.output


def test_an_alert_is_labelled_listed_carried_off_and_back_and_taken_back(settings):
    async def fill():
        async with connect(settings.redis) as redis:
            await LiveView(redis, settings).put_alerts([invent(1, text="No \x1b[31mwater here", at=time.time())])

    asyncio.run(fill())
    assert run(settings, "p1", "right", "--by", "Ada") == "need.water: right, says Ada\n"
    other = (
        "p2",
        "other",
        "--instead",
        "need.shelter",
        "--by",
        "Bo",
        "--query",
        "need.water",
        "--text",
        "we have no roof over us",
    )
    assert run(settings, *other) == "need.water: other category, need.shelter, says Bo; read as en\n"
    listed = run(settings, "list")
    assert "Ada" in listed and "\x1b[31m" not in listed and "1 right" in listed and "1 other category" in listed
    lines = run(settings, "export")
    first = json.loads(lines.splitlines()[0])
    assert (first["post_id"], first["verdict"], first["lang"], first["level"]) == ("p1", "right", "en", "alert")
    assert has_zone(first["at"])
    assert run(settings, "undo", "--by", "Ada") == "1 taken back\n"
    assert [x.by for x in read_labels(settings).values()] == ["Bo"]
    assert run(settings, "import", "-", input=lines) == "1 taken over\n"
    assert {x.by for x in read_labels(settings).values()} == {"Ada", "Bo"}


@pytest.mark.parametrize("typed", [("need.water", "need.medicne"), ("need.medicne", "need.water")])
def test_a_query_that_there_is_not_is_not_taught_but_told_with_the_nearest_one(settings, typed):
    read, instead = typed
    with pytest.raises(QueryError, match=r"no query 'need.medicne' \(did you mean need.medicine\?\)"):
        run(settings, "p2", "other", "--query", read, "--instead", instead, "--text", "pills", "--by", "Bo")
    assert read_labels(settings) == {}


def test_a_line_that_is_no_label_stops_an_import_before_anything_is_written(settings):
    good = json.dumps({"post_id": "p", "query_id": "need.water", "verdict": "right", "by": "A", "at": 1.0, "text": "x"})
    with pytest.raises(LabelError, match="line 2"):
        run(settings, "import", "-", input=f"{good}\n{{}}\n")
    assert read_labels(settings) == {}


def test_a_post_without_an_alert_wants_its_words(settings):
    with pytest.raises(LabelError, match="--text"):
        run(settings, "nobody", "right", "--by", "Ada")


@pytest.mark.parametrize(
    "text, typed, lang, told",
    [
        ("no tenemos agua desde ayer, ayuda por favor", (), "es", "read as es"),
        ("no tenemos agua desde ayer, ayuda por favor", ("--lang", "PT-br"), "pt-BR", "read as pt-BR"),
        ("27.71 85.32 !!!", (), "und", "no language was found, nothing is learnt: say --lang"),
    ],
)
def test_the_language_of_a_typed_text_is_found_or_taken_from_whoever_knows_and_told(settings, text, typed, lang, told):
    said = run(settings, "p3", "right", "--query", "need.water", "--text", text, "--by", "Bo", *typed)
    assert said == f"need.water: right, says Bo; {told}\n"
    assert [x.lang for x in read_labels(settings).values()] == [lang]


def test_a_language_that_no_post_has_is_not_taught(settings):
    with pytest.raises(QueryError, match="did you mean es"):
        run(settings, "p3", "right", "--query", "need.water", "--text", "agua", "--by", "Bo", "--lang", "spanish")
    assert read_labels(settings) == {}


def says(settings, by, verdict, post="p1"):
    text = ("--query", "need.water", "--text", "there is no water in our street", "--lang", "en")
    return run(settings, post, verdict, "--by", by, *text)


def test_what_somebody_takes_back_gives_way_to_what_somebody_else_had_said_before(settings):
    says(settings, "Ada", "handled")
    said = says(settings, "Mallory", "none")
    assert said == "need.water: not a need, says Mallory; read as en; before, Ada said: handled\n"
    says(settings, "Mallory", "wrong")
    says(settings, "Mallory", "wrong", "p2")
    lines = run(settings, "export")
    told = "2 taken back; of 1 stands what somebody said before\n"
    assert run(settings, "undo", "--by", "Mallory") == told
    (ada,) = read_labels(settings).values()
    assert (ada.post_id, ada.by, ada.verdict, ada.replaced) == ("p1", "Ada", "handled", None)
    assert run(settings, "undo", "p1") == "1 taken back\n"
    run(settings, "import", "-", input=lines)  # a copy holds both words
    assert run(settings, "undo", "--by", "Mallory") == told
    assert [(x.post_id, x.by, x.verdict) for x in read_labels(settings).values()] == [("p1", "Ada", "handled")]


def test_who_takes_back_all_he_said_leaves_nothing_of_it_under_somebody_elses_word(settings):
    says(settings, "Mallory", "none")
    says(settings, "Ada", "handled")
    assert run(settings, "undo", "--by", "Mallory") == "1 taken back\n"
    assert [(x.by, x.replaced) for x in read_labels(settings).values()] == [("Ada", None)]


def test_what_somebody_says_already_stays_theirs(settings):
    says(settings, "Ada", "handled")
    assert says(settings, "Bo", "handled") == "need.water: handled, says Ada already\n"
    assert [x.by for x in read_labels(settings).values()] == ["Ada"]
