"""`crisis bench`: what a post costs, stage by stage, against a peer measured in the same run.

A scenario keeps its id and its meaning for ever; one that measures something else gets a new id. CPU time of one
process, every native pool held to one thread; absolute microseconds belong to a machine, so they are compared by way
of a fixed piece of work (`yardstick`), and ratios as they are.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import click
import msgspec
import numpy as np
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from models.clustering import ClusterConfig, Clusterer
from models.encoders.ready import Ready, load, ready
from models.moments import rfc3339
from models.queries import background_texts, load_queries
from models.records import MatchedFrame, Origin, Post
from streams.config import Settings
from streams.pipeline import stages
from streams.pipeline.clusters import ClusterStage
from streams.pipeline.replay import replay_records
from streams.worker.threads import VARIABLES, limit_native_threads

FRAME = 100
START = 1_700_000_000.0
STREAMS = ("stream-crisis-t26", "stream-tweets-t", "trecis-stream")
LIBRARIES = ("numpy", "scipy", "tokenizers", "msgspec", "faust-streaming")
note = Console(stderr=True)


class Metric(Struct, frozen=True):
    """One figure over all rounds; lower is better."""

    unit: str
    min: float
    median: float
    max: float
    tolerance: float  # by what factor it may grow before a comparison says so


class Run(Struct, frozen=True):
    """One run, as it is kept."""

    command: str
    commit: str
    machine: str
    versions: dict[str, str]
    finished_at: str
    posts: str  # "real" or "invented", and how many
    rounds: int
    metrics: dict[str, Metric]  # "scenario.part" → figure


class Lab:
    """What the scenarios work on."""

    def __init__(self, settings: Settings, posts: int, invented: bool) -> None:
        self.settings, self.number = settings, posts
        found = [] if invented else list(itertools.islice(_real_texts(), posts))
        self.real = len(found) == posts
        self.texts = found if self.real else list(itertools.islice(_invented_texts(), posts))
        self.ready: Ready = ready(load(settings.encoder.ref), load_queries(), settings.match)
        lines = [
            msgspec.json.encode({"id": f"p{i}", "text": text, "created_at": START + i / 500})
            for i, text in enumerate(self.texts)
        ]
        self.records = [b"\n".join(lines[i : i + FRAME]) for i in range(0, posts, FRAME)]
        for raw in self.records[:2]:  # the language models are read with the first post
            stages.parse(raw, Origin(0, 0), START, b"bench")
        self.ready.encoder.encode(self.texts)


def _real_texts() -> Iterator[str]:
    """Posts of the streams under CRISIS_DATA, taken in turn."""
    folder = Path(os.environ.get("CRISIS_DATA", "/nowhere"))
    files = [
        gzip.open(path, "rt", encoding="utf-8") for s in STREAMS if (path := folder / s / "stream.jsonl.gz").exists()
    ]
    try:
        for lines in zip(*files, strict=False):
            yield from (json.loads(line)["text"] for line in lines)
    finally:
        for file in files:
            file.close()


def _invented_texts() -> Iterator[str]:
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
    clusters = ClusterStage.new(lab.settings.clusters_under(lab.ready.clusters), encoder.dim, encoder.version)
    parsed, embedded, matched = [], [], []
    steps: list[tuple[str, Callable[[], object]]] = [
        ("parse", lambda: parsed.extend(
            stages.parse(raw, Origin(0, n), START + 1e6, b"bench") for n, raw in enumerate(lab.records))),
        ("encode", lambda: embedded.extend(
            stages.embed(stages.fold(p, [_NEW] * len(p.posts)), encoder) for p in parsed)),
        ("match", lambda: matched.extend(stages.match(frame, matcher) for frame in embedded)),
        ("cluster", lambda: clusters.add_all(matched)),
    ]  # fmt: skip
    for name, step in steps:
        cost[name] = _us(step, lab.number)
    whole = _us(lambda: replay_records(lab.settings, lab.records, START + 1e6, lab.ready), lab.number)
    return cost | {"all": sum(cost.values()), "replay_to_all": whole / sum(cost.values())}


class _New:
    repeats = edits = None


_NEW = _New()


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


def threads_1(lab: Lab) -> dict[str, float]:
    """Cores that encoding and clustering 60 posts a second take: pools of one thread, and the libraries' own."""
    bare = {k: v for k, v in os.environ.items() if k not in (*VARIABLES, "TOKENIZERS_PARALLELISM")}
    cost = {}
    for name, threads in (("one", 1), ("own", 0)):
        command = [sys.executable, "-c", f"from streams.commands.bench import paced; paced({threads})"]
        done = subprocess.run(command, env=bare, capture_output=True, text=True, check=True)
        cost[name] = float(done.stdout)
    return cost | {"one_to_own": cost["one"] / cost["own"]}


def paced(threads: int, seconds: float = 5.0) -> None:
    """The child of `threads_1`: prints the cores used. threads: 0 = as the libraries will."""
    if threads:
        limit_native_threads(threads)
    encoder = load(None).encoder
    texts = list(itertools.islice(_invented_texts(), int(60 * seconds) + 2_000))
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
    "stages.1": (stages_1, dict.fromkeys(("parse", "encode", "match", "cluster", "all"), ("µs/post", 1.4))
                 | {"replay_to_all": ("ratio", 1.25)}),
    "encode.1": (encode_1, {"warm": ("µs/post", 1.4), "to_tokenizer": ("ratio", 1.25)}),
    "clusters.growth.1": (clusters_growth_1, dict.fromkeys(("at_1000", "at_8000"), ("µs/post", 1.4))
                          | dict.fromkeys(("growth", "to_product"), ("ratio", 1.3))),
    "clusters.save.1": (clusters_save_1, dict.fromkeys(("whole", "changed"), ("ms", 3.0))
                        | {"changed_to_whole": ("ratio", 1.5)}),
    "threads.1": (threads_1, dict.fromkeys(("one", "own"), ("cores", 3.0)) | {"one_to_own": ("ratio", 1.5)}),
}  # fmt: skip


def grown(before: Run, now: Run) -> list[str]:
    """What costs more than its tolerance allows, in words. Ratios and cores compare as they are, µs by yardstick."""
    pace = now.metrics["yardstick.work"].median / before.metrics["yardstick.work"].median
    told = []
    for name in sorted(now.metrics.keys() & before.metrics.keys()):
        old, new = before.metrics[name], now.metrics[name]
        expected = old.median * (pace if new.unit.startswith("µs") else 1.0)
        if name != "yardstick.work" and new.min > expected * new.tolerance:  # its best round is worse than allowed
            told.append(
                f"{name}: {new.median:.4g} {new.unit}, expected {expected:.4g}, at most {new.tolerance:g} times that"
            )
    return told


def measure(lab: Lab, rounds: int, only: tuple[str, ...]) -> dict[str, Metric]:
    """Every scenario, `rounds` times over; the yardstick always."""
    chosen = [name for name in SCENARIOS if name == "yardstick" or not only or name in only]
    found: dict[str, list[float]] = {}
    for turn, name in itertools.product(range(rounds), chosen):
        note.print(f"round {turn + 1} of {rounds}: {name}", highlight=False)
        for part, value in SCENARIOS[name][0](lab).items():
            found.setdefault(f"{name}.{part}", []).append(value)
    metrics = {}
    for name, values in found.items():
        scenario, part = name.rsplit(".", 1)
        unit, tolerance = SCENARIOS[scenario][1][part]
        three = (min(values), statistics.median(values), max(values))
        metrics[name] = Metric(unit, *(round(value, 3) for value in three), tolerance)
    return metrics


def _commit() -> str:
    ask = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return version("crisis-streams")


@click.command()
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep the run here as JSON; what was there is compared.",
)
@click.option("--only", multiple=True, type=click.Choice(sorted(SCENARIOS)), help="These scenarios; may be repeated.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--posts", type=click.IntRange(FRAME), default=4_000, show_default=True, help="Rounded down to hundreds.")
@click.option("--invented", is_flag=True, help="Invented posts, even where CRISIS_DATA holds real streams.")
@click.pass_obj
def bench(settings: Settings, out: Path | None, only: tuple[str, ...], rounds: int, posts: int, invented: bool) -> None:
    """Measure what a post costs, stage by stage: some two minutes, no broker needed.

    Real posts where CRISIS_DATA holds streams, invented ones else. Prints minimum, median and maximum over the rounds,
    and fails if anything costs more than its tolerance over the run kept at --out.
    """
    limit_native_threads(1)
    lab = Lab(settings, posts // FRAME * FRAME, invented)
    metrics = measure(lab, rounds, only)
    run = Run(
        command=" ".join(["crisis bench", f"--rounds {rounds} --posts {posts}", *(f"--only {name}" for name in only)]),
        commit=_commit(),
        machine=f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        versions={name: version(name) for name in LIBRARIES},
        finished_at=rfc3339(time.time(), "seconds"),
        posts=f"{'real' if lab.real else 'invented'}, {lab.number:,}",
        rounds=rounds,
        metrics=metrics,
    )
    table = Table("figure", "min", "median", "max", "unit")
    for name, metric in metrics.items():
        table.add_row(name, *(f"{v:,.4g}" for v in (metric.min, metric.median, metric.max)), metric.unit)
    Console().print(table)
    if out is None:
        return
    told = grown(msgspec.json.decode(out.read_bytes(), type=Run), run) if out.exists() else []
    if told:
        raise click.ClickException(f"worse than the run kept at {out}, which stays:\n" + "\n".join(told))
    out.write_bytes(msgspec.json.format(msgspec.json.encode(run), indent=1) + b"\n")
