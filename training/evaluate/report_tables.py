"""Markdown tables, and figures as they stand in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

__all__ = ["PUBLISHED", "between", "cell", "interval", "sets", "table", "two"]

PUBLISHED = "(published)"  # after the name of a system: papers or public result files give its figures


def table(head: Sequence[str], rows: Iterable[Sequence]) -> str:
    """A Markdown table; numbers to three places, "–" for what there is not."""
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(lines + ["| " + " | ".join(map(cell, row)) + " |" for row in rows])


def cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def two(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f}"


def interval(found: Mapping) -> str:
    width = found["half_width"]
    return f"{found['mean']:.3f}" + ("" if width is None else f" ± {width:.3f}")


def between(found: Mapping) -> str | None:
    low, high = found.get("low"), found.get("high")
    return None if low is None else f"{low:.3f}–{high:.3f}"


def sets(found: Mapping) -> list[tuple[str, Mapping]]:
    return [(name, figures) for name, figures in found.items() if isinstance(figures, Mapping)]
