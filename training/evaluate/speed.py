"""Posts a second, text in to unit vector out, over invented posts of a real length mix, and the time to load."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier

from models.encoders.protocol import Encoder
from models.errors import EncoderError

__all__ = ["invented_posts", "side_by_side", "speed", "together"]

LOADED_S = 120.0  # within which every process has its encoder
_WORDS = (
    "water food please help the we in at river road bridge школа вода помощь улица agua ayuda casa calle necesitamos"
    " يا ماء مساعدة شارع पानी मदद घर 救助 水 道路 нужна flooded hospital roof children ambulans sel yardım jalan banjir"
).split()


def invented_posts(count: int, seed: int = 1, words: int = 19) -> list[str]:
    """Posts of 5 to 40 words, mean near 19 words, about the length of public crisis sets, or near `words`."""
    rng = random.Random(seed)
    return [" ".join(rng.choices(_WORDS, k=min(40, max(5, round(rng.gauss(words, 8)))))) for _ in range(count)]


def side_by_side(encoders: Sequence[Encoder], count: int = 2_000, rounds: int = 5) -> list[float]:
    """Posts a core-second of each, measured in turns: what a busy machine does to one, it does to the others.

    The best round of each, by processor time.
    """
    posts = invented_posts(count)
    best = [float("inf")] * len(encoders)
    for encoder in encoders:
        encoder.encode(posts[:200])
    for _ in range(rounds):
        for i, encoder in enumerate(encoders):
            start = time.process_time()
            encoder.encode(posts)
            best[i] = min(best[i], time.process_time() - start)
    return [count / seconds for seconds in best]


def together(load: Callable[[], Encoder], posts: Sequence[str], processes: int) -> int:
    """Posts a second of several processes that read all of them at once, by the clock of the slowest."""
    context = get_context("spawn")
    start, seconds = context.Barrier(processes, timeout=LOADED_S), context.SimpleQueue()
    running = [context.Process(target=_timed, args=(load, posts, start, seconds)) for _ in range(processes)]
    for process in running:
        process.start()
    for process in running:
        process.join()
    if failed := [process.exitcode for process in running if process.exitcode]:
        raise EncoderError(f"of {processes} processes that were to be timed {len(failed)} ended with {failed[0]}")
    return round(processes * len(posts) / max(seconds.get() for _ in running))


def _timed(load: Callable[[], Encoder], posts: Sequence[str], start: Barrier, seconds: SimpleQueue) -> None:
    encoder = load()
    encoder.encode(posts[:500])
    start.wait()
    began = time.perf_counter()
    encoder.encode(posts)
    seconds.put(time.perf_counter() - began)


def speed(load: Callable[[], Encoder], count: int = 20_000, words: int = 19) -> dict[str, float]:
    """`load_s`, `posts_per_s` (wall clock), `posts_per_core_s` (processor time: fair on a busy machine);
    best of three.
    """
    start = time.perf_counter()
    encoder = load()
    loaded = time.perf_counter() - start
    posts = invented_posts(count, words=words)
    encoder.encode(posts[:500])
    wall, processor = [], []
    for _ in range(3):
        start, start_processor = time.perf_counter(), time.process_time()
        encoder.encode(posts)
        wall.append(time.perf_counter() - start)
        processor.append(time.process_time() - start_processor)
    return {
        "load_s": round(loaded, 3),
        "posts_per_s": round(count / min(wall)),
        "posts_per_core_s": round(count / min(processor)),
    }
