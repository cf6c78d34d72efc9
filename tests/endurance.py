"""Does memory stay flat, and what a post costs, over a long run: `python -m tests.endurance [POSTS] [OUT] [SHARE]`.

Invented posts (default 100,000; the texts of `crisis bench`) through the pure stages with the encoder flood: parse,
embed, the triage of a reader that is behind, match, cluster, and what the clusterer saves. No broker and no Redis: what
a worker holds itself. Printed for each twentieth: CPU µs a post by stage, and the process's memory.

Everything that is remembered is bounded by a number of posts, ids, clusters or words, and fills before memory is flat:
the longest are 100,000 posts, 300,000 accounts and 100,000 words. SHARE (default 1) makes those bounds so much smaller,
so that a short run shows what happens once they are full; whatever has no bound grows as before.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

from models import bars as readings
from models.bars import Bars
from models.clustering import ClusterConfig
from models.clusters import labels, lexicon, live, unsettled
from models.encoders.ready import load, ready
from models.pseudonyms import Pseudonyms
from models.queries import load_queries
from models.records import Origin
from streams.commands.bench import commit_now
from streams.commands.bench_scenarios import FRAME, START, invented_texts
from streams.config import load_settings
from streams.pipeline import stages
from streams.pipeline.clusters import ClusterStage
from streams.pipeline.ports import Verdict
from streams.worker.skim import Skim
from streams.worker.threads import limit_native_threads

T = TypeVar("T")


def memory_mb() -> float:
    """What this process holds now (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Spent:
    """CPU seconds by stage, since it was last asked."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def on(self, stage: str, work: Callable[..., T], *args: object) -> T:
        began = time.process_time()
        try:
            return work(*args)
        finally:
            self.seconds[stage] += time.process_time() - began

    def us_a_post(self, posts: int) -> dict[str, float]:
        found = {stage: round(1e6 * seconds / posts, 1) for stage, seconds in self.seconds.items()}
        self.seconds.clear()
        return found


BOUNDS = ("max_clusters", "remember_posts", "remember_members", "remember_ids", "ttl_posts", "ttl_single_posts")

FIXED = ((labels, "STREAM_TERMS"), (lexicon, "KEPT"), (live, "OUTLIVED"), (unsettled, "MOST"), (readings, "KEPT"))


def smaller(config: ClusterConfig, share: float) -> ClusterConfig:
    """The same with bounds of this share of their size; so are those that no setting names."""
    for module, name in FIXED:
        setattr(module, name, max(1, int(share * getattr(module, name))))
    return replace(config, **{name: max(1, int(share * getattr(config, name))) for name in BOUNDS})


def main(posts: int = 100_000, out: str = "", share: float = 1.0) -> int:
    limit_native_threads(1)
    settings = load_settings()
    version = ready(load("flood"), load_queries(), settings.match)
    config = smaller(settings.clusters_under(version.clusters), share)
    clusters = ClusterStage.new(config, version.encoder.dim, version.encoder.version)
    skim, bars, spent, texts, rows = Skim(settings), Bars(settings.match), Spent(), invented_texts(), []
    for n in range(posts // FRAME):
        lines = [
            msgspec.json.encode({"id": f"p{n}/{i}", "text": text, "source": f"s{i % 7}"})
            for i, text in enumerate(islice(texts, FRAME))
        ]
        at = START + n * FRAME / 300
        parsed = spent.on("parse", stages.parse, b"\n".join(lines), Origin(n % 4, n // 4), at, Pseudonyms(b"key"))
        frame = stages.fold(parsed, [Verdict()] * len(parsed.posts))
        spent.on("triage", skim.divide, version, [frame], 0.25, at)
        embedded = spent.on("embed", stages.embed, frame, version.encoder)
        matched = spent.on("match", stages.match, embedded, version.matcher, bars)
        spent.on("alerts", stages.alerts, matched, version)
        spent.on("cluster", clusters.add_all, [matched])
        if (n + 1) % 50 == 0:
            spent.on("save", clusters.changes)
        if (n + 1) % max(1, posts // FRAME // 20) == 0:
            part = posts / 20
            rows.append({"posts": (n + 1) * FRAME, "memory_mb": round(memory_mb(), 1), **spent.us_a_post(int(part))})
            print(json.dumps(rows[-1]), flush=True)
    half = rows[len(rows) // 2 :]
    grew = (half[-1]["memory_mb"] - half[0]["memory_mb"]) / (half[-1]["posts"] - half[0]["posts"]) * 1e5
    print(f"in the second half memory grew by {grew:.1f} MB a hundred thousand posts")
    if out:
        told = {
            "command": f"python -m tests.endurance {posts} {Path(out).name} {share:g}",
            "commit": commit_now(),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[2]:.1f}",
            "grew_mb_per_100k": round(grew, 1),
            "parts": rows,
        }
        Path(out).write_text(json.dumps(told, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*(kind(word) for kind, word in zip((int, str, float), sys.argv[1:], strict=False))))
