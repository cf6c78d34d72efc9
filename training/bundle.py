"""Write a trained static student as a bundle: quantised, measured, with all that is known of its making.

python -m training.bundle laptop                   # CRISIS_CACHE/distill-static → CRISIS_CACHE/bundle-distill-static
python -m training.bundle laptop run=DIR out=DIR   # out=models/data/flood: in the place of the one that ships
python -m training.bundle laptop run=DIR out=DIR licence="MIT (weights)"   # of another teacher, of own texts
python -m training.publish DIR registry=DIR-or-URL # then: the gates, and into the registry
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from safetensors.numpy import save
from scipy.sparse import csr_array

from models.encoders.bundle import CARD, MANIFEST, LanguageFigures, Manifest, read_bundle, write_bundle
from models.encoders.load import folder_of, load_encoder
from models.errors import BundleError, ConfigError
from training.data import LEFT_OUT, SOURCES, training_pairs, unique_texts
from training.evaluate.headline import measure, show
from training.files import data_dir, read_table
from training.jobs import cache_dir, code_version, machine, run, write_result
from training.runs import Run, read_run

__all__ = ["Config", "main"]


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the bundle job."""

    run: str = ""  # the training run to make a bundle of; default CRISIS_CACHE/distill-static
    out: str = ""  # the bundle directory; default CRISIS_CACHE/bundle-<name of the run>
    even_out: float = 0.5  # 0 = axes as trained, 1 = all of equal variance; see even_out
    sample: int = 60_000  # training texts that the variance is measured on
    licence: str = ""  # of the weights, where another teacher than MiniLM or texts of a file taught them
    note: str = ""  # what a reader of the card must know of how this run was made
    result: str = ""  # where the JSON of the measures goes; empty = nowhere
    seed: int = 1


PRESETS = {"laptop": Config(), "smoke": Config(sample=2_000)}
MINILM = "sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0)"
LICENCE = "Apache-2.0 (weights; made from data under the licences listed in training.sources)"


def quantise(table: np.ndarray) -> dict[str, np.ndarray]:
    """int8 rows with one float32 scale each: a quarter of the bytes, cosine to float32 above 0.9999."""
    scales = np.maximum(np.abs(table).max(1), 1e-12).astype(np.float32) / 127
    rows = np.rint(table / scales[:, None]).astype(np.int8)
    return {"rows": rows, "scales": scales}


def even_out(table: np.ndarray, sentences: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Stretch the narrow axes of sentence space: variance λ becomes λ^(1 - share). Returns the table and the narrowest
    axis.

    table: (rows, dim); sentences: (n, dim) unit rows. A half-way whitening (Su et al. 2021), turned back into the
    teacher's frame; the map is linear, so it is folded into the table and costs nothing when serving. On FLORES dev it
    lifted matching from .839 to .869 at 0.5, to .852 at 1 (full whitening), and need/offer precision from .27 to .28.
    """
    variance, axes = np.linalg.eigh(sentences.T @ sentences / len(sentences))
    variance = np.maximum(variance, variance[-1] * 1e-4)
    stretch = (axes * variance ** (-share / 2)) @ axes.T
    scale = np.sqrt(np.trace(np.diag(variance)) / np.sum(variance ** (1 - share)))
    return (table @ (stretch * scale)).astype(np.float32), axes[:, 0].astype(np.float32)


def sample_sentences(run: Run, count: int, seed: int) -> np.ndarray:
    """Unit vectors (n, dim) of `count` training texts, as the table has them."""
    knobs = run.record["training"]["config"]
    if knobs.get("file"):
        found_texts = [row["text"] for row in read_table(Path(knobs["file"]), ("text",))]
    else:
        found_texts = training_pairs(data_dir(), tuple(knobs["sources"])).text
    texts, _ = unique_texts(found_texts)
    chosen = np.random.default_rng(seed).choice(len(texts), min(count, len(texts)), replace=False)
    found, starts = run.reader.features([texts[i] for i in chosen])
    ones = csr_array((np.ones(len(found), np.float32), found, starts), shape=(len(chosen), len(run.table)))
    sums = (ones @ run.table)[np.diff(starts) > 0]
    return sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)


def history(run: Path) -> dict:
    """How the run was trained, and the run it went on from, and so on back; file names without their folders."""
    training = read_run(run).record["training"]
    if (run / MANIFEST).exists():  # a bundle has told it all already
        return {name: training[name] for name in training if name not in ("sources", "left_out")}
    init = training["config"].get("init")
    before = folder_of("flood" if init == "bundled" else init) if init else None  # as runs of before called it
    told = {**training, "config": _without_folders(training["config"])}
    if "robust" in training:
        told["robust"] = {**training["robust"], "config": _without_folders(training["robust"]["config"])}
    return {**told, **({"went_on_from": history(before)} if before else {})}


def _without_folders(knobs: dict) -> dict:
    paths = ("tokenizer", "init", "out", "base", "teacher", "file")
    told = {name: Path(value).name if name in paths else value for name, value in knobs.items()}
    if "teacher" in knobs:  # may be a mixture: flood+1.4*DIR
        told["teacher"] = re.sub(r"[^+*]*/(?=[^/+])", "", knobs["teacher"])
    return told


def card(manifest: Manifest) -> str:
    """The model card: what the encoder is for, made of, measured to do, and where it is weak."""
    m, r, n = (manifest.evaluation[name] for name in ("matching", "relatedness", "needs"))
    figures = "\n".join(
        f"| {lang} | {_cell(f.matching)} | {_cell(f.relatedness)} | {_cell(f.relatedness_overlap)} | {f.pairs or 0:,} |"
        for lang, f in manifest.languages.items()
    )
    weak = ", ".join(lang for lang, f in manifest.languages.items() if f.matching is not None and f.matching < 0.6)
    read = [f"- {name}: {licence}" for name, licence in manifest.training["sources"].items()]
    sources = "\n".join([*read, *(f"- texts of the file {name}" for name in sorted(named(manifest.training, "file")))])
    left_out = ", ".join(f"{name} ({reason})" for name, reason in LEFT_OUT.items())
    return f"""# Bundled multilingual encoder {manifest.id}

A table of {manifest.dim}-dimensional vectors for the pieces of a multilingual tokenizer (short forms such as "ppl" have
one), for groups of consonants that scripts share and for groups of letters that survive slips; a post is the unit
vector of their sum. "w4t3r" is read as "water". No torch. Made by the jobs `training.tokenizer`, `distill`, `robust` and
`bundle` from the teacher {manifest.training["teacher"]}; `manifest.json` has every knob.{_note(manifest)}

**For** matching short posts about needs and offers against query sentences, and clustering posts, in about
{m["languages_all"]} languages. **Not for** decisions about people, nor for anything that hangs on word order: "the dog
bit the man" and "the man bit the dog" are the same to it.

| measure | figure |
|---|---|
| sentence matching, {m["set"]}, 1,012 sentences, mean of both directions: {m["languages_all"]} languages | {m["mean_all"]:.3f} |
| the same, the {m["languages_paper"]} languages of the CT-XLMR-SE paper that the set has | {m["mean_paper"]:.3f} |
| best 15 of them; lowest | {m["mean_best_15"]:.3f}; {m["lowest_paper"]:.2f} |
| relatedness, {r["set"]}, Spearman, mean of {r["languages"]} languages (lexical overlap) | {r["mean"]:.3f} ({r["mean_overlap"]:.3f}) |
| below lexical overlap, of those with 90 pairs or more | {", ".join(r["below_overlap"]) or "none"} |
| needs, average precision, {n["set"]}: originals; their translations (chance) | {n["originals"]:.3f}; {n["translations"]:.3f} ({n["chance"]:.3f}) |

**Weak** (matching under 0.6): {weak or "none"}. Languages not listed below are read by their pieces alone.

| language | matching | relatedness | overlap | training pairs |
|---|---|---|---|---|
{figures}

## Data
{sources}

Left out: {left_out}. Data hash {manifest.data_hashes["training_pairs"][:16]}.
Licence: {manifest.licence}.
"""  # noqa: E501


def _note(manifest: Manifest) -> str:
    return f" {note}." if (note := manifest.training.get("note")) else ""


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def main(config: Config) -> Path:
    folder = Path(config.run) if config.run else cache_dir() / "distill-static"
    out = Path(config.out) if config.out else cache_dir() / f"bundle-{folder.name}"  # never in the place of what ships
    run = read_run(folder)
    made = history(folder)
    other = [f"teacher={name}" for name in sorted(teachers_of(made) - {"minilm"})]
    other += [f"file={name}" for name in sorted(named(made, "file"))]
    if other and not config.licence:
        raise ConfigError(f"{folder} learnt from {', '.join(other)}: say licence=… of weights made with that")
    record, table, empty = run.record, run.table, run.empty
    if config.even_out:
        sentences = sample_sentences(run, config.sample, config.seed)
        table, empty = even_out(table, sentences, config.even_out)
    files = {
        "model.safetensors": save({**quantise(table), "empty": empty}),
        "tokenizer.json": (folder / "tokenizer.json").read_bytes(),
    }
    try:
        parent = read_bundle(out).id
    except BundleError:
        parent = None
    settings = msgspec.to_builtins(run.reading)
    del settings["max_length"]  # has a place of its own
    manifest = Manifest(
        backend="static",
        dim=table.shape[1],
        max_length=run.reading.max_length,
        cleaning=run.cleaning,
        pooling="sum",
        licence=config.licence or LICENCE,
        parent=parent,
        training={
            **made,
            **({"note": config.note} if config.note else {}),
            "even_out": config.even_out,
            "code_version": code_version(),
            "machine": machine(),
            "sources": {name: licence for name, licence in SOURCES.items() if name in sources_of(made)},
            "left_out": LEFT_OUT,
            "teacher": ", ".join(MINILM if name == "minilm" else name for name in sorted(teachers_of(made))),
        },
        data_hashes=record["data_hashes"],
        settings=settings,
    )
    draft = out.with_name(f".{out.name}.draft")
    manifest = write_bundle(draft, manifest, files)
    metrics = measure(load_encoder(draft))
    print(show(metrics))
    matching, related = metrics["matching"].pop("by_language"), metrics["relatedness"].pop("by_language")
    counts = record["pairs_by_language"]
    languages = {
        lang: LanguageFigures(
            matching=_rounded(matching.get(lang)),
            relatedness=_rounded(related.get(lang, {}).get("spearman")),
            relatedness_overlap=_rounded(related.get(lang, {}).get("overlap")),
            pairs=counts.get(lang),
        )
        for lang in sorted({*matching, *related, *counts})
    }
    manifest = msgspec.structs.replace(manifest, languages=languages, evaluation=metrics)
    manifest = write_bundle(out, manifest, {**files, CARD: card(manifest).encode()})
    for path in draft.iterdir():
        path.unlink()
    draft.rmdir()
    if config.result:
        metrics["matching"]["by_language"], metrics["relatedness"]["by_language"] = matching, related
        write_result(Path(config.result), config, record["data_hashes"]["training_pairs"], config.seed, metrics)
    print(f"bundle {manifest.id} (parent {parent}) → {out}")
    return out


def sources_of(told: Mapping[str, Any]) -> set[str]:
    """Every source that a run, or one it went on from, says it learnt from: none of one that had texts of a file."""
    return {name for knobs in configs(told) if not knobs.get("file") for name in knobs.get("sources", ())}


def teachers_of(told: Mapping[str, Any]) -> set[str]:
    """Every teacher of a run and of those it went on from; of training.distill it is MiniLM where none was named."""
    here = named(told, "teacher")
    return here | {"minilm" for knobs in configs(told) if "teacher" not in knobs}


def named(told: Mapping[str, Any], knob: str) -> set[str]:
    """What a knob of a run, and of those it went on from, says wherever it says something."""
    return {knobs[knob] for knobs in configs(told) if knobs.get(knob)}


def configs(told: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The knobs of a run, of the robust job after it, and of those it went on from."""
    if "config" in told:
        yield told["config"]
    for part in told.values():
        if isinstance(part, Mapping) and "config" in part:
            yield from configs(part)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 4)


if __name__ == "__main__":
    run(main, PRESETS)
