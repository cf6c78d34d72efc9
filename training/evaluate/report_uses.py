"""Sections on what vectors are used for: classes, needs, clusters, tasks of others, and the speed."""

from __future__ import annotations

from collections.abc import Mapping

from training.evaluate import published
from training.evaluate.material import LABELLED
from training.evaluate.report_tables import PUBLISHED, between, interval, sets, table, two

__all__ = ["classification", "clusters", "needs", "speed", "tasks"]


def classification(found: Mapping) -> str:
    twin = {name: source.twin for name, source in LABELLED.items() if source.twin}
    systems = ("XLM-RoBERTa", "BERTweet", "CT-M1-BestLoss")
    theirs = {s: {r.dataset: r for r in published.find(system=s, paper="Lamsal 2023", table="4")} for s in systems}
    rows = [
        [
            name,
            interval({"mean": f["macro_f1"], "half_width": f["half_width_95"]}),
            len(f["classes"]),
            sum(f["rows"].values()),
            *(
                f"{r.value:.3f} ± {r.half_width:.3f}" if (r := of.get(twin.get(name, "–"))) else None
                for of in theirs.values()
            ),
        ]
        for name, f in sets(found)
    ]
    return "\n\n".join(
        [
            "## Classification",
            "Test macro F1 of one linear layer on vectors that stay as they are, mean ± 95 % of the repeats."
            " Published: Lamsal 2023, table 4, all layers fine-tuned, on sets of the same origin but other rows.",
            table(["set", "macro F1", "classes", "rows", *(f"{s} {PUBLISHED}" for s in systems)], rows),
        ]
    )


def needs(found: Mapping) -> str:
    parts = [
        "## Needs",
        "Average precision of English queries over messages in other languages as sent, and as translated.",
    ]
    if "ratio" in found:
        parts.append(
            f"Originals {found['originals']:.3f}, translations {found['translations']:.3f}, ratio "
            f"{found['ratio']:.2f}, chance"
            f" {found['chance']:.3f}; a message finds its translation: {found['translation_matching']:.3f}."
        )
    rows = [
        [label, f["originals"], between(f), f.get("translations"), f["chance"], f["positives"]]
        for label, f in found["by_label"].items()
    ]
    return "\n\n".join([*parts, table(["label", "originals", "interval", "translations", "chance", "positives"], rows)])


def speed(found: Mapping) -> str:
    columns = {
        "posts a second (wall clock)": f"{found['posts_per_s']:,}",
        "posts a second of one core": f"{found['posts_per_core_s']:,}",
        "seconds to load": found["load_s"],
    }
    if "posts_per_s_together" in found:
        columns["posts a second of all processes"] = f"{found['posts_per_s_together']:,}"
    return "\n\n".join(["## Speed", table(list(columns), [list(columns.values())])])


def clusters(found: Mapping) -> str:
    rows = [
        [name, f["final"]["b3_f1"], f["final"]["nmi"], f["final"]["ari"], f["final"]["clusters"]]
        for name, f in sets(found)
    ]
    return "\n\n".join(["## Clusters", table(["stream", "B³ F1", "NMI", "ARI", "clusters"], rows)])


def tasks(found: Mapping) -> str:
    systems = ("LASER", "RoLASER", "c-RoLASER")
    theirs = {
        s: {row.dataset: row.value for row in published.find(system=s, paper="Nishimwe 2024", table="8")}
        for s in systems
    }
    rows = [
        [name, two(f["score"]), f["metric"], f["split"], *(two(of.get(name)) for of in theirs.values())]
        for name, f in sets(found)
    ]
    return "\n\n".join(
        [
            "## MTEB",
            "In percent, by the mteb library. Published: Nishimwe 2024, table 8.",
            table(["task", "score", "measure", "split", *(f"{s} {PUBLISHED}" for s in systems)], rows),
        ]
    )
