"""A `crisis` command that can be told to misbehave, and ends with its parent: `python -m tests.chaos.subject FOLDER …`.

While FOLDER holds a file `raise`, `hang` or `clock` (seconds in it), the encoder raises, does not return, or every
clock of the wall is off by so much. A post that says `deadly-pill` ends the process as a crash in native code would.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import models.encoders.static as static
from streams.cli import main
from streams.pipeline import stages

PILL = "deadly-pill"


def misbehave(folder: Path) -> None:
    """Patch this process."""
    true_time, encode, parse = time.time, static.StaticEncoder.encode, stages.parse_many

    def time_off() -> float:
        try:
            return true_time() + float((folder / "clock").read_text() or 0)
        except (OSError, ValueError):
            return true_time()

    def encode_badly(self: static.StaticEncoder, texts: list[str]) -> object:
        while (folder / "hang").exists():
            time.sleep(0.1)
        if (folder / "raise").exists():
            raise RuntimeError("the encoder was told to fail")
        return encode(self, texts)

    def parse_or_die(records: list[tuple[bytes, object, float]], *rest: object) -> object:
        if any(PILL.encode() in value for value, *_ in records):
            os.kill(os.getpid(), signal.SIGKILL)
        return parse(records, *rest)

    time.time, static.StaticEncoder.encode, stages.parse_many = time_off, encode_badly, parse_or_die


def end_with_parent() -> None:
    """It holds the other end of our standard input."""
    os.read(0, 1)  # not sys.stdin: its lock, held here, would abort an orderly end
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=end_with_parent, daemon=True).start()
    misbehave(Path(sys.argv[1]))
    sys.argv = ["crisis", *sys.argv[2:]]
    main()
