"""Stored vectors of the standing texts: the same as encoding them, and refused for any other encoder."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from models.encoders.load import load_encoder
from models.encoders.query_vectors import CachedEncoder, pack_vectors, read_vectors, standing_texts
from models.errors import BundleError, VersionMismatch
from models.matching import MatchConfig, Matcher
from models.queries import background_texts, load_queries
from tests.releases.tiny import tiny_bundle, words_of

TEXTS = ["need water", "need food", "help", "roof", ""]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    path = tmp_path_factory.mktemp("standing") / "tiny"
    tiny_bundle(path, words=words_of([]))
    return load_encoder(path)


class Counting:
    """An encoder that notes what it was asked."""

    def __init__(self, encoder):
        self.version, self.dim, self.cleaning = encoder.version, encoder.dim, encoder.cleaning
        self._encoder, self.asked = encoder, []

    def encode(self, texts):
        self.asked += texts
        return self._encoder.encode(texts)


@given(known=st.sets(st.sampled_from(TEXTS)), asked=st.lists(st.sampled_from(TEXTS)))
def test_known_and_read_vectors_are_those_of_the_encoder_in_the_order_asked(tiny, known, asked):
    counting = Counting(tiny)
    found = CachedEncoder(counting, {t: tiny.encode([t])[0] for t in known}).encode(asked)
    np.testing.assert_allclose(found, tiny.encode(asked), atol=1e-6)
    assert (found.shape, found.dtype) == ((len(asked), tiny.dim), np.float32)
    assert sorted(counting.asked) == sorted(set(asked) - known)


def test_no_bundled_query_is_encoded_whose_vector_came_with_the_version(tiny, tmp_path):
    (path := tmp_path / "q").write_bytes(pack_vectors(tiny, standing_texts()))
    counting, queries = Counting(tiny), load_queries()
    stored = Matcher(MatchConfig(), queries, CachedEncoder(counting, read_vectors(path, tiny)), background_texts())
    assert counting.asked == []
    fresh = Matcher(MatchConfig(), queries, tiny, background_texts())
    np.testing.assert_allclose(stored.directions.matrix, fresh.directions.matrix, atol=1e-4)
    assert [t.alert for t in stored.thresholds] == pytest.approx([t.alert for t in fresh.thresholds], abs=1e-4)


def test_the_same_vectors_are_the_same_bytes(tiny):
    assert len({pack_vectors(tiny, TEXTS) for _ in range(20)}) == 1


def test_vectors_of_another_encoder_or_dimension_are_refused_and_a_damaged_file_too(tiny, tmp_path):
    path = tmp_path / "q"
    with pytest.raises(BundleError, match="is not there"):
        read_vectors(path, tiny)
    path.write_bytes(pack_vectors(tiny, TEXTS))
    assert list(read_vectors(path, tiny)) == TEXTS
    for other in (SimpleNamespace(version="f" * 12, dim=tiny.dim), SimpleNamespace(version=tiny.version, dim=8)):
        with pytest.raises(VersionMismatch, match=f"holds .* vectors of {tiny.version} for 5 texts"):
            read_vectors(path, other)
    for damaged in (path.read_bytes()[:-4], save({"vectors": np.zeros((1, 2), np.float32)})):
        path.write_bytes(damaged)
        with pytest.raises(BundleError):
            read_vectors(path, tiny)
