"""The scenarios of `crisis bench`. One keeps its id and its meaning for ever; another measurement gets a new id."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np

from models.clustering import ClusterConfig, Clusterer
from models.clusters.vectors import widened
from models.encoders.ready import Ready, load, ready
from models.pseudonyms import Pseudonyms
from models.queries import background_texts, load_queries
from models.records import MatchedFrame, Origin, Post
from streams.commands.bench_growth import SCENARIOS as GROWTH
from streams.commands.bench_queries import SIZES, frames_of, measure_queries
from streams.config import Settings
from streams.ingest.lines import open_lines
from streams.pipeline import stages
from streams.pipeline.clusters import ClusterStage
from streams.pipeline.ports import Verdict
from streams.pipeline.replay import replay_records
from streams.worker.threads import VARIABLES, limit_native_threads

__all__ = ["FRAME", "Lab", "SCENARIOS"]

FRAME = 100
START = 1_700_000_000.0
STREAMS = ("stream-crisis-t26", "stream-tweets-t", "trecis-stream")


class Lab:
    """What the scenarios work on."""

    def __init__(self, settings: Settings, posts: int, invented: bool) -> None:
        self.settings, self.number = settings, posts
        found = [] if invented else list(itertools.islice(real_texts(), posts))
        self.real = len(found) == posts
        self.texts = found if self.real else list(itertools.islice(invented_texts(), posts))
        self.ready: Ready = ready(load(settings.encoder.ref), load_queries(), settings.match)
        lines = [
            msgspec.json.encode({"id": f"p{i}", "text": text, "created_at": START + i / 500})
            for i, text in enumerate(self.texts)
        ]
        self.records = [b"\n".join(lines[i : i + FRAME]) for i in range(0, posts, FRAME)]
        for raw in self.records[:2]:  # the language models are read with the first post
            stages.parse(raw, Origin(0, 0), START, Pseudonyms(b"bench"))
        self.ready.encoder.encode(self.texts)


def real_texts() -> Iterator[str]:
    """Posts of the streams under CRISIS_DATA, taken in turn."""
    folder = Path(os.environ.get("CRISIS_DATA", "/nowhere"))
    paths = [path for name in STREAMS if (path := folder / name / "stream.jsonl.gz").exists()]
    with contextlib.ExitStack() as stack:
        for lines in zip(*(stack.enter_context(open_lines(path)) for path in paths), strict=False):
            yield from (json.loads(line)["text"] for line in lines)


def invented_texts() -> Iterator[str]:
    """Sentences of the query packs and everyday ones with a place and a number: the same every time."""
    rng = random.Random(0)
    sentences = sorted({text for query in load_queries() for _, text in query.texts()} | set(background_texts()))
    places = ["".join(rng.choices("aeioubdgklmnrst", k=6)).capitalize() for _ in range(3_000)]
    while True:
        parts = rng.sample(sentences, rng.choice((1, 1, 2)))
        yield f"{' '.join(parts)} {rng.choice(places)} {rng.randrange(1_000)}"


def _us(work: Callable[[], object], posts: int) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) / posts * 1e6


def yardstick(lab: Lab) -> dict[str, float]:
    """A fixed piece of Python and numpy: how fast this machine is now."""
    rows = np.ones((512, 256), np.float32)

    def work() -> None:
        for _ in range(40):
            rows @ rows.T
            sum(len(word) for word in ("water needed in the camp " * 800).split())

    return {"work": _us(work, 100)}


def stages_1(lab: Lab) -> dict[str, float]:
    """Each stage over the same frames, CPU µs a post; `replay` does all of it, and its wiring, again."""
    encoder, matcher, cost = lab.ready.encoder, lab.ready.matcher, {}
    read_by = lab.ready.clustered_by
    clusters = ClusterStage.new(lab.settings.clusters_under(lab.ready.clusters), read_by.dim, read_by.version)
    parsed, embedded, matched = [], [], []
    steps: list[tuple[str, Callable[[], object]]] = [
        (
            "parse",
            lambda: parsed.extend(
                stages.parse(raw, Origin(0, n), START + 1e6, Pseudonyms(b"bench")) for n, raw in enumerate(lab.records)
            ),
        ),
        (
            "encode",
            lambda: embedded.extend(stages.embed(stages.fold(p, [Verdict()] * len(p.posts)), encoder) for p in parsed),
        ),
        ("match", lambda: matched.extend(stages.match(frame, matcher) for frame in embedded)),
        ("cluster", lambda: [clusters.add_all(widened([frame], read_by)) for frame in matched]),
    ]
    for name, step in steps:
        cost[name] = _us(step, lab.number)
    whole = _us(lambda: replay_records(lab.settings, lab.records, START + 1e6, lab.ready), lab.number)
    return cost | {"all": sum(cost.values()), "replay_to_all": whole / sum(cost.values())}


def encode_1(lab: Lab) -> dict[str, float]:
    """The encoder over posts it read before, to a tokenizer's reading of the same texts alone."""
    encoder, tokenizer = lab.ready.encoder, getattr(getattr(lab.ready.encoder, "_reader", None), "tokenizer", None)
    frames = [lab.texts[i : i + FRAME] for i in range(0, lab.number, FRAME)]
    for frame in frames:
        encoder.encode(frame)
    cost = {"warm": _us(lambda: [encoder.encode(frame) for frame in frames], lab.number)}
    if tokenizer is not None:
        plain = _us(lambda: [tokenizer.encode_batch_fast(f, add_special_tokens=False) for f in frames], lab.number)
        cost["to_tokenizer"] = cost["warm"] / plain
    return cost


class _Unlike:
    """A clusterer, and posts for it of which hardly two are alike."""

    def __init__(self) -> None:
        config = ClusterConfig(t_attach=0.6, t_merge=0.5, max_clusters=20_000, ttl_single_s=1e9)
        self.clusterer, self.sent, self.rng = Clusterer(config, 256, "bench"), 0, np.random.default_rng(0)
        self.words = np.array([f"w{i}" for i in range(20_000)])

    def frames(self, posts: int) -> list[MatchedFrame]:
        """So many posts, made now, for `add`."""
        made, dim, rng = [], self.clusterer.dim, self.rng
        for start in range(self.sent, self.sent + posts, FRAME):
            vectors = rng.standard_normal((FRAME, dim))
            vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("<f2")
            drawn = [self.words[(rng.random(12) ** 3 * len(self.words)).astype(int)] for _ in range(FRAME)]
            here = [
                Post(f"p{start + i}", " ".join(words), START + start / 500, START + start / 500)
                for i, words in enumerate(drawn)
            ]
            made.append(
                MatchedFrame(Origin(0, start), here, encoder_version="bench", dim=dim, vectors=vectors.tobytes())
            )
        self.sent += posts
        return made

    def add(self, frames: list[MatchedFrame]) -> None:
        for frame in frames:
            self.clusterer.add(frame)


def clusters_growth_1(lab: Lab) -> dict[str, float]:
    """Posts of which hardly two are alike, at 1,000 and 8,000 live clusters; to one float64 product over all."""
    unlike, cost, most = _Unlike(), {}, 2_000
    for live in (1_000, 8_000):
        unlike.add(unlike.frames(live - most // 2 - unlike.sent))
        waiting = unlike.frames(most)
        cost[f"at_{live}"] = _us(lambda: unlike.add(waiting), most)  # noqa: B023
    kernel = unlike.clusterer.live_clusters.kernel
    rows = kernel.sums[:50] / np.maximum(kernel.counts[:50, None], 1)
    product = _us(lambda: [rows @ kernel.sums[: kernel.size].T for _ in range(4)], 200)
    return cost | {"growth": cost["at_8000"] / cost["at_1000"], "to_product": cost["at_8000"] / product}


def clusters_save_1(lab: Lab) -> dict[str, float]:
    """Saving the clusterer with 8,000 live clusters: all of it, and what 1,000 posts more changed (each its own)."""
    unlike, most = _Unlike(), 1_000
    unlike.add(unlike.frames(8_000))
    clusterer = unlike.clusterer
    whole = _us(clusterer.snapshot, 1) / 1e3
    clusterer.changes()
    unlike.add(unlike.frames(most))
    return {
        "whole": whole,
        "changed": (changed := _us(clusterer.changes, 1) / 1e3),
        "changed_to_whole": changed / whole,
    }


def queries_1(lab: Lab) -> dict[str, float]:
    """Frames of 100 posts against 1,000, 10,000 and 100,000 queries beside the bundled ones: CPU time of matching."""
    return measure_queries(lab.ready, frames_of(lab.records, lab.ready.encoder, START + 1e6))


def threads_1(lab: Lab) -> dict[str, float]:
    """Cores that encoding and clustering 60 posts a second take: pools of one thread, and the libraries' own."""
    bare = {k: v for k, v in os.environ.items() if k not in (*VARIABLES, "TOKENIZERS_PARALLELISM")}
    cost = {}
    for name, threads in (("one", 1), ("own", 0)):
        command = [sys.executable, "-c", f"from streams.commands.bench_scenarios import paced; paced({threads})"]
        done = subprocess.run(command, env=bare, capture_output=True, text=True, check=True)
        cost[name] = float(done.stdout)
    return cost | {"one_to_own": cost["one"] / cost["own"]}


def paced(threads: int, seconds: float = 5.0) -> None:
    """The child of `threads_1`: prints the cores used. threads: 0 = as the libraries will."""
    if threads:
        limit_native_threads(threads)
    encoder = load(None).encoder
    texts = list(itertools.islice(invented_texts(), int(60 * seconds) + 2_000))
    stage = Clusterer(ClusterConfig(), encoder.dim, encoder.version)

    def apply(start: int, posts: int) -> None:
        here = texts[start : start + posts]
        made = [Post(f"p{start + i}", text, START + start / 60, START + start / 60) for i, text in enumerate(here)]
        rows = encoder.encode(here).astype("<f2").tobytes()
        stage.add(MatchedFrame(Origin(0, start), made, encoder_version=encoder.version, dim=encoder.dim, vectors=rows))

    apply(0, 2_000)
    began, cpu = time.perf_counter(), time.process_time()
    for number in range(int(15 * seconds)):
        time.sleep(max(0.0, began + number / 15 - time.perf_counter()))
        apply(2_000 + 4 * number, 4)
    print((time.process_time() - cpu) / (time.perf_counter() - began))


# id → scenario and its parts: unit, and by what factor a part may grow before it is told
SCENARIOS: dict[str, tuple[Callable[[Lab], dict[str, float]], dict[str, tuple[str, float]]]] = {
    "yardstick": (yardstick, {"work": ("µs", 10.0)}),
    "stages.1": (
        stages_1,
        dict.fromkeys(("parse", "encode", "match", "cluster", "all"), ("µs/post", 1.4))
        | {"replay_to_all": ("ratio", 1.25)},
    ),
    "encode.1": (encode_1, {"warm": ("µs/post", 1.4), "to_tokenizer": ("ratio", 1.25)}),
    "clusters.growth.1": (
        clusters_growth_1,
        dict.fromkeys(("at_1000", "at_8000"), ("µs/post", 1.4))
        | dict.fromkeys(("growth", "to_product"), ("ratio", 1.3)),
    ),
    "clusters.save.1": (
        clusters_save_1,
        dict.fromkeys(("whole", "changed"), ("ms", 3.0)) | {"changed_to_whole": ("ratio", 1.5)},
    ),
    **GROWTH,
    "queries.1": (
        queries_1,
        {f"{part}_{count}": ("ms/frame", 1.6) for count in SIZES for part in ("mean", "p99")}
        | {"to_brute": ("ratio", 1.5), "missed": ("posts", 1.5), "change": ("ms", 2.0)},
    ),
    "threads.1": (threads_1, dict.fromkeys(("one", "own"), ("cores", 3.0)) | {"one_to_own": ("ratio", 1.5)}),
}
