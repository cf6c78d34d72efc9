"""Bundled queries as people would add them: what the scale of queries nobody taught is fitted on."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from models.queries import aid_queries, check_query
from training.evaluate import own_figures as own_queries
from training.own_queries import as_people_add_them
from training.posts import LabelledPost


def test_each_bundled_query_is_added_four_times_with_a_few_of_its_own_sentences_and_under_another_name():
    queries = {query.id: query for query in aid_queries()}
    own = as_people_add_them(list(queries.values()), seed=1)
    assert len(own) == 4 * len(queries) and len({one.query.id for one in own}) == len(own)
    for bundled, query in own:
        check_query(query)
        ((lang, texts),) = query.sentences.items()
        assert query.id not in queries and query.kind == queries[bundled].kind
        assert 1 <= len(texts) <= 3 and set(texts) <= set(queries[bundled].sentences[lang])
    assert [one.query.id for one in own] == sorted(one.query.id for one in own)
    assert own == as_people_add_them(list(queries.values()), seed=1) != as_people_add_them(aid_queries(), seed=2)


def test_alerts_of_queries_that_people_add_are_counted_pair_by_pair(monkeypatch):
    gold = ["need.water", "offer.water", "none"]
    posts = [LabelledPost(g, "en", "e", g, None, None, None, "written", "stream", judges=True) for g in gold]
    own = as_people_add_them(aid_queries(), seed=1)
    scores = np.random.default_rng(0).random((3, len(own))).astype(np.float32)
    levels = SimpleNamespace(alert=np.full(len(own), 0.8, np.float32))
    made = SimpleNamespace(scores=lambda _: scores, probabilities=lambda _: None, levels=levels)
    monkeypatch.setattr(own_queries, "ready", lambda *_: SimpleNamespace(matcher=made))
    encoder = SimpleNamespace(encode=lambda texts: np.zeros((len(texts), 2), np.float32))
    reader = SimpleNamespace(encoder=encoder, matcher=SimpleNamespace(calibration=None))
    found = {f.name: f.value for f in own_queries.own_figures(reader, posts, seed=1)}
    right = of_kind = of_other = alerts = asked = others = needless = 0
    for row, name in enumerate(gold):
        for column, (bundled, query) in enumerate(own):
            alert, kind = scores[row, column] >= 0.8, name.startswith(query.kind)
            asked += bundled == name
            others += not kind
            alerts += alert
            right += alert and bundled == name
            of_kind += alert and kind
            of_other += alert and not kind and name != "none"
            needless += alert and not kind
    assert found == {
        "alerts_right": right / alerts,
        "alerts_right_in_kind": of_kind / alerts,
        "alerts_of_the_other_kind": of_other / alerts,
        "own_query": right / asked,
        "others_alerted": needless / others,
    }
