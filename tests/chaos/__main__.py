"""The chaos suite, whole: `python -m tests.chaos [WORD …]` (make chaos). With words, only faults that hold one of them.

Writes deploy/chaos.json and the tables of deploy/chaos.md and of the README after each fault.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import sys
import time
from dataclasses import asdict
from pathlib import Path

from streams.commands.bench import commit_now
from tests.chaos.faults import FULL, Fault
from tests.chaos.scene import RATE, scene
from tests.chaos.table import HEAD, in_place, rows, short_rows

HERE = Path(__file__).parents[2] / "deploy"


def main(words: list[str]) -> int:
    chosen = [f for f in FULL if not words or any(word in f.name for word in words)]
    kept = json.loads((HERE / "chaos.json").read_text())["faults"] if words and (HERE / "chaos.json").exists() else []
    done = {row["fault"]: row for row in kept}
    commit = commit_now()
    for agents, faults in itertools.groupby(chosen, key=lambda f: f.agents):
        run(list(faults), agents, done, commit)
    return 1 if any("failed" in row for row in done.values()) else 0


def run(faults: list[Fault], agents: tuple[str, ...], done: dict[str, dict], commit: str) -> None:
    left = list(faults)
    while left:  # after a fault that was not got over, the rest begins on a new scene
        logs = os.environ.get("CRISIS_CHAOS_LOGS")
        with scene(agents, Path(logs, str(len(done))) if logs else None) as running:
            while left:
                fault = left.pop(0)
                print(time.strftime("%H:%M:%S"), fault.name, flush=True)
                try:
                    done[fault.name] = asdict(running.measure(fault.name, fault.promised, fault.happen))
                except AssertionError as error:
                    done[fault.name] = {"fault": fault.name, "promised": fault.promised, "failed": str(error)[:2000]}
                done[fault.name]["commit"] = commit  # rows of several runs may stand beside each other
                print(json.dumps(done[fault.name], indent=1), flush=True)
                keep(done)
                if "failed" in done[fault.name]:
                    break


def keep(done: dict[str, dict]) -> None:
    machine = {"cores": os.cpu_count(), "system": platform.platform(terse=True), "load": os.getloadavg()[1]}
    told = {"command": "make chaos", "machine": machine, "posts_per_s": RATE, "workers": "two, encoder flood"}
    ordered = [done[f.name] for f in FULL if f.name in done]
    (HERE / "chaos.json").write_text(json.dumps({**told, "faults": ordered}, indent=1) + "\n")
    page = HERE / "chaos.md"
    load = f"Machine: {os.cpu_count()} cores, load average {os.getloadavg()[1]:.0f} at the end.\n\n"
    page.write_text(in_place(page.read_text(), rows(ordered)) if page.exists() else HEAD + load + rows(ordered))
    readme = HERE.parent / "README.md"
    readme.write_text(in_place(readme.read_text(), short_rows(ordered)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
