"""The end-to-end tests run against Apache Kafka, once, and Debian's Redis.

The embedded broker is held to Apache Kafka by tests/embedded, one suite on both, and carries `crisis demo`
(test_demo.py): running every pipeline on it too would show the same again.
"""

import msgspec
import pytest
import pytest_asyncio

from models.clusters.config import ClusterConfig
from models.encoders.bundle import CLUSTERS, add_file
from models.encoders.cluster_thresholds import TunedClusters
from models.encoders.registry import Registry
from tests.conftest import needed
from tests.e2e.harness import pipeline
from tests.e2e.takeovers import HAPPENINGS, NEEDS, TALK
from tests.releases.tiny import rotated_bundle, tiny_bundle, words_of
from tests.services.redis import running_redis


@pytest.fixture
def start(live_broker, redis_url, tmp_path):
    """start(partitions=…) → a Pipeline as an async context."""
    return lambda **options: pipeline(live_broker, redis_url, tmp_path / "logs", **options)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one_worker(live_broker, tmp_path_factory):
    """A pipeline of one partition with a worker, for a module of tests that are each about posts of their own."""
    with needed(running_redis()) as url:  # not the one that is emptied between tests
        async with pipeline(live_broker, url, tmp_path_factory.mktemp("logs"), partitions=1) as live:
            await live.start_worker()
            yield live


@pytest_asyncio.fixture(loop_scope="module")
async def live(one_worker):
    """It, where only what this test sends is counted and read."""
    await one_worker.anew()
    return one_worker


@pytest.fixture
def versions(tmp_path, monkeypatch) -> dict[str, str]:
    """A registry with v1 and v2 (v1 turned: equal quality); workers start with v1 as their own."""
    words = words_of([*NEEDS, *HAPPENINGS, *TALK, *(f"note{n}" for n in range(60))])
    ids = {
        "v1": tiny_bundle(tmp_path / "v1", words=words),
        "v2": rotated_bundle(tmp_path / "v2", tmp_path / "v1"),
    }
    for name, version in ids.items():  # as of every version that was measured: its own thresholds of clusters
        tuned = TunedClusters(version, t_attach=0.6, t_merge=0.6, lexical=ClusterConfig().lexical)
        add_file(tmp_path / name, CLUSTERS, msgspec.json.encode(tuned))
    registry = Registry(tmp_path / "registry")
    monkeypatch.setenv("CRISIS_ENCODER__REF", str(tmp_path / "v1"))
    monkeypatch.setenv("CRISIS_ENCODER__REGISTRY", str(tmp_path / "registry"))
    monkeypatch.setenv("CRISIS_CACHE", str(tmp_path / "cache"))
    return {name: registry.publish(tmp_path / name) for name in ("v1", "v2")}
