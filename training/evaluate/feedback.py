"""What labels teach: average precision, and alerts at the bar, on posts that nobody labelled, before and after.

    python -m training.evaluate feedback          # HumAID's test split, disaster messages (CRISIS_DATA)
    python -m training.evaluate feedback smoke    # two events, 40 labels

A task is an event and a kind of post; its query is what a person would add, three English sentences that no head was
taught. Posts come in order of time. Of the first 60 % an analyst judges ten at a time what is most worth it among those
that have come (models/feedback/choice.py), near-copies left out; the rest judges. Once with true labels, once with a
tenth of them wrong. What labels do to the bundled queries: training/evaluate/later.py.

The knobs of models/feedback/fit.py were chosen on six events of HumAID's training split and on the disaster messages,
as sent and in English; HumAID's test split, the Nepal and Italy posts, T26 and languages of the written posts judged.
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

from models.encoders.protocol import Encoder
from models.encoders.ready import load, ready
from models.feedback.choice import Copies, mixed
from models.feedback.fit import Feedback, FeedbackConfig, Space, fit_query
from models.matching import Matcher
from models.queries import Query, load_queries
from training.evaluate.later import later_alerts, read_stream
from training.evaluate.needs import average_precision
from training.files import data_dir, hash_rows, read_json
from training.jobs import cache_dir, write_result
from training.keeping import keeping
from training.metrics.intervals import bootstrap

__all__ = ["Config", "PRESETS", "main"]

RESULT = Path("training/results/feedback.json")
ROUND = 10  # labels between two refits
BAR = ("right", "found", "silenced")  # what is told of alerts at the default bar
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
    messages: int = 4_000  # disaster messages at most, in which the bundled queries are taught
    seed: int = 1
    out: str = ""  # the JSON; default training/results/feedback.json (whole run, bundled encoder), else in CRISIS_CACHE


SMOKE = Config(sample=250, events=2, labels=(20, 40), positives=4, messages=400)
PRESETS = {"laptop": Config(), "smoke": SMOKE}


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


class Measured(Struct, frozen=True):
    """Of the judging posts of a task, at the bar; `silenced`: right alerts as shipped that no longer are."""

    precision: float  # average, by rank
    alerts: int
    right: int
    wanted: int
    shipped: int  # right alerts as shipped
    silenced: int


def main(config: Config) -> Path:
    """Print the table and write its JSON. Returns the JSON's path."""
    loaded = load(None if config.encoder == "bundled" else config.encoder)
    encoder = keeping(loaded.encoder, cache_dir() / "vectors")
    kept = dataclasses.replace(loaded, encoder=encoder)
    queries = [Query(i, i[: i.index(".")], i[i.index(".") + 1 :], i, {"en": list(t)}) for i, t in TARGETS.values()]  # type: ignore[arg-type]
    matcher = ready(kept, queries).matcher
    tasks = find_tasks(config, matcher, encoder)
    bundled = ready(kept, load_queries())
    runs = {
        name: [run(config, t, matcher.space, wrong) for t in tasks]
        for name, wrong in (("true labels", 0.0), ("some wrong", config.wrong))
    }
    metrics = {
        "encoder": encoder.version,
        "tasks": len(tasks),
        "posts": sum({t.event: len(t.texts) for t in tasks}.values()),
        "start": round(float(np.mean([curve[0].precision for curve in runs["true labels"]])), 4),
        **{name: {str(n): summary(config, curves, n) for n in (0, *config.labels)} for name, curves in runs.items()},
        "by_target": {
            target: {
                str(n): round(
                    float(
                        np.mean(
                            [
                                c[n].precision
                                for c, t in zip(runs["true labels"], tasks, strict=True)
                                if t.target == target
                            ]
                        )
                    ),
                    4,
                )
                for n in (0, *config.labels)
            }
            for target in sorted({t.target for t in tasks})
        },
        "later": later_alerts(bundled, read_stream(bundled, config.messages), config.labels),
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


def run(config: Config, task: Task, space: Space, wrong: float) -> dict[int, Measured]:
    """What the judging posts look like after so many labels; 0 = as shipped."""
    rng = np.random.default_rng(config.seed)
    said = task.right ^ (rng.random(len(task.right)) < wrong)
    labelled: list[int] = []
    seen, odds, most = Copies(), task.shipped, max(config.labels)
    curve = {0: measured(task, odds)}
    while len(labelled) < most:
        come = min(task.cut, max(2 * ROUND, int(task.cut * (0.3 + len(labelled) / most))))  # while labels are given
        asked = ask(odds[:come], task.texts, set(labelled), seen)
        if not asked and come == task.cut:
            break
        labelled += asked
        added = fit(task, labelled, space, said).added(["x"], task.vectors, task.langs)
        odds = task.shipped + added[:, 0]
        curve[len(labelled)] = measured(task, odds)
    return {n: curve[max(given for given in curve if given <= n)] for n in (0, *config.labels)}


def measured(task: Task, odds: np.ndarray) -> Measured:
    """The judging posts at these log-odds (n,); the bar is at 0."""
    right, alerts, shipped = task.right[task.cut :], odds[task.cut :] >= 0, task.shipped[task.cut :] >= 0
    ranked = average_precision(odds[task.cut :], right)
    counts = (alerts, alerts & right, right, shipped & right, shipped & right & ~alerts)
    return Measured(ranked, *(int(count.sum()) for count in counts))


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


def fit(task: Task, labelled: list[int], space: Space, said: np.ndarray) -> Feedback:
    """The correction of the task's query, "x", by these rows."""
    config = FeedbackConfig()
    made = fit_query(
        config,
        space,
        task.vectors[labelled],
        [task.langs[i] for i in labelled],
        task.shipped[labelled],
        said[labelled],
        own=np.ones(len(labelled), bool),
        learnt=False,
    )
    return Feedback({"x": made}, space, config.sharp)


def summary(config: Config, curves: Sequence[dict[int, Measured]], n: int) -> dict:
    """Over the tasks, after n labels: mean gain with its interval, share of tasks that got worse, the worst; of all
    their posts together, how many alerts, the share right and found, and of right ones as shipped the share lost."""
    gains = np.array([curve[n].precision - curve[0].precision for curve in curves])
    low, high = bootstrap(lambda rows: float(gains[rows].mean()), len(gains), config.seed, 1000)
    alerts, right, wanted, shipped, silenced = (
        sum(getattr(curve[n], name) for curve in curves)
        for name in ("alerts", "right", "wanted", "shipped", "silenced")
    )
    return {
        "ap": round(float(np.mean([curve[n].precision for curve in curves])), 4),
        "gain": round(float(gains.mean()), 4),
        "interval": [round(low, 4), round(high, 4)],
        "worse": round(float((gains < -WORSE).mean()), 4),
        "worst": round(float(gains.min()), 4),
        "alerts": alerts,
        "right": round(right / max(alerts, 1), 4),
        "found": round(right / max(wanted, 1), 4),
        "silenced": round(silenced / max(shipped, 1), 4),
    }


def show(metrics: dict) -> None:
    """The tables: one line for so many labels."""
    titles = {
        "true labels": f", {metrics['encoder']}, start {metrics['start']:.3f} AP",
        "some wrong": ", a tenth wrong",
    }
    for name, title in titles.items():
        table = Table(title=f"{metrics['tasks']} tasks{title}", title_justify="left")
        for heading in ("labels", "AP", "gain", "95 %", "worse", "worst", *BAR):
            table.add_column(heading, justify="right", overflow="fold")
        for n, told in metrics[name].items():
            low, high = told["interval"]
            gains = (f"{told['gain']:+.3f}", f"{low:+.3f} {high:+.3f}", f"{told['worse']:.0%}", f"{told['worst']:+.3f}")
            table.add_row(n, f"{told['ap']:.3f}", *gains, *(f"{told[share]:.2f}" for share in BAR))
        Console().print(table)
    later = Table(title=f"bundled queries, {metrics['later']['posts']} disaster messages", title_justify="left")
    for heading in ("labels", "alerts", *BAR):
        later.add_column(heading, justify="right")
    for n in metrics["true labels"]:
        told = metrics["later"][n]
        later.add_row(n, str(told["alerts"]), *(f"{told[share]:.2f}" for share in BAR))
    Console().print(later)
    print(
        "three wrong labels of a query and language: {kept} of {alerts} alert".format(**metrics["later"]["one_sided"])
    )
