"""A bundle opened again is the model it was exported from: exactly in float32, as near as rounding lets it in int8."""

import numpy as np
import pytest

from models.encoders.load import FLOOD, load_encoder
from models.encoders.transformer import TransformerEncoder
from models.errors import ConfigError, EncoderError
from tests.models.tiny_transformer import TEXTS, save_tiny
from training import export_onnx, reopen
from training.evening import even_out
from training.tower import Tower
from training.tower_files import write_tower


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A tiny BERT with an evened-out space behind its pooling, as `training.adapt` writes it."""
    source = save_tiny(tmp_path_factory.mktemp("tiny"), "bert", normalize=True)
    tower = Tower(source, 0)
    mean, turn = even_out(tower.read(tower.ids(TEXTS)).numpy(), 0.5)
    return write_tower(tower, tmp_path_factory.mktemp("model"), mean, turn)


@pytest.mark.parametrize(("precision", "least"), [("fp32", 0.99999), ("int8", 0.95)])
def test_a_bundle_opened_again_reads_as_the_model_it_was_made_of(model, tmp_path, precision, least):
    if precision == "int8":  # a random model's evened-out space is all rounding noise
        model = save_tiny(tmp_path / "model", "bert", normalize=True)
    export_onnx.main(export_onnx.Config(str(model), str(tmp_path / "bundle"), precision))
    opened = reopen.main(reopen.Config(str(tmp_path / "bundle"), str(tmp_path / "opened")))
    expected = TransformerEncoder(str(model)).encode(TEXTS)
    found = TransformerEncoder(str(opened)).encode(TEXTS)
    assert (found * expected).sum(1).min() > least
    served = load_encoder(tmp_path / "bundle").encode(TEXTS)
    assert (found * served).sum(1).min() > least


def test_an_opened_bundle_can_be_exported_again_and_stays_the_same(model, tmp_path):
    export_onnx.main(export_onnx.Config(str(model), str(tmp_path / "bundle"), "fp32"))
    opened = reopen.main(reopen.Config(str(tmp_path / "bundle"), str(tmp_path / "opened")))
    export_onnx.main(export_onnx.Config(str(opened), str(tmp_path / "again"), "fp32"))
    first, second = (load_encoder(tmp_path / name).encode(TEXTS) for name in ("bundle", "again"))
    np.testing.assert_allclose(first, second, atol=1e-5)


def test_what_is_no_exported_transformer_is_refused(tmp_path):
    with pytest.raises(EncoderError, match="no ONNX"):
        reopen.main(reopen.Config(str(FLOOD), str(tmp_path)))
    with pytest.raises(ConfigError, match="name a bundle"):
        reopen.main(reopen.Config())
