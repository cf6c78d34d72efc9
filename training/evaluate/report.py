"""The report as Markdown: our figures, and beside them those of others, each such column or row marked "published"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from training.evaluate import report_uses as uses
from training.evaluate import report_vectors as vectors
from training.evaluate.published import PAPERS
from training.evaluate.report_tables import PUBLISHED

__all__ = ["sources", "write"]


def write(record: Mapping, plots: Iterable[str]) -> str:
    """record: what `write_result` keeps; plots: the names of the files that lie beside the report."""
    metrics = record["metrics"]
    parts = [
        f"# Evaluation of {metrics['encoder']}",
        f"`{record['command']}`, commit {record['commit']}, seed {record['seed']}, {record['finished_at']}, "
        f"{record['machine']}.",
        f"Columns and rows marked *{PUBLISHED}* are figures that papers and public result files give for other systems,"
        " often on another set than ours (the text above each table says so); all others were measured by this command."
        " Intervals are 95 %.",
    ]
    for name, section in SECTIONS.items():
        if name in metrics:
            parts += [section(metrics[name]), *(f"![{name}]({file})" for file in plots if file.startswith(f"{name}."))]
    return "\n\n".join(parts) + "\n"


SECTIONS: dict[str, Callable[[Mapping], str]] = {
    "matching": vectors.matching,
    "relatedness": vectors.relatedness,
    "classes": vectors.classes,
    "spread": vectors.spread,
    "noise": vectors.noise,
    "classification": uses.classification,
    "needs": uses.needs,
    "clusters": uses.clusters,
    "tasks": uses.tasks,
    "speed": uses.speed,
}


def sources() -> str:
    """The papers that the published columns are from."""
    return "\n".join(f"- {short}: {full}" for short, full in PAPERS.items())
