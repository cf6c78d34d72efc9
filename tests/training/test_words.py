"""Words learnt from posts: the regression they are, and the bundle they go into."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from models.encoders.bundle import CLUSTERS, WORDS, add_file, read_bundle, write_bundle
from models.encoders.load import load_encoder
from models.encoders.words import LEAST, units
from models.errors import ConfigError
from tests.models.tiny_bundle import tiny_files, tiny_manifest
from training.class_material import Taught
from training.head import Config as HeadConfig
from training.head import of_words
from training.words import Config, fit_words, main, put_words

NAMES = ["need.water", "need.food", "news", "nobody"]
TEXTS = [
    "water please",
    "no water here",
    "water for us",
    "bread please",
    "no bread here",
    "bread for us",
    "it rained",
] * 3
LABELS = (["need.water"] * 3 + ["need.food"] * 3 + ["news"]) * 3


def learnt(**knobs):
    taught = Taught(TEXTS, LABELS, [1.0] * len(TEXTS))
    return fit_words(Config(least=2, iterations=500, **knobs), TEXTS, taught, NAMES)


def test_scores_are_the_regression_over_units_in_enough_texts_to_the_rounding_of_eight_bits():
    scores = learnt()
    listed = sorted({unit for text in TEXTS for unit in units(text)})
    assert list(scores.place) == listed  # each stands in three texts at least
    counts = np.array([[unit in units(text) for unit in listed] for text in TEXTS], float)
    rarity = np.log((1 + len(TEXTS)) / (1 + counts.sum(axis=0))) + 1
    rows = counts * rarity
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    model = LogisticRegression(C=Config().strength, max_iter=500).fit(rows, LABELS)
    expected = model.predict_log_proba(rows)
    found = scores.log_probabilities(TEXTS)[:, [NAMES.index(name) for name in model.classes_]]
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_a_unit_that_too_few_texts_hold_is_left_out():
    assert "wate*" in learnt().place
    assert not fit_words(Config(least=4), TEXTS, Taught(TEXTS, LABELS, [1.0] * 21), NAMES).place.keys() & {"rained"}


def test_a_class_without_texts_is_as_unlikely_as_can_be():
    scores = learnt()
    assert scores.classes == NAMES and scores.bias[3] == LEAST and not scores.weights[:, 3].any()


def test_a_bundle_gets_words_keeps_its_cluster_thresholds_and_gets_other_words_later(tmp_path):
    tiny = write_bundle(tmp_path / "tiny", tiny_manifest(), tiny_files())
    tuned = f'{{"encoder_version": "{tiny.id}", "t_attach": 0.5, "t_merge": 0.4, "lexical": 0.6}}'
    add_file(tmp_path / "tiny", CLUSTERS, tuned.encode())
    plain = load_encoder(tmp_path / "tiny")
    first = put_words(tmp_path / "tiny", tmp_path / "one", plain, learnt())
    again = put_words(tmp_path / "one", tmp_path / "two", plain, learnt(strength=1.0))
    assert first.dim == again.dim == 12 and first.parent == again.parent == tiny.id and first.id != again.id
    assert WORDS in again.files and CLUSTERS in read_bundle(tmp_path / "two").manifest.files
    inner = load_encoder(tmp_path / "two").encoder
    assert inner.version == tiny.id
    np.testing.assert_array_equal(inner.encode(TEXTS), plain.encode(TEXTS))


def test_a_head_counts_the_words_log_probability_of_each_class_as_often_as_it_says(tmp_path):
    write_bundle(tmp_path / "tiny", tiny_manifest(), tiny_files())
    scores = learnt()
    put_words(tmp_path / "tiny", tmp_path / "one", load_encoder(tmp_path / "tiny"), scores)
    encoder = load_encoder(tmp_path / "one")
    names = ["news", "need.food", "only the head knows"]
    weight = of_words(HeadConfig(words=0.4), encoder, names)
    axes = scores.axes_of(["bread for us"])
    log_p = np.maximum(scores.log_probabilities(["bread for us"]), LEAST)
    expected = 0.4 * (log_p - log_p.mean())[0, [2, 1]]
    np.testing.assert_allclose((axes @ weight.T)[0], [*expected, 0.0], atol=1e-4)
    assert of_words(HeadConfig(), encoder.encoder, names).shape == (3, 0)


def test_the_job_says_where_its_bundle_should_go():
    with pytest.raises(ConfigError, match="out=DIR"):
        main(Config())
