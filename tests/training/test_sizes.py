"""The curve of sizes: each is cut, taught, served and kept; what it takes for sizes."""

import json

import pytest

from models.encoders.load import load_encoder
from models.errors import ConfigError
from tests.models.tiny_transformer import save_tiny
from training.evaluate import sizes
from training.evaluate.__main__ import read_job


@pytest.fixture
def config(tmp_path, monkeypatch, one_thread):
    monkeypatch.setenv("CRISIS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sizes, "KEPT", {1: (2,), 2: (0, 2)})  # of a model of three layers
    words = ["smoke", f"model={save_tiny(tmp_path / 'whole', 'bert', normalize=True)}", f"out={tmp_path / 'out'}"]
    return read_job("sizes", [*words, "sizes=2x0,1x16", "written=60", f"result={tmp_path / 'sizes.json'}"])


def test_each_size_has_its_layers_and_neurons_and_a_killed_run_learns_none_twice(config, tmp_path, monkeypatch):
    written = json.loads(sizes.main(config).read_text("utf-8"))["metrics"]["sizes"]
    shapes = {}
    for name in ("2x0", "1x16"):
        shape = json.loads((tmp_path / "out" / name / "model" / "config.json").read_text("utf-8"))
        shapes[name] = shape["num_hidden_layers"], shape["intermediate_size"]
        assert written[name]["encoder"] == load_encoder(tmp_path / "out" / name / "bundle").version
        assert written[name]["posts_per_core_s"] > 0
    whole = json.loads((tmp_path / "whole" / "saved" / "config.json").read_text("utf-8"))
    assert shapes == {"2x0": (2, whole["intermediate_size"]), "1x16": (1, 16)}

    (tmp_path / "out" / "1x16" / "figures.json").unlink()
    learnt = []
    plain = sizes.shorten.learn
    monkeypatch.setattr(sizes.shorten, "learn", lambda knobs, *rest: learnt.append(knobs.keep) or plain(knobs, *rest))
    sizes.main(config)
    assert learnt == [(2,)]


@pytest.mark.parametrize("size", ["5x0", "two", "2xwide"])
def test_a_size_that_cannot_be_made_is_told_before_anything_is_learnt(config, size):
    with pytest.raises(ConfigError, match="LAYERSxNEURONS"):
        sizes.knobs_of(size, config)
