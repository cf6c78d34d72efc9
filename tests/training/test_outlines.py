"""The outlines of the map: rings put together from shared lines, and land where towns are."""

from __future__ import annotations

import json
from itertools import accumulate
from pathlib import Path

import pytest

import streams
from models.places.gazetteer import Gazetteer
from training.outlines import UNITS, Config, closed, main, outlines, unwrapped

# Two countries side by side, from 0 to 2 degrees east: line 0 is the border, 1 the west coast, 2 the east coast.
TWO = {
    "transform": {"scale": [0.5, 0.5], "translate": [-1.0, 10.0]},
    "arcs": [[[4, 0], [0, 2]], [[4, 2], [-2, 0], [0, -2], [2, 0]], [[4, 0], [2, 0], [0, 2], [-2, 0]]],
    "objects": {
        "land": {"type": "GeometryCollection", "geometries": [{"type": "MultiPolygon", "arcs": [[[1, 2]]]}]},
        "countries": {
            "type": "GeometryCollection",
            "geometries": [
                {"type": "Polygon", "arcs": [[1, 0]], "properties": {"name": "West"}},
                {"type": "Polygon", "arcs": [[2, -1]], "properties": {"name": "East"}},
            ],
        },
    },
}


def points(numbers: list[int]) -> list[tuple[float, float]]:
    """Longitude and latitude of a line, degrees."""
    return [(x / UNITS, y / UNITS) for x, y in zip(accumulate(numbers[::2]), accumulate(numbers[1::2]), strict=True)]


def on_land(rings: list[list[tuple[float, float]]], lon: float, lat: float) -> bool:
    """By the even-odd rule: how often does a line to the east cross a coast. Outlines go on beyond the date line."""
    crossings = 0
    for ring in rings:
        for (x, y), (u, v) in zip(ring, ring[1:], strict=False):
            if (y > lat) != (v > lat):
                at = x + (lat - y) / (v - y) * (u - x)
                crossings += sum(lon + turn < at for turn in (-360, 0, 360))
    return crossings % 2 == 1


def test_two_countries_are_one_land_with_a_border_between_them():
    found = outlines(TWO)
    [ring], [border] = found["land"], found["borders"]
    assert points(border) == [(1.0, 10.0), (1.0, 11.0)]
    assert points(ring)[0] == points(ring)[-1]
    assert set(points(ring)) == {(x, y) for x in (0.0, 1.0, 2.0) for y in (10.0, 11.0)}
    assert on_land([points(ring)], 0.5, 10.5) and on_land([points(ring)], 1.5, 10.5)
    assert not on_land([points(ring)], 2.5, 10.5) and not on_land([points(ring)], 0.5, 9.5)


def test_a_line_that_is_run_backwards_ends_where_it_begins():
    turned = json.loads(json.dumps(TWO))
    turned["arcs"][2] = [[4, 2], [2, 0], [0, -2], [-2, 0]]
    turned["objects"]["land"]["geometries"][0]["arcs"] = [[[1, ~2]]]
    assert points(outlines(turned)["land"][0]) == points(outlines(TWO)["land"][0])


def test_a_line_across_the_date_line_goes_on_beyond_it_and_a_ring_around_the_pole_is_closed_along_it():
    around = [(x * UNITS, -70 * UNITS) for x in (-180, -60, 60, 180, -180)]
    assert unwrapped(around) == [*around[:4], (180 * UNITS, -70 * UNITS)]
    assert unwrapped([(179_000, 0), (-179_000, 1_000), (178_000, 0)]) == [(179_000, 0), (181_000, 1_000), (178_000, 0)]
    pole = [(180 * UNITS, -90 * UNITS), (-180 * UNITS, -90 * UNITS), around[0]]
    assert closed(unwrapped(around)) == [*unwrapped(around), *pole]
    assert closed([(0, 0), (1, 1), (0, 0)]) == [(0, 0), (1, 1), (0, 0)]


def test_the_job_writes_what_the_page_reads(tmp_path, capsys):
    (tmp_path / "world.json").write_text(json.dumps(TWO))
    main(Config(str(tmp_path / "world.json"), str(tmp_path / "out.json")))
    assert json.loads((tmp_path / "out.json").read_text()) == outlines(TWO)
    assert "1 rings of land, 1 borders" in capsys.readouterr().out


@pytest.fixture(scope="module")
def bundled() -> list[list[tuple[float, float]]]:
    path = Path(streams.__file__).parent / "dashboard" / "static" / "outlines.json"
    return [points(ring) for ring in json.loads(path.read_text())["land"]]


AROUND = [(0.0, 0.0), *((x, y) for x in (-0.1, 0.0, 0.1) for y in (-0.1, 0.0, 0.1) if x or y)]  # some ten kilometres


def test_the_biggest_towns_of_the_world_lie_on_the_land_that_comes_with_the_page_or_at_its_coast(bundled):
    for town in Gazetteer.bundled().towns((-90.0, -180.0, 90.0, 180.0), 300):
        assert any(on_land(bundled, town.lon + x, town.lat + y) for x, y in AROUND), town


def test_no_outline_runs_around_the_world_but_along_a_pole(bundled):
    for ring in bundled:
        for (x, y), (u, v) in zip(ring, ring[1:], strict=False):
            assert abs(u - x) <= 180 or y == v == -90, (x, y, u, v)


@pytest.mark.parametrize(
    "lon, lat, dry",
    [(-45, 66, True), (25, 67, True), (-150, 67, True), (179.5, 66.5, True), (-179.5, 66.5, True), (178, -17.8, True),
     (0, -85, True), (0, 68, False), (-140, 71.2, False), (0, 71.2, False), (-90, -16.52, False), (60, -16.5, False)],
)  # fmt: skip
def test_land_that_crosses_the_date_line_is_land_and_nothing_else_is(bundled, lon, lat, dry):
    assert on_land(bundled, lon, lat) is dry


@pytest.mark.parametrize("lon, lat", [(-40.0, 30.0), (-140.0, -30.0), (75.0, -30.0), (18.0, 35.0), (-75.0, 15.0)])
def test_the_oceans_are_not_land(bundled, lon, lat):
    assert not on_land(bundled, lon, lat)
