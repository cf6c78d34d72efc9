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
    other = ("p2", "other", "--instead", "need.shelter", "--by", "Bo", "--query", "need.water", "--text", "no roof")
    assert run(settings, *other) == "need.water: other category, need.shelter, says Bo\n"
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
