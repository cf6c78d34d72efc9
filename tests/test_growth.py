"""The growth plot shows the figures that lie beside it, as many as were measured."""

from __future__ import annotations

import json
import subprocess
import sys

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


def test_a_short_run_with_small_bounds_tells_what_every_stage_costs(tmp_path):
    out = tmp_path / "endurance.json"
    subprocess.run([sys.executable, "-m", "tests.endurance", "5000", out, "0.01"], check=True, capture_output=True)
    parts = json.loads(out.read_text())["parts"]
    assert [part["posts"] for part in parts] == [n * 200 for n in range(1, 26)]
    assert parts[-1].keys() >= {"memory_mb", *STAGES}  # it saves after each 5,000
