"""Word axes: read as the formula says, beside vectors that they hardly move."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.encoders.bundle import WORDS, read_bundle, without_words, write_bundle
from models.encoders.load import load_encoder
from models.encoders.words import LEAST, WordScores, beside, units
from models.errors import BundleError, EncoderError
from models.text import clean
from tests.models.tiny_bundle import tiny_files, tiny_manifest


def two_classes(share: float = 0.01) -> WordScores:
    """Words "water" and "roof" speak for one class each, "roof" being the rarer word."""
    place = {"water": 0, "roof": 1, "need water": 2}
    weights = np.array([[100, -100], [-50, 50], [10, 0]], np.int8)
    steps, bias = np.array([0.02, 0.03], np.float32), np.array([0.5, -0.5], np.float32)
    return WordScores(["water", "rescue"], place, np.array([1.0, 2.0, 3.0], np.float32), weights, steps, bias, share)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We need WATER!", ["we", "need", "water", "we need", "need water", "wate*"]),
        ("தண்ணீர் தேவை", ["தண்ணீர்", "தேவை", "தண்ணீர் தேவை", "தண்ண*"]),  # its vowel signs are no letters to `re`
        ("पानी चाहिए", ["पानी", "चाहिए", "पानी चाहिए", "चाहि*"]),
        ("需要水", ["需", "要", "水", "需 要", "要 水"]),
        ("น้ำ", ["น้", "ำ", "น้ ำ"]),
        ("2 litre/day", ["2", "litre", "day", "2 litre", "litre day", "litr*"]),
        ("🙏 !!", []),
    ],
)
def test_units_are_words_pairs_and_beginnings_in_any_script(text, expected):
    assert units(text) == expected


def test_log_probabilities_are_the_logistic_regression_over_the_texts_units_weighed_by_rarity():
    scores = two_classes()
    rows = scores.weights * scores.steps
    weighed = np.array([1.0, 2.0, 3.0]) / np.sqrt(1 + 4 + 9)
    logits = weighed @ rows + scores.bias
    expected = logits - np.log(np.exp(logits).sum())
    found = scores.log_probabilities(["need water, roof, water"])  # a word said twice counts once
    np.testing.assert_allclose(found[0], expected, atol=1e-5)


def test_a_text_of_unknown_words_is_read_by_the_bias_alone():
    expected = np.array([0.5, -0.5]) - np.log(np.exp([0.5, -0.5]).sum())
    np.testing.assert_allclose(two_classes().log_probabilities(["", "nothing known"]), [expected] * 2, atol=1e-6)


def test_axes_are_the_centred_log_probabilities_at_their_share_and_never_below_the_least():
    scores = two_classes(share=0.5)
    axes = scores.scaled(np.array([[-0.1, -40.0]], np.float32))
    np.testing.assert_allclose(axes, [[0.5 * (-0.1 - LEAST) / 2, -0.5 * (-0.1 - LEAST) / 2]], rtol=1e-5)


@given(st.lists(st.text(max_size=30), max_size=5))
def test_words_of_a_text_do_not_hang_on_its_company_and_sum_to_nothing(texts):
    scores = two_classes()
    cleaned = [clean(text) for text in texts]
    together = scores.axes_of(cleaned)
    assert together.shape == (len(texts), 2) and np.isfinite(together).all()
    np.testing.assert_allclose(together.sum(axis=1), 0, atol=1e-6)
    for row, text in zip(together, cleaned, strict=True):
        np.testing.assert_array_equal(scores.axes_of([text])[0], row)


def test_vectors_keep_their_length_and_nearly_their_cosines():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(20, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    axes = rng.uniform(-0.05, 0.05, (20, 2)).astype(np.float32)
    both = beside(vectors, axes)
    np.testing.assert_allclose(np.linalg.norm(both, axis=1), 1, atol=1e-6)
    most = (axes**2).sum(axis=1).max()
    assert np.abs(both @ both.T - vectors @ vectors.T).max() <= 2 * most


def test_a_file_of_word_scores_says_what_was_written_and_another_is_refused():
    scores = two_classes()
    again = WordScores.from_bytes(scores.to_bytes())
    assert (
        again.place == scores.place and again.classes == scores.classes and again.share == pytest.approx(scores.share)
    )
    np.testing.assert_array_equal(again.weights, scores.weights)
    assert again.to_bytes() == scores.to_bytes()
    with pytest.raises(EncoderError, match="not a file of word scores"):
        WordScores.from_bytes(b"nothing")
    with pytest.raises(EncoderError, match="of 3 units and 2 classes"):
        WordScores.from_bytes(msgspec.structs.replace(scores, rarity=scores.rarity[:2]).to_bytes())


def test_a_bundle_with_words_gives_the_vectors_of_the_one_without_and_the_axes_beside(tmp_path):
    plain = write_bundle(tmp_path / "plain", tiny_manifest(), tiny_files())
    worded = write_bundle(tmp_path / "worded", tiny_manifest(dim=10), tiny_files() | {WORDS: two_classes().to_bytes()})
    assert worded.id != plain.id and without_words(worded, 2).id == plain.id
    encoder, text = load_encoder(tmp_path / "worded"), "we need water @ann"
    assert encoder.version == worded.id and encoder.dim == 10
    expected = beside(load_encoder(tmp_path / "plain").encode([text]), two_classes().axes_of([clean(text)]))
    np.testing.assert_array_equal(encoder.encode([text]), expected)


def test_a_bundle_whose_width_does_not_leave_room_for_its_words_is_refused(tmp_path):
    write_bundle(tmp_path / "narrow", tiny_manifest(), tiny_files() | {WORDS: two_classes().to_bytes()})
    with pytest.raises((BundleError, EncoderError), match="dim|wide|shape"):
        load_encoder(tmp_path / "narrow")
    assert read_bundle(tmp_path / "narrow").manifest.dim == 8
