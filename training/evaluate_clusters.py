"""How well the clusterer finds the gold clusters of a stream, in stream order, through the frames the pipeline uses.

python -m training.evaluate_clusters tweets-t                       # the bundled encoder and its thresholds
python -m training.evaluate_clusters tweets-t encoder=DIR           # any bundle or transformers directory
python -m training.evaluate_clusters crisis-t26 vectors=X.npy encoder=NAME suggest=true
python -m training.evaluate_clusters tweets-t t_attach=0.5 t_merge=0.4 lexical=0   # meaning alone
python -m training.evaluate_clusters tweets-t sweep=true out=       # a grid of thresholds, printed only
python -m training.evaluate_clusters tweets-t workers=4 window=500  # in two levels (training/two_levels.py)

Three answers are scored. *arrival*: the id a post got when it came; *settled*: its id once the next full merge ran;
*final*: its id at the end. Tune thresholds on one stream, report on the other.
"""

from __future__ import annotations

import gc
import hashlib
import json
import time
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from msgspec import Struct

from models.clustering import ClusterConfig, Clusterer
from models.clusters.thresholds import suggest_thresholds
from models.encoders.bundle import CLUSTERS, add_file
from models.encoders.cluster_thresholds import TunedClusters
from models.encoders.load import folder_of
from models.encoders.mixture import Mixture
from models.encoders.ready import load, static
from models.errors import ConfigError
from models.moments import epoch_s
from models.records import MatchedFrame, Origin, Post
from training.files import data_dir, read_lines
from training.jobs import run, write_result
from training.two_levels import TwoLevels

__all__ = ["Config", "PRESETS", "RESULTS", "encoded", "main", "read_stream", "settings"]

RESULTS = Path(__file__).parent / "results"
SWEEP_MERGE = (*(n / 100 for n in range(8, 17)), 0.18, 0.20, 0.22, 0.24, 0.26, 0.30, 0.35, 0.40)
SWEEP_GAPS = (0.10, 0.15, 0.20)  # t_attach − t_merge


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the job."""

    stream: str  # folder of CRISIS_DATA with stream.jsonl.gz: id, text, cluster and, where known, created_at
    encoder: str = ""  # bundle or model directory, empty = the bundled one; a mere name if vectors are given
    vectors: str = ""  # .npy of (posts, d) unit rows in stream order, instead of encoding
    t_attach: float = 0.0  # 0 = what the encoder's bundle says, else the clusterer's default
    t_merge: float = 0.0
    lexical: float | None = None  # share of the words in a similarity; none = the clusterer's default
    beside: float | None = None  # weight of the static encoder beside this one; none = what the encoder's bundle says
    suggest: bool = False  # thresholds by the label-free rule from the first 4,000 posts
    merge_every_posts: int = 0  # 0 = the clusterer's default
    frame_posts: int = 25  # posts per frame; results do not depend on it, speed does a little
    workers: int = 1  # that place posts beside each other; with more than one a window is a frame too
    window: int = 200  # posts that they place before a merger joins what they made
    sweep: bool = False
    keep: bool = False  # put this run's thresholds into the encoder's bundle, which workers then use with it
    out: str = "auto"  # where the JSON goes: auto = results/clusters-STREAM-ENCODER.json, empty = only printed
    seed: int = 0


PRESETS = {"tweets-t": Config("stream-tweets-t"), "crisis-t26": Config("stream-crisis-t26")}


class Stream(Struct, frozen=True):
    posts: list[Post]
    gold: list[int]
    data_hash: str


def b_cubed(gold: Sequence[Hashable], found: Sequence[Hashable]) -> tuple[float, float, float]:
    """Precision, recall and F1, averaged over posts: of those in a post's found cluster, how many share its gold one.

    Source: Bagga & Baldwin 1998, https://aclanthology.org/P98-1012, with equal weights.
    """
    both, golds, founds = Counter(zip(gold, found, strict=True)), Counter(gold), Counter(found)
    precision = sum(n * n / founds[f] for (_, f), n in both.items()) / len(gold)
    recall = sum(n * n / golds[g] for (g, _), n in both.items()) / len(gold)
    return precision, recall, 2 * precision * recall / (precision + recall)


def scores(gold: Sequence[int], found: Sequence[str]) -> dict[str, float]:
    """B³, NMI (arithmetic mean) and adjusted Rand index; clusters in all, of five posts and more, biggest share."""
    from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score  # seconds to import

    precision, recall, f1 = b_cubed(gold, found)
    numbers = {name: i for i, name in enumerate(dict.fromkeys(found))}
    labels, sizes = [numbers[f] for f in found], Counter(found)
    figures = {
        "b3_precision": precision,
        "b3_recall": recall,
        "b3_f1": f1,
        "nmi": normalized_mutual_info_score(gold, labels),
        "ari": adjusted_rand_score(gold, labels),
        "biggest_share": max(sizes.values()) / len(found),
    }
    counts = {"clusters": len(sizes), "clusters_of_5": sum(n >= 5 for n in sizes.values())}
    return {name: round(float(value), 4) for name, value in figures.items()} | counts


def read_stream(name: str) -> Stream:
    """Posts in stream order; without times all share one. Ids are line numbers: the sets repeat some ids."""
    lines = read_lines(data_dir() / name / "stream.jsonl.gz")
    posts, gold = [], []
    for number, line in enumerate(lines):
        row = json.loads(line)
        at = epoch_s(row["created_at"]) if "created_at" in row else 0.0
        posts.append(Post(f"{number}", row["text"], at, at, row.get("lang", "und")))
        gold.append(row["cluster"])
    return Stream(posts, gold, hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16])


def cluster(
    stream: Stream, vectors: np.ndarray, config: ClusterConfig, frame_posts: int, workers: int = 1
) -> dict[str, object]:
    """Run one stream through the clusterer. vectors: (posts, d) float16; workers: if several, in two levels."""
    n = len(stream.posts)
    frames = [
        MatchedFrame(
            Origin(0, start),
            stream.posts[start : start + frame_posts],
            encoder_version="evaluated",
            dim=vectors.shape[1],
            vectors=vectors[start : start + frame_posts].tobytes(),
        )
        for start in range(0, n, frame_posts)
    ]
    gc.collect()
    gc.freeze()  # the frames waiting here would slow the clusterer's garbage collection; a pipeline holds few
    clusterer, events = Clusterer(config, vectors.shape[1], "evaluated"), Counter()
    if workers > 1:
        clusterer = TwoLevels(config, vectors.shape[1], "evaluated", workers)
    arrival: list[str] = []
    settled: list[str] = []
    cpu_s, peak = 0.0, 0
    for frame in frames:
        start = time.process_time()
        changes = clusterer.add(frame)
        cpu_s += time.process_time() - start
        events.update(change.event for change in changes)
        arrival += [clusterer.arrival_of(p.id) for p in frame.posts]
        peak = max(peak, clusterer.size)
        settled += [clusterer.find(first) for first in arrival[len(settled) : len(arrival) - clusterer.unmerged_posts]]
    clusterer.settle()
    settled += [clusterer.find(first) for first in arrival[len(settled) :]]
    gc.unfreeze()
    return {
        "arrival": scores(stream.gold, arrival),
        "settled": scores(stream.gold, settled),
        "final": scores(stream.gold, [clusterer.find(first) for first in arrival]),
        "posts": n,
        "posts_per_cpu_s": round(n / cpu_s),
        "live_clusters_peak": peak,
        "snapshot_mb": round(len(clusterer.snapshot()) / 1e6, 1),
        "events": dict(events),
    }


class Encoded(NamedTuple):
    """What clusters compare the posts by: (n, d) float16, by which encoder, its thresholds, and the static one's weight
    beside it."""

    rows: np.ndarray
    name: str
    tuned: TunedClusters | None
    beside: float


def encoded(config: Config, posts: Sequence[Post]) -> Encoded:
    """The vectors that the knobs name, or those of the encoder they name."""
    if config.vectors:
        rows = np.load(config.vectors, allow_pickle=False)
        return Encoded(rows.astype("<f2"), config.encoder or Path(config.vectors).stem, None, 0.0)
    loaded = load(config.encoder or None)
    tuned, encoder = loaded.clusters, loaded.encoder
    beside = config.beside if config.beside is not None else tuned.beside if tuned else 0.0
    if tuned and tuned.beside != beside:
        tuned = None  # measured at another weight, its thresholds say nothing
    mixed = Mixture([(1.0, encoder), (beside, static().encoder)]) if beside else encoder
    return Encoded(mixed.encode([p.text for p in posts]).astype("<f2"), encoder.version, tuned, beside)


def settings(config: Config, vectors: np.ndarray, tuned: TunedClusters | None = None) -> ClusterConfig:
    """The clusterer's defaults under the encoder's own thresholds, with this run's changes, remembering every post."""
    changes = {k: v for k in ("t_attach", "t_merge", "merge_every_posts") if (v := getattr(config, k))}
    if config.suggest:
        rule = suggest_thresholds(vectors[:4_000], config.lexical != 0, config.seed)
        changes |= {"t_attach": rule.t_attach, "t_merge": rule.t_merge}
    if config.lexical is not None:
        changes["lexical"] = config.lexical
    start = ClusterConfig(**changes, remember_posts=len(vectors))
    return start if tuned is None else tuned.fit(start, set(changes))


def show(title: str, result: dict) -> str:
    rows = [f"{title}: {result['posts_per_cpu_s']:,} posts/CPU-s, at most {result['live_clusters_peak']} live clusters"]
    for name in ("arrival", "settled", "final"):
        rows.append(f"  {name:8}" + "  ".join(f"{k} {v}" for k, v in result[name].items()))
    return "\n".join(rows)


def main(config: Config) -> dict:
    stream = read_stream(config.stream)
    if config.keep and (config.vectors or config.sweep):
        raise ConfigError("keep=true puts one run's thresholds into a bundle: without vectors= and sweep=true")
    if config.workers > 1 and (config.keep or config.sweep):
        raise ConfigError(f"workers={config.workers}: two levels are only evaluated, without keep=true and sweep=true")
    if config.beside is not None and (config.vectors or config.beside < 0):
        raise ConfigError(f"beside={config.beside}: a weight of 0 or more beside an encoder, not beside vectors=")
    vectors, name, tuned, beside = encoded(config, stream.posts)
    if config.sweep:
        for merge in SWEEP_MERGE:
            for gap in SWEEP_GAPS:
                tried = msgspec.structs.replace(config, t_attach=merge + gap, t_merge=merge)
                final = cluster(stream, vectors, settings(tried, vectors), config.frame_posts)["final"]
                print(f"t_attach={merge + gap:.2f} t_merge={merge:.2f}", *(f"{k} {v}" for k, v in final.items()))
        return {}
    used = settings(config, vectors, tuned)
    if config.workers > 1:
        if used.merge_every_posts % config.window:
            raise ConfigError(
                f"window={config.window} does not divide merge_every_posts={used.merge_every_posts}: some would be cut"
            )
        used = replace(used, settle_every_posts=config.window)
    frame_posts = config.window if config.workers > 1 else config.frame_posts
    result = cluster(stream, vectors, used, frame_posts, config.workers)
    rule = suggest_thresholds(vectors[:4_000], used.lexical != 0, config.seed)
    result |= {
        "encoder": name,
        "settings": {"t_attach": used.t_attach, "t_merge": used.t_merge, "lexical": used.lexical, "beside": beside},
        "rule": {k: round(v, 3) for k, v in msgspec.structs.asdict(rule).items()},
    }
    print(show(f"{config.stream}, {name}, t {used.t_attach:.2f}/{used.t_merge:.2f}, words {used.lexical}", result))
    if config.out:
        short = "".join(c if c.isalnum() or c in ".-" else "-" for c in name)
        weight = "" if config.beside is None else f"-beside{config.beside:g}"
        weight += f"-{config.workers}x{config.window // config.workers}" if config.workers > 1 else ""
        path = RESULTS / f"clusters-{config.stream.removeprefix('stream-')}-{short}{weight}.json"
        write_result(path if config.out == "auto" else Path(config.out), config, stream.data_hash, config.seed, result)
    if config.keep:
        reached = f"{config.stream}: B³ F1 {result['final']['b3_f1']:.3f}"
        version = static().encoder.version if beside else ""
        found = TunedClusters(name, used.t_attach, used.t_merge, used.lexical, reached, version, beside)
        content = msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"
        add_file(folder_of(config.encoder or None), CLUSTERS, content)
    return result


if __name__ == "__main__":
    run(main, PRESETS)
