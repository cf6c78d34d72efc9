"""Query packs: every category, many languages, written once."""

from collections import Counter
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest

from models.errors import QueryError
from models.filters import Where
from models.queries import Query, aid_queries, background_texts, check_query, load_queries, read_pack, without_void
from models.records import AID, NOTICES, is_notice

CATEGORIES = sorted(p.stem for p in (Path(__file__).parents[2] / "models" / "data" / "queries").glob("*.yaml"))
QUERIES = load_queries()
PACK = (
    "category: water\nlabel: Water\niasc: WASH\n"
    "hxl: {need: '#need', offer: '#service'}\nneed:\n  en: ['We need water']\n"
)


def test_every_pack_is_named_by_its_category_and_has_a_need_and_an_offer_or_one_notice():
    assert len(CATEGORIES) >= 22
    kinds = {category: sorted(q.kind for q in QUERIES if q.category == category) for category in CATEGORIES}
    assert sum(map(len, kinds.values())) == len(QUERIES)
    notices = {category: found for category, found in kinds.items() if found != ["need", "offer"]}
    assert notices == {
        "danger": ["warning"],
        "evacuation": ["order"],
        "damage": ["report"],
        "sub_event": ["report"],
    }


def test_what_directions_are_told_apart_from_are_needs_and_offers_alone():
    assert [q.id for q in aid_queries()] == [q.id for q in QUERIES if q.kind in AID]
    assert {q.kind for q in QUERIES if is_notice(q.id)} == set(NOTICES)


@pytest.mark.parametrize("query", QUERIES, ids=lambda q: q.id)
def test_a_pack_has_two_to_four_sentences_in_each_of_twenty_languages(query):
    assert len(query.sentences) >= 20
    assert {"en", "es", "fr", "ar", "hi", "zh", "ht"} <= set(query.sentences)
    for lang, sentences in query.sentences.items():
        assert 2 <= len(sentences) <= 4, lang
    assert query.label
    assert query.hxl.startswith("#")


def test_no_sentence_is_written_twice_and_none_is_background():
    every = Counter(t.casefold() for q in QUERIES for _, t in q.texts())
    assert [t for t, n in every.items() if n > 1] == []
    assert not set(every) & {t.casefold() for t in background_texts()}


def test_the_background_covers_the_languages_of_the_packs():
    raw = msgspec.yaml.decode((files("models") / "data" / "background.yaml").read_bytes())["background"]
    assert set(raw) >= set(QUERIES[0].sentences)
    assert min(map(len, raw.values())) >= 10


def test_a_version_is_what_is_asked_not_how_it_is_labelled():
    (query,) = read_pack(PACK)
    assert msgspec.structs.replace(query, label="Other", iasc="Health", threshold=0.2).version == query.version
    assert msgspec.structs.replace(query, sentences={"en": ["We need more water"]}).version != query.version


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"id": "water"}, "need.water"),
        ({"sentences": {"en": []}}, "no sentence"),
        ({"sentences": {"en": [" "]}}, "the sentence ' ' says nothing"),
        ({"sentences": {"en": ["We need water", "!!!"]}}, "the sentence '!!!' says nothing"),
        ({"sentences": {"en": ["We need water"], "ht": [""]}}, "the sentence '' says nothing"),
        ({"iasc": "Plumbing"}, "WASH"),
        ({"id": "need.wat er", "category": "wat er"}, "ASCII"),
    ],
)
def test_a_wrong_query_is_refused_with_what_to_change(change, told):
    (query,) = read_pack(PACK)
    with pytest.raises(QueryError, match=told):
        check_query(msgspec.structs.replace(query, **change))


def test_a_wrong_pack_is_refused_by_file_and_field(tmp_path):
    with pytest.raises(QueryError, match="mine.yaml.*labl"):
        read_pack(PACK.replace("label", "labl"), "mine.yaml")
    with pytest.raises(QueryError, match="no query pack"):
        load_queries(tmp_path)
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(PACK)
    with pytest.raises(QueryError, match="twice: need.water"):
        load_queries(tmp_path)


def test_texts_keep_the_language_of_every_sentence():
    query = Query("need.x", "need", "x", "X", {"en": ["a", "b"], "ht": ["c"]})
    assert query.texts() == [("en", "a"), ("en", "b"), ("ht", "c")]


def test_a_stored_query_that_earlier_versions_took_is_read_without_what_says_nothing():
    where = Where(must=["(", "puente*"], must_not=["!"])
    stored = Query("need.boats", "need", "boats", "Boats", {"en": ["", "we need a boat"], "es": ["¡!"]}, where=where)
    read = check_query(without_void(stored))
    assert read.texts() == [("en", "we need a boat")]
    assert (read.where.must, read.where.must_not) == (["puente*"], [])
