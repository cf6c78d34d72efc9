"""What the costliest inputs cost, in µs of CPU a byte: `python -m tests.hostile [SECONDS] [SEED]`.

For SECONDS (default 60) units are invented and repeated to a post of full length; the 20 costliest are printed beside
the named ones, worst first, each with its share of parsing and of encoding and as a multiple of ordinary posts.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from models.encoders.load import load_encoder
from models.posts import MAX_TEXT_CHARS
from models.pseudonyms import Pseudonyms
from models.records import Frame, Origin
from streams.pipeline import stages
from tests.hostile.inputs import LINES, ORDINARY, TEXTS, invented, line, repeated

AT = Origin(0, 0)


class Cost:
    """Parse and encode, one record at a time, as a worker does."""

    def __init__(self) -> None:
        self.encoder = load_encoder("flood")
        for text in ORDINARY:  # language models and tables are loaded once
            self.of(line(text))

    def of(self, record: bytes) -> tuple[float, float, int]:
        """Seconds of CPU to parse and to encode, and bytes."""
        begun = time.process_time()
        parsed = stages.parse(record, AT, 1.7e9, Pseudonyms(b"key"))
        between = time.process_time()
        stages.embed(Frame(AT, parsed.posts), self.encoder)
        return between - begun, time.process_time() - between, len(record)


def main(seconds: float = 60.0, seed: int = 0) -> None:
    cost = Cost()
    ordinary = b"\n".join(line(repeated(text, 140)) for text in ORDINARY for _ in range(250))
    parse_s, encode_s, size = min(cost.of(ordinary) for _ in range(3))
    base = (parse_s + encode_s) / size
    rows = [(1.0, "ordinary posts", parse_s / size, encode_s / size)]

    def measure(name: str, record: bytes) -> tuple[float, str, float, float]:
        parse_s, encode_s, size = min((cost.of(record) for _ in range(2)), key=sum)
        return ((parse_s + encode_s) / size / base, name, parse_s / size, encode_s / size)

    rows += [measure(name, line(make(MAX_TEXT_CHARS))) for name, make in TEXTS.items()]
    rows += [measure(name, line(make(300))) for name, make in ((f"{n}, 300 characters", m) for n, m in TEXTS.items())]
    rows += [measure(name, make(200_000)) for name, make in LINES.items()]
    rows += sorted(found(measure, seconds, seed), reverse=True)[:20]
    print("| input | × ordinary | µs a byte | parse | encode |\n|---|---:|---:|---:|---:|")
    for times, name, parse, encode in sorted(rows, reverse=True):
        print(f"| {name} | {times:.1f} | {(parse + encode) * 1e6:.2f} | {parse * 1e6:.2f} | {encode * 1e6:.2f} |")


def found(measure: Callable, seconds: float, seed: int) -> list[tuple[float, str, float, float]]:
    end = time.monotonic() + seconds
    rows = []
    for make in invented(seed):
        if time.monotonic() > end:
            return rows
        rows.append(measure(make.__name__, line(make(MAX_TEXT_CHARS))))
    raise AssertionError("the generator ended")


if __name__ == "__main__":
    main(*(kind(word) for kind, word in zip((float, int), sys.argv[1:], strict=False)))
