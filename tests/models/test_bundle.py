"""A bundle on the disk: what is kept, what is refused and why."""

import json
import shutil

import numpy as np
import pytest

from models.encoders.bundle import CALIBRATION, QUERY_VECTORS, add_file, contents, read_bundle, write_bundle
from models.encoders.load import load_encoder
from models.encoders.whitening import Whitening
from models.errors import BundleError, EncoderError
from models.text import Cleaning
from tests.models.tiny_bundle import tiny_files, tiny_manifest


def test_a_bundle_survives_the_way_to_disk_and_back(tmp_path):
    written = write_bundle(tmp_path / "b", tiny_manifest(parent="abc"), tiny_files())
    bundle = read_bundle(tmp_path / "b")
    assert bundle.manifest == written
    assert bundle.id == written.id != ""
    assert contents(bundle) == tiny_files()


def test_the_id_follows_the_weights_and_settings_but_not_measures_or_calibration(tmp_path):
    plain = write_bundle(tmp_path / "a", tiny_manifest(), tiny_files())
    measured = write_bundle(tmp_path / "b", tiny_manifest(evaluation={"x": 1}, licence="MIT"), tiny_files())
    assert plain.id == measured.id
    for name in ("README.md", CALIBRATION, QUERY_VECTORS):
        assert add_file(tmp_path / "b", name, b"{}").id == plain.id
    other_weights = write_bundle(tmp_path / "c", tiny_manifest(), tiny_files(seed=1))
    other_cleaning = write_bundle(
        tmp_path / "d", tiny_manifest(cleaning=Cleaning(mention_token="@MENTION")), tiny_files()
    )
    assert len({plain.id, other_weights.id, other_cleaning.id}) == 3


def test_a_calibration_may_be_added_and_replaced_later_and_nothing_else(tiny):
    for said in (b'{"need.water": 0.4}', b"{}"):
        add_file(tiny, CALIBRATION, said)
        assert contents(read_bundle(tiny))[CALIBRATION] == said
    with pytest.raises(BundleError, match="model.safetensors cannot be added"):
        add_file(tiny, "model.safetensors", b"")


@pytest.mark.parametrize("name", [CALIBRATION, QUERY_VECTORS, "README.md"])
def test_an_added_file_that_was_changed_or_slipped_in_is_refused(tiny, name):
    (tiny / name).write_bytes(b"{}")
    with pytest.raises(BundleError, match=f"{name}, which manifest.json does not list"):
        read_bundle(tiny)
    (tiny / name).unlink()
    add_file(tiny, name, b"{}")
    (tiny / name).write_bytes(b"{ }")
    with pytest.raises(BundleError, match=f"{name} was changed"):
        read_bundle(tiny)


def test_replacing_a_bundle_leaves_nothing_behind(tiny):
    add_file(tiny, CALIBRATION, b"{}")
    write_bundle(tiny, tiny_manifest(), tiny_files(seed=2))
    assert contents(read_bundle(tiny)) == tiny_files(seed=2)
    assert [p.name for p in tiny.parent.iterdir()] == ["tiny"]


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_changed_byte_is_refused_by_file_name(tiny, name):
    content = bytearray((tiny / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tiny / name).write_bytes(content)
    with pytest.raises(BundleError, match=name):
        load_encoder(tiny)


def test_a_truncated_or_missing_file_is_refused(tiny):
    weights = tiny / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(BundleError, match="was changed"):
        read_bundle(tiny)
    weights.unlink()
    with pytest.raises(BundleError, match="missing"):
        read_bundle(tiny)


@pytest.mark.parametrize(
    "key, value, reason",
    [
        ("format", "crisis-encoder/99", "format"),
        ("dim", 9, "edited by hand"),
        ("max_length", 3, "edited by hand"),
        ("files", {}, "no files"),
        ("files", {"../x": "00"}, "outside itself"),
        ("backend", 7, "not a manifest"),
    ],
)
def test_an_edited_manifest_is_refused_with_the_reason(tiny, key, value, reason):
    manifest = json.loads((tiny / "manifest.json").read_text())
    manifest[key] = value
    (tiny / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match=reason):
        read_bundle(tiny)


def test_a_truncated_manifest_is_refused(tiny):
    raw = (tiny / "manifest.json").read_bytes()
    (tiny / "manifest.json").write_bytes(raw[: len(raw) // 2])
    with pytest.raises(BundleError, match="not JSON"):
        read_bundle(tiny)


def test_a_table_that_does_not_fit_its_tokenizer_is_refused(tmp_path):
    files = {**tiny_files(pieces=40), "tokenizer.json": tiny_files(pieces=39)["tokenizer.json"]}
    write_bundle(tmp_path / "b", tiny_manifest(), files)
    with pytest.raises(BundleError, match="39 features"):
        load_encoder(tmp_path / "b")


def test_a_folder_that_is_no_model_is_refused(tmp_path):
    with pytest.raises(EncoderError, match="neither"):
        load_encoder(tmp_path)


def test_a_back_end_this_version_lacks_is_refused(tmp_path):
    write_bundle(tmp_path / "b", tiny_manifest(backend="quantum"), tiny_files())
    with pytest.raises(EncoderError, match="quantum"):
        load_encoder(tmp_path / "b")


def test_a_whitening_the_manifest_names_is_applied_and_part_of_the_id(tmp_path):
    plain = write_bundle(tmp_path / "plain", tiny_manifest(), tiny_files())
    encoder, texts = load_encoder(tmp_path / "plain"), ["need water", "help", "we need help", ""]
    whitening = Whitening(np.full(8, 0.1, np.float32), np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32))
    manifest, files = (
        tiny_manifest(dim=3, whitening="w.safetensors"),
        {**tiny_files(), "w.safetensors": whitening.to_bytes()},
    )
    written = write_bundle(tmp_path / "white", manifest, files)
    white = load_encoder(tmp_path / "white")
    assert (white.version, white.dim) == (written.id, 3)
    assert written.id != plain.id
    expected = whitening.apply(encoder.encode(texts))
    np.testing.assert_allclose(
        white.encode(texts), expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-5
    )
    for wrong, reason in (
        (tiny_manifest(dim=4, whitening="w.safetensors"), "its whitening gives 3"),
        (tiny_manifest(dim=3, whitening="v.safetensors"), "does not hold it"),
    ):
        write_bundle(tmp_path / "wrong", wrong, files)
        with pytest.raises(BundleError, match=reason):
            load_encoder(tmp_path / "wrong")


def test_a_failed_write_leaves_the_old_bundle(tiny, monkeypatch):
    before = read_bundle(tiny)
    monkeypatch.setattr("models.encoders.bundle.read_bundle", lambda path: (_ for _ in ()).throw(BundleError("bad")))
    with pytest.raises(BundleError):
        write_bundle(tiny, tiny_manifest(), tiny_files(seed=3))
    monkeypatch.undo()
    assert read_bundle(tiny).manifest == before.manifest
    shutil.rmtree(tiny)
