"""`crisis query add`: a new query, and changes to one that exists."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from models.queries import load_queries
from streams.commands.query import query
from streams.config import load_settings
from streams.control import publish_queries, read_queries
from streams.kafka import make_topics
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
    rafts = added(settings, "need.rafts", "We need a raft", "--label", "Rafts!", "--iasc", "Logistics", "--hxl", "#need")
    assert (rafts.label, rafts.iasc, rafts.hxl) == ("Rafts!", "Logistics", "#need")


def test_a_listed_query_has_its_whole_id_in_a_pipe_too(settings):
    long = "need.baby_and_hygiene_supplies_for_the_school"
    added(settings, long, "We need diapers")
    done = CliRunner().invoke(query, ["list"], obj=settings, catch_exceptions=False)
    assert long in done.output and WATER.id in done.output


def test_sentences_are_added_to_a_query_that_exists_and_nothing_else_changes(settings):
    changed = added(settings, "need.water", "Thirst here", "--lang", "en")
    assert changed.sentences == WATER.sentences | {"en": [*WATER.sentences["en"], "Thirst here"]}
    assert (changed.label, changed.iasc, changed.hxl, changed.threshold) == (WATER.label, WATER.iasc, WATER.hxl, None)


def test_what_is_given_beside_the_sentences_of_a_query_that_exists_is_applied(settings):
    args = ("--label", "Clean water", "--iasc", "Health", "--hxl", "#need +x", "--threshold", "0.5")
    changed = added(settings, "need.water", "Thirst here", *args)
    assert (changed.label, changed.iasc, changed.hxl, changed.threshold) == ("Clean water", "Health", "#need +x", 0.5)
