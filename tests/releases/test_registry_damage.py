"""What was damaged, cut short or forged in a registry is refused with the reason, and hides nothing else."""

import json
from pathlib import Path

import pytest

from models.encoders.bundle import CALIBRATION, MANIFEST, add_file, read_bundle
from models.encoders.registry import Registry, version_of
from models.errors import BundleError, EncoderError, ServiceError
from tests.releases.tiny import tiny_bundle


def test_an_upload_that_ended_half_way_is_no_version(registry, tmp_path, monkeypatch):
    tiny_bundle(tmp_path / "one")
    put_file = registry._fs.put_file

    def dies_at_the_second(local, remote, **options):
        if "tokenizer" in remote:
            raise ConnectionResetError("the line is dead")
        return put_file(local, remote, **options)

    monkeypatch.setattr(registry._fs, "put_file", dies_at_the_second)
    with pytest.raises(ServiceError, match="cannot publish .*the line is dead"):
        registry.publish(tmp_path / "one")
    assert registry.list() == []
    with pytest.raises(EncoderError, match="no version"):
        registry.fetch(version_of(read_bundle(tmp_path / "one")), tmp_path / "cache")
    monkeypatch.undo()
    assert registry.publish(tmp_path / "one") == registry.list()[0].version


def test_an_upload_that_arrives_truncated_is_noticed_before_it_becomes_a_version(registry, tmp_path, monkeypatch):
    tiny_bundle(tmp_path / "one")
    put_file = registry._fs.put_file

    def cuts(local, remote, **options):
        if remote.rpartition("/")[2].lstrip(".").startswith("model"):
            Path(cut := tmp_path / "cut").write_bytes(Path(local).read_bytes()[:-10])
            local = str(cut)
        return put_file(local, remote, **options)

    monkeypatch.setattr(registry._fs, "put_file", cuts)
    with pytest.raises(ServiceError, match=r"arrived with \d+ of \d+ bytes"):
        registry.publish(tmp_path / "one")
    assert registry.list() == []


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda put, cut, v: put("tokenizer.json", b"{}"), "tokenizer.json of .* was changed"),
        (lambda put, cut, v: cut("model.safetensors"), "model.safetensors is missing"),
        (lambda put, cut, v: put(MANIFEST, b'{"format": "crisis-enc'), "manifest.json"),
        (lambda put, cut, v: put(MANIFEST, b'{"format": "crisis-encoder/9"}'), "manifest"),
        (lambda put, cut, v: put(CALIBRATION, b"{}"), "calibration.json of .* was changed"),
    ],
)
def test_a_damaged_version_is_refused_with_the_reason_and_not_kept(registry, tmp_path, damage, reason):
    tiny_bundle(tmp_path / "one")
    add_file(tmp_path / "one", CALIBRATION, b'{"encoder_version": "x"}')
    version = registry.publish(tmp_path / "one")
    fs, path = registry._fs, registry._path
    damage(lambda n, b: fs.pipe_file(path(version, n), b), lambda n: fs.rm_file(path(version, n)), version)
    with pytest.raises(BundleError, match=reason):
        registry.fetch(version, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_manifest_cannot_write_outside_its_folder(registry, tmp_path):
    tiny_bundle(tmp_path / "one")
    version = registry.publish(tmp_path / "one")
    manifest = json.loads((tmp_path / "one" / MANIFEST).read_text())
    manifest["files"]["../../escaped"] = "0" * 64
    registry._fs.pipe_file(registry._path(version, MANIFEST), json.dumps(manifest).encode())
    with pytest.raises(BundleError, match="names files it may not"):
        registry.fetch(version, tmp_path / "cache")


@pytest.mark.parametrize("version", ["../../etc", "", "ABCDEFABCDEF", "0123456789ab-", "0123456789ab/x"])
def test_a_name_that_is_no_version_is_refused(tmp_path, version):
    with pytest.raises(EncoderError, match="no version"):
        Registry(tmp_path).fetch(version, tmp_path / "cache")


def test_a_tampered_cache_is_fetched_again(registry, tmp_path):
    tiny_bundle(tmp_path / "one")
    version = registry.publish(tmp_path / "one")
    cached = registry.fetch(version, tmp_path / "cache").path
    (cached / "model.safetensors").write_bytes(b"no")
    assert registry.fetch(version, tmp_path / "cache").id == version
    assert not [p for p in (tmp_path / "cache").iterdir() if p.name.startswith(".")]


def test_a_version_of_a_format_of_the_future_is_listed_as_one_that_cannot_be_read(registry, tmp_path):
    tiny_bundle(tmp_path / "one")
    version = registry.publish(tmp_path / "one")
    raw = (tmp_path / "one" / MANIFEST).read_bytes().replace(b"crisis-encoder/1", b"crisis-encoder/9")
    registry._fs.pipe_file(registry._path(version, MANIFEST), raw)
    (entry,) = registry.list()
    assert (entry.manifest, entry.problem) == (None, "format 'crisis-encoder/9': this version cannot read it")
    with pytest.raises(BundleError, match="has format 'crisis-encoder/9', this version reads crisis-encoder/1"):
        registry.fetch(version, tmp_path / "cache")


DEEP = b'{"backend": "static", "evaluation": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}"


def test_one_manifest_nested_without_end_hides_no_other_version(registry, tmp_path):
    tiny_bundle(tmp_path / "one")
    version = registry.publish(tmp_path / "one")
    for hostile, raw in (("0" * 12, DEEP), ("1" * 12, b"\xff\xfe"), ("2" * 12, b"[" * 100_000)):
        registry._fs.makedirs(registry._path(hostile), exist_ok=True)
        registry._fs.pipe_file(registry._path(hostile, MANIFEST), raw)
        with pytest.raises(BundleError):
            registry.fetch(hostile, tmp_path / "cache")
    assert sorted(entry.version for entry in registry.list() if entry.problem) == ["0" * 12, "1" * 12, "2" * 12]
    assert registry.resolve(version[:6]) == version  # RecursionError, it was: for every command of a release


def test_a_file_of_another_size_is_refused_before_a_byte_of_it_is_copied(registry, tmp_path, monkeypatch):
    tiny_bundle(tmp_path / "one")
    version = registry.publish(tmp_path / "one")
    registry._fs.pipe_file(registry._path(version, "model.safetensors"), b"x" * 5_000_000)
    copied = []
    monkeypatch.setattr(registry._fs, "get_file", lambda path, *_: copied.append(path))
    with pytest.raises(BundleError, match="5,000,000 bytes .* by the manifest"):
        registry.fetch(version, tmp_path / "cache")
    assert not [path for path in copied if path.endswith("model.safetensors")]


@pytest.mark.parametrize("name", ["\0a", "a\nb", "", "a" * 5_000])
def test_a_name_no_system_takes_is_refused_in_a_sentence(tmp_path, name):
    tiny_bundle(tmp_path / "one")
    registry = Registry(tmp_path / "registry")
    version = registry.publish(tmp_path / "one")
    path = tmp_path / "registry" / version / MANIFEST
    manifest = json.loads(path.read_bytes())
    path.write_text(json.dumps(manifest | {"files": {name: "0" * 64}}))
    with pytest.raises(BundleError, match="may not"):
        registry.fetch(version, tmp_path / "cache")
    with pytest.raises(BundleError, match="outside itself"):
        read_bundle(path.parent)
