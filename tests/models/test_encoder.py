"""What every encoder promises, and what a bundle refuses."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.encoders.bundle import read_bundle
from models.encoders.load import FLOOD, folder_of, load_encoder

POSTS = [
    "We need water at the school, please hurry!",
    "Nou bezwen dlo nan lekòl la",
    "Нужна вода в школе",
    "مدرسے میں پانی چاہیے",
    "学校需要水",
    "NEED WATER NOW 🙏🙏 https://example.org/x @somebody",
]


@pytest.fixture(scope="module")
def bundled():
    return load_encoder("flood")


@given(texts=st.lists(st.text(max_size=60), max_size=12), seed=st.randoms())
@settings(max_examples=60, deadline=None)
def test_any_texts_give_unit_rows_each_its_own_in_any_order(bundled, texts, seed):
    vectors = bundled.encode(texts)
    assert vectors.shape == (len(texts), bundled.dim)
    assert vectors.dtype == np.float32 and vectors.flags.c_contiguous
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)
    order = list(range(len(texts)))
    seed.shuffle(order)
    np.testing.assert_array_equal(bundled.encode([texts[i] for i in order]), vectors[order])
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_array_equal(bundled.encode([text])[0], vector)


def test_a_text_with_nothing_in_it_gives_one_fixed_unit_vector(bundled):
    empty, blank, invisible = bundled.encode(["", " \n\t ", "\u200b"])
    np.testing.assert_array_equal(empty, blank)
    assert np.isfinite(invisible).all()
    assert np.linalg.norm(empty) == pytest.approx(1)


def test_no_texts_give_no_rows(bundled):
    assert bundled.encode([]).shape == (0, bundled.dim)


def test_the_encoder_cleans_the_text_itself(bundled):
    one, other = bundled.encode(["need water https://a.example/1 @ann", "need water  https://b.example/2\n@bob"])
    np.testing.assert_array_equal(one, other)


def test_a_long_list_equals_its_posts_alone(bundled):
    posts = [f"{POSTS[i % len(POSTS)]} {i}" for i in range(5000)]
    vectors = bundled.encode(posts)
    for i in (0, 2047, 2048, 4999):
        np.testing.assert_array_equal(bundled.encode([posts[i]])[0], vectors[i])


def test_a_need_is_nearer_to_its_translation_than_to_another_topic(bundled):
    need, french, spanish, football = bundled.encode(
        [
            "We need drinking water",
            "Nous avons besoin d'eau potable",
            "Necesitamos agua potable",
            "The football team won the match last night",
        ]
    )
    assert min(need @ french, need @ spanish) > need @ football + 0.2


def test_leet_and_known_short_forms_are_read_as_what_they_stand_for(bundled):
    leet, meant, short, other = bundled.encode(
        ["pl3ase s3nd w4ter", "please send water", "ppl need water asap pls", "the people of the world"]
    )
    np.testing.assert_array_equal(leet, meant)
    assert short @ meant > 2 * (other @ meant)


def test_the_bundled_encoders_are_small_enough_to_ship():
    assert sum(path.stat().st_size for path in FLOOD.iterdir()) <= 40e6
    default = read_bundle(folder_of(None))
    assert sum(default.manifest.sizes.values()) <= 80e6
    assert default.manifest.sizes == {name: (default.path / name).stat().st_size for name in default.manifest.files}


def test_pieces_beyond_the_maximal_length_are_not_seen(tiny):
    encoder = load_encoder(tiny)
    long = " ".join(["water"] * 16)
    np.testing.assert_array_equal(encoder.encode([long])[0], encoder.encode([long + " w3 w4"])[0])


def test_a_static_vector_is_the_unit_sum_of_its_rows(tiny):
    rows = np.random.default_rng(0).integers(-127, 128, (40, 8)).astype(np.float32)
    expected = rows[1] + rows[3]
    np.testing.assert_allclose(
        load_encoder(tiny).encode(["Need water"])[0], expected / np.linalg.norm(expected), atol=1e-6
    )
