"""What labels teach: average precision on posts of the same event that nobody labelled, before and after 20, 100, 300.

    python -m training.evaluate feedback          # HumAID's test split (CRISIS_DATA), the bundled encoder
    python -m training.evaluate feedback smoke    # two events, 40 labels

A task is an event and a kind of post; its query is what a person would add, three English sentences that no head was
taught. Posts come in order of time. Of the first 60 % an analyst judges ten at a time what is most worth it among those
that have come (models/feedback/choice.py), near-copies left out; the rest judges. Once with true labels, once with a
tenth of them wrong. HumAID teaches nothing else here; the knobs of models/feedback/fit.py were chosen on its training
split, on six events that are none of these.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from models.clusters.labels import terms_of
from models.encoders.protocol import Encoder
from models.encoders.ready import load, ready
from models.feedback.choice import Copies, mixed
from models.feedback.fit import Correction, Feedback, FeedbackConfig, Space, fit_query
from models.matching import Matcher
from models.queries import Query
from training.evaluate.needs import average_precision
from training.files import data_dir, hash_rows, read_json
from training.jobs import cache_dir, write_result
from training.keeping import keeping
from training.metrics.intervals import bootstrap

__all__ = ["Config", "PRESETS", "main"]

RESULT = Path("training/results/feedback.json")
ROUND = 10  # labels between two refits
WORSE = 0.01  # of average precision: less is no loss

# HumAID's label → the query somebody would add for it, of the kind that it is. Taken for needs, damage and displaced
# people start at .16 and .09 average precision: how likely a post is of a query's kind is a veto.
TARGETS = {
    "requests_or_urgent_needs": (
        "need.requests",
        (
            "We urgently need help, please send food and water",
            "We are stranded and need to be rescued",
            "Supplies are needed at the shelter, please help",
        ),
    ),
    "rescue_volunteering_or_donation_effort": (
        "offer.effort",
        (
            "Volunteers are rescuing people from their homes",
            "Donate to the relief fund to help the victims",
            "We are collecting and sending relief supplies",
        ),
    ),
    "displaced_people_and_evacuations": (
        "report.displaced",
        (
            "Thousands of people were evacuated from their homes",
            "Families are staying in shelters",
            "Residents are ordered to evacuate",
        ),
    ),
    "infrastructure_and_utility_damage": (
        "report.damage",
        (
            "Houses and roads were destroyed",
            "Power is out and the bridge collapsed",
            "The damage to buildings is huge",
        ),
    ),
}


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the measure."""

    encoder: str = "bundled"  # or flood, the bundled static one, or a bundle's directory
    least: int = 700  # posts of an event in the test split, fewer are left out
    sample: int = 1_400  # posts of each event at most, drawn by chance
    events: int = 0  # at most so many; 0 = all
    labels: tuple[int, ...] = (20, 50, 100, 300)
    wrong: float = 0.1  # share of labels turned round in the second run
    positives: int = 15  # least in each part of an event for a task
    seed: int = 1
    out: str = ""  # the JSON; default training/results/feedback.json (whole run, bundled encoder), else in CRISIS_CACHE


PRESETS = {"laptop": Config(), "smoke": Config(sample=250, events=2, labels=(20, 40), positives=4)}


@dataclasses.dataclass(frozen=True)
class Task:
    """One event and target. Rows in order of time; those before `cut` may be labelled, the rest judges."""

    event: str
    target: str
    vectors: np.ndarray  # (n, d) as encoded
    texts: list[str]
    langs: list[str]
    shipped: np.ndarray  # (n,) log-odds
    right: np.ndarray  # (n,) bool
    cut: int


def main(config: Config) -> Path:
    """Print the table and write its JSON. Returns the JSON's path."""
    loaded = load(None if config.encoder == "bundled" else config.encoder)
    encoder = keeping(loaded.encoder, cache_dir() / "vectors")
    queries = [Query(i, i[: i.index(".")], i[i.index(".") + 1 :], i, {"en": list(t)}) for i, t in TARGETS.values()]  # type: ignore[arg-type]
    matcher = ready(dataclasses.replace(loaded, encoder=encoder), queries).matcher
    tasks = find_tasks(config, matcher, encoder)
    runs = {
        name: [run(config, t, matcher.space, wrong) for t in tasks]
        for name, wrong in (("true labels", 0.0), ("some wrong", config.wrong))
    }
    metrics = {
        "encoder": encoder.version,
        "tasks": len(tasks),
        "posts": sum({t.event: len(t.texts) for t in tasks}.values()),
        "start": round(float(np.mean([curve[0] for curve in runs["true labels"]])), 4),
        **{name: {str(n): summary(config, curves, n) for n in config.labels} for name, curves in runs.items()},
        "by_target": {
            target: {
                str(n): round(
                    float(
                        np.mean([c[n] for c, t in zip(runs["true labels"], tasks, strict=True) if t.target == target])
                    ),
                    4,
                )
                for n in (0, *config.labels)
            }
            for target in sorted({t.target for t in tasks})
        },
    }
    show(metrics)
    whole = config == PRESETS["laptop"]
    out = Path(config.out) if config.out else RESULT if whole else cache_dir() / "feedback.json"
    write_result(out, config, hash_rows(text for t in tasks for text in t.texts), config.seed, metrics)
    print(f"→ {out}")
    return out


def find_tasks(config: Config, matcher: Matcher, encoder: Encoder) -> list[Task]:
    """Every event that is big enough with every target that is frequent enough. Raises ValueError if there is none."""
    events: dict[str, list[dict]] = defaultdict(list)
    for post in read_json(data_dir() / "humaid" / "tweets.jsonl.gz"):
        if post["split"] == "test":
            events[post["event"]].append(post)
    rng = np.random.default_rng(config.seed)
    chosen = {}
    for event in sorted(event for event, posts in events.items() if len(posts) >= config.least):
        drawn = [events[event][i] for i in rng.permutation(len(events[event]))[: config.sample]]
        chosen[event] = sorted(drawn, key=lambda post: int(post["id"]))  # ids of tweets grow with time
    place = {query.id: i for i, query in enumerate(matcher.queries)}
    tasks = []
    for event, posts in list(chosen.items())[: config.events or None]:
        texts = [post["text"] for post in posts]
        vectors = encoder.encode(texts)
        odds, cut = matcher.odds(vectors), int(0.6 * len(posts))
        for target, (query_id, _) in TARGETS.items():
            right = np.array([post["labels"] == target for post in posts])
            if min(right[:cut].sum(), right[cut:].sum()) >= config.positives:
                langs = [post["lang"] for post in posts]
                shipped = odds[:, place[query_id]].astype(np.float64)
                tasks.append(Task(event, target, vectors, texts, langs, shipped, right, cut))
    if not tasks:
        raise ValueError("no event of HumAID's test split is big enough: lower least= or positives=")
    return tasks


def run(config: Config, task: Task, space: Space, wrong: float) -> dict[int, float]:
    """Average precision on the judging posts after so many labels; 0 = as shipped."""
    rng = np.random.default_rng(config.seed)
    said = task.right ^ (rng.random(len(task.right)) < wrong)
    placed = (task.vectors - space.middle) / space.width
    terms = [terms_of(text) for text in task.texts]
    labelled: list[int] = []
    seen, odds, most = Copies(), task.shipped, max(config.labels)
    curve = {0: average_precision(task.shipped[task.cut :], task.right[task.cut :])}
    while len(labelled) < most:
        come = min(task.cut, max(2 * ROUND, int(task.cut * (0.3 + len(labelled) / most))))  # while labels are given
        asked = ask(odds[:come], task.texts, set(labelled), seen)
        if not asked and come == task.cut:
            break
        labelled += asked
        fitted = fit(task, labelled, placed, terms, said)
        added = Feedback({"x": fitted}, space).added(["x"], task.vectors, task.texts, task.langs)
        odds = task.shipped + added[:, 0]
        curve[len(labelled)] = average_precision(odds[task.cut :], task.right[task.cut :])
    return {n: curve[max(given for given in curve if given <= n)] for n in (0, *config.labels)}


def ask(odds: np.ndarray, texts: Sequence[str], labelled: set[int], seen: Copies) -> list[int]:
    """The next ten posts worth a label, as the page offers them; what is chosen is noted in `seen`."""
    free = [i for i in range(len(odds)) if i not in labelled]
    chosen: list[int] = []
    for i in mixed(odds[free]):
        if len(chosen) == ROUND:
            break
        if not seen.has(texts[free[i]]):
            seen.add(texts[free[i]])
            chosen.append(free[i])
    return chosen


def fit(
    task: Task, labelled: list[int], placed: np.ndarray, terms: Sequence[Sequence[str]], said: np.ndarray
) -> Correction:
    """The correction of the task's query by these rows."""
    return fit_query(
        FeedbackConfig(),
        placed[labelled].astype(np.float64),
        [terms[i] for i in labelled],
        [task.langs[i] for i in labelled],
        task.shipped[labelled],
        said[labelled],
    )


def summary(config: Config, curves: Sequence[dict[int, float]], n: int) -> dict:
    """Over the tasks, after n labels: mean gain with its interval, share of tasks that got worse, the worst."""
    gains = np.array([curve[n] - curve[0] for curve in curves])
    low, high = bootstrap(lambda rows: float(gains[rows].mean()), len(gains), config.seed, 1000)
    return {
        "ap": round(float(np.mean([curve[n] for curve in curves])), 4),
        "gain": round(float(gains.mean()), 4),
        "interval": [round(low, 4), round(high, 4)],
        "worse": round(float((gains < -WORSE).mean()), 4),
        "worst": round(float(gains.min()), 4),
    }


def show(metrics: dict) -> None:
    """The table: one line for so many labels."""
    table = Table(
        title=f"{metrics['tasks']} tasks, {metrics['encoder']}, start {metrics['start']:.3f} AP", title_justify="left"
    )
    for heading in ("labels", "AP", "gain", "95 %", "worse", "worst", "wrong:", "worse", "worst"):
        table.add_column(heading, justify="right", overflow="fold")
    for n, true in metrics["true labels"].items():
        noisy = metrics["some wrong"][n]
        low, high = true["interval"]
        table.add_row(
            n,
            f"{true['ap']:.3f}",
            f"{true['gain']:+.3f}",
            f"{low:+.3f} {high:+.3f}",
            f"{true['worse']:.0%}",
            f"{true['worst']:+.3f}",
            f"{noisy['gain']:+.3f}",
            f"{noisy['worse']:.0%}",
            f"{noisy['worst']:+.3f}",
        )
    Console().print(table)
