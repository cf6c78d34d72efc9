"""Teach a sentence encoder what a need is: posts of one class come together, the opposite and the near miss move away.

    python -m training.adapt laptop model=DIR out=DIR       # a BERT with mean pooling, as training.shorten writes it
    python -m training.adapt h200 model=lent/short/model out=lent/adapted     # a lent machine, nine minutes at a time

Only the upper layers learn. Four losses add up over each batch of posts and of query sentences, those of the same and
of the opposite class among them:

- cross-entropy of a linear head over all classes (queries and kinds of post that are none), labels smoothed;
- supervised contrast (Khosla et al. 2020, https://arxiv.org/abs/2004.11362, eq. 2) over the whole batch;
- hold: 1 − cosine to the vector the model gave before, so that relatedness and other languages stay what they were;
- the same of translation pairs' texts, in the evened-out space: to half of their own and half of their English's
  vector, so that languages come nearer to each other while needs move apart; and of English ones as people type
  them, to the vector of what was meant.

What is written reads texts into a space evened out half-way (Su et al. 2021), by the query sentences and everyday ones
as they are read in the end: by the query sentences alone, which all tell of disasters, texts of other things come to
lie too near each other (SemRel dev, mean of 14 languages, .505; with both .523). The head that serves is fitted
afterwards by `training.head`.

`h200` is carried to a lent machine as training.shorten tells: the posts and query packs it learns from are in the
checkout, nothing is fetched, and a slice that was ended by `minutes` is gone on with by the same command.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from msgspec import Struct

from models.errors import ConfigError
from models.queries import load_queries
from models.text import Cleaning, clean
from training import shorten
from training.class_material import Taught, material
from training.data import in_train_half, read_messages
from training.evening import Evening, draw_together, even_out
from training.files import data_dir, hash_rows
from training.head import Config as HeadConfig
from training.head import fit_classes
from training.jobs import Count, Positive, run
from training.labels import everyday
from training.loop import Pace, fit, minutes_left
from training.losses import supervised_contrast
from training.noise.mix import MIX_RATE
from training.posts import classes, read_posts, written_posts
from training.robust_texts import Text, noised
from training.run_key import run_key
from training.tower import Tower
from training.tower_files import write_tower

__all__ = ["Config", "main"]


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the adaptation."""

    model: str = ""  # directory of the encoder to adapt
    out: str = ""  # directory to write
    frozen: int = 5  # lower layers that stay as they are
    epochs: Positive = 3.0  # over the posts
    batch: Count = 48  # posts
    sentences: int = 24  # query sentences and background beside them
    others: int = 32  # texts of translation pairs, held between where they and their English were
    slips: int = 12_000  # English ones as people type them, among those, held where they stand without a slip
    rate: Positive = 1e-4  # of the layers
    head_rate: float = 12.0  # times that, of the head
    contrast: float = 0.3
    temperature: Positive = 0.1
    hold: float = 8.0
    hold_others: float = 4.0
    smoothing: float = 0.05
    evened: float = 0.5  # 0 = the space as it is, 1 = all axes of equal variance
    written: int = 0  # of the posts at most; 0 = all
    data: bool = True  # also learn from the research data under CRISIS_DATA; false = packs and written posts alone
    minutes: float = 0.0  # after which the job writes its checkpoint and ends, to be started again; 0 = no limit
    seed: int = 0


PRESETS = {
    "laptop": Config(),
    "smoke": Config(frozen=0, epochs=1, batch=16, sentences=8, others=4, slips=40, written=400, data=False),
    # Five times the batch at twice the rate, for more epochs. Not run yet where it is meant to; see training.shorten.
    "h200": Config(epochs=6.0, batch=256, sentences=128, others=96, rate=2e-4, data=False, minutes=9),
}


def main(config: Config) -> Path:
    if not config.model or not config.out:
        raise ConfigError("set model=DIR and out=DIR")
    began = time.monotonic()
    torch.manual_seed(config.seed)
    taught, names, standing = _material(config)
    held, partner = shorten.material(
        shorten.Config(data=config.data, written=config.written, pairs=40_000, seed=config.seed + 1)
    )
    held, partner, meant = _with_slips(held, partner, config)
    translated = np.flatnonzero(partner != np.arange(len(held))) if config.data else np.arange(len(held))
    place = {name: i for i, name in enumerate(names)}
    labels, weights = np.array([place[label] for label in taught.labels]), torch.tensor(taught.weights)
    tower = Tower(config.model, config.frozen)
    posts, partners = np.flatnonzero(~standing), _Partners(labels, names, standing)
    batches = max(1, len(posts) // config.batch)
    steps = max(1, round(config.epochs * batches))
    # only what some step draws is read: at less than an epoch that is far from all
    drawn = np.stack(
        [
            np.random.default_rng([config.seed, 2, step]).choice(translated, config.others, replace=False)
            for step in range(steps)
        ]
    )
    english = partner[drawn]
    some = np.unique([drawn, english])
    slipped = torch.from_numpy(drawn >= meant)[..., None]
    held, drawn, english = [held[i] for i in some], np.searchsorted(some, drawn), np.searchsorted(some, english)
    read, read_held = tower.lower(tower.ids(taught.texts)), tower.lower(tower.ids(held))
    before, held_before = tower.read(read), tower.read(read_held)
    mean, turn = even_out(before[torch.from_numpy(standing)].numpy(), config.evened)
    evening = Evening(mean, turn)
    beside = evening(held_before)
    goals = F.normalize(beside[torch.from_numpy(drawn)] * ~slipped + beside[torch.from_numpy(english)], dim=-1)
    weight, bias = fit_classes(HeadConfig(), evening(before).numpy(), taught, names)
    head = torch.nn.Linear(weight.shape[1], len(names))
    head.load_state_dict({"weight": torch.tensor(weight).float(), "bias": torch.tensor(bias).float()})

    def losses(step: int) -> Iterator[torch.Tensor]:
        epoch, place_in_it = divmod(step, batches)
        turn_of = np.random.default_rng([config.seed, 0, epoch]).permutation(posts)
        chosen = turn_of[place_in_it * config.batch : (place_in_it + 1) * config.batch]
        rng = np.random.default_rng([config.seed, 1, step])
        rows = np.concatenate([chosen, partners.of(chosen, config.sentences, rng)])
        vectors, wanted = tower.vectors([read[i] for i in rows]), torch.from_numpy(labels[rows])
        space = evening(vectors)
        named = F.cross_entropy(head(space), wanted, label_smoothing=config.smoothing, reduction="none")
        apart = supervised_contrast(space, wanted, config.temperature)
        moved = (1 - (vectors * before[torch.from_numpy(rows)]).sum(1)).mean()
        yield (named * weights[rows]).mean() + config.contrast * apart + config.hold * moved
        now = evening(tower.vectors([read_held[i] for i in drawn[step]]))
        yield config.hold_others * (1 - (now * goals[step]).sum(1)).mean()

    left = minutes_left(config.minutes, began)
    pace = Pace(steps, config.rate, max(1, steps // 10), config.seed, 200, clip=1.0, minutes=left)
    learning = torch.nn.ModuleDict({"layers": tower.learning, "head": head})
    key = run_key(config, hash_rows([*zip(taught.texts, taught.labels, taught.weights, strict=True), *held]))
    trace = fit(
        learning, losses, pace, Path(config.out) / "run", key, title="adapting", rates={"head.": config.head_rate}
    )
    print(f"{len(taught.texts):,} texts, {trace.step:,} steps")
    shaping = [taught.texts[i] for i in np.flatnonzero(standing)] + (_everyday(config) if config.data else [])
    mean, turn = even_out(tower.read(tower.ids(shaping)).numpy(), config.evened)
    if config.data:
        now = Evening(mean, turn)(tower.read(read_held)).numpy()
        turn = turn @ draw_together(now[drawn.ravel()], now[english.ravel()])
    return write_tower(tower, Path(config.out) / "model", mean, turn)


def _with_slips(held: list[str], partner: np.ndarray, config: Config) -> tuple[list[str], np.ndarray, int]:
    """The texts and, behind them, `slips` of their English sides as people type them (RoLASER's noises, Nishimwe,
    Sagot, Bawden 2024, section 3), whose partner is the text as it was meant; and where those begin."""
    sides = np.unique(partner[partner != np.arange(len(partner))])  # what is its own partner may be of any language
    sides = np.random.default_rng([config.seed, 3]).permutation(sides)[: min(config.slips, len(sides))]
    typed = noised([Text(held[i], "en") for i in sides], MIX_RATE, config.seed)
    return [*held, *(clean(text, Cleaning()) for text in typed)], np.concatenate([partner, sides]), len(held)


def _everyday(config: Config) -> list[str]:
    """Sentences of no disaster, cleaned as posts are."""
    found = everyday(data_dir(), HeadConfig().everyday, config.seed)
    return [clean(text, Cleaning()) for text in found]


def _material(config: Config) -> tuple[Taught, list[str], np.ndarray]:
    """What is learnt from, the classes, and which rows are standing texts: query sentences and background."""
    posts = written_posts() + (read_posts(data_dir()) if config.data else [])
    messages = [m for m in read_messages(data_dir()) if in_train_half(str(m["id"]))] if config.data else []
    posts = posts[:: max(1, len(posts) // config.written)] if config.written else posts
    queries = load_queries()
    taught = material(HeadConfig(seed=config.seed), posts, messages)
    sentences = {text for query in queries for _, text in query.texts()}
    standing = np.array(
        [text in sentences or label == "ordinary" for text, label in zip(taught.texts, taught.labels, strict=True)]
    )
    cleaned = [clean(text, Cleaning()) for text in taught.texts]
    return (
        Taught(cleaned, taught.labels, taught.weights),
        classes(posts, [query.id for query in queries]),
        standing,
    )


class _Partners:
    """Draws, for the posts of a batch, query sentences of their classes and of the opposite ones, and background."""

    def __init__(self, labels: np.ndarray, names: list[str], standing: np.ndarray) -> None:
        self._labels = labels
        rows = np.flatnonzero(standing)
        self._of = {label: rows[labels[rows] == label] for label in set(labels[rows].tolist())}
        place = {name: i for i, name in enumerate(names)}
        turned = {"need": "offer", "offer": "need"}
        self._opposite = {
            i: place.get(f"{turned[kind]}.{rest}")
            for name, i in place.items()
            for kind, _, rest in [name.partition(".")]
            if kind in turned
        }
        self._background = self._of[place["ordinary"]]

    def of(self, chosen: np.ndarray, count: int, drawn: np.random.Generator) -> np.ndarray:
        own = [label for label in self._labels[chosen].tolist() if label in self._opposite]
        wanted = own + [self._opposite[label] for label in own]
        wanted = [label for label in wanted if label in self._of][: count - count // 6]
        others = [label for label in self._of if label in self._opposite]
        wanted += drawn.choice(others, count - count // 6 - len(wanted)).tolist()
        rows = [drawn.choice(self._of[label]) for label in wanted]
        return np.array([*rows, *drawn.choice(self._background, count - len(rows))])


if __name__ == "__main__":
    run(main, PRESETS)
