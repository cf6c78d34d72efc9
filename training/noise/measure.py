"""How robust an encoder is: artificial noise on FLORES English, and real posts against their normalised versions.

    python -m training.noise.measure laptop                                 # the bundled encoder
    python -m training.noise.measure laptop encoder=flood normalise=true    # beside itself behind a normaliser
    python -m training.noise.measure laptop encoder=DIR beside=flood kinds=mix_all,fing out=FILE    # any other

Source: Nishimwe, Sagot, Bawden 2024, sections 4 and 6 (tables 4 and 5): average pairwise cosine distance, xSIM and
xSIM++ from noised to standard text, for each transformation, averaged over generation seeds. xSIM++'s hard negatives
are rebuilt by rule (`training.metrics.hard_negatives`), so its values compare encoders measured here, not with the
paper's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import numpy as np
from msgspec import Struct
from rich.progress import track

from models.encoders.load import load_encoder
from models.encoders.normalise import NormalisedEncoder
from models.encoders.protocol import Encoder
from training.evaluate.matching import matching_accuracy
from training.evaluate.material import standard_english
from training.files import data_dir, hash_rows, read_json, read_rows
from training.jobs import run, write_result
from training.metrics import hard_negatives, mean_interval, pairwise_cosine_distance, welch_p, xsim
from training.metrics.hard_negatives import KINDS
from training.noise.known_words import english_normaliser
from training.noise.mix import NEUTRAL, PAPER, transform

__all__ = ["Config", "neutral_figures", "noise_figures", "normalisation_figures", "normalisation_pairs"]


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the measurement."""

    encoder: str = "bundled"
    normalise: bool = False  # measure it beside itself reading normalised text (training.noise.known_words)
    beside: str = ""  # a second encoder on the same noise, for significance; e.g. the one before the robust job
    kinds: tuple[str, ...] = (*PAPER, "mix_all")
    seeds: int = 10  # generation seeds
    sentences: int = 0  # of FLORES devtest; 0 = all 1,012
    per_kind: int = 15  # hard negatives of each kind for a sentence
    pairs: int = 1_000  # of each normalisation set, those that differ at all; 0 = all
    seed: int = 1
    out: str = ""  # a JSON of the figures


PRESETS = {
    "smoke": Config(kinds=("mix_all", "leet"), seeds=2, sentences=100, per_kind=3, pairs=50),
    "laptop": Config(seeds=3),
    "paper": Config(),
}


def noise_figures(encoder: Encoder, sentences: list[str], config: Config) -> dict[str, dict[str, list[float]]]:
    """By transformation: cosine distance, xSIM and xSIM++ (percent) of every seed, and what was found instead of the
    partner in xSIM++, which add up to it: "xsim++ misaligned" (another sentence), "xsim++ number", …
    """
    negatives = hard_negatives(sentences, config.seed, config.per_kind)
    standard = encoder.encode(sentences)
    wrong = encoder.encode([n.text for n in negatives])
    kinds = [n.kind for n in negatives]
    figures: dict[str, dict[str, list[float]]] = {}
    for kind in track(config.kinds, description=encoder.version):
        found = figures[kind] = {"cosine_distance": [], "xsim": [], "xsim++": []}
        for seed in range(config.seeds):
            noised = encoder.encode([transform(kind, text, Random(f"{seed} {text}")) for text in sentences])
            found["cosine_distance"].append(pairwise_cosine_distance(noised, standard))
            found["xsim"].append(xsim(noised, standard).error)
            hard = xsim(noised, standard, wrong, kinds)
            found["xsim++"].append(hard.error)
            for instead in ("misaligned", *KINDS):
                found.setdefault(f"xsim++ {instead}", []).append(hard.by_kind.get(instead, 0.0))
    return figures


def neutral_figures(
    encoder: Encoder, texts: Mapping[str, Sequence[str]], seeds: int, kinds: Sequence[str] = (*NEUTRAL, "mix_all")
) -> dict[str, dict[str, dict[str, list[float]]]]:
    """By language, then by language-neutral transformation: cosine distance and xSIM (percent) of every seed.

    A transformation that changes no sentence of a language (no accents to drop, no short forms known) is left out. No
    xSIM++: its hard negatives are made for English only. The paper measures English alone.
    """
    figures: dict = {}
    for lang, sentences in track(texts.items(), description="noise by language"):
        standard = encoder.encode(list(sentences))
        for kind in kinds:
            found: dict[str, list[float]] = {"cosine_distance": [], "xsim": []}
            for seed in range(seeds):
                noised = [transform(kind, text, Random(f"{seed} {text}"), lang=lang) for text in sentences]
                if noised == list(sentences):
                    continue
                vectors = encoder.encode(noised)
                found["cosine_distance"].append(pairwise_cosine_distance(vectors, standard))
                found["xsim"].append(xsim(vectors, standard).error)
            if found["xsim"]:
                figures.setdefault(lang, {})[kind] = found
    return figures


def normalisation_pairs(root: Path, most: int, seed: int) -> dict[str, list[tuple[str, str]]]:
    """By set and language: (as posted, normalised), only where they differ beyond case."""
    found: dict[str, list[tuple[str, str]]] = {}
    for row in read_json(root / "lexnorm2015" / "lexnorm2015.jsonl.gz"):
        if row["split"] == "test":
            found.setdefault("lexnorm2015 en", []).append((" ".join(row["raw"]), " ".join(row["norm"])))
    for row in read_json(root / "multilexnorm2" / "multilexnorm2.jsonl.gz"):
        if row["split"] == "dev":
            between = "" if row["lang"] in ("ja", "th") else " "
            pair = between.join(row["raw"]), between.join(token for token in row["norm"] if token)
            found.setdefault(f"multilexnorm2 {row['lang']}", []).append(pair)
    for name, lang in (("vilexnorm", "vi"), ("hinglishnorm", "hi-Latn")):
        for row in read_rows(root / name / f"{name}.tsv.gz"):
            if row["split"] == "test":
                found.setdefault(f"{name} {lang}", []).append((row["raw"], row["norm"]))
    rng = Random(seed)
    for name, pairs in found.items():
        differing = list(dict.fromkeys((a, b) for a, b in pairs if a.lower() != b.lower()))
        found[name] = rng.sample(differing, min(most, len(differing))) if most else differing
    return found


def normalisation_figures(encoder: Encoder, pairs: dict[str, list[tuple[str, str]]]) -> dict[str, dict[str, float]]:
    """By set: cosine distance, matching (mean of both directions) and xSIM from the post to its normalised version."""
    figures = {}
    for name, rows in pairs.items():
        posted, normal = encoder.encode([a for a, _ in rows]), encoder.encode([b for _, b in rows])
        figures[name] = {
            "cosine_distance": pairwise_cosine_distance(posted, normal),
            "matching": float(np.mean(matching_accuracy(posted, normal))),
            "xsim": xsim(posted, normal).error,
            "pairs": len(rows),
        }
    return figures


def main(config: Config) -> dict:
    root = data_dir()
    sentences = standard_english("research", config.sentences)
    pairs = normalisation_pairs(root, config.pairs, config.seed)
    metrics: dict = {}
    measured = [
        (ref, load_encoder(None if ref == "bundled" else ref)) for ref in (config.encoder, config.beside) if ref
    ]
    if config.normalise:
        ref, encoder = measured[0]
        measured.insert(1, (ref, NormalisedEncoder(encoder, english_normaliser())))
    for ref, encoder in measured:
        metrics[encoder.version] = {
            "encoder": Path(ref).name,
            "noise": noise_figures(encoder, sentences, config),
            "normalisation": normalisation_figures(encoder, pairs),
        }
    print(show(metrics))
    if config.out:
        write_result(Path(config.out), config, hash_rows([sentences, pairs]), config.seed, metrics)
    return metrics


def show(metrics: dict) -> str:
    """Two tables: by transformation, by set. With two encoders also p of their xSIM++ being the same (Welch)."""
    versions = list(metrics)
    lines = [
        f"{'noise':10}" + "".join(f"{v:>32}" for v in versions),
        f"{'':10}" + f"{'cos dist':>12}{'xSIM':>8}{'xSIM++':>12}" * len(versions),
    ]
    for kind in metrics[versions[0]]["noise"]:
        cells, runs = f"{kind:10}", []
        for version in versions:
            found = metrics[version]["noise"][kind]
            runs.append(found["xsim++"])
            cells += f"{np.mean(found['cosine_distance']):12.4f}{np.mean(found['xsim']):8.2f}{mean_interval(runs[-1]).mean:12.2f}"
        lines.append(cells + (f"   p {welch_p(*runs):.4f}" if len(runs) == 2 and len(runs[0]) > 1 else ""))
    lines += ["", f"{'posts':20}" + f"{'cos dist':>12}{'match':>8}{'xSIM':>8}" * len(versions)]
    for name in metrics[versions[0]]["normalisation"]:
        cells = f"{name:20}"
        for version in versions:
            found = metrics[version]["normalisation"][name]
            cells += f"{found['cosine_distance']:12.4f}{found['matching']:8.3f}{found['xsim']:8.2f}"
        lines.append(cells)
    return "\n".join(lines)


if __name__ == "__main__":
    run(main, PRESETS)
