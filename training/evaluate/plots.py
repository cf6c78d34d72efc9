"""The report's plots, one SVG a section; the same figures give the same file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from training.evaluate import published

__all__ = ["draw"]

OURS, THEIRS, BASE = "#1f5fa8", "#c2571a", "#9a9a9a"
STYLE = {"svg.hashsalt": "crisis-streams", "font.size": 8, "axes.spines.top": False, "axes.spines.right": False}


def draw(metrics: Mapping, folder: Path) -> list[str]:
    """Write a plot for every section that has one; returns the file names."""
    names = []
    for name, (plot, size) in PLOTS.items():
        if name not in metrics:
            continue
        with matplotlib.rc_context(STYLE):
            figure = Figure(figsize=size, layout="constrained")  # without pyplot: no window, nothing global
            plot(metrics[name], figure.subplots())
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        names.append(f"{name}.svg")
    return names


def matching(found: Mapping, axes: Axes) -> None:
    name, figures = next((n, f) for n, f in found.items() if isinstance(f, Mapping))
    ordered = sorted(figures["by_language"].items(), key=lambda item: (item[1]["script"], -item[1]["matching"]))
    langs = [lang for lang, _ in ordered]
    values = np.array([f["matching"] for _, f in ordered])
    reach = np.abs(np.array([[f["low"], f["high"]] for _, f in ordered]).T - values)
    axes.bar(langs, values, color=OURS, yerr=reach, error_kw={"lw": 0.8}, label=f"ours, {name}")
    theirs = published.by_part("CT-XLMR-SE", paper="Lamsal 2024", table="4", metric="matching")
    _marks(axes, langs, theirs, "CT-XLMR-SE, TED2020 (published)")
    axes.set(
        ylabel="accuracy, mean of both directions",
        title="Sentence matching by language, grouped by script",
        ylim=(0, 1),
    )
    axes.tick_params(axis="x", rotation=90)
    axes.margins(x=0.01)
    axes.figure.legend(loc="outside lower center", ncols=2)


def relatedness(found: Mapping, axes: Axes) -> None:
    name, figures = next((n, f) for n, f in found.items() if isinstance(f, Mapping))
    langs = list(figures["by_language"])
    values, overlap = (
        np.array([f[key] for f in figures["by_language"].values()], float) for key in ("spearman", "overlap")
    )
    reach = np.abs(np.array([[f["low"], f["high"]] for f in figures["by_language"].values()], float).T - values)
    place = np.arange(len(langs))
    axes.bar(place - 0.2, values, 0.4, color=OURS, yerr=reach, error_kw={"lw": 0.8}, label=f"ours, {name}")
    axes.bar(place + 0.2, overlap, 0.4, color=BASE, label="word overlap")
    axes.set_xticks(place, langs)
    if name.startswith("SemRel"):
        _marks(
            axes, langs, published.by_part("LaBSE", paper="Ousidhoum 2024", table="12"), "LaBSE, test split (published)"
        )
    axes.set(ylabel="Spearman", title="Relatedness")
    axes.figure.legend(loc="outside lower center", ncols=3)


def classes(found: Mapping, axes: Axes) -> None:
    rows = [(name, f) for name, f in found.items() if isinstance(f, Mapping)]
    place = np.arange(len(rows))
    axes.barh(place - 0.2, [f["d_avg"] for _, f in rows], 0.4, color=OURS, label="within classes (D_avg)")
    axes.barh(place + 0.2, [f["between"] for _, f in rows], 0.4, color=BASE, label="between classes")
    axes.set_yticks(place, [name for name, _ in rows])
    axes.invert_yaxis()
    axes.set(xlabel="mean cosine", title="Posts of one class")
    axes.legend()


def spread(found: Mapping, axes: Axes) -> None:
    edges = np.linspace(-1, 1, len(found["translations"]) + 1)
    for name, color in (("translations", OURS), ("strangers", BASE)):
        axes.stairs(
            np.array(found[name]) / max(1, sum(found[name])), edges, fill=True, alpha=0.6, color=color, label=name
        )
    axes.set(xlabel="cosine", ylabel="share of pairs", title="Cosines of translations and of strangers")
    axes.legend()


def noise(found: Mapping, axes: Axes) -> None:
    kinds = list(found["by_kind"])
    runs = [f["xsim++"] for f in found["by_kind"].values()]
    reach = [f["half_width"] or 0 for f in runs]
    axes.bar(kinds, [f["mean"] for f in runs], color=OURS, yerr=reach, error_kw={"lw": 0.8}, label="ours")
    for system, marker in (("LASER", "x"), ("RoLASER", "D")):
        theirs = published.by_part(system, paper="Nishimwe 2024", table="5", metric="xsim++")
        _marks(axes, kinds, theirs, f"{system} (published)", marker)
    axes.set(ylabel="xSIM++, percent", title="Errors on noised English (hard negatives differ from the paper's)")
    axes.tick_params(axis="x", rotation=45)
    axes.figure.legend(loc="outside lower center", ncols=3)


def _marks(axes: Axes, names: list[str], values: Mapping[str, float], label: str, marker: str = "D") -> None:
    known = [(i, values[name]) for i, name in enumerate(names) if name in values]
    if known:
        axes.plot(*zip(*known, strict=True), marker, color=THEIRS, ms=3.5, label=label)


PLOTS: dict[str, tuple[Callable[[Mapping, Axes], None], tuple[float, float]]] = {
    "matching": (matching, (11, 3.6)),
    "relatedness": (relatedness, (7, 3.2)),
    "classes": (classes, (7, 3)),
    "spread": (spread, (6, 3)),
    "noise": (noise, (7, 3.2)),
}
