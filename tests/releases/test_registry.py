"""Registries: what was published is what is fetched, whoever else publishes at the same time."""

import multiprocessing
import threading

import pytest

from models.encoders.bundle import CALIBRATION, CARD, add_file, read_bundle
from models.encoders.load import load_encoder
from models.encoders.registry import Registry, encoder_of, version_of
from models.errors import BundleError, ConfigError, EncoderError, ServiceError
from tests.releases.tiny import tiny_bundle


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


def test_a_copy_that_another_worker_of_the_machine_put_there_meanwhile_stays_in_place(registry, tmp_path, monkeypatch):
    """It may be reading it: thresholds gone for that moment were taken for none, and clusters ran together."""
    tiny_bundle(tmp_path / "one")
    version, cache = registry.publish(tmp_path / "one"), tmp_path / "cache"
    download, found = Registry._download, []

    def slowly(self, name, into):
        download(self, name, into)
        monkeypatch.setattr(Registry, "_download", download)
        found.append(registry.fetch(name, cache).path.stat().st_ino)

    monkeypatch.setattr(Registry, "_download", slowly)
    assert registry.fetch(version, cache).path.stat().st_ino == found[0]
    assert [path.name for path in cache.iterdir()] == [version]


def test_publishing_again_changes_nothing_and_mends_what_was_damaged(registry, tmp_path):
    tiny_bundle(tmp_path / "one")
    version = registry.publish(tmp_path / "one")
    assert registry.publish(tmp_path / "one") == version
    registry._fs.pipe_file(registry._path(version, "model.safetensors"), b"half of")
    with pytest.raises(BundleError, match="changed"):
        registry.fetch(version, tmp_path / "cache")
    registry.publish(tmp_path / "one")
    assert registry.fetch(version, tmp_path / "cache").path.exists()


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
