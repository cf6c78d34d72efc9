"""CONTRIBUTING.md's way to an encoder back-end, walked: a file, a row, a bundle, the checks; then it serves."""

import sys

import numpy as np
import pytest

from models.encoders import load
from models.encoders.bundle import Manifest, write_bundle
from models.encoders.load import load_encoder
from models.encoders.ready import load as load_version
from models.encoders.ready import ready
from models.errors import EncoderError
from models.matching import MatchConfig
from models.queries import load_queries
from models.text import Cleaning
from tests.checks.encoders import check_encoder

SOURCE = '''
import zlib
import numpy as np
from models.text import clean


class HashedWords:
    """Words by their hash: the sum of a fixed random row for each."""

    def __init__(self, bundle):
        self.version, self.dim, self.cleaning = bundle.manifest.id, bundle.manifest.dim, bundle.manifest.cleaning
        self._rows = np.frombuffer((bundle.path / "rows.bin").read_bytes(), np.float32).reshape(-1, self.dim)

    def encode(self, texts):
        sums = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(sums, texts, strict=True):
            for word in clean(text, self.cleaning).lower().split() or [""]:
                row += self._rows[zlib.crc32(word.encode("utf-8", "replace")) % len(self._rows)]
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)
'''


@pytest.fixture
def bundle(tmp_path, monkeypatch):
    (tmp_path / "hashed_words.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(load.BACK_ENDS, "hashed", "hashed_words:HashedWords")
    rows = np.random.default_rng(0).normal(size=(4096, 64)).astype(np.float32)
    manifest = Manifest(
        backend="hashed", dim=64, max_length=10_000, cleaning=Cleaning(), pooling="sum", licence="CC0-1.0"
    )
    write_bundle(tmp_path / "bundle", manifest, {"rows.bin": rows.tobytes()})
    yield tmp_path / "bundle"
    sys.modules.pop("hashed_words", None)


def test_a_new_back_end_keeps_the_contract(bundle):
    encoder = load_encoder(bundle)
    assert type(encoder).__name__ == "HashedWords"
    check_encoder(encoder, 1e-6)


def test_it_scores_the_queries_without_a_calibration(bundle):
    query = next(q for q in load_queries() if q.id == "need.water")
    asked = dict(query.texts())["en"]
    version = ready(load_version(bundle), [query], MatchConfig())
    scores = version.matcher.scores(version.encoder.encode([asked, "Nice day"]))
    assert scores[0, 0] > scores[1, 0] and version.matcher.encoder_version == load_encoder(bundle).version


def test_a_back_end_that_is_not_there_is_named(bundle, monkeypatch):
    monkeypatch.setitem(load.BACK_ENDS, "hashed", "no_such_library:HashedWords")
    with pytest.raises(EncoderError, match="'hashed', which is not installed.*no_such_library"):
        load_encoder(bundle)
    monkeypatch.delitem(load.BACK_ENDS, "hashed")
    with pytest.raises(EncoderError, match="'hashed', which this version does not have"):
        load_encoder(bundle)
