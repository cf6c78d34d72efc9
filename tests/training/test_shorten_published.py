"""What a bundle made by the README's commands tells of its making, and that it is published as it is, on a tiny model.

training.shorten → training.adapt → training.export_onnx → training.words → training.publish.
"""

import json

import msgspec
import pytest
import torch
from safetensors.torch import save_file

from models.encoders.bundle import LanguageFigures, read_bundle
from models.encoders.load import load_encoder
from models.encoders.registry import Registry
from models.queries import load_queries
from tests.models.tiny_bundle import tiny_manifest
from tests.models.tiny_transformer import save_tiny
from training import adapt, export_onnx, publish, shorten, words
from training.class_material import Taught
from training.export_onnx import Learnt, learnt_by
from training.files import hash_rows
from training.loop import CHECKPOINT
from training.publish import untold, with_languages

TEXTS = [f"{what} {n}" for n in "abcdefg" for what in ("we need water", "a cup of water", "bread for us")]
LABELS = ["need.water", "news", "need.food"] * 7


def few(material):
    """A fifth of what is learnt from: the query packs alone have 2,800 sentences."""

    def some(config):
        taught, names, standing = material(config)
        return Taught(taught.texts[::5], taught.labels[::5], taught.weights[::5]), names, standing[::5]

    return some


@pytest.fixture
def made(tmp_path, one_thread, monkeypatch):
    """The bundle, as the commands leave it."""
    monkeypatch.setattr(adapt, "_material", few(adapt._material))
    whole = save_tiny(tmp_path / "whole", "bert", normalize=True)
    knobs = dict(batch=16, written=60, data=False)
    short = shorten.main(shorten.Config(str(whole), str(tmp_path / "short"), (0, 2), 1, epochs=1, **knobs))
    adapted = adapt.main(
        adapt.Config(str(short), str(tmp_path / "adapted"), frozen=1, epochs=1, sentences=8, others=4, **knobs)
    )
    export_onnx.main(export_onnx.Config(str(adapted), str(tmp_path / "plain"), "fp32", max_texts=50))
    taught = Taught(TEXTS, LABELS, [1.0] * len(TEXTS))
    scores = words.fit_words(words.Config(least=2), TEXTS, taught, sorted(set(LABELS)))
    words.put_words(tmp_path / "plain", tmp_path / "candidate", load_encoder(tmp_path / "plain"), scores)
    return tmp_path / "candidate"


def test_a_bundle_made_by_the_readmes_commands_tells_what_it_learnt_from_and_is_published(made, monkeypatch, tmp_path):
    manifest = read_bundle(made).manifest
    texts, _ = shorten.material(shorten.Config(written=60, data=False))
    assert list(manifest.data_hashes) == ["adapt", "shorten"]
    assert manifest.data_hashes["shorten"] == hash_rows(texts)
    last, before = (msgspec.convert(run, Learnt) for run in manifest.training["runs"])
    assert (last.job, before.job) == ("training.adapt", "training.shorten")
    assert last.config["model"] == "short/model" and before.config["keep"] == [0, 2]  # no folder of this machine

    monkeypatch.setattr(publish.speed, "side_by_side", lambda encoders: [1000.0] * len(encoders))
    monkeypatch.setattr(publish, "load_queries", lambda: load_queries()[::12])
    assert untold(manifest) == ["manifest: languages is empty"]  # measured by whoever publishes it
    version = publish.main(publish.Config(str(made), registry=str(tmp_path / "registry"), current="none", data=False))
    published = Registry(tmp_path / "registry").fetch(version, tmp_path / "fetched").manifest
    assert published.id == manifest.id and not untold(published)
    assert {"en", "es", "ar"} <= published.languages.keys()
    assert published.evaluation["gates"]["regressions"] == [] and "forced" not in published.evaluation


def test_a_version_that_tells_no_language_gets_those_it_was_measured_in_and_one_that_does_keeps_its_own():
    manifest = tiny_manifest()
    figures = {
        "matching": {"sw": 0.91234, "fr": 0.99},
        "relatedness": {"fr": 0.7},
        "query_matching": {"fr": 0.5, "ht": 0.4},
        "need_precision": {"water": 0.3},  # by label
        "posts_per_core_s": {"all": 300.0},
    }
    told = with_languages(manifest, figures)
    assert told.languages == {
        "fr": LanguageFigures(matching=0.99, relatedness=0.7),
        "ht": LanguageFigures(),
        "sw": LanguageFigures(matching=0.9123),
    }
    own = msgspec.structs.replace(manifest, languages={"en": LanguageFigures(pairs=7)})
    assert with_languages(own, figures) == own
    assert "manifest: languages is empty" in untold(with_languages(manifest, {}))
    assert "manifest: languages is empty" not in untold(told)


def run_at(folder, knobs, data_hash, **told):
    """What training.loop leaves beside a model, and the model's folder."""
    (folder / "run").mkdir(parents=True)
    (folder / "model").mkdir()
    metadata = {"key": json.dumps([knobs, data_hash, {}]), "trace": "{}", **told}
    save_file({"module.x": torch.zeros(1)}, folder / "run" / CHECKPOINT, metadata=metadata)
    return folder / "model"


def test_the_runs_behind_a_model_are_followed_back_to_the_first_that_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    opened = tmp_path / "opened"  # by training.reopen: no run made it
    opened.mkdir()
    run_at(tmp_path / "one", {"model": str(opened)}, "1", job="training.adapt")
    run_at(tmp_path / "two", {"model": "one/model", "epochs": 2}, "2")  # older than the record of the job
    three = run_at(tmp_path / "three", {"model": str(tmp_path / "two" / "model")}, "3", job="training.adapt")
    runs = learnt_by(three)
    assert [(run.job, run.data_hash) for run in runs] == [
        ("training.adapt", "3"),
        ("two", "2"),
        ("training.adapt", "1"),
    ]
    assert export_onnx.hashes(runs) == {"adapt": "3", "two": "2", "adapt 2": "1"}
    assert learnt_by(opened) == []


def test_of_a_model_from_elsewhere_nothing_is_claimed(tmp_path):
    whole = save_tiny(tmp_path, "bert")
    manifest = export_onnx.main(export_onnx.Config(str(whole), str(tmp_path / "b"), "fp32", max_texts=50))
    assert manifest.data_hashes == {} and manifest.training["runs"] == []
    assert "manifest: data_hashes is empty" in untold(manifest)
