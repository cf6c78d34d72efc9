"""The table of a run, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

HEAD = """# What faults do

`make chaos` starts Apache Kafka, Redis, two workers, a dashboard and a source of 20 distinct posts a second, lets each
fault happen and holds what came out against a replay of the same posts without a fault. Figures: `chaos.json`.

Promised, where nothing else is said: nothing lost, no alert twice in effect, through again within 30 s of the end of
the fault, no hand needed. *Lost*: posts without an outcome and alerts that are missing. *Refused*: posts on
`posts.rejected`, with a reason, to be sent again. *Doubled*: alerts too many, or
posts counted twice. *Recovered*: until every post written before the end of the fault was through. *Told*: until
`/readyz` no longer said "live". *Ended*: workers that ended on their own account and were started again. *Load*: of the
machine, in its last minute; seconds grow with it.

"""


def in_place(document: str, table: str) -> str:
    """The document with this table in the place of the one it has; what people wrote around it stays."""
    lines = document.splitlines(keepends=True)
    first = next(n for n, line in enumerate(lines) if line.startswith("| fault |"))
    last = next((n for n in range(first, len(lines)) if not lines[n].startswith("|")), len(lines))
    return "".join((*lines[:first], table, *lines[last:]))


def rows(outcomes: Iterable[Mapping]) -> str:
    """A Markdown table."""
    lines = [
        "| fault | lasted, s | posts | lost | refused | doubled | recovered, s | told, s | ended | load |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|---:|",
    ]
    for o in outcomes:
        name = o["fault"] + ("" if o["promised"] == "usual" else f" ({o['promised']})")
        if "failed" in o:
            lines.append(f"| {name} | | | **not got over** | | | | | | |")
            continue
        told = "–" if o["told_s"] is None else f"{o['told_s']:g}"
        ended = ", ".join(f"{n} × {status}" for status, n in sorted(Counter(o["workers_ended"]).items())) or "–"
        figures = (
            f"{o['fault_s']:g}",
            f"{o['posts']:,}",
            o["lost"],
            o["refused"],
            o["doubled"],
            f"{o['recovery_s']:g}",
            told,
            ended,
            f"{o['load']:.0f}" if "load" in o else "–",
        )
        lines.append(f"| {name} | {' | '.join(map(str, figures))} |")
    return "\n".join(lines) + "\n"


def short_rows(outcomes: Iterable[Mapping]) -> str:
    """The same for the README: what was lost, what came twice, how long it took."""
    lines = ["| fault | posts | lost | doubled | recovered, s |", "|---|---:|---:|---:|---:|"]
    for o in outcomes:
        if "failed" in o:
            lines.append(f"| {o['fault']} | | **not got over** | | |")
        else:
            lines.append(f"| {o['fault']} | {o['posts']:,} | {o['lost']} | {o['doubled']} | {o['recovery_s']:g} |")
    return "\n".join(lines) + "\n"
