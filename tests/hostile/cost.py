"""What a record costs a worker: the whole of `Replay.feed`, so that no stage can be left out, and nothing is cached.

The parts are told by the agent whose work they are; what is in none of them (wire format, folding, JSON of what is
published) counts too, as `rest`. A stage that an agent gets one day has to get its place in PARTS: a test holds that.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import time
from collections.abc import Callable, Iterator
from itertools import islice
from unittest import mock

import msgspec
from threadpoolctl import threadpool_limits

from models.encoders.ready import load, ready
from models.encoders.word_cache import WordCache
from models.lid_words import WordModel
from models.pseudonyms import Pseudonyms
from models.queries import load_queries
from streams.commands.bench_scenarios import START, invented_texts
from streams.config import load_settings
from streams.pipeline import stages
from streams.pipeline.clusters import ClusterStage
from streams.pipeline.replay import Replay
from tests.hostile.inputs import crowd

__all__ = ["PARTS", "Cost"]

PARTS: dict[str, list[tuple[object, str]]] = {
    "normalise": [(stages, "parse"), (stages, "fold")],
    "embed": [(stages, "embed")],
    "match": [(stages, "match_many"), (stages, "alerts")],
    "cluster": [(ClusterStage, "add_all"), (ClusterStage, "finish")],
}
ORDINARY_POSTS = 400
OURS = ("models", "streams")
KEPT = (WordCache, WordModel)  # what keeps words
Cache = WordCache | WordModel | functools._lru_cache_wrapper
TABLE = 16  # a cache of fewer holds what is read once, such as a model


class Cost:
    """Seconds of CPU of this process, by part: the tokenizer works in a thread of its own.

    ref: the encoder; beside the fast one all else shows, beside the reader hardly anything but reading.
    """

    def __init__(self, ref: str = "flood", ordinary_posts: int = ORDINARY_POSTS) -> None:
        self._settings = load_settings(encoder={"ref": ref})
        self._ready = ready(load(ref), load_queries())
        self._caches: list[Cache] = []
        self.ordinary = crowd(*islice(invented_texts(), ordinary_posts))
        self.of(self.ordinary)  # models and tables are read with the first posts
        self._caches = list(caches())

    def of(self, record: bytes) -> dict[str, float]:
        """What one raw record costs, by part and `rest`, while every cache of texts is empty: who attacks says nothing
        twice."""
        for cache in self._caches:
            forget(cache)
        names = Pseudonyms(b"a secret of at least 32 characters")
        replay = Replay(self._settings, START, self._ready, names)
        spent = dict.fromkeys(PARTS, 0.0)
        with contextlib.ExitStack() as patches:
            for part, functions in PARTS.items():
                for owner, name in functions:
                    timed = _timed(getattr(owner, name), part, spent)
                    patches.enter_context(mock.patch.object(owner, name, timed))
            patches.enter_context(threadpool_limits(1))  # pools that spin would be counted
            begun = time.process_time()
            alerts, events = asyncio.run(replay.feed(record, 0))
            events += replay.clusters.finish()[0]
            msgspec.json.encode((alerts, events, replay.rejects))
            whole = time.process_time() - begun
        return spent | {"rest": whole - sum(spent.values())}

    def a_byte(self, record: bytes, times: int = 2) -> dict[str, float]:
        """µs a byte by part, and `all`: the best of so many, as a busy machine makes nothing cheaper."""
        best = min((self.of(record) for _ in range(times)), key=lambda spent: sum(spent.values()))
        told = {part: seconds / len(record) * 1e6 for part, seconds in best.items()}
        return told | {"all": sum(told.values())}


def _timed(work: Callable, part: str, spent: dict[str, float]) -> Callable:
    @functools.wraps(work)
    def timed(*args: object, **options: object) -> object:
        begun = time.process_time()
        try:
            return work(*args, **options)
        finally:
            spent[part] += time.process_time() - begun

    return timed


def forget(cache: Cache) -> None:
    """Empty it."""
    if isinstance(cache, KEPT):
        cache.forget()
    else:
        cache.cache_clear()


def caches() -> Iterator[Cache]:
    """All there are of texts."""
    gc.unfreeze()  # what tests/conftest.py keeps from the collector is not among its objects
    for thing in gc.get_objects():
        kind = type(thing)  # `isinstance` asks for a `__class__`, and torch's stand-ins for what is gone warn at that
        if issubclass(kind, KEPT):
            yield thing
        elif issubclass(kind, functools._lru_cache_wrapper) and str(thing.__module__).startswith(OURS):
            if (thing.cache_parameters()["maxsize"] or 0) >= TABLE:
                yield thing
