"""`crisis query add --file`: what `show` and `list --json` print comes back as it was, and nothing else comes in."""

from __future__ import annotations

import msgspec
import pytest
from click.testing import CliRunner

from models.errors import QueryError
from models.filters import Where
from models.queries import Query, load_queries
from streams.broker.queries import publish_queries, read_queries
from streams.broker.topics import make_topics
from streams.commands.query import query
from streams.commands.query_files import read_queries_of
from streams.config import load_settings
from tests.outputs.topics import fresh_prefix

BOATS = Query(
    "need.boats",
    "need",
    "boats",
    "Boats: 2 o'clock, “now” #1",
    {"no": ["båt: nå", "yes"], "en": ["null", "~ we need a boat\u2028now", "0x1f600 😀"], "ar": ["نحتاج قارب"]},
    where=Where(["nb", "en"], ["sms"], [18.1, -72.7, 18.4, -72.4], ["boat*", "yes"], ["toy"], "Jacmel, Sud-Est, HT"),
    probability=0.7,
    expires="2036-12-01T18:00:00Z",
)
KNOWN = {q.id: q for q in [*load_queries(), BOATS]}


def fresh(embedded_broker):
    made = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()})
    make_topics(made)
    return made


def run(settings, *words):
    done = CliRunner().invoke(query, list(words), obj=settings, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_all_queries_come_back_on_an_empty_broker_as_a_list_of_them_was_printed(embedded_broker, tmp_path):
    settings, empty, copy = fresh(embedded_broker), fresh(embedded_broker), tmp_path / "queries.jsonl"
    publish_queries(settings, KNOWN)
    copy.write_text(run(settings, "list", "--json"), encoding="utf-8")
    assert read_queries(empty) == {}
    told = run(empty, "add", "--file", str(copy))
    assert read_queries(empty) == KNOWN and len(KNOWN) > 30
    assert f"need.boats is live, version {BOATS.version}, 6 sentences" in told


@pytest.mark.parametrize("query_id", ["need.boats", "need.water", "offer.shelter"])
def test_a_query_that_was_shown_comes_back_in_place_of_what_has_its_id(embedded_broker, tmp_path, query_id):
    settings, copy = fresh(embedded_broker), tmp_path / "query.yaml"
    publish_queries(settings, KNOWN)
    copy.write_text(run(settings, "show", query_id), encoding="utf-8")
    run(settings, "add", query_id, "One sentence more", "--lang", "en")
    assert read_queries(settings)[query_id] != KNOWN[query_id]
    run(settings, "add", "--file", str(copy))
    assert read_queries(settings) == KNOWN


LINE = msgspec.json.encode(BOATS)
SHOWN = msgspec.yaml.encode(BOATS)


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "copy: "),
        (LINE + b"\n\n" + LINE, "copy: need.boats: there twice"),
        (LINE + b'\n{"alert_id": "a1", "revision": 3}', "copy, line 2: Object "),
        (LINE + b"\nneed.water", "copy, line 2: JSON is malformed"),
        (LINE + b"\n" + LINE[:-9], "copy, line 2: Input data was truncated"),
        (LINE.replace(b'"need.boats"', b'"need.rafts"'), "copy, line 1: query id 'need.rafts' must read need.boats"),
        (LINE.replace(b'"probability":0.7', b'"probability":7'), "copy, line 1: query need.boats: probability"),
        (b"[" + LINE + b"]", "copy: "),
        (SHOWN + SHOWN.replace(b"boats", b"rafts"), "copy holds several queries: give a file for each"),
        (SHOWN.replace(b"kind: need", b"kind: wish"), "copy: Invalid enum value 'wish'"),
        (SHOWN + b"colour: red\n", "copy: Object contains unknown field `colour`"),
        (b"category: boats\n", "copy: Object missing required field `label`"),
        (b"id: \xff", "copy: 'utf-8' codec can't decode"),
        (b"id: need.x\n\tkind: [", "copy: "),
        (b"post_id,text\nsms/1,help\n", "copy: "),
        (b'{"a":' * 5000, "copy, line 1: "),
        (b"id: " + b"[" * 5000, "copy: "),
        (b"id: " + b"[" * 50_000, "copy: nested more than 32 deep: no query is"),
        (b"{" * 50_000, "copy: nested more than 32 deep: no query is"),
        (b"id:\n " + b"- " * 50_000, "copy: nested more than 32 deep: no query is"),
        (b"id:\n " + b"? " * 50_000, "copy: nested more than 32 deep: no query is"),
        (b"need: " + b"[" * 50_000, "copy: nested more than 32 deep: no query is"),
        (b"id: " + b"x" * (1 << 20), "copy: it is 1,048,580 long, at most 1,048,576 is read"),
    ],
)
def test_what_is_no_query_is_refused_with_its_place_and_nothing_of_the_file_is_taken(raw, told):
    with pytest.raises(QueryError) as refused:
        read_queries_of(raw, "copy")
    assert str(refused.value).startswith(told)


def test_a_refused_file_changes_no_query(embedded_broker, tmp_path):
    settings, copy = fresh(embedded_broker), tmp_path / "queries.jsonl"
    copy.write_bytes(LINE + b'\n{"id": "need.x"}\n')
    done = CliRunner().invoke(query, ["add", "--file", str(copy)], obj=settings)
    assert isinstance(done.exception, QueryError) and read_queries(settings) == {}


def test_what_an_earlier_version_took_keeps_no_copy_from_coming_back():
    line = LINE.replace(b'["nb","en"]', b'["fil","en"]').replace(b'"en":[', b'"en":["...",')
    (known,) = read_queries_of(line, "copy").values()
    assert known.where.languages == ["tl", "en"] and known.sentences == BOATS.sentences


def test_a_pack_is_read_as_before_and_a_file_of_windows_too():
    pack = (
        "\ufeffcategory: boats\r\nlabel: Boats\r\niasc: Logistics\r\nhxl: {need: '#need'}\r\nneed: {en: [A boat]}\r\n"
    )
    assert read_queries_of(pack.encode(), "pack")["need.boats"].sentences == {"en": ["A boat"]}
    assert read_queries_of(b"\xef\xbb\xbf" + LINE + b"\r\n", "copy") == {"need.boats": BOATS}
