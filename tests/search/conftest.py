"""Topics of their own, a searcher that reads them, and a window that is given its frames by hand."""

from __future__ import annotations

import pytest

from streams.broker.topics import make_topics
from streams.config import Settings, load_settings
from streams.search.follower import Searcher
from streams.search.window import SearchConfig, Window
from tests.dashboard.serving import TinyEncoder
from tests.outputs.topics import fresh_prefix
from tests.search.sending import load_tiny


@pytest.fixture
def settings(embedded_broker) -> Settings:
    made = load_settings(broker={"bootstrap": embedded_broker}, topics={"prefix": fresh_prefix(), "partitions": 2})
    make_topics(made)
    return made


@pytest.fixture
async def searcher(settings):
    made = Searcher(settings, load=load_tiny)
    yield made
    await made.stop()


@pytest.fixture
async def window(settings):
    """One that is given its frames by hand."""
    made = Window(settings, SearchConfig(), TinyEncoder())
    yield made
    await made.close()
