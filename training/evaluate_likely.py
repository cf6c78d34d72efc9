"""How often the likely cluster that an alert is told at once is where its post ends, at so many posts a second.

python -m training.evaluate_likely tweets-t                 # the bundled encoder, 45 posts a second
python -m training.evaluate_likely crisis-t26 per_s=200 encoder=flood

Every post counts as one with an alert. *right*: of those told a likely cluster, how many are in it (or in what it was
merged into) at the end; *taken_back*: how many were told after a merge that they are not, or not yet; *wait*: seconds
of the stream until a post is told its cluster, with and without likely ones.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from models.clustering import Clusterer
from models.clusters.unsettled import Unsettled
from models.records import Match, MatchedFrame, Origin
from training import evaluate_clusters
from training.evaluate_clusters import RESULTS, encoded, read_stream, settings
from training.jobs import run, write_result

__all__ = ["PRESETS", "main"]

VERSION = "evaluated"
FRAME_S = 0.5  # a worker's batch on a slow stream


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the job."""

    stream: str  # folder of CRISIS_DATA with stream.jsonl.gz
    per_s: float = 45.0  # posts a second: a tenth of what a worker passes with the bundled encoder
    encoder: str = ""  # bundle or model directory, empty = the bundled one; a mere name if vectors are given
    vectors: str = ""  # .npy of (posts, d) unit rows in stream order, instead of encoding
    out: str = "auto"  # where the JSON goes: auto = results/likely-STREAM-ENCODER.json, empty = only printed
    seed: int = 0


PRESETS = {"tweets-t": Config("stream-tweets-t"), "crisis-t26": Config("stream-crisis-t26")}


def main(config: Config) -> dict:
    """Run the stream through the clusterer, and ask what a worker asks, as fast as the knobs say."""
    stream = read_stream(config.stream)
    asked = evaluate_clusters.Config(config.stream, config.encoder, config.vectors)
    read = encoded(asked, stream.posts)
    clusterer = Clusterer(settings(asked, read.rows, read.tuned), read.rows.shape[1], VERSION)
    posts = [
        msgspec.structs.replace(post, created_at=n / config.per_s, seen_at=n / config.per_s)
        for n, post in enumerate(stream.posts)
    ]
    unsettled = Unsettled()
    known: dict[str, float] = {}  # post → when its cluster was told
    guessed: dict[str, tuple[str, float]] = {}  # post → the likely one, and when
    taken_back = 0
    size = max(1, round(config.per_s * FRAME_S))
    for start in range(0, len(posts), size):
        some, rows = posts[start : start + size], read.rows[start : start + size]
        matches = [Match(post.id, "any", "1", "alert", 1.0, 0.5) for post in some]
        frame = MatchedFrame(
            Origin(0, start), some, encoder_version=VERSION, dim=rows.shape[1], vectors=rows.tobytes(), matches=matches
        )
        clusterer.add(frame)
        unsettled.add(frame, clusterer.clock)
        now_s = (start + size) / config.per_s
        known |= dict.fromkeys(unsettled.settled(clusterer), now_s)
        for post_id, cluster in unsettled.likely(clusterer).items():
            taken_back += cluster is None
            if cluster is not None:
                guessed[post_id] = cluster, now_s
    clusterer.settle()
    right = [clusterer.find(cluster) == clusterer.cluster_of(post) for post, (cluster, _) in guessed.items()]
    came_s = {post.id: post.created_at for post in posts}
    waits = {
        "without": [at - came_s[post] for post, at in known.items()],
        "with": [min(at, guessed.get(post, ("", at))[1]) - came_s[post] for post, at in known.items()],
    }
    quantiles = {
        name: dict(zip(("p50", "p95", "p99"), np.percentile(waited, (50, 95, 99)).round(2).tolist(), strict=True))
        for name, waited in waits.items()
    }
    result = {
        "posts": len(posts),
        "told": len(known),
        "likely": len(guessed),
        "taken_back": taken_back,
        "right": round(float(np.mean(right)), 3) if right else 0.0,
        "wait_s": quantiles,
    }
    print(f"{config.stream}, {read.name}, {config.per_s:g} posts/s: {result}")
    if config.out:
        path = RESULTS / f"likely-{config.stream.removeprefix('stream-')}-{read.name}.json"
        write_result(path if config.out == "auto" else Path(config.out), config, stream.data_hash, config.seed, result)
    return result


if __name__ == "__main__":
    run(main, PRESETS)
