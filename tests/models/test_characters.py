"""A character-aware student is served like any other encoder."""

import numpy as np
import torch

from models.encoders.characters import CharacterEncoder, Shape
from models.encoders.load import load_encoder
from models.encoders.probes import check_probes, probe_vectors

SMALL = Shape(hidden=16, layers=1, heads=2, dim=8, filters=((1, 4), (3, 4)))


def test_a_directory_of_robust_is_served(tmp_path):
    for name, seed in (("a", 0), ("b", 1), ("c", 0)):
        torch.manual_seed(seed)
        CharacterEncoder(SMALL).save(tmp_path / name)
    first, other, same = (load_encoder(tmp_path / name) for name in "abc")
    assert first.version == same.version != other.version  # of what is in it, not of where it lies
    check_probes(first, probe_vectors(same))
    vectors = first.encode(["we need water", "", "нужна вода"] * 500)  # more than a window
    assert vectors.shape == (1500, 8) and vectors.dtype == np.float32
    np.testing.assert_allclose(vectors[:3], vectors[-3:], atol=1e-5)
