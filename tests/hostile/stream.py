"""A worker under the 20 costliest inputs: `python -m tests.hostile.stream [SECONDS] [POSTS_PER_S] [SEED] [OUT.json]`.

Apache Kafka, Redis and one worker (encoder flood); POSTS_PER_S (default 500) for SECONDS (default 60), every hundredth
post one of the 20 texts that cost most of the named and the invented ones (tests/hostile/inputs.py), never the same
twice. Before it the same without hostile posts: broker, Redis, page, source and worker share this machine, and for what
they cannot do with ordinary posts no text is to blame. Printed of both: how far behind the worker was in each quarter,
how long posts that are not hostile took from the source to `posts.matched`, and CPU a post. What a hostile post costs
is the difference of the worker's CPU: it can be told on a machine that is busy, where the rest cannot.

Ends with 1 where the worker falls further behind, or a hundredth of the other posts takes more than 2 s; with 2 where
it does so without hostile posts too: then the rate is too high for this machine, as it is now.
"""

from __future__ import annotations

import os
import sys
import time
from itertools import islice
from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct

from models.posts import MAX_TEXT_CHARS
from streams.commands.bench import commit_now
from tests.chaos.scene import Scene, scene
from tests.chaos.traffic import HOSTILE_EVERY, is_hostile
from tests.flow.scene import cpu_s
from tests.hostile.cost import Cost
from tests.hostile.inputs import TEXTS, invented, line

WORST, INVENTED = 20, 200
MOST_P99_S = 2.0


class Run(Struct, frozen=True):
    """One stream. behind_by_quarter: posts, medians; cpu_us: of a post, by process."""

    posts: int
    behind_by_quarter: list[int]
    other_posts_s: dict[str, float]
    cpu_us: dict[str, int]

    def told(self, rate: float) -> list[str]:
        """What is wrong with it."""
        first, *_, last = self.behind_by_quarter
        said = ["falls further behind"] if last > 2 * first + rate * MOST_P99_S else []
        return said + (["is late"] if self.other_posts_s["p99"] > MOST_P99_S else [])


def worst_texts(seed: int) -> list[str]:
    """The WORST that cost most CPU a post, of the named ones and INVENTED others."""
    cost, makers = Cost(), [*TEXTS.values(), *islice(invented(seed), INVENTED)]
    texts = [make(MAX_TEXT_CHARS) for make in makers]
    spent = [sum(cost.of(line(text)).values()) for text in texts]
    return [texts[i] for i in np.argsort(spent)[::-1][:WORST]]


def behind_by(running: Scene, seconds: float) -> np.ndarray:
    """Posts written and not through, looked at every half second."""
    seen, end = [], time.monotonic() + seconds
    running.traffic.flow(True)
    while time.monotonic() < end:
        time.sleep(0.5)
        seen.append(len(running.traffic.lines) - len(running.witness.matched))
    running.traffic.flow(False)
    return np.array(seen)


def run(seconds: float, rate: float, hostile: list[str]) -> Run:
    """A stream through services of its own."""
    with scene(agents=("",), rate=rate, hostile=hostile) as running:
        pids = {"worker": running.workers[0].pid, "redis": running.redis.child.pid, "broker": running.kafka.child.pid}
        before, used = len(running.traffic.lines), {name: cpu_s(pid) for name, pid in pids.items()}
        behind = behind_by(running, seconds)
        running.through()
        sent = len(running.traffic.lines) - before
        used = {name: cpu_s(pid) - used[name] for name, pid in pids.items()}
        written, matched = running.traffic.written, running.witness.matched
        # What was written while the scene came up waited for the worker to start.
        numbers = {i: int(i.removeprefix("chaos-")) for i in written}
        waited = [matched[i] - written[i] for i, n in numbers.items() if n >= before and not is_hostile(n)]
    p50, p99 = (round(float(x), 3) for x in np.quantile(waited, [0.5, 0.99]))
    return Run(
        sent,
        [int(np.median(part)) for part in np.array_split(behind, 4)],
        {"p50": p50, "p99": p99},
        {name: round(seconds / sent * 1e6) for name, seconds in used.items()},
    )


def main(seconds: float = 60.0, rate: float = 500.0, seed: int = 0, out: str = "") -> int:
    texts = worst_texts(seed)
    runs = {"ordinary": run(seconds, rate, []), "hostile": run(seconds, rate, texts)}
    for name, one in runs.items():
        p50, p99 = one.other_posts_s.values()
        used = ", ".join(f"{who} {us:,}" for who, us in one.cpu_us.items())
        print(f"{name}: {one.posts:,} posts in {seconds:g} s, µs of CPU a post: {used}")
        print(f"  behind, median of each quarter: {one.behind_by_quarter}; others took {p50:.2f} s, 99 % {p99:.2f} s")
    extra_ms = (runs["hostile"].cpu_us["worker"] - runs["ordinary"].cpu_us["worker"]) * HOSTILE_EVERY / 1000
    print(f"one in {HOSTILE_EVERY} is of the {WORST} costliest texts: {extra_ms:.1f} ms more of a worker")
    if out:
        told = {
            "command": f"python -m tests.hostile.stream {seconds:g} {rate:g} {seed}",
            "commit": commit_now(),
            "machine": {"cores": os.cpu_count(), "load": round(os.getloadavg()[1], 1)},
            "hostile_post_ms": round(extra_ms, 1),
            **{name: msgspec.to_builtins(one) for name, one in runs.items()},
        }
        Path(out).write_bytes(msgspec.json.format(msgspec.json.encode(told), indent=1) + b"\n")
    wrong = runs["hostile"].told(rate)
    if wrong and runs["ordinary"].told(rate):
        print(f"not to be judged here: the worker {' and '.join(wrong)}, with ordinary posts alone too")
        return 2
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*(kind(word) for kind, word in zip((float, float, int, str), sys.argv[1:], strict=False))))
