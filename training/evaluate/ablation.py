"""What each part of an alert's score is worth: the alerts' figures without it.

    python -m training.evaluate ablation                   # the bundled encoder (CRISIS_DATA)
    python -m training.evaluate ablation encoder=DIR

Head and probabilities are fitted anew each time; the encoder and its words stay. The parts of the score are those of
models/reading.py, the sources those of training/class_material.py. Of some languages no post is learnt either: the
encoder has read them, head and words' weights have not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from rich.console import Console
from rich.progress import track
from rich.table import Table

from models.encoders.load import folder_of
from models.encoders.ready import Loaded, load, ready
from models.encoders.registry import OWN
from models.queries import load_queries
from models.reading import Head
from training.class_material import asked, material
from training.data import in_train_half, read_messages
from training.evaluate.alert_reading import Reader
from training.evaluate.curve import GROUPS, SHOWN, measure
from training.files import data_dir, hash_rows
from training.head import Config as HeadConfig
from training.head import fit
from training.jobs import cache_dir, write_result
from training.keeping import keeping
from training.labels import everyday
from training.posts import LabelledPost, read_posts, written_posts

__all__ = ["Config", "PRESETS", "main"]

LEFT_OUT = (
    "am",
    "bn",
    "sw",
    "tr",
)  # languages that a head then learns nothing of, each with 48 needs and offers to judge
RESULT = Path("training/results/ablation.json")


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the ablation."""

    encoder: str = ""  # bundle directory; empty = the bundled one
    iterations: int = 200  # of each head
    seed: int = 1
    out: str = str(RESULT)


class Without(Struct, frozen=True):
    """How a part is left out."""

    knobs: dict[str, float] = {}  # of the head's job
    posts: Callable[[LabelledPost], bool] = lambda post: True  # posts learnt from; those that judge always judge
    head: Callable[[Head], Head] = lambda head: head


def _no_direction(head: Head) -> Head:
    return msgspec.structs.replace(head, taught=msgspec.structs.replace(head.taught, query=0.0))


PARTS: dict[str, Without] = {
    "whole": Without(),
    "no word axes": Without({"words": 0.0}),
    "no directions of taught queries": Without(head=_no_direction),
    "p(query) alone, not shared out": Without(head=lambda head: msgspec.structs.replace(head, actionable=None)),
    "no doubt between need and offer": Without(
        head=lambda head: msgspec.structs.replace(head, clear=1e-6, clear_offer=1e-6)
    ),
    "offers in doubt no longer than needs": Without(head=lambda head: msgspec.structs.replace(head, clear_offer=None)),
    "no everyday sentences": Without({"everyday": 0}),
    "no packs": Without({"packs": 0.0}),
    "no disaster messages": Without({"messages": 0.0}),
    "no real posts": Without(posts=lambda post: post.use != "read"),
    "no written posts": Without(posts=lambda post: post.use == "read"),
    "no lines for what else is asked": Without(head=lambda head: msgspec.structs.replace(head, several=None)),
    "no shift by language": Without(head=lambda head: msgspec.structs.replace(head, languages={})),
    **{f"no posts in {lang}": Without(posts=lambda post, lang=lang: post.lang != lang) for lang in LEFT_OUT},
}
BY_LANGUAGE: dict[str, Callable[[LabelledPost], bool]] = {
    lang: lambda post, lang=lang: post.use != "read" and post.lang == lang for lang in LEFT_OUT
}
PRESETS = {"laptop": Config(), "smoke": Config(iterations=3)}


def main(config: Config) -> Path:
    """Print the table and write its JSON. Returns the JSON's path."""
    root = data_dir()
    encoder = keeping(load(folder_of(config.encoder or None)).encoder, cache_dir() / "vectors")
    posts = written_posts() + read_posts(root)
    messages = [m for m in read_messages(root) if in_train_half(str(m["id"]))]
    found = {}
    for name, without in track(PARTS.items(), "heads"):
        knobs = msgspec.structs.replace(HeadConfig(iterations=config.iterations), **without.knobs)
        kept = [post for post in posts if post.judges or without.posts(post)]
        taught = material(knobs, kept, messages, everyday(root, knobs.everyday, knobs.seed) if knobs.everyday else [])
        calibration = fit(knobs, encoder, kept, taught, asked(knobs, kept, messages))
        assert calibration.head
        calibration = msgspec.structs.replace(calibration, head=without.head(calibration.head))
        matcher = ready(Loaded(OWN, encoder, calibration), load_queries()).matcher
        found[name] = measure(Reader(matcher, encoder), posts, GROUPS | BY_LANGUAGE)
    show(found)
    data_hash = hash_rows((p.text, p.gold, p.second) for p in posts)
    write_result(Path(config.out), config, data_hash, config.seed, {"encoder": encoder.version, "without": found})
    print(f"→ {config.out}")
    return Path(config.out)


def show(found: dict[str, dict[str, dict[str, float]]]) -> None:
    """A table: a row for each part left out, a column for each group's figure."""
    shown: Sequence[tuple[str, str]] = [(group, name) for group in GROUPS for name in SHOWN[:3]]
    table = Table("", *(f"{group}: {name}" for group, name in shown))
    for part, figures in found.items():
        table.add_row(part, *(f"{figures[group][name]:.3f}" for group, name in shown))
    Console(width=220).print(table)
    by_language = Table("right query, right query first", "with its posts", "without")
    for lang in LEFT_OUT:
        told = [[f"{found[part][lang][name]:.3f}" for name in SHOWN[:2]] for part in ("whole", f"no posts in {lang}")]
        by_language.add_row(lang, *(", ".join(row) for row in told))
    Console().print(by_language)
