"""What posts to learn from are worth: the alerts' figures with a tenth, a quarter, a half and all of them.

    python -m training.evaluate curve                      # the bundled encoder (CRISIS_DATA)
    python -m training.evaluate curve shares=0.5,1 draws=1

Only the head learns anew; the encoder, which was adapted to all of these posts, stays, so the curve is of the head
alone and flatter than that of both. Whole events are drawn by chance; what is learnt besides (query packs, messages,
everyday sentences) stays. A share's figures are the mean over the draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from rich.console import Console
from rich.progress import track
from rich.table import Table

from models.encoders.load import folder_of
from models.encoders.ready import Loaded, load, ready
from models.encoders.registry import OWN
from models.queries import load_queries
from training.class_material import material
from training.data import in_train_half, read_messages
from training.evaluate import alert_figures as figures
from training.evaluate.alert_reading import Reader, judge
from training.evaluate.figure import Drawing
from training.files import data_dir, hash_rows
from training.head import Config as HeadConfig
from training.head import fit, plain_of
from training.jobs import cache_dir, write_result
from training.keeping import keeping
from training.labels import everyday
from training.posts import LabelledPost, read_posts, written_posts

__all__ = ["Config", "GROUPS", "PRESETS", "SHOWN", "main", "measure"]

RESULT = Path("training/results/learning-curve.json")
SHOWN = ("own_query", "right_query_first", "others_alerted", "ap_against_none")
GROUPS: dict[str, Callable[[LabelledPost], bool]] = {
    "written, 20 languages": lambda post: post.event.startswith("61-"),
    "written, 8 languages": lambda post: post.event.startswith("75-"),
    "written, 8 other languages": lambda post: post.event.startswith("87-"),
    "written, 8 new languages": lambda post: post.event.startswith("101-"),
    "real posts": lambda post: post.use == "read",
}


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the curve."""

    encoder: str = ""  # bundle directory; empty = the bundled one
    shares: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0)  # of the events, by comma
    draws: int = 3  # of events, for each share below 1
    iterations: int = 200  # of each head
    seed: int = 1
    out: str = str(RESULT)


PRESETS = {"laptop": Config(), "smoke": Config(shares=(1.0,), draws=1, iterations=3)}


def main(config: Config) -> Path:
    """Print the curve and write its JSON. Returns the JSON's path."""
    root = data_dir()
    loaded = load(folder_of(config.encoder or None)).encoder
    encoder = keeping(plain_of(loaded), cache_dir() / "vectors")  # its words have seen every event
    posts = written_posts() + read_posts(root)
    messages = [m for m in read_messages(root) if in_train_half(str(m["id"]))]
    sentences = everyday(root, HeadConfig().everyday, HeadConfig().seed)
    runs = [(share, draw) for share in config.shares for draw in range(1 if share >= 1 else config.draws)]
    found: dict[float, list[dict]] = {share: [] for share in config.shares}
    for share, draw in track(runs, "heads"):
        kept = drawn(posts, share, config.seed + draw)
        taught = material(head := HeadConfig(iterations=config.iterations), kept, messages, sentences)
        calibration = fit(head, encoder, kept, taught)
        matcher = ready(Loaded(OWN, encoder, calibration), load_queries()).matcher
        found[share].append(measure(Reader(matcher, encoder), posts))
        found[share][-1]["learnt from"] = {"posts": sum(not p.judges for p in kept)}
    curve = {str(share): mean(rows) for share, rows in found.items()}
    show(curve)
    data_hash = hash_rows((p.text, p.gold, p.second) for p in posts)
    write_result(Path(config.out), config, data_hash, config.seed, {"encoder": encoder.version, "curve": curve})
    print(f"→ {config.out}")
    return Path(config.out)


def drawn(posts: Sequence[LabelledPost], share: float, seed: int) -> list[LabelledPost]:
    """The posts that judge, and those of a share of the other events, written and real ones apart."""
    out = [post for post in posts if post.judges]
    for read in (False, True):
        own = [post for post in posts if not post.judges and (post.use == "read") == read]
        events = sorted({(post.origin, post.event) for post in own})
        at = np.random.default_rng(seed).permutation(len(events))[: max(1, round(share * len(events)))]
        chosen = {events[i] for i in at}
        out += [post for post in own if (post.origin, post.event) in chosen]
    return out


def measure(
    reader: Reader, posts: Sequence[LabelledPost], groups: Mapping[str, Callable[[LabelledPost], bool]] = GROUPS
) -> dict[str, dict[str, float]]:
    """SHOWN of each group of posts that judge."""
    judged = judge(reader, [post for post in posts if post.judges])
    out = {}
    for name, wanted in groups.items():
        told = {f.name: f.value for f in figures.labelled_figures(judged.part(wanted), Drawing(1, 0))}
        out[name] = {figure: told[figure] for figure in SHOWN}
    return out


def mean(rows: Sequence[dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Of each figure over the draws."""
    return {
        group: {name: float(np.mean([row[group][name] for row in rows])) for name in rows[0][group]}
        for group in rows[0]
    }


def show(curve: dict[str, dict[str, dict[str, float]]]) -> None:
    """A table: a row for each group's figure, a column for each share."""
    table = Table("", *(f"{float(share):.0%}" for share in curve))
    table.add_row("posts learnt from", *(f"{row['learnt from']['posts']:,.0f}" for row in curve.values()))
    for group in GROUPS:
        for name in SHOWN:
            table.add_row(f"{group}: {name}", *(f"{row[group][name]:.3f}" for row in curve.values()))
    Console().print(table)
