"""Every measure of one encoder, printed and kept.

python -m training.evaluate bundled                 # the bundle in models/data/encoder
python -m training.evaluate DIR out=results/x.json  # any bundle or transformers directory
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
from msgspec import Struct

from models.encoder import Encoder, load_encoder
from training.data import data_dir
from training.evaluate import matching, needs, relatedness, speed
from training.jobs import read_config, write_result


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the evaluation job."""

    encoder: str = ""  # bundle or model directory; empty = the bundled one
    out: str = ""  # where the JSON goes; empty = only printed
    split: str = "devtest"  # of FLORES: "devtest" to report, "dev(sib)" to choose by
    seed: int = 1


def measure(encoder: Encoder, split: str = "devtest") -> dict:
    """Every quality measure, with its summary."""
    root = data_dir()
    by_lang = matching.flores_matching(encoder, root, split)
    related = relatedness.semrel(encoder, root)
    needed = needs.need_precision(encoder, root)
    return {
        "matching": {"set": f"FLORES-200 {split}", **matching.summary(by_lang), "by_language": by_lang},
        "relatedness": {"set": "SemRel2024 dev", **relatedness.summary(related), "by_language": related},
        "needs": {
            "set": "disaster-messages-multilingual, held-out half",
            **needs.summary(needed),
            "translation_matching": needs.translation_matching(encoder, root),
            "by_label": needed,
        },
    }


def show(metrics: dict) -> str:
    m, r, n = metrics["matching"], metrics["relatedness"], metrics["needs"]
    worst = sorted(m["by_language"].items(), key=lambda item: item[1])
    return "\n".join(
        [
            f"matching     {m['set']}: all {m['mean_all']:.3f}, paper's {m['languages_paper']} {m['mean_paper']:.3f},"
            f" best 15 {m['mean_best_15']:.3f}, lowest {m['lowest_paper']:.2f}, below .45: {m['below_0.45']}",
            "             " + " ".join(f"{lang} {value:.2f}" for lang, value in worst),
            f"relatedness  {r['set']}: {r['mean']:.3f} (overlap {r['mean_overlap']:.3f}),"
            f" below overlap: {' '.join(r['below_overlap']) or 'none'}",
            "             " + " ".join(f"{lang} {f['spearman']:.2f}/{f['overlap']:.2f}" for lang, f in r["by_language"].items()),
            f"needs        AP originals {n['originals']:.3f}, translations {n['translations']:.3f}, ratio {n['ratio']:.2f},"
            f" chance {n['chance']:.3f}; translation matching {n['translation_matching']:.3f}",
            "             " + " ".join(f"{k} {f['originals']:.2f}/{f['translations']:.2f}" for k, f in n["by_label"].items()),
        ]
    )  # fmt: skip


def main(config: Config) -> dict:
    ref = config.encoder or None
    metrics = measure(load_encoder(ref), config.split)
    metrics["speed"] = speed.speed(lambda: load_encoder(ref))
    print(show(metrics), f"\nspeed        {metrics['speed']}")
    if config.out:
        write_result(Path(config.out), config, "", config.seed, metrics)
    return metrics


if __name__ == "__main__":
    first = sys.argv[1] if len(sys.argv) > 1 else "bundled"
    preset = Config() if first == "bundled" else msgspec.structs.replace(Config(), encoder=first)
    main(read_config({first: preset}, [first, *sys.argv[2:]]))
