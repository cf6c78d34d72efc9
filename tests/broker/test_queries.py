"""Changes of one query by several people at the same time."""

from __future__ import annotations

import threading

import msgspec
import pytest

from models.errors import QueryError
from models.queries import Query
from streams.broker.queries import change_query, publish_queries, read_queries
from streams.broker.topics import make_topics
from streams.config import load_settings
from tests.outputs.topics import fresh_prefix
from tests.waiting import PATIENCE_S

BOATS = Query("need.boats", "need", "boats", "Boats", {"en": ["We need a boat"]})


@pytest.fixture
def settings(embedded_broker):
    made = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix()})
    make_topics(made)
    publish_queries(made, {BOATS.id: BOATS})
    return made


def with_sentence(query: Query, text: str) -> Query:
    return msgspec.structs.replace(query, sentences={"en": [*query.sentences["en"], text]})


def test_a_change_is_written_once_where_nobody_else_writes(settings):
    publish_queries(settings, {"need.rafts": Query("need.rafts", "need", "rafts", "Rafts", {"en": ["We need a raft"]})})
    asked = []
    done = change_query(settings, BOATS.id, lambda known: asked.append(1) or with_sentence(known[BOATS.id], "A boat!"))
    assert (done.before, done.after, done.meanwhile) == (BOATS, with_sentence(BOATS, "A boat!"), False)
    assert asked == [1] and read_queries(settings)[BOATS.id] == done.after


def test_two_who_add_a_sentence_at_the_same_time_both_have_it(settings):
    both_have_read, done = threading.Barrier(2, timeout=PATIENCE_S), []

    def add(text: str) -> None:
        first = [True]

        def change(known):
            if first.pop() if first else False:
                both_have_read.wait()
            return with_sentence(known[BOATS.id], text)

        done.append(change_query(settings, BOATS.id, change))

    people = [threading.Thread(target=add, args=(text,)) for text in ("Send a boat", "Bring boats")]
    for person in people:
        person.start()
    for person in people:
        person.join(PATIENCE_S)
    assert sorted(read_queries(settings)[BOATS.id].texts()) == [
        ("en", "Bring boats"),
        ("en", "Send a boat"),
        ("en", "We need a boat"),
    ]
    assert sorted(one.meanwhile for one in done) == [False, True]


@pytest.mark.parametrize("theirs", [None, with_sentence(BOATS, "theirs")])
def test_what_others_wrote_meanwhile_stands_where_the_change_does_not_fit_it(settings, theirs):
    def change(known):
        if known.get(BOATS.id) != BOATS:
            raise QueryError("no more")
        publish_queries(settings, {BOATS.id: theirs})
        return with_sentence(BOATS, "ours")

    with pytest.raises(QueryError, match="no more"):
        change_query(settings, BOATS.id, change)
    assert read_queries(settings).get(BOATS.id) == theirs
