"""The growth plot shows the figures that lie beside it, as many as were measured."""

from __future__ import annotations

from deploy.growth import draw, points, table
from streams.commands.bench import Metric, Run

FIGURES = {
    "at_10000": 100.0,
    "live_10000": 900.0,
    "mb_10000": 600.0,
    "at_30000": 130.5,
    "live_30000": 1900.0,
    "mb_30000": 640.0,
}


def run() -> Run:
    metrics = {f"clusters.window.1.{name}": Metric("", v, v, v, 1.0) for name, v in FIGURES.items()}
    other = {"clusters.window.1.growth": Metric("ratio", 1.3, 1.3, 1.3, 1.3), "search.1.mb": Metric("MB", 9, 9, 9, 2)}
    return Run("", "", "", {}, "", "", 1, metrics | other)


def test_the_table_has_a_row_for_each_number_of_posts():
    assert table(points(run())).splitlines()[2:] == ["| 10,000 | 900 | 100 | 600 |", "| 30,000 | 1,900 | 130 | 640 |"]


def test_the_same_figures_make_the_same_picture(tmp_path):
    for name in ("a.svg", "b.svg"):
        draw(points(run()), tmp_path / name)
    first, second = ((tmp_path / name).read_bytes() for name in ("a.svg", "b.svg"))
    assert first == second and b"<svg" in first
