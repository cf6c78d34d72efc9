"""Gate a bundle against the current version, then publish it to a registry.

    python -m training.release BUNDLE registry=DIR-or-URL                       # against the bundled encoder
    python -m training.release BUNDLE registry=s3://bucket/encoders current=3f2a91bc04de
    python -m training.release BUNDLE registry=… force_reason="fixes Tamil, Telugu follows next week"

A regression beyond its tolerance (training/gates.py) in any served language blocks, naming language, metric and figures.
`force_reason` publishes all the same and keeps the reason, with the regressions, in the manifest. Afterwards:
`crisis encoder diff OLD NEW`, `crisis encoder stage NEW --canary 0.25`, `crisis encoder use NEW`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np
from msgspec import Struct

from models.bundle import MANIFEST, Bundle, read_bundle, write_bundle
from models.encoder import BUNDLED, load_encoder
from models.errors import BundleError, CrisisError, EncoderError
from models.probes import check_probes, probe_vectors
from models.queries import load_queries
from models.registry import Registry, version_cache
from training.data import DataError, data_dir
from training.evaluate import matching, needs, relatedness, speed
from training.gates import TOLERANCES, Figures, Verdict, compare, pack_figures
from training.jobs import code_version, machine, read_config, write_atomically


class Refused(CrisisError):
    """The gates blocked a version; the message lists every regression."""


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the release job."""

    bundle: str  # the directory to publish
    registry: str = ""  # directory or fsspec URL; empty = only measure and compare
    current: str = ""  # version in the registry, or a directory; empty = the bundled encoder; "none" = nothing to compare
    served: tuple[str, ...] = ()  # languages that count; empty = every one that was measured
    force_reason: str = ""  # publish in spite of regressions; kept in the manifest
    data: bool = True  # also measure on CRISIS_DATA, where it is there
    out: str = ""  # where the comparison goes as JSON
    seed: int = 1


def measure(bundle: Bundle, data: bool, seed: int) -> Figures:
    """Every figure the gates compare. Raises EncoderError if the encoder does not keep its promises."""
    encoder = load_encoder(bundle.path)
    check_probes(encoder, bundle.manifest.evaluation.get("probes"))
    background = msgspec.yaml.decode((files("models") / "data" / "background.yaml").read_bytes())["background"]
    figures = pack_figures(encoder, load_queries(), background, seed)
    figures["posts_per_core_s"] = {"all": float(speed.speed(lambda: encoder, 5_000)["posts_per_core_s"])}
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


def current_bundle(config: Config) -> Bundle | None:
    """What the candidate is held against."""
    if config.current == "none":
        return None
    path = Path(config.current) if config.current else BUNDLED
    if (path / MANIFEST).exists():
        return read_bundle(path)
    if not config.registry:
        raise EncoderError(f"current={config.current} is no bundle directory, and no registry is named to find it in")
    registry = Registry(config.registry)
    return read_bundle(registry.fetch(registry.resolve(config.current), version_cache()))


def main(config: Config) -> str:
    """Returns the version published (or that would be). Raises Refused with every regression."""
    candidate, current = read_bundle(config.bundle), current_bundle(config)
    figures = measure(candidate, config.data, config.seed)
    before = measure(current, config.data, config.seed) if current else {}
    verdict = compare(before, figures, config.served)
    print(show(verdict, before, figures, current.id if current else "nothing", candidate.id))
    if config.out:
        report = {"current": before, "candidate": figures, "verdict": msgspec.to_builtins(verdict)}
        write_atomically(Path(config.out), json.dumps(report, indent=1, ensure_ascii=False).encode() + b"\n")
    if verdict.regressions and not config.force_reason.strip():
        listed = "\n  ".join(map(str, verdict.regressions))
        raise Refused(f"{candidate.id} is refused, {len(verdict.regressions)} figures are worse than allowed:\n  {listed}\n"
                      'mend it, or publish with force_reason="why"')  # fmt: skip
    if not config.registry:
        return candidate.id
    with TemporaryDirectory() as scratch:
        signed = _with_verdict(candidate, Path(scratch) / "bundle", verdict, current, config)
        version = Registry(config.registry).publish(signed)
    print(f"published {version} to {config.registry}")
    return version


def _with_verdict(bundle: Bundle, path: Path, verdict: Verdict, current: Bundle | None, config: Config) -> Path:
    """A copy of the bundle whose manifest tells how it passed, and the probe vectors workers check themselves by."""
    evaluation = dict(bundle.manifest.evaluation)
    evaluation["probes"] = probe_vectors(load_encoder(bundle.path))
    evaluation["gates"] = {
        "against": current.id if current else None, "compared": verdict.compared, "left_out": len(verdict.left_out),
        "regressions": [str(r) for r in verdict.regressions], "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "code_version": code_version(), "machine": machine(),
    }  # fmt: skip
    if verdict.regressions:
        evaluation["forced"] = config.force_reason.strip()
    manifest = msgspec.structs.replace(
        bundle.manifest, evaluation=evaluation, parent=bundle.manifest.parent or (current.id if current else None)
    )
    contents = {name: (bundle.path / name).read_bytes() for name in bundle.manifest.files}
    if write_bundle(path, manifest, contents, bundle.calibration).id != bundle.id:
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
    """`BUNDLE key=value …` as a config."""
    if not argv or "=" in argv[0]:
        raise EncoderError("name the bundle to publish: python -m training.release BUNDLE registry=…")
    return read_config({argv[0]: Config(bundle=argv[0])}, argv)


if __name__ == "__main__":
    try:
        main(read_arguments(sys.argv[1:]))
    except CrisisError as error:
        sys.exit(str(error))
