"""Where a worker's microseconds go, by py-spy: by thread and stage, by library, and the functions at the bottom."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import psutil

from streams.embedded.child import Child
from tests.waiting import wait_until

RATE = 200  # looks a second
HOUSE = ("streams/", "models/")


class Profile(contextlib.AbstractContextManager):
    """Records the child's stacks into `out` from when `begin` becomes true; nothing without `out`."""

    def __init__(self, out: Path | None, child: Child, begin: Callable[[], bool]) -> None:
        self._out, self._child, self._begin = out, child, begin
        self._spy: subprocess.Popen | None = None
        self._thread = threading.Thread(target=self._record, daemon=True)

    def __enter__(self) -> Profile:
        if self._out is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._out is not None:
            self._thread.join()
        if self._spy is not None:
            self._spy.send_signal(signal.SIGINT)
            self._spy.wait(60)
            self._out.with_suffix(".txt").write_text(table(self._out.read_text()))

    def _record(self) -> None:
        wait_until(lambda: self._begin() or self._child.ended())
        python = [p for p in psutil.Process(self._child.pid).children(recursive=True) if "python" in p.name()]
        if python:
            beside = Path(sys.executable).with_name("py-spy")
            command = [
                str(beside if beside.exists() else "py-spy"),
                "record",
                "--nonblocking",
                "--threads",
                "--format",
                "raw",
                "--rate",
                str(RATE),
            ]
            command += ["--duration", "3600", "--pid", str(python[0].pid), "--output", str(self._out)]
            self._spy = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)


def table(raw: str) -> str:
    """Shares of all looks that found a thread at work: by thread, by our file in it, by library, by function."""
    threads, files, libraries, functions, total = Counter(), Counter(), Counter(), Counter(), 0
    for line in raw.splitlines():
        stack, _, count = line.rpartition(" ")
        thread, *frames = stack.split(";")
        name = re.sub(r"^thread \(.*?\): ?|_\d+$|\d+$", "", thread) or "native"
        n, total = int(count), total + int(count)
        if not frames:
            continue
        ours = next((f for f in reversed(frames) if any(house in f for house in HOUSE)), "")
        threads[name] += n
        files[f"{name}: {_place(ours) if ours else 'no file of ours'}"] += n
        libraries[_library(frames[-1])] += n
        functions[frames[-1]] += n
    told = []
    for title, counter, most in (
        ("thread", threads, 20),
        ("our innermost function", files, 40),
        ("library", libraries, 25),
        ("innermost function", functions, 40),
    ):
        told.append(f"\n## by {title}")
        told += [f"{n / max(total, 1):7.1%}  {what}" for what, n in counter.most_common(most)]
    return "\n".join(told) + "\n"


def _place(frame: str) -> str:
    return re.sub(r":\d+\)$", ")", frame)


def _library(frame: str) -> str:
    path = re.search(r"\((.*?)(:\d+)?\)$", frame)
    parts = path.group(1).split("/") if path else ["?"]
    for mark in ("site-packages", "python3.11", "lib"):
        if mark in parts:
            parts = parts[parts.index(mark) + 1 :]
    return parts[0]
