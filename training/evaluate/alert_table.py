"""The table of the alert benchmark: every figure beside what is asked for."""

from __future__ import annotations

import msgspec
from rich.console import Console
from rich.table import Table

from training.evaluate.alert_figures import BUDGETS
from training.evaluate.figure import Figure

__all__ = ["Parts", "line", "show"]

# What is asked for, by part of the table and figure: (least, most)
ASKED: dict[tuple[str, str], tuple[float, float]] = {
    ("demo", "offer_alerts_that_are_needs"): (0.0, 0.04),
    ("demo", "need_alerts_that_are_offers"): (0.0, 0.04),
    ("demo", "rescue"): (22 / 27, 1.0),
    ("disaster", "water_precision"): (0.80, 1.0),
    ("disaster", "water_recall"): (0.62, 1.0),
    ("disaster", "food_precision"): (0.85, 1.0),
    ("disaster", "food_recall"): (0.60, 1.0),
    ("disaster", "shelter_precision"): (0.68, 1.0),
    ("disaster", "shelter_recall"): (0.52, 1.0),
    ("disaster", "mean_ap_good_six"): (0.56, 1.0),
    ("humaid", "ap_requests"): (0.16, 1.0),
    ("humaid", "ap_effort"): (0.72, 1.0),
    ("trecis", "ap_high_by_urgency_event_left_out"): (0.22, 1.0),
    ("trecis", "ndcg100_by_urgency_event_left_out"): (0.40, 1.0),
    ("trecis", "worth_high_by_alerts"): (0.0, 1.0),
    ("trecis", "worth_all_by_alerts"): (0.0, 1.0),
    **{("t26", f"gain_minus_pain_{budget}_an_hour"): (0.0, 1e9) for budget in BUDGETS},
    ("ordinary", "ordinary_alerted"): (0.0, 0.003),
    ("written", "own_query"): (0.60, 1.0),
    ("written", "rescue"): (0.75, 1.0),
    ("written: near misses", "others_alerted"): (0.0, 0.05),
    ("written", "offer_alerts_that_are_needs"): (0.0, 0.03),
    ("written", "right_query_first"): (0.80, 1.0),
    ("written", "ap_against_none"): (0.97, 1.0),
    ("read", "alerts_right"): (0.60, 1.0),
    ("read", "own_query"): (0.40, 1.0),
    ("read", "urgent"): (0.60, 1.0),
    ("read", "others_alerted"): (0.0, 0.01),
    ("calibration", "precision_where_80_is_asked"): (0.75, 0.85),
}
ERROR = (0.0, 0.05)  # calibration error of each language
Parts = dict[str, list[Figure]]


def asked(part: str, figure: str) -> tuple[float, float] | None:
    """(least, most) that was asked for."""
    return ERROR if figure.startswith("calibration_error ") else ASKED.get((part, figure))


def met(part: str, figure: Figure) -> bool | None:
    """Is it within what was asked for? None where nothing was asked or nothing measured."""
    wanted = asked(part, figure.name)
    if wanted is None or figure.value is None:
        return None
    above = figure.value > wanted[0] if part in ("trecis", "t26") and wanted[0] == 0.0 else figure.value >= wanted[0]
    return above and figure.value <= wanted[1]


def line(part: str, figure: Figure) -> dict:
    """A figure as the JSON keeps it."""
    wanted = asked(part, figure.name)
    more = {"asked": list(wanted), "met": met(part, figure)} if wanted else {}
    return msgspec.to_builtins(figure) | more


def show(parts: Parts, version: str) -> None:
    """The table: one line a figure, sets apart."""
    table = Table(title=f"alerts of {version} at default settings", title_justify="left")
    for heading, justify in (
        ("set", "left"),
        ("figure", "left"),
        ("value", "right"),
        ("95 %", "right"),
        ("n", "right"),
    ):
        table.add_column(heading, justify=justify, no_wrap=True)
    table.add_column("asked", justify="right", no_wrap=True)
    for part, listed in parts.items():
        for place, figure in enumerate(f for f in listed if f.n):
            told = {True: " ✓", False: " ✗", None: ""}[met(part, figure)]
            table.add_row(
                "" if place else part,
                figure.name.replace("_", " "),
                "–" if figure.value is None else f"{figure.value:.3f}",
                "" if figure.low is None else f"{figure.low:.3f}–{figure.high:.3f}",
                f"{figure.n:,}",
                _bounds(asked(part, figure.name)) + told,
            )
        table.add_section()
    Console(width=None if Console().is_terminal else 120).print(table)


def _bounds(wanted: tuple[float, float] | None) -> str:
    if wanted is None:
        return ""
    least, most = wanted
    if least == 0.0:
        return "> 0" if most >= 1.0 else f"≤ {most:.3g}"
    return f"≥ {least:.2f}" if most >= 1.0 else f"{least:.2f}–{most:.2f}"
