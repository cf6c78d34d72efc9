"""A registry of three versions, and each of them ready; registries of every kind."""

from pathlib import Path

import pytest

from models.encoders.registry import OWN, Registry
from streams.config import load_settings
from streams.releases.versions import load_version, make_ready
from tests.releases.shop import QUERIES, TEXTS
from tests.releases.tiny import rotated_bundle, tiny_bundle, words_of


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Settings with a registry of three versions: v1, v2 of equal quality, v3 of another dimension."""
    folder = tmp_path_factory.mktemp("shop")
    registry = Registry(folder / "registry")
    words = words_of(TEXTS)
    tiny_bundle(folder / "own", seed=5, words=words)
    names = {}
    for name, write in {
        "v1": lambda p: tiny_bundle(p, seed=1, words=words),
        "v2": lambda p: rotated_bundle(p, folder / "v1"),
        "v3": lambda p: tiny_bundle(p, seed=3, words=words, dim=32),
    }.items():
        write(folder / name)
        names[name] = registry.publish(folder / name)
    chosen = load_settings(
        encoder={"ref": str(folder / "own"), "registry": str(folder / "registry")}, topics={"partitions": 4}
    )
    return chosen, names, folder


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """Where fetched versions go: one of this test's own."""
    monkeypatch.setenv("CRISIS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def readies(shop, tmp_path_factory):
    chosen, names, _ = shop
    cache = tmp_path_factory.mktemp("cache")
    return [make_ready(chosen, load_version(chosen, n, cache), QUERIES) for n in (OWN, *names.values())]


@pytest.fixture(scope="session")
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
