"""Reliability diagrams: what probabilities promised against what was right, drawn from `results/alerts.json`.

`python -m training.figures` draws them into `results/reliability.svg`, beside the table. A mark is a bin of posts of
about equal weight (`training.metrics.alerting.reliability`); on the diagonal a promise is kept, below it too much was
promised. Of all posts most bins lie near nought, so those that gave an alert or a suggestion are drawn apart, as a
line; languages are those with posts enough.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["draw", "tables_of"]

SETS = {  # in alerts.json: what is drawn as what
    "calibration": "posts of streams (scaled on)",
    "written": "written posts (most never scaled on)",
    "read": "real posts read, weighted",
}
ALL, SHOWN = "reliability", "reliability_of_shown"

Table = Sequence[Mapping[str, float]]  # bins: posts, weight, promised, right


def tables_of(alerts: Path) -> dict[str, Mapping[str, Table]]:
    """By set, its tables: all posts, those shown, and languages with posts enough."""
    details = json.loads(alerts.read_text("utf-8"))["metrics"]["details"]
    return {name: details[name] for name in SETS}


def draw(tables: Mapping[str, Mapping[str, Table]], out: Path) -> None:
    """A panel a set. The same figures make the same bytes."""
    with matplotlib.rc_context({"svg.hashsalt": "reliability", "font.size": 9}):
        figure = Figure(figsize=(9, 3.4), layout="constrained")
        for panel, name in zip(figure.subplots(1, len(SETS), sharey=True), SETS, strict=True):
            panel.plot([0, 1], [0, 1], color="grey", linewidth=1)
            for kind, table in tables[name].items():
                if kind.startswith(ALL):
                    _marks(panel, kind, table)
            panel.set(title=SETS[name], xlabel="promised", xlim=(0, 1), ylim=(0, 1), aspect="equal")
            panel.legend(loc="upper left", fontsize=7)
        figure.axes[0].set_ylabel("right")
        figure.savefig(out, metadata={"Date": None})


def _marks(panel: Axes, kind: str, table: Table) -> None:
    """Posts that are shown as a line; all posts, and a language's, as marks."""
    promised, right = ([row[field] for row in table] for field in ("promised", "right"))
    label = {ALL: "all posts", SHOWN: "those shown"}.get(kind, kind.removeprefix(f"{ALL} "))
    panel.plot(promised, right, marker="o", markersize=3, linestyle="-" if kind == SHOWN else ":", label=label)
