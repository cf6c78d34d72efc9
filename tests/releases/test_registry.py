"""Registries: what was published is what is fetched, whoever else publishes at the same time."""

import json
import multiprocessing
import threading
from pathlib import Path

import pytest

from models.encoders.bundle import CALIBRATION, CARD, MANIFEST, add_file, read_bundle
from models.encoders.load import load_encoder
from models.encoders.registry import Registry, encoder_of, version_of
from models.errors import BundleError, ConfigError, EncoderError, ServiceError
from tests.releases.tiny import tiny_bundle


@pytest.fixture(scope="module")
def s3():
    """A real S3 server on loopback, with one bucket."""
    moto = pytest.importorskip("moto.server", reason="pip install 'moto[server]' s3fs")
    fsspec = pytest.importorskip("s3fs", reason="pip install 'moto[server]' s3fs")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    options = {
        "endpoint_url": f"http://{host}:{port}",
        "key": "test",
        "secret": "test",
        "client_kwargs": {"region_name": "eu-west-1"},
    }
    fsspec.S3FileSystem(skip_instance_cache=True, **options).mkdir("encoders")
    yield options
    server.stop()


@pytest.fixture(params=["directory", "s3", "memory"])
def registry(request, tmp_path) -> Registry:
    if request.param == "directory":
        return Registry(tmp_path / "registry")
    if request.param == "memory":  # any fsspec URL
        return Registry(f"memory://{tmp_path.name}/encoders")
    return Registry(f"s3://encoders/{tmp_path.name}", **request.getfixturevalue("s3"))


def test_a_published_version_is_listed_and_fetched_as_it_was(registry, tmp_path):
    assert registry.list() == []
    encoder_id = tiny_bundle(tmp_path / "one", seed=1, licence="CC0-1.0")
    version = registry.publish(tmp_path / "one")
    assert version == encoder_id
    (entry,) = registry.list()
    assert (entry.version, entry.manifest.licence, entry.problem) == (version, "CC0-1.0", "")
    fetched = registry.fetch(version, tmp_path / "cache").path
    assert fetched == tmp_path / "cache" / version
    assert read_bundle(fetched).manifest == read_bundle(tmp_path / "one").manifest
    assert load_encoder(fetched).version == encoder_id
    assert not [p for p in (tmp_path / "cache").iterdir() if p.name.startswith(".")]


def test_new_thresholds_for_the_same_encoder_are_a_new_version_of_it(registry, tmp_path):
    encoder_id = tiny_bundle(tmp_path / "one")
    plain = registry.publish(tmp_path / "one")
    add_file(tmp_path / "one", CALIBRATION, b'{"encoder_version": "x"}')
    calibrated = registry.publish(tmp_path / "one")
    assert calibrated != plain
    assert encoder_of(calibrated) == encoder_of(plain) == encoder_id
    assert not (registry.fetch(plain, tmp_path / "cache").path / CALIBRATION).exists()
    assert (registry.fetch(calibrated, tmp_path / "cache").path / CALIBRATION).exists()
    assert registry.resolve(calibrated[:20]) == calibrated
    assert registry.resolve(plain) == plain


def test_publishing_again_changes_nothing_and_mends_what_was_damaged(registry, tmp_path):
    tiny_bundle(tmp_path / "one")
    version = registry.publish(tmp_path / "one")
    assert registry.publish(tmp_path / "one") == version
    registry._fs.pipe_file(registry._path(version, "model.safetensors"), b"half of")
    with pytest.raises(BundleError, match="changed"):
        registry.fetch(version, tmp_path / "cache")
    registry.publish(tmp_path / "one")
    assert registry.fetch(version, tmp_path / "cache").path.exists()


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


# memory:// gives all threads of a process one open file with one place in it, so nobody can read it side by side.
@pytest.mark.parametrize("registry", ["directory", "s3"], indirect=True)
def test_two_publishers_at_once_and_a_reader_never_see_a_broken_version(registry, tmp_path):
    """Both publish the same three versions, in opposite orders, while a third fetches what is listed."""
    paths = [tmp_path / f"v{n}" for n in range(3)]
    ids = {tiny_bundle(path, seed=n) for n, path in enumerate(paths)}
    problems: list[BaseException] = []
    done = threading.Event()

    def publish(order):
        try:
            for _ in range(2):
                for path in order:
                    registry.publish(path)
        except BaseException as error:
            problems.append(error)

    def read():
        number = 0
        while not done.is_set():
            for entry in registry.list():
                try:
                    registry.fetch(entry.version, tmp_path / f"cache{number}")
                except BaseException as error:
                    problems.append(error)
                number += 1

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=publish, args=(order,)) for order in (paths, paths[::-1])]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert not problems
    assert {entry.version for entry in registry.list()} == ids
    leftovers = [n for v in ids for n in registry._fs.ls(registry._path(v), detail=False) if "/." in str(n)]
    assert not leftovers


def test_publishers_of_one_encoder_with_other_cards_and_thresholds_do_not_mix(registry, tmp_path):
    """The encoder's id is the same; what was added differs, so each is a version of its own, whole
    whenever it is seen.
    """
    versions = {}
    for n in range(4):
        tiny_bundle(tmp_path / f"v{n}")
        add_file(tmp_path / f"v{n}", CARD, b"# measured %d times" % (n % 2))
        add_file(tmp_path / f"v{n}", CALIBRATION, b'{"encoder_version": "%d"}' % (n // 2))
        versions[version_of(read_bundle(tmp_path / f"v{n}"))] = tmp_path / f"v{n}"
    assert len(versions) == 4
    assert len({encoder_of(v) for v in versions}) == 1
    writers = [threading.Thread(target=registry.publish, args=(path,)) for path in versions.values()]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    for version, path in versions.items():
        fetched = registry.fetch(version, tmp_path / "cache").path
        assert (fetched / CARD).read_bytes() == (path / CARD).read_bytes()
        assert (fetched / CALIBRATION).read_bytes() == (path / CALIBRATION).read_bytes()


def test_what_people_made_current_is_noted_and_is_no_version(registry, tmp_path):
    assert registry.chosen() is None
    for version in ("0123456789ab", "own"):
        registry.choose(version)
        assert registry.chosen() == version
    assert registry.list() == []


def test_a_version_of_a_format_of_the_future_is_listed_as_one_that_cannot_be_read(registry, tmp_path):
    tiny_bundle(tmp_path / "one")
    version = registry.publish(tmp_path / "one")
    raw = (tmp_path / "one" / MANIFEST).read_bytes().replace(b"crisis-encoder/1", b"crisis-encoder/9")
    registry._fs.pipe_file(registry._path(version, MANIFEST), raw)
    (entry,) = registry.list()
    assert (entry.manifest, entry.problem) == (None, "format 'crisis-encoder/9': this version cannot read it")
    with pytest.raises(BundleError, match="has format 'crisis-encoder/9', this version reads crisis-encoder/1"):
        registry.fetch(version, tmp_path / "cache")


def _publish(url: str, bundle: str, barrier, options: dict) -> None:
    barrier.wait()
    Registry(url, **options).publish(bundle)


def test_two_processes_publish_the_same_version_to_s3_at_once(s3, tmp_path):
    version = tiny_bundle(tmp_path / "one")
    url = f"s3://encoders/{tmp_path.name}"
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    writers = [context.Process(target=_publish, args=(url, str(tmp_path / "one"), barrier, s3)) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [w.exitcode for w in writers] == [0, 0]
    assert Registry(url, **s3).fetch(version, tmp_path / "cache").id == version


def test_an_unknown_protocol_and_an_absent_server_say_so(tmp_path):
    with pytest.raises(ConfigError, match="registry gopher://x"):
        Registry("gopher://x")
    pytest.importorskip("s3fs")
    away = Registry(
        "s3://encoders/x",
        endpoint_url="http://127.0.0.1:9",
        key="k",
        secret="s",
        config_kwargs={"retries": {"max_attempts": 0}, "connect_timeout": 1},
    )
    with pytest.raises(ServiceError, match="s3://encoders/x: cannot list"):
        away.list()


def test_a_prefix_that_fits_none_or_several_names_the_choices(tmp_path):
    registry = Registry(tmp_path / "registry")
    with pytest.raises(EncoderError, match="no version starts with 'abc'.*none"):
        registry.resolve("abc")
    for seed in range(20):
        tiny_bundle(tmp_path / "one", seed=seed)
        registry.publish(tmp_path / "one")
    assert len(registry.list()) == 20
    with pytest.raises(EncoderError, match="several versions start with ''"):
        registry.resolve("")


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
