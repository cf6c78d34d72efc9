"""Gate a finished bundle against the current version, then publish it to a registry.

    export CRISIS_ENCODER__REGISTRY=s3://bucket/encoders                       # or registry=DIR-or-URL each time
    python -m training.publish BUNDLE                                          # against what is current
    python -m training.publish BUNDLE current=3f2a91bc04de                     # against another version, or a directory
    python -m training.publish BUNDLE --force "fixes Tamil, Telugu follows next week"

A regression beyond its tolerance (training/gates.py) in any served language blocks, naming language, metric and
figures; so does a manifest that does not tell what the version was made of (its languages are told by what is measured
here, if the job that made it measured none). `--force` publishes all the same and keeps
the reason, with the regressions, in the manifest. Afterwards: `crisis encoder diff OLD NEW`, `crisis encoder stage NEW
--canary 0.25`, `crisis encoder use NEW`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np
from msgspec import Struct

from models.encoders.bundle import (
    MANIFEST,
    QUERY_VECTORS,
    Bundle,
    LanguageFigures,
    Manifest,
    contents,
    read_bundle,
    write_bundle,
)
from models.encoders.load import folder_of
from models.encoders.probes import probe_vectors
from models.encoders.query_vectors import pack_vectors, standing_texts
from models.encoders.ready import load
from models.encoders.registry import OWN, Registry, version_cache, version_of
from models.errors import BundleError, ConfigError, CrisisError, EncoderError
from models.moments import rfc3339
from models.queries import load_queries
from training.evaluate import matching, needs, relatedness, speed
from training.files import DataError, data_dir
from training.gates import TOLERANCES, Figures, Verdict, compare, pack_figures
from training.jobs import code_version, machine, read_config, run, write_atomically

__all__ = ["Config", "main"]

TOLD = ("languages", "evaluation", "training", "data_hashes", "licence")  # what every published manifest must tell


class Refused(CrisisError):
    """The gates blocked a version; the message lists every regression."""


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the publish job."""

    bundle: str  # the directory to publish
    registry: str = ""  # directory or fsspec URL; default CRISIS_ENCODER__REGISTRY; neither: only measure and compare
    current: str = ""  # version in the registry, or a directory; default what `crisis encoder use` last made current
    # there, else the bundled encoder; "none" = nothing to compare
    served: tuple[str, ...] = ()  # languages that count; empty = every one that was measured
    force: str = ""  # why to publish in spite of regressions; kept in the manifest
    data: bool = True  # also measure on CRISIS_DATA, where it is there
    out: str = ""  # where the comparison goes as JSON
    seed: int = 1


def measure(bundle: Bundle, data: bool, seed: int) -> Figures:
    """Every figure the gates compare but speed. Raises EncoderError if the encoder does not keep its promises."""
    encoder = load(bundle).encoder
    background = msgspec.yaml.decode((files("models") / "data" / "background.yaml").read_bytes())["background"]
    figures = pack_figures(encoder, load_queries(), background, seed)
    if not data:
        return figures
    try:
        root = data_dir()
        figures["matching"] = matching.flores_matching(encoder, root)
        figures["relatedness"] = {lang: f["spearman"] for lang, f in relatedness.semrel(encoder, root).items()}
        figures["need_precision"] = {label: f["originals"] for label, f in needs.need_precision(encoder, root).items()}
    except (DataError, OSError) as error:
        print(f"not measured on research data: {error}")
    return figures


def add_speed(measured: Sequence[tuple[Bundle, Figures]]) -> None:
    """`posts_per_core_s` of every version, measured in turns in one run: a figure of another hour is no peer."""
    paces = speed.side_by_side([load(bundle).encoder for bundle, _ in measured])
    for (_, figures), pace in zip(measured, paces, strict=True):
        figures["posts_per_core_s"] = {"all": pace}


def registry_of(config: Config) -> str:
    """Where versions are published: the knob, or the setting workers read; empty if neither is there."""
    return config.registry or os.environ.get("CRISIS_ENCODER__REGISTRY", "")


def current_bundle(config: Config) -> Bundle | None:
    """What the candidate is held against."""
    if config.current == "none":
        return None
    url, name = registry_of(config), config.current
    if not name:
        name = (Registry(url).chosen() if url else None) or OWN
    path = folder_of(os.environ.get("CRISIS_ENCODER__REF") if name == OWN else name)  # own: what the settings name
    if (path / MANIFEST).exists():
        return read_bundle(path)
    if not url:
        raise EncoderError(f"current={name} is no bundle directory, and no registry is named to find it in")
    registry = Registry(url)
    return registry.fetch(registry.resolve(name), version_cache())


def main(config: Config) -> str:
    """Returns the version published (or that would be). Raises Refused with every regression."""
    candidate, current = read_bundle(config.bundle), current_bundle(config)
    figures = measure(candidate, config.data, config.seed)
    before = measure(current, config.data, config.seed) if current else {}
    add_speed([(candidate, figures), *([(current, before)] if current else [])])
    candidate = msgspec.structs.replace(candidate, manifest=with_languages(candidate.manifest, figures))
    verdict = compare(before, figures, config.served)
    print(show(verdict, before, figures, current.id if current else "nothing", candidate.id))
    if config.out:
        report = {"current": before, "candidate": figures, "verdict": msgspec.to_builtins(verdict)}
        write_atomically(Path(config.out), json.dumps(report, indent=1, ensure_ascii=False).encode() + b"\n")
    wrong = [*untold(candidate.manifest), *map(str, verdict.regressions)]
    if wrong and not config.force.strip():
        listed = "\n  ".join(wrong)
        raise Refused(
            f"{candidate.id} is refused, {len(wrong)} figures are worse than allowed or missing:\n  {listed}\n"
            'mend it, or publish with --force "why"'
        )
    if not (url := registry_of(config)):
        print("not published: name a registry with registry=DIR-or-URL or CRISIS_ENCODER__REGISTRY")
        return candidate.id
    gates = {
        "against": current.id if current else None,
        "compared": verdict.compared,
        "left_out": len(verdict.left_out),
        "regressions": wrong,
        "at": rfc3339(time.time(), "seconds"),
        "figures": {metric: {where: round(f, 4) for where, f in found.items()} for metric, found in figures.items()},
        "code_version": code_version(),
        "machine": machine(),
    }
    forced = {"forced": config.force.strip()} if wrong else {}
    registry = Registry(url)
    with TemporaryDirectory() as scratch:
        made = read_bundle(signed(candidate, Path(scratch) / "bundle", {"gates": gates, **forced}, current))
        if registry.is_whole(version := version_of(made)):
            lost = ", and why it was forced is not kept" if forced else ""
            print(f"{version} is in {url} already: its manifest, with how it passed then, is left as it is{lost}")
        else:
            registry.publish(made)
            print(f"published {version} to {url}")
    return version


def with_languages(manifest: Manifest, figures: Figures) -> Manifest:
    """The manifest with the languages that were measured here, where it tells none: training.export_onnx measures none.

    Of a language that the query packs alone have there are no figures but those of the gates.
    """
    if manifest.languages:
        return manifest
    by_lang = {metric: figures.get(metric, {}) for metric in ("matching", "relatedness")}

    def told(lang: str) -> LanguageFigures:
        return LanguageFigures(**{m: round(found[lang], 4) for m, found in by_lang.items() if lang in found})

    measured = {lang for found in (*by_lang.values(), figures.get("query_matching", {})) for lang in found}
    return msgspec.structs.replace(manifest, languages={lang: told(lang) for lang in sorted(measured)})


def untold(manifest: Manifest) -> list[str]:
    """What the manifest should tell and does not, one line each."""
    return [f"manifest: {field} is empty" for field in TOLD if not getattr(manifest, field)]


def signed(bundle: Bundle, path: Path, verdict: dict, current: Bundle | None) -> Path:
    """A copy of the bundle at `path` whose manifest tells how it passed, with what workers need to take it over.

    That is probe vectors, by which they check themselves, and the vectors of the standing texts.
    """
    encoder = load(bundle).encoder
    evaluation = {**bundle.manifest.evaluation, "probes": probe_vectors(encoder), **verdict}
    manifest = msgspec.structs.replace(
        bundle.manifest, evaluation=evaluation, parent=bundle.manifest.parent or (current.id if current else None)
    )
    files_ = {**contents(bundle), QUERY_VECTORS: pack_vectors(encoder, standing_texts())}
    if write_bundle(path, manifest, files_).id != bundle.id:
        raise BundleError(f"{bundle.path}: its id changed while it was signed; was a file edited meanwhile?")
    return path


def show(verdict: Verdict, before: Figures, after: Figures, current: str, candidate: str) -> str:
    """One line a metric: means of both, and how many figures got worse than allowed."""
    lines = [f"{'metric':18} {current:>12} {candidate:>12}  figures  worse than allowed"]
    for metric in TOLERANCES:
        a, b = before.get(metric, {}), after.get(metric, {})
        if a or b:
            means = [f"{np.mean(list(f.values())):12.4g}" if f else f"{'–':>12}" for f in (a, b)]
            worse = [r.where for r in verdict.regressions if r.metric == metric]
            lines.append(f"{metric:18} {means[0]} {means[1]}  {len(b):7}  {' '.join(worse) or '–'}")
    if before and verdict.left_out:
        lines.append(f"not compared (measured on one side only, or not served): {', '.join(verdict.left_out)}")
    return "\n".join(lines)


def read_arguments(argv: Sequence[str]) -> Config:
    """`BUNDLE key=value … --force "why"` as a config. Raises ConfigError."""
    words = list(argv)
    if not words or "=" in words[0] or words[0].startswith("-"):
        raise ConfigError("name the bundle to publish: python -m training.publish BUNDLE registry=…")
    if "--force" in words:
        at = words.index("--force")
        reason = "".join(words[at + 1 : at + 2])
        if not reason.strip() or reason.partition("=")[0] in Config.__struct_fields__:
            raise ConfigError('--force needs a reason, which is kept in the manifest: --force "why"')
        words[at : at + 2] = [f"force={reason}"]
    return read_config({words[0]: Config(bundle=words[0])}, words)


if __name__ == "__main__":
    run(main, {"BUNDLE": Config(bundle="BUNDLE")}, read=read_arguments)
