"""Every measure of one encoder, in one report: report.json, report.md and its plots.

    python -m training.evaluate bundled smoke                       # minutes, offline, on bundled sentences
    python -m training.evaluate bundled laptop                      # the research sets (CRISIS_DATA), about ten minutes
    python -m training.evaluate DIR paper out=results/x   # any bundle or transformers directory, the papers' settings
    python -m training.evaluate DIR laptop measures=matching,noise  # some of it
    python -m training.evaluate DIR rolaser                         # four MTEB tasks, where a hub can be reached
    python -m training.evaluate alerts                              # how good the alerts are (training.evaluate.alerts)
    python -m training.evaluate feedback                            # what labels teach (training.evaluate.feedback)
    python -m training.evaluate curve                               # what more posts to learn from are worth (curve.py)
    python -m training.evaluate ablation                            # what each part of a score is worth (ablation.py)
    python -m training.evaluate scales                              # other ways to a probability (scales.py)
    python -m training.evaluate sizes model=DIR out=DIR             # layers and width of the reader (sizes.py)

A section that is done is kept in CRISIS_CACHE, so that a killed run goes on where it was, and says so; other knobs,
another encoder, other code or other files of CRISIS_DATA start it anew. `speed` is always measured again: it is the
machine's as much as the encoder's.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

from models.errors import ConfigError
from training import evaluate_clusters
from training.evaluate import plots, report
from training.evaluate.config import MEASURES as NAMES
from training.evaluate.config import PRESETS, Config
from training.evaluate.material import CLASSIFIED
from training.evaluate.measures import MEASURES, load
from training.evaluate.tasks import find_tasks, run_tasks
from training.files import data_dir, hash_rows
from training.jobs import cache_dir, code_hash, read_config, run, write_atomically, write_result
from training.run_key import run_key

__all__ = ["main"]


def main(config: Config) -> Path:
    """Returns the folder of the report."""
    if unknown := [name for name in config.measures if name not in NAMES]:
        raise ConfigError(f"measures={','.join(unknown)}: choose from {', '.join(NAMES)}")
    if unknown := [name for name in config.classified if name not in CLASSIFIED]:
        raise ConfigError(f"classified={','.join(unknown)}: choose from {', '.join(CLASSIFIED)}")
    tasks = find_tasks(config.tasks) if config.tasks else []  # an unknown name, or no mteb, stops the job at once
    encoder = load(config)
    kept = cache_dir() / "evaluate" / encoder.version
    out = Path(config.out) if config.out else kept
    steps: dict[str, Callable[[], dict]] = {
        name: lambda name=name: MEASURES[name](encoder, config) for name in config.measures
    }
    if config.clusters and config.whitening:
        raise ConfigError(
            "clusters and whitening do not go together: training.evaluate_clusters loads the encoder itself"
        )
    if config.clusters:
        steps["clusters"] = lambda: cluster_figures(config)
    if tasks:
        steps["tasks"] = lambda: run_tasks(encoder, tasks)
    metrics: dict = {"encoder": encoder.version}
    made_of = [encoder.version, code_hash(), _files() if config.material == "research" or config.clusters else []]
    key = run_key(msgspec.structs.replace(config, measures=()), hash_rows(made_of))
    for name, measure in steps.items():
        print(f"{name} …", flush=True)
        metrics[name] = _kept(kept / "parts" / f"{name}.json", key, measure, again=name == "speed")
    data_hash = hash_rows(metrics[name].get("data_hash", "") for name in steps)
    write_result(out / "report.json", config, data_hash, config.seed, metrics)
    record = json.loads((out / "report.json").read_text("utf-8"))
    text = report.write(record, plots.draw(record["metrics"], out))
    write_atomically(out / "report.md", f"{text}\nPublished figures are from:\n\n{report.sources()}\n".encode())
    print(f"→ {out / 'report.md'}")
    return out


def cluster_figures(config: Config) -> dict:
    """The clusterer's figures by stream (see training.evaluate_clusters)."""
    ref = "" if config.encoder == "bundled" else config.encoder
    return {
        name: evaluate_clusters.main(msgspec.structs.replace(evaluate_clusters.PRESETS[name], encoder=ref, out=""))
        for name in config.clusters
    }


def _files() -> list[tuple[str, int, int]]:
    """Every file of CRISIS_DATA with its size and when it was changed: any of them may be read."""
    root = data_dir()
    return [
        (str(path.relative_to(root)), (told := path.stat()).st_size, told.st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    ]


def _kept(path: Path, key: str, measure: Callable[[], dict], again: bool) -> dict:
    """The section as an earlier run with the same key left it, else made now."""
    if not again and path.exists() and (stored := json.loads(path.read_text("utf-8")))["key"] == key:
        print(f"  kept from {path}")
        return stored["section"]
    section = _finite(measure())
    write_atomically(path, json.dumps({"key": key, "section": section}, ensure_ascii=False).encode())
    return section


def _finite(value: Any) -> Any:
    """The same with null for nan, which JSON does not have: an interval of one run, a correlation of constants."""
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_words(argv: Sequence[str]) -> Config:
    """ENCODER PRESET key=value … as a Config. Raises ConfigError saying what to write."""
    if len(argv) < 2:
        raise ConfigError(
            f"write: python -m training.evaluate ENCODER PRESET key=value …; presets: {', '.join(PRESETS)}"
        )
    return msgspec.structs.replace(read_config(PRESETS, argv[1:]), encoder=argv[0])


JOBS = ("alerts", "feedback", "ablation", "scales", "curve", "sizes")  # modules here, imported when they are asked for


def read_job(name: str, argv: Sequence[str]) -> Any:
    """[PRESET] key=value … as the Config of one of JOBS; the preset is `laptop` where none is named."""
    return read_config(module(name).PRESETS, argv if argv and "=" not in argv[0] else ["laptop", *argv])


def module(name: str) -> Any:
    return import_module(f"training.evaluate.{name}")


if __name__ == "__main__":
    if (name := "".join(sys.argv[1:2])) in JOBS:
        run(module(name).main, module(name).PRESETS, sys.argv[2:] or ["laptop"], read=partial(read_job, name))
    else:
        run(main, PRESETS, read=read_words)
