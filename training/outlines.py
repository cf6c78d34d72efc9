"""The outlines of land and the borders of countries that the dashboard's map is drawn on.

    npm pack world-atlas && tar xzf world-atlas-*.tgz
    python -m training.outlines all source=package/countries-50m.json out=streams/dashboard/static/outlines.json

They are Natural Earth's at 1:50 million (https://www.naturalearthdata.com, public domain), as the npm package
world-atlas brings them: TopoJSON, where each line is kept once, as steps on a grid. A line that two countries share is
a border, and rings of the object `land` are land. Kept are thousandths of a degree, each line as its first point and
steps from there, so that a browser reads them by adding up.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from training.jobs import run

__all__ = ["Config", "closed", "main", "outlines", "unwrapped"]

UNITS = 1000  # in a degree


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the job."""

    source: str = "package/countries-50m.json"
    out: str = "outlines.json"


Line = list[tuple[int, int]]  # longitude and latitude, in UNITS


def lines_of(topology: dict) -> list[Line]:
    """Every line of a topology (TopoJSON, section 2.1.4: steps on a grid that scale and translate put on the globe)."""
    (wide, high), (west, south) = topology["transform"]["scale"], topology["transform"]["translate"]
    found = []
    for steps in topology["arcs"]:
        x = y = 0
        line: Line = []
        for right, up in steps:
            x, y = x + right, y + up
            line.append((round((west + x * wide) * UNITS), round((south + y * high) * UNITS)))
        found.append(line)
    return found


def rings_of(shape: dict) -> Iterator[Sequence[int]]:
    """The rings of a geometry, each as the numbers of its lines; ~n is line n backwards."""
    if shape["type"] == "GeometryCollection":
        for part in shape["geometries"]:
            yield from rings_of(part)
    elif shape["type"] == "MultiPolygon":
        for polygon in shape["arcs"]:
            yield from polygon
    elif shape["type"] == "Polygon":
        yield from shape["arcs"]


def outlines(topology: dict) -> dict[str, list[list[int]]]:
    """{"land": rings, "borders": lines}, each [longitude, latitude, step east, step north, …] in UNITS of a degree."""
    lines = lines_of(topology)

    def line(number: int) -> Line:
        return lines[number] if number >= 0 else lines[~number][::-1]

    land = []
    for ring in rings_of(topology["objects"]["land"]):
        points = [point for number in ring for point in line(number)[:-1]]  # where one line ends the next begins
        land.append(steps_of(closed(unwrapped([*points, points[0]]))))
    countries = topology["objects"]["countries"]["geometries"]
    sides = Counter(
        number if number >= 0 else ~number for one in countries for ring in rings_of(one) for number in ring
    )
    return {
        "land": land,
        "borders": [steps_of(unwrapped(lines[number])) for number, count in sorted(sides.items()) if count > 1],
    }


def unwrapped(line: Line) -> Line:
    """The line going on beyond the date line, instead of once around the world to the other side of it."""
    found, turns = line[:1], 0
    for (before, _), (x, y) in pairwise(line):
        turns -= round((x - before) / (360 * UNITS))
        found.append((x + turns * 360 * UNITS, y))
    return found


def closed(ring: Line) -> Line:
    """A ring that ends a world further on goes around a pole: closed along that pole (Antarctica)."""
    (first, y), (last, _) = ring[0], ring[-1]
    if first == last:
        return ring
    pole = (90 if y > 0 else -90) * UNITS
    return [*ring, (last, pole), (first, pole), ring[0]]


def steps_of(line: Line) -> list[int]:
    """A line as its first point and the steps from there."""
    steps = [at - before for (x, y), (u, v) in pairwise(line) for at, before in ((u, x), (v, y)) if (x, y) != (u, v)]
    return [*line[0], *steps]


def main(config: Config) -> None:
    """Write them."""
    found = outlines(json.loads(Path(config.source).read_bytes()))
    Path(config.out).write_text(json.dumps(found, separators=(",", ":")) + "\n", encoding="utf-8")
    size = Path(config.out).stat().st_size / 1e6
    print(f"{len(found['land']):,} rings of land, {len(found['borders']):,} borders, {size:.1f} MB in {config.out}")


PRESETS = {"all": Config()}

if __name__ == "__main__":
    run(main, PRESETS)
