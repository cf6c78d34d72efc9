"""The head's own arithmetic and what it may learn from."""

from types import SimpleNamespace

import numpy as np
import pytest

import training.head
from models.encoders.ready import Loaded, ready
from models.errors import ConfigError
from models.queries import load_queries
from models.reading import Head, Terms
from models.records import PRIORITIES, is_notice
from models.text import Cleaning
from training import class_material
from training.class_material import MAY_LEARN, Asked, Taught, asked, material, read_material
from training.head import Config, calibrated, fit_classes, fit_priority, fit_terms, rescaled, right_readings
from training.labels import everyday, ordinary
from training.posts import LabelledPost
from training.several import fit_several

QUERIES = [query.id for query in load_queries()]


def post(origin: str, use: str, judges: bool = False, gold: str = "none", near: str | None = "news") -> LabelledPost:
    return LabelledPost(f"{origin} {use} {judges}", "en", "e", gold, None, near, None, origin, use, judges=judges)


def test_posts_that_judge_and_sets_whose_terms_forbid_it_are_never_learnt_from():
    posts = [
        post("written", "stream"),
        post("written", "stream", judges=True),
        post("crisislex-t26", "read"),
        post("crisislex-t26", "read", judges=True),
        post("humaid", "read"),
        post("trecis-stream", "read"),
    ]
    texts = material(Config(), posts, []).texts
    assert {p.text for p in posts} & set(texts) == {"written stream False", "crisislex-t26 read False"}
    assert "humaid" not in MAY_LEARN


def test_only_asking_messages_about_categories_whose_annotators_agree_are_learnt_from():
    messages = [
        {"text": "a", "labels": ["request", "water"]},
        {"text": "b", "labels": ["water"]},
        {"text": "c", "labels": ["request", "search_and_rescue"]},
    ]
    taught = material(Config(), [], messages)
    assert [(t, label) for t, label in zip(taught.texts, taught.labels, strict=True) if t in "abc"] == [
        ("a", "need.water")
    ]


def test_everyday_sentences_are_learnt_as_asking_for_nothing():
    taught = material(Config(everyday_weight=0.25), [], [], ["Tom has a cat."])
    at = taught.texts.index("Tom has a cat.")
    assert (taught.labels[at], taught.weights[at]) == ("ordinary", 0.25)


def test_a_quick_look_learns_of_posts_and_messages_at_even_steps(monkeypatch, tmp_path):
    written = [LabelledPost(f"w{i}", "en", "e", "none", None, "news", None, "written", "stream") for i in range(90)]
    messages = [{"id": f"m{i}", "text": f"m{i}", "labels": ["request", "water"]} for i in range(200)]
    monkeypatch.setattr(class_material, "data_dir", lambda: tmp_path)
    monkeypatch.setattr(class_material, "written_posts", lambda: written)
    monkeypatch.setattr(class_material, "read_posts", lambda root: [])
    monkeypatch.setattr(class_material, "read_messages", lambda root: messages)
    monkeypatch.setattr(class_material, "everyday", lambda root, most, seed: [])
    whole, few = (read_material(Config(most=most)) for most in (0, 30))
    assert [post.text for post in few[2]] == [f"w{i}" for i in range(0, 90, 3)] and len(whole[2]) == 90
    teaching = [t for t in whole[0].texts if t in {m["text"] for m in messages}]
    assert [t for t in few[0].texts if t in teaching] == teaching[:: len(teaching) // 30]
    assert training.head.PRESETS["smoke"].most and not training.head.PRESETS["laptop"].most


@pytest.mark.data
def test_no_everyday_sentence_that_is_learnt_judges(data_dir):
    posts = ordinary(data_dir, 60, 10, 1)
    judging = {text for text, shapes in zip(posts.texts, posts.shapes, strict=True) if not shapes}
    learnt = everyday(data_dir, 200, 1)
    assert len(learnt) > 5_000 and not judging & set(learnt)


def test_a_class_nobody_taught_is_never_the_answer():
    rng = np.random.default_rng(0)
    vectors = np.concatenate([rng.normal(2, 0.1, (20, 2)), rng.normal(-2, 0.1, (20, 2))])
    taught = Taught([""] * 40, ["a"] * 20 + ["c"] * 20, [1.0] * 40)
    weight, bias = fit_classes(Config(), vectors, taught, ["a", "b", "c"])
    answers = (vectors @ weight.T + bias).argmax(axis=1)
    assert answers.tolist() == [0] * 20 + [2] * 20


def test_terms_find_the_log_odds_that_made_the_labels():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(20_000, 2))
    right = rng.random(20_000) < 1 / (1 + np.exp(-(features @ [2.0, -1.0] + 0.5)))
    weights, bias = fit_terms(features, right, np.ones(20_000))
    np.testing.assert_allclose([*weights, bias], [2.0, -1.0, 0.5], atol=0.1)


def test_a_post_that_warns_is_a_right_reading_of_the_warning_and_of_no_need():
    warns = post("written", "stream", near="warning")
    assert {QUERIES[i] for i in np.flatnonzero(right_readings([warns], QUERIES)[0])} == {"warning.danger"}


def test_sentences_of_notices_are_not_learnt_as_classes():
    assert not {label for label in material(Config(), [], []).labels if is_notice(label)}


def test_priority_is_learnt_in_order_from_posts_whose_urgency_is_labelled():
    rng = np.random.default_rng(0)
    along = rng.uniform(-1, 1, 3_000)
    vectors = np.stack([along, rng.normal(size=3_000)], axis=1).astype(np.float32)
    names = np.where(along > 0.4, "urgent", np.where(along > -0.4, "soon", "routine"))
    posts = [LabelledPost("x", "en", "e", "need.water", None, None, str(n), "written", "stream") for n in names]
    *line, urgent, soon = fit_priority(Config(strength=1e3), vectors, posts)
    assert line[0] > 5 * abs(line[1]) and urgent < soon
    learnt = Head(["need.water"], [[0.0, 0.0]], [0.0], Terms(1.0), Terms(1.0), priority=[*line, urgent, soon])
    told = np.array(PRIORITIES)[learnt.priorities(vectors).argmax(axis=1)]
    assert (told == names).mean() > 0.9


def test_probabilities_alone_are_fitted_anew_where_there_are_classes_to_keep():
    encoder = SimpleNamespace(version="e")
    with pytest.raises(ConfigError, match="e has no head to keep"):
        rescaled(Config(rescale=True), Loaded("own", encoder), encoder, [])


def test_what_a_query_nobody_taught_is_likely_is_told_by_posts_of_its_kind_alone(monkeypatch):
    """Posts of another kind change nothing: the kind is a veto of its own (models/reading.py)."""
    rng, told = np.random.default_rng(0), []
    queries = [query for query in load_queries() if query.id in ("need.water", "offer.water", "warning.danger")]
    head = Head([q.id for q in queries], np.eye(3).tolist(), [0.0] * 3, Terms(0.0, 1.0), Terms(1.0))

    def fitted(features, right, weights):
        told.append((features, right))
        return np.ones(features.shape[1]), 0.0

    monkeypatch.setattr(training.head, "fit_terms", fitted)
    posts = [
        LabelledPost(f"{n}", "en", "e", gold, None, near, None, "written", "stream", judges=True)
        for n, (gold, near) in enumerate(
            [("need.water", None)] * 4 + [("offer.water", None)] * 3 + [("none", "warning")] * 2 + [("none", "news")]
        )
    ]
    vectors = rng.normal(size=(len(posts), 3)).astype(np.float32)
    encoder = SimpleNamespace(
        version="e",
        dim=3,
        cleaning=Cleaning(),
        encode=lambda texts: rng.normal(size=(len(texts), 3)).astype(np.float32),
    )
    matcher = ready(Loaded("own", encoder), queries).matcher
    calibrated(head, matcher, encoder, posts, vectors, 1)
    own = [(features, right) for features, right in told if features.shape[1] == 1 and len(features) != len(posts)]
    (aid, found), (notices, warned) = own
    assert len(aid) == 4 * 4 + 4 * 3 and found.all()  # four queries of each kind, over the posts of that kind
    assert len(notices) == 4 * 2 and warned.all()


def test_a_second_reading_is_right_too():
    both = LabelledPost("x", "en", "e", "need.water", "need.food", None, None, "written", "stream")
    right = right_readings([both], QUERIES)
    assert {QUERIES[i] for i in np.flatnonzero(right[0])} == {"need.water", "need.food"}


def test_what_a_post_also_says_is_right_too():
    several = LabelledPost(
        "x", "en", "e", "need.water", "need.food", None, None, "written", "stream", also=("need.shelter",)
    )
    right = right_readings([several], QUERIES)
    assert {QUERIES[i] for i in np.flatnonzero(right[0])} == {"need.water", "need.food", "need.shelter"}


def test_needs_and_offers_are_learnt_with_all_they_ask_for_and_a_message_tells_of_the_agreed_categories_alone():
    several = LabelledPost("p", "en", "e", "need.water", "need.tools", None, None, "written", "stream")
    judges = LabelledPost("j", "en", "e", "need.water", None, None, None, "written", "stream", judges=True)
    message = {"text": "m", "labels": ["request", "water", "food", "medical_products", "money"]}
    found = asked(Config(), [several, judges, post("written", "stream")], [message, {"text": "n", "labels": ["water"]}])
    rows = {
        text: (queries, known) for text, queries, known in zip(found.texts, found.queries, found.known, strict=True)
    }
    assert not rows.keys() & {"j", "n", "written stream False"}
    assert rows["p"] == ({"need.water"}, None)  # what is no query is left out
    assert rows["m"][0] == {"need.water", "need.food", "need.medicine"} < rows["m"][1]
    assert "need.money" not in rows["m"][1]


def test_each_of_several_is_learnt_from_the_posts_of_its_kind_that_tell_of_it():
    rng = np.random.default_rng(0)
    says = rng.random((4_000, 3)) < 0.5
    vectors = (says + rng.normal(0, 0.1, says.shape)).astype(np.float32)
    names = ["need.water", "need.food", "offer.water"]
    queries = [frozenset(name for name, own in zip(names, row, strict=True) if own) for row in says]
    told = frozenset(("need.water",))
    known = [None if i % 2 else told for i in range(len(queries))]
    found = fit_several(vectors, Asked([""] * 4_000, queries, known, [1.0] * 4_000), [*names, "need.money"], 1e3, 200)
    assert set(found.queries) == {"need.water", "need.food"}  # every post that offers offers water: nothing to learn
    odds = found.log_odds(np.eye(3, dtype=np.float32), ["need.food", "offer.water", "need.water"])
    assert (odds[:, 0] > 0).tolist() == [False, True, False] and (odds[:, 2] > 0).tolist() == [True, False, False]
    assert np.isneginf(odds[:, 1]).all()
