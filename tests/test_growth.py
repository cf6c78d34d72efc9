"""The growth plot shows the figures that lie beside it, as many as were measured."""

from __future__ import annotations

from deploy.growth import STAGES, draw, table

PARTS = [
    {"posts": 10_000, "memory_mb": 600.4} | dict.fromkeys(STAGES, 100.0),
    {"posts": 20_000, "memory_mb": 1_640.0} | dict.fromkeys(STAGES, 200.0),
]


def test_the_table_has_a_row_for_each_part_with_the_sum_of_its_stages():
    first, second = table(PARTS).splitlines()[2:]
    assert first == f"| 10,000 |{' 100 |' * 7} 700 | 600 |"
    assert second == f"| 20,000 |{' 200 |' * 7} 1,400 | 1,640 |"


def test_the_same_figures_make_the_same_picture(tmp_path):
    for name in ("a.svg", "b.svg"):
        draw(PARTS, tmp_path / name)
    first, second = ((tmp_path / name).read_bytes() for name in ("a.svg", "b.svg"))
    assert first == second and b"<svg" in first
