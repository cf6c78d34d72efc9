"""Very many queries: what is found is what a comparison of every post with every query finds."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.calibration import Calibration, Fallback
from models.directions import MOST_STACKS
from models.filters import Where
from models.matching import MatchConfig, Matcher
from models.queries import Query
from models.reading import Head, Terms
from models.records import KINDS, Post
from models.screen import FEW, Member, Screen

DIM = 12
CONFIG = MatchConfig(alert_probability=0.4, suggestion_probability=0.1, notice_probability=0.4, notice_suggestion=0.1)


class DrawnEncoder:
    """Each text a direction of its own, drawn by its letters."""

    version, dim = "drawn", DIM

    def encode(self, texts):
        rows = [np.random.default_rng(list(text.encode())).normal(size=DIM) for text in texts]
        made = np.array(rows, np.float32).reshape(-1, DIM)
        return made / np.linalg.norm(made, axis=1, keepdims=True)


HEAD = Head(
    ["need.water", "offer.water", "warning.danger", "news"],
    (3 * np.eye(4, DIM)).tolist(),
    [0.0] * 4,
    taught=Terms(query=0.0, head=1.0),
    unknown=Terms(query=1.0, bias=-1.5),
    unknown_notice=Terms(query=0.7, bias=-1.0),
)
ENDS = "1970-01-01T00:00:05Z"
wheres = st.sampled_from([None, Where(languages=["en"]), Where(sources=["sms"]), Where(must=["roof"])])
queries = st.builds(
    lambda kind, n, sentences, where, ends, bar: Query(
        f"{kind}.kind{n}", kind, f"kind{n}", "x", sentences, where=where, expires=ends, probability=bar
    ),
    st.sampled_from(KINDS),
    st.integers(0, 40),
    st.dictionaries(
        st.sampled_from(["en", "es", "ht"]), st.lists(st.text("abc", min_size=1), min_size=1, max_size=2), min_size=1
    ),
    wheres,
    st.sampled_from(["", "", ENDS]),
    st.sampled_from([None, None, 0.3, 0.9]),
)
several = st.lists(queries, max_size=12, unique_by=lambda q: q.id)
texts = st.lists(st.sampled_from(["on the roof", "a b", "abc", "ca", "bb roof", "c"]), min_size=1, max_size=6)


def made(active, headed, before=None):
    calibration = CALIBRATIONS[headed]
    return Matcher(CONFIG, active, DrawnEncoder(), ["x", "y", "z"], calibration, [], before)


CALIBRATIONS = [None, Calibration("drawn", "", {}, Fallback(6.0, 3.5, 0.0, 0.0), head=HEAD)]


def stream(written):
    """Posts in two languages and from two sources, seconds apart."""
    return [
        Post(f"p{n}", text, 3.0 * n, 3.0 * n, lang=("en", "es")[n % 2], source=("sms", "web")[n // 2 % 2])
        for n, text in enumerate(written)
    ]


def by_hand(matcher, posts, vectors):
    """(post, query, score) of every pair that reaches the query's lowest level and is not left out, one by one."""
    scores = matcher.scores(vectors)
    return {
        (post.id, query.id): float(scores[row, i])
        for row, post in enumerate(posts)
        for i, query in enumerate(matcher.queries)
        if scores[row, i] >= matcher.levels.lowest[i] and not matcher.refusal(i, post)
    }


def every_reading(matcher, posts, vectors, monkeypatch):
    monkeypatch.setattr("models.pairs.READINGS", 10**6)
    found = matcher.match([post.id for post in posts], vectors, "drawn", posts)
    return {(match.post_id, match.query_id): match.score for match in found}


@settings(max_examples=60, deadline=None)
@given(several, texts, st.booleans())
def test_what_is_found_is_what_a_comparison_with_every_query_finds(active, written, headed):
    posts = stream(written)
    vectors, matcher = DrawnEncoder().encode(written), made(active, headed)
    with pytest.MonkeyPatch.context() as patch:
        found = every_reading(matcher, posts, vectors, patch)
    expected = by_hand(matcher, posts, vectors)
    best = {}
    for (post, query), score in expected.items():  # of one category the likelier alone
        category = query.partition(".")[2]
        best.setdefault((post, category), []).append(score)
    assert set(found) <= set(expected)
    assert {(post, query.partition(".")[2]) for post, query in found} == set(best)
    for key, score in found.items():
        assert score == pytest.approx(expected[key], abs=1e-3)


@settings(max_examples=40, deadline=None)
@given(several, st.lists(several, min_size=1, max_size=4), texts, st.booleans())
def test_after_any_changes_a_matcher_finds_what_one_made_anew_finds(first, changes, written, headed):
    """Queries come, change, go and end: the chain of matchers and a fresh one agree, to the numbers they tell."""
    posts = stream(written)
    vectors, matcher = DrawnEncoder().encode(written), made(first, headed)
    active = {query.id: query for query in first}
    for change in changes:
        for query in change:
            if active.get(query.id) == query:
                del active[query.id]
            else:
                active[query.id] = query
        matcher = made(list(active.values()), headed, matcher)
        ids = [post.id for post in posts]
        fresh = made(list(active.values()), headed).match(ids, vectors, "drawn", posts)
        assert matcher.match(ids, vectors, "drawn", posts) == fresh


class Counting(DrawnEncoder):
    def __init__(self):
        self.read = []

    def encode(self, texts):
        self.read += texts
        return super().encode(texts)


def test_a_change_reads_the_sentences_of_what_changed_and_nothing_else():
    some = [Query(f"need.kind{n}", "need", f"kind{n}", "x", {"en": [f"sentence {n}"]}) for n in range(50)]
    encoder = Counting()
    first = Matcher(CONFIG, some, encoder, ["x", "y"], None, [])
    assert "sentence 7" in encoder.read
    encoder.read.clear()
    added = Query("need.new", "need", "new", "x", {"en": ["said anew"]})
    filtered = msgspec.structs.replace(some[3], where=Where(languages=["es"]), probability=0.7)
    again = Matcher(CONFIG, [*some[:3], filtered, *some[5:], added], encoder, ["x", "y"], None, [], first)
    assert encoder.read == ["said anew"]
    assert [q.id for q in again.queries] == sorted([q.id for q in some if q is not some[4]] + ["need.new"])


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 30), st.integers(1, 5), st.integers(0, 10**6), st.floats(0.1, 50))
def test_no_pair_that_reaches_its_bar_is_ruled_out(queries, posts, seed, size):
    drawn = np.random.default_rng(seed)
    members = [
        Member(
            Query(f"need.kind{n}", "need", f"kind{n}", "x", {"en": ["x"]}),
            (size * drawn.normal(size=(drawn.integers(1, 4), DIM + 1))).astype(np.float32),
        )
        for n in range(queries)
    ]
    vectors = drawn.normal(size=(posts, DIM)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    adds = {kind: drawn.normal(size=posts).astype(np.float32) for kind in KINDS}
    screen, active = Screen.of(members), [member.query for member in members]
    place = {query.id: i for i, query in enumerate(active)}
    rows, which = screen.reached(vectors, adds, screen.owners(place, active), None)
    found = set(zip(rows.tolist(), which.tolist(), strict=True))
    for row in range(posts):
        for i, member in enumerate(members):
            score = (member.rows[:, :-1].astype(float) @ vectors[row] + member.rows[:, -1]).max()
            assert score + adds["need"][row] < 0 or (row, i) in found


def test_queries_that_read_none_of_the_posts_are_not_multiplied(monkeypatch):
    row = np.ones((1, DIM + 1), np.float32)
    members = [
        Member(Query(f"need.{lang}{n}", "need", f"{lang}{n}", "x", {"en": ["x"]}, where=Where(languages=[lang])), row)
        for lang in ("en", "es")
        for n in range(FEW)
    ]
    multiplied = []

    def counted(codes, weights, *rest):
        multiplied.append((len(codes), weights.shape[1]))
        return np.ones((len(codes), weights.shape[1]), np.float32)

    monkeypatch.setattr("models.screen.multiply", counted)
    screen, active = Screen.of(members), [member.query for member in members]
    place = {query.id: i for i, query in enumerate(active)}
    posts, adds = stream(["a", "b", "c"]), {kind: np.zeros(3, np.float32) for kind in KINDS}
    rows, which = screen.reached(np.ones((3, DIM), np.float32), adds, screen.owners(place, active), posts[:1] * 3)
    assert multiplied == [(3, FEW)]
    assert {active[i].where.languages[0] for i in which} == {"en"}


def test_the_graph_is_the_one_that_is_written_down():
    from training.screen_graph import PATH, graph

    assert PATH.read_bytes() == graph()


def test_pairs_score_as_all_posts_with_all_queries_do_however_often_queries_changed():
    active = [Query(f"need.k{n}", "need", f"k{n}", "x", {"en": ["a" * (n + 1)], "es": ["c"]}) for n in range(12)]
    matcher, vectors = made(active, False), DrawnEncoder().encode(["a b", "abc", "c"])
    rows, which = (side.ravel() for side in np.indices((3, 12)))
    for turn in range(3 * MOST_STACKS):
        changed = msgspec.structs.replace(active[turn % 12], sentences={"ht": [f"{turn}"]})
        active = [changed if query.id == changed.id else query for query in active]
        matcher = made(active, False, matcher)
        pairs = matcher.directions.scores_of(vectors, rows, which)
        np.testing.assert_allclose(pairs.reshape(3, 12), matcher.scores(vectors), atol=1e-6)
        stacks = {id(look.stack): len(look.stack) for look in matcher.directions.looks}
        assert len(stacks) <= MOST_STACKS and sum(stacks.values()) <= 2 * len(matcher.directions.matrix)
