"""How large the reader should be: layers and width against what each size reads, and how fast.

    python -m training.evaluate sizes model=e5-cut out=sizes          # two hours of two cores (CRISIS_DATA)
    python -m training.evaluate sizes model=e5-cut out=sizes sizes=3x768,9x1536

Each size is cut out of one encoder and taught, by the same steps over the same texts, to give the whole one's vectors
(training.shorten), then served as int8 as the bundled one is. Width is that of the feed-forward parts, which hold two
thirds of a layer: how many of their neurons stay (the width of DynaBERT, Hou et al. 2020,
https://arxiv.org/abs/2004.04037, whose heads we leave). What a need is nobody is taught but the head that is fitted on
each size's vectors, so that sizes compare; the reader that ships learnt more (training.adapt), and is better.

A size that was done is kept in `out`; a killed run goes on with the next.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import torch
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from models.encoders.load import load_encoder
from models.encoders.protocol import Encoder
from models.encoders.ready import Loaded, ready
from models.encoders.registry import OWN
from models.errors import ConfigError
from models.queries import load_queries
from training import export_onnx, shorten
from training.class_material import Asked, Taught, read_material
from training.evaluate.alert_reading import Reader
from training.evaluate.curve import measure
from training.evaluate.matching import PAPER_LANGUAGES, aligned_set, matching_accuracy
from training.evaluate.relatedness import semrel
from training.evaluate.relatedness import summary as relatedness_summary
from training.evaluate.speed import side_by_side
from training.files import data_dir, hash_rows
from training.head import Config as HeadConfig
from training.head import fit
from training.jobs import cache_dir, write_atomically, write_result
from training.keeping import keeping
from training.posts import LabelledPost
from training.run_key import run_key

__all__ = ["Config", "KEPT", "PRESETS", "main"]

RESULT = Path("training/results/sizes.json")
# Of twelve layers those that stay: middle ones give most of what their neighbours do (Sajjad et al. 2020, and of nine
# those that alone come nearest to all twelve).
KEPT = {
    2: (0, 11),
    3: (0, 1, 11),
    4: (0, 1, 10, 11),
    6: (0, 1, 2, 3, 10, 11),
    9: (0, 1, 2, 3, 4, 8, 9, 10, 11),
    12: tuple(range(12)),
}


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the curve."""

    model: str = ""  # directory of the whole encoder, as training.vocabulary writes it
    out: str = ""  # folder for what is learnt
    sizes: tuple[str, ...] = ("3x1536", "6x1536", "9x1536", "12x1536", "3x768", "6x768", "9x768", "12x768")
    pairs: int = 30_000  # of translations, see training.shorten
    epochs: float = 0.5
    lines: int = 500  # of NTREX in each language
    data: bool = True  # false: packs and written posts alone, and matching and relatedness are not measured
    written: int = 0  # of the written posts at most; 0 = all
    iterations: int = 200  # of each head
    seed: int = 1
    result: str = str(RESULT)


PRESETS = {
    "laptop": Config(),
    "smoke": Config(sizes=("2x0",), epochs=0.05, data=False, written=200, iterations=3),
}


def main(config: Config) -> Path:
    """Print the curve and write its JSON. Returns the JSON's path."""
    if not config.model or not config.out:
        raise ConfigError("set model=DIR and out=DIR")
    sizes = {name: knobs_of(name, config) for name in config.sizes}
    lesson: shorten.Lesson | None = None
    material = read_material(HeadConfig(iterations=config.iterations)) if config.data else None
    found: dict[str, dict] = {}
    hashes: dict[str, str] = {}
    for name, knobs in sizes.items():
        out = Path(config.out) / name
        key = run_key(msgspec.structs.replace(config, sizes=(name,), out="", result=""), name)
        if not (done := out / "figures.json").exists():
            torch.manual_seed(config.seed)
            lesson = lesson or shorten.lesson(knobs)
            model = shorten.learn(knobs, lesson, time.monotonic())
            export_onnx.main(export_onnx.Config(str(model), str(out / "bundle"), evened=0.5))
            measured = figures(load_encoder(str(out / "bundle")), material, config)
            kept = {"key": key, "data_hash": hash_rows(lesson.texts), "figures": measured}
            write_atomically(done, json.dumps(kept).encode())
        kept = json.loads(done.read_text("utf-8"))
        if kept["key"] != key:
            raise ConfigError(f"{done} is of other knobs: take another out=")
        found[name], hashes[name] = kept["figures"], kept["data_hash"]
    encoders = [load_encoder(str(Path(config.out) / name / "bundle")) for name in sizes]
    for row, fast in zip(found.values(), side_by_side(encoders, 600, 3), strict=True):
        row["posts_per_core_s"] = round(fast)  # all in turns: what else the machine does meets each
    show(found)
    write_result(Path(config.result), config, hash_rows(hashes.values()), config.seed, {"sizes": found})
    print(f"→ {config.result}")
    return Path(config.result)


def knobs_of(size: str, config: Config) -> shorten.Config:
    """Of "LAYERSxNEURONS"; 0 neurons = as many as there are. Raises ConfigError for layers that KEPT does not name."""
    layers, _, inner = size.partition("x")
    if not layers.isdecimal() or not inner.isdecimal() or int(layers) not in KEPT:
        raise ConfigError(f"sizes={size}: write LAYERSxNEURONS, layers one of {', '.join(map(str, KEPT))}")
    return shorten.Config(
        model=config.model,
        out=str(Path(config.out) / size),
        keep=KEPT[int(layers)],
        inner=int(inner),
        frozen=0,
        pairs=config.pairs,
        epochs=config.epochs,
        data=config.data,
        written=config.written,
        seed=config.seed,
    )


def figures(encoder: Encoder, material: tuple[Taught, Asked, list[LabelledPost]] | None, config: Config) -> dict:
    """What this encoder reads: matching and relatedness by language, and alerts by a head of its own."""
    found: dict = {"encoder": encoder.version}
    if material is None:
        return found
    texts = aligned_set(root := data_dir(), "ntrex128")
    lines = [i for i, text in enumerate(texts["en"]) if text.strip()][: config.lines]
    english = encoder.encode([texts["en"][i] for i in lines])
    matching = {
        lang: float(np.mean(matching_accuracy(english, encoder.encode([texts[lang][i] for i in lines]))))
        for lang in PAPER_LANGUAGES
        if lang in texts
    }
    found |= {"matching": float(np.mean(list(matching.values()))), "matching_lowest": min(matching.values())}
    found["relatedness"] = relatedness_summary(semrel(encoder, root))["mean_paper"]
    taught, _, posts = material
    kept = keeping(encoder, cache_dir() / "vectors")
    calibration = fit(HeadConfig(iterations=config.iterations), kept, posts, taught)
    matcher = ready(Loaded(OWN, kept, calibration), load_queries()).matcher
    return found | {"alerts": measure(Reader(matcher, kept), posts)}


def show(found: Mapping[str, dict]) -> None:
    """A table: a row for each size."""
    names = ("matching", "matching_lowest", "relatedness", "posts_per_core_s")
    table = Table("layers x neurons", *(name.replace("_", " ") for name in names), "right query", "real posts found")
    for size, row in found.items():
        alerts = row.get("alerts") or {}
        of = [alerts.get(group, {}).get("own_query") for group in ("written, 20 languages", "real posts")]
        cells = [row.get(name) for name in names] + of
        table.add_row(size, *("–" if v is None else f"{v:.3f}" if isinstance(v, float) else f"{v:,}" for v in cells))
    Console().print(table)
