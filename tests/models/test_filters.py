"""Filters of queries: exact, equal to what one would check by hand."""

import re
import unicodedata

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.errors import QueryError
from models.filters import Where, check_where
from models.matching import MatchConfig
from models.queries import Query, check_query
from models.records import Geo, Post
from tests.models.test_reading import CUSTOM, DIM, FOOD, NEED, OFFER, matcher

words = st.sampled_from(["Puente", "bridge", "bridges", "water", "水", "橋", "ﬁre", "new  roof"])
texts = st.lists(
    st.sampled_from(["PUENTE", "bridge", "bridges", "water.", "水が橋で", "fire!", "new roof", "renew"])
).map(" ".join)
wheres = st.builds(
    Where,
    languages=st.lists(st.sampled_from(["en", "pt", "pt-BR"]), max_size=2),
    sources=st.lists(st.sampled_from(["sms", "web"]), max_size=2),
    area=st.sampled_from([[], [-10.0, -20.0, 10.0, 20.0], [-10.0, 170.0, 10.0, -170.0]]),
    must=st.lists(words, max_size=2),
    must_not=st.lists(words, max_size=1),
)
posts = st.builds(
    Post,
    st.just("p"),
    texts,
    st.just(0.0),
    st.just(0.0),
    lang=st.sampled_from(["en", "pt", "pt-BR", "und"]),
    source=st.sampled_from(["sms", "web", "x"]),
    geo=st.none() | st.builds(Geo, st.floats(-15, 15), st.floats(-180, 180)),
)


def holds(word: str, text: str) -> bool:
    """Does a word stand in a text, by hand: letters before and after it, or none."""
    word, text = (" ".join(unicodedata.normalize("NFKC", x).casefold().split()) for x in (word, text))
    if re.search("[\u3040-\u9fff]", word):
        return word in text
    starts = [i for i in range(len(text)) if text.startswith(word, i)]
    return any(not text[i - 1 : i].isalnum() and not text[i + len(word) : i + len(word) + 1].isalnum() for i in starts)


@given(wheres, posts)
def test_a_filter_takes_exactly_what_one_would_take_by_hand(where, post):
    expected = (
        (not where.languages or any(post.lang == w or post.lang.startswith(w + "-") for w in where.languages))
        and (not where.sources or post.source in where.sources)
        and (not where.must or any(holds(w, post.text) for w in where.must))
        and not any(holds(w, post.text) for w in where.must_not)
    )
    if where.area:
        geo, (south, west, north, east) = post.geo, where.area
        span = (east - west) % 360
        expected &= geo is not None and south <= geo.lat <= north and (geo.lon - west) % 360 <= span
    assert (where.refusal(post) == "") == expected


@pytest.mark.parametrize(
    "word, text, taken",
    [("flood*", "Flooding here", True), ("flood", "Flooding here", False), ("flood*", "a warmflood", False)],
)
def test_a_star_takes_any_ending(word, text, taken):
    assert (Where(must=[word]).refusal(Post("p", text, 0, 0)) == "") == taken


@pytest.mark.parametrize(
    "where", [Where(area=[1.0]), Where(area=[9.0, 0, 1, 0]), Where(must=[" * "]), Where(must=[""])]
)
def test_a_filter_that_means_nothing_is_refused_and_says_so(where):
    with pytest.raises(QueryError, match="need.x"):
        check_where(where, "need.x")


@pytest.mark.parametrize("word", ["(", "*", "...", "¡!*", "\u0301"])
@pytest.mark.parametrize("name", ["must", "must_not"])
def test_a_word_without_letter_or_digit_is_refused_with_itself_for_it_would_silence_the_query(name, word):
    with pytest.raises(QueryError, match=f"need.x: {name}: {re.escape(repr(word))} has no letter or digit"):
        check_where(Where(**{name: ["water", word]}), "need.x")


@pytest.mark.parametrize("word", ["3", "C++", "水", "①", "🆘", "❤️", "पानी"])
def test_what_is_a_word_in_any_script_or_an_emoji_is_taken(word):
    check_where(Where(must=[word]), "need.x")
    assert not Where(must=[word]).refusal(Post("p", f"so {word} !", 0, 0))


@pytest.mark.parametrize(
    "changes",
    [
        {"probability": 1.5},
        {"probability": 0.5, "alerts_per_hour": 3},
        {"alerts_per_hour": 0},
        {"target_precision": 1.0},
        {"target_precision": 0.8, "alerts_per_hour": 3},
        {"expires": "tomorrow"},
        {"expires": "2026-01-01T00:00:00"},
    ],
)
def test_a_query_with_a_bar_or_an_end_that_cannot_be_is_refused(changes):
    with pytest.raises(QueryError, match=r"need\.water"):
        check_query(msgspec.structs.replace(NEED, **changes))


@settings(max_examples=30)
@given(st.lists(st.tuples(wheres, st.floats(0, 10)), min_size=3, max_size=3), st.lists(posts, min_size=1, max_size=6))
def test_filtered_matches_are_the_matches_of_each_post_alone_by_the_queries_that_read_it(filters, stream):
    ends = ["1970-01-01T00:00:05Z", "", ""]
    queries = [
        msgspec.structs.replace(query, where=where, expires=end)
        for query, (where, _), end in zip((NEED, FOOD, CUSTOM), filters, ends, strict=True)
    ] + [OFFER]
    stream = [msgspec.structs.replace(p, id=f"p{n}", seen_at=3.0 * n) for n, p in enumerate(stream)]
    vectors = np.abs(np.random.default_rng(len(stream)).normal(size=(len(stream), DIM))).astype(np.float32)
    config = MatchConfig(suggestion_probability=0.01)
    found = matcher(*queries, config=config).match([p.id for p in stream], vectors, "axes", stream)
    for n, post in enumerate(stream):
        reading = [
            q
            for q in queries
            if (q.where is None or not q.where.refusal(post)) and not (q.expires and post.seen_at >= 5.0)
        ]
        plain = [msgspec.structs.replace(q, where=None, expires="") for q in reading]
        alone = matcher(*plain, config=config).match([post.id], vectors[n : n + 1], "axes", [post])
        assert [m.query_id for m in found if m.post_id == post.id] == [m.query_id for m in alone]


def test_a_filter_does_not_change_what_a_query_asks_so_its_calibration_and_alerts_stay():
    asked = Query(
        "need.water", "need", "water", "Water", NEED.sentences, where=Where(languages=["es"]), probability=0.7
    )
    assert asked.version == NEED.version
    assert msgspec.json.decode(msgspec.json.encode(asked), type=Query) == asked
