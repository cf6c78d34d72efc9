"""A worker under the 20 costliest inputs: `python -m tests.hostile.stream [SECONDS] [POSTS_PER_S] [SEED] [OUT.json]`.

Apache Kafka, Redis and one worker (encoder flood); POSTS_PER_S (default 500) for SECONDS (default 60), every hundredth
post one of the 20 texts that cost most of the named and the invented ones (tests/hostile/inputs.py). Printed: how far
behind the worker was in each quarter, and how long the other posts took from the source to `posts.matched`.
Ends with 1 where the worker falls further behind, or a hundredth of the other posts takes more than 2 s.
"""

from __future__ import annotations

import json
import os
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np

from models.posts import MAX_TEXT_CHARS
from tests.chaos.scene import Scene, scene
from tests.chaos.traffic import is_hostile
from tests.hostile.__main__ import Cost
from tests.hostile.inputs import TEXTS, invented, line

WORST, INVENTED = 20, 200
MOST_P99_S = 2.0


def worst_texts(seed: int) -> list[str]:
    """The WORST that cost most CPU a post, of the named ones and INVENTED others."""
    cost, makers = Cost(), [*TEXTS.values(), *islice(invented(seed), INVENTED)]
    texts = [make(MAX_TEXT_CHARS) for make in makers]
    spent = [sum(cost.of(line(text))[:2]) for text in texts]
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


def main(seconds: float = 60.0, rate: float = 500.0, seed: int = 0, out: str = "") -> int:
    with scene(agents=("",), rate=rate, hostile=worst_texts(seed)) as running:
        before = len(running.traffic.lines)
        behind = behind_by(running, seconds)
        sent = len(running.traffic.lines) - before
        running.through()
        written, matched = running.traffic.written, running.witness.matched
        waited = [matched[i] - written[i] for i in written if not is_hostile(int(i.removeprefix("chaos-")))]
    quarters = [int(np.median(part)) for part in np.array_split(behind, 4)]
    p50, p99 = np.quantile(waited, [0.5, 0.99])
    print(f"{sent:,} posts in {seconds:g} s, one in a hundred of the {WORST} costliest texts")
    print(f"posts behind, median of each quarter: {quarters}; other posts took {p50:.2f} s, 99 % of them {p99:.2f} s")
    if out:
        told = {
            "command": f"python -m tests.hostile.stream {seconds:g} {rate:g} {seed}",
            "machine": {"cores": os.cpu_count(), "load": round(os.getloadavg()[1], 1)},
            "posts": sent,
            "behind_by_quarter": quarters,
            "other_posts_s": {"p50": round(float(p50), 3), "p99": round(float(p99), 3)},
        }
        Path(out).write_text(json.dumps(told, indent=1) + "\n")
    grows = quarters[-1] > 2 * quarters[0] + rate * MOST_P99_S
    return 1 if grows or p99 > MOST_P99_S else 0


if __name__ == "__main__":
    sys.exit(main(*(kind(word) for kind, word in zip((float, float, int, str), sys.argv[1:], strict=False))))
