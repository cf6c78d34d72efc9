"""What the clusterer costs a post in two trees of code, in turn: python deploy/clusters_in_turn.py OLD NEW [POSTS ...]

After so many posts (10,000 and 300,000) of the stream of `clusters.window.1`, and after 8,000 of real ones where
CRISIS_DATA has them (vectors of `flood`): the next 2,000, five frames by one tree, then the same five by the other; of
each five the least CPU time of two rounds. Both start from one saved state and must give the same events and
assignments. A busy machine slows both: the ratio says more than the figures.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS, STEP, WARM, FRAMES = 2, 5, 5, 25  # frames of 100 posts; the first are not timed


def worker(path: Path) -> None:
    """Answers commands, a line each, with the code of the folder it runs in."""
    from models.clustering import Clusterer

    config, snapshot, frames = pickle.loads(path.read_bytes())
    for line in sys.stdin:
        first, last = json.loads(line)
        if first == 0:
            clusterer, events = Clusterer.restore(snapshot, config), []
            clusterer.changes()  # as where somebody saves
        begun = time.process_time()
        for frame in frames[first:last]:
            events += clusterer.add(frame)
        took = time.process_time() - begun
        told = repr((events, clusterer.assignments())) if last == len(frames) else ""
        named = hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()
        print(json.dumps([took, clusterer.size, named]), flush=True)


def prepare(path: Path, posts: int) -> None:
    """Write a state after so many posts, and the frames to come. posts: 0 = real ones."""
    from models.clustering import Clusterer
    from models.records import MatchedFrame
    from streams.commands.bench_growth import CONFIG, FRAME, Stream

    if posts:
        version, dim = "bench", Stream.dim
        frames = Stream().frames(posts + FRAMES * FRAME)
    else:
        from models.encoders.ready import load
        from models.records import Origin, Post
        from streams.commands.bench_scenarios import START, real_texts

        posts, encoder = 8_000, load("flood").encoder
        version, dim = encoder.version, encoder.dim
        texts = list(itertools.islice(real_texts(), posts + FRAMES * FRAME))

        def made(first: int) -> MatchedFrame:
            here = texts[first : first + FRAME]
            at = [START + (first + i) / 500 for i in range(len(here))]
            said = [Post(f"p{first + i}", text, at[i], at[i]) for i, text in enumerate(here)]
            vectors = encoder.encode(here).astype("<f2").tobytes()
            return MatchedFrame(Origin(0, first), said, encoder_version=version, dim=dim, vectors=vectors)

        frames = map(made, range(0, len(texts), FRAME))
    clusterer = Clusterer(CONFIG, dim, version)
    for frame in itertools.islice(frames, posts // FRAME):
        clusterer.add(frame)
    path.write_bytes(pickle.dumps((CONFIG, clusterer.snapshot(), list(frames))))


def in_turn(trees: list[str], path: Path) -> str:
    """The figures of one state."""
    run = [sys.executable, str(Path(__file__).resolve()), "--worker", str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    asked = [subprocess.Popen(run, cwd=tree, env=os.environ | {"PYTHONPATH": tree}, **pipes) for tree in trees]

    def ask(process: subprocess.Popen[str], first: int, last: int) -> list[float]:
        print(json.dumps([first, last]), file=process.stdin, flush=True)
        answer: list[float] = json.loads(process.stdout.readline() if process.stdout else "")
        return answer

    least: dict[tuple[int, int], float] = {}
    for _ in range(ROUNDS):
        live = [ask(process, 0, WARM)[1] for process in asked][0]
        for first in range(WARM, FRAMES, STEP):
            answers = [ask(process, first, first + STEP) for process in asked]
            for n, (took, _, _) in enumerate(answers):
                least[n, first] = min(took, least.get((n, first), took))
    for process in asked:
        process.communicate()
    posts = (FRAMES - WARM) * 100
    cost = [sum(t for (which, _), t in least.items() if which == n) / posts * 1e6 for n in range(len(trees))]
    same = "the same" if len({told for _, _, told in answers}) == 1 else "DIFFERENT"
    return f"{live:.0f} live: {cost[0]:.0f} -> {cost[1]:.0f} us a post, {cost[1] / cost[0]:.2f}; results {same}"


def main(old: str, new: str, *posts: str) -> None:
    real = (0,) if "CRISIS_DATA" in os.environ else ()
    for number in map(int, posts) if posts else (*real, 10_000, 300_000):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "state"
            prepare(path, number)
            print(f"after {number or 'real'} posts, {in_turn([old, new], path)}", flush=True)


if __name__ == "__main__":
    worker(Path(sys.argv[2])) if sys.argv[1] == "--worker" else main(*sys.argv[1:])
