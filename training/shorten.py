"""Take layers out of a sentence encoder, and teach what is left to give the whole one's vectors.

    python -m training.shorten laptop model=DIR out=DIR keep=0,1,2,3,4,8,9,10,11
    python -m training.shorten laptop model=DIR out=DIR inner=768 frozen=0      # all layers narrower, too
    python -m training.shorten h200 model=lent/model out=lent/short     # on a lent machine, nine minutes at a time

Self-distillation (Reimers, Gurevych 2020, https://arxiv.org/abs/2004.09813; which layers to take out: Sajjad et al.
2020, https://arxiv.org/abs/2004.03844) over translation pairs and the written posts. A text's target is the teacher's
vector of it, mixed with that of its English side, which lifts languages the teacher reads badly. Loss: 1 − cosine in
the teacher's space evened out half-way; in the space as it is all texts are alike and little is left to learn from.

Carried to a lent machine (`h200`), which takes 64 MiB a call, reaches nothing, and is held for half an hour:

- the checkout without the encoders it ships, 25 of 143 MB: `git sparse-checkout set --no-cone '/*'
  '!/models/data/encoder/' '!/models/data/flood/'`. The query packs and written posts are in it, and the preset learns
  from no more; `data=true` needs the sets of CRISIS_DATA beside it, 120 MB;
- in lent/, a folder that .git/info/exclude names and each call carries: wheels of what that machine's Python lacks
  (msgspec, emoji, ftfy, wcwidth, phonenumbers), and the model as an int8 bundle of training.export_onnx. With 125,000
  pieces that has 71 to 76 MB and goes in three (`split -b 30M`), a call each, which leave them outside the checkout;
  the last joins them, and `training.reopen` makes lent/model of it;
- a call a slice: after `minutes` the job writes its checkpoint and ends with status 75; the same command goes on, as
  long as the machine is held. Of more slices bring back lent/short/run/checkpoint.safetensors and carry it again;
- when it is done that file holds the learnt layers alone: 29 MB, two pieces of 15. Put it in its place here, where
  lent/model was opened from the same bundle by the same transformers, and give the same command: it learns nothing and
  writes the model.
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
from models.queries import background_texts, load_queries
from models.text import Cleaning, clean
from training.corpus import pair_weights
from training.data import training_pairs, unique_texts
from training.evening import Evening, even_out
from training.files import data_dir, hash_rows
from training.jobs import Count, Positive, run
from training.loop import Pace, fit, minutes_left
from training.posts import read_posts, written_posts
from training.run_key import run_key
from training.tower import Tower
from training.tower_files import write_tower

__all__ = ["Config", "Lesson", "learn", "lesson", "main", "material"]

HELD_OUT = 400  # texts that say how near the student has come


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the job."""

    model: str = ""  # directory of the whole encoder, as training.vocabulary writes it
    out: str = ""  # directory to write
    keep: tuple[int, ...] = (0, 1, 2, 3, 4, 8, 9, 10, 11)  # the nine that alone come nearest to all twelve
    frozen: int = 5  # lower layers that stay as they are
    inner: int = 0  # neurons that the feed-forward part of each layer keeps; 0 = all
    pairs: int = 30_000  # drawn over all languages, thin ones more often than their share
    lang_temperature: float = 0.3  # see corpus.pair_weights
    english: float = 0.4  # share of the English side in the target of a text
    epochs: Positive = 2.0
    batch: Count = 96  # texts a step
    rate: Positive = 2e-4
    written: int = 0  # of the written posts and sentences at most; 0 = all
    data: bool = True  # also learn from the research data under CRISIS_DATA; false = packs and written posts alone
    minutes: float = 0.0  # after which the job writes its checkpoint and ends, to be started again; 0 = no limit
    seed: int = 0


PRESETS = {
    "laptop": Config(),
    "smoke": Config(keep=(0, 1), frozen=1, batch=16, written=200, data=False),
    # Some 980 steps over 25,000 texts; the rate by the root of the batch. Not run yet where it is meant to.
    "h200": Config(batch=512, epochs=20, rate=4e-4, data=False, minutes=9),
}


def material(config: Config) -> tuple[list[str], np.ndarray]:
    """Distinct cleaned texts, and the place of the English side of each (its own where it has none)."""
    texts = [post.text for post in written_posts() if not post.judges]
    texts += [text for query in load_queries() for _, text in query.texts()] + background_texts()
    texts = texts[:: max(1, len(texts) // config.written)] if config.written else texts
    english = list(texts)
    if config.data:
        read = [post.text for post in read_posts(data_dir()) if not post.judges]
        pairs = training_pairs(data_dir())
        weights = pair_weights(pairs.lang, pairs.source, config.lang_temperature)
        rng = np.random.default_rng(config.seed)
        drawn = rng.choice(len(weights), min(config.pairs, len(weights)), replace=False, p=weights)
        texts += [*read, *(pairs.text[i] for i in drawn), *(pairs.english[i] for i in drawn)]
        english += [*read, *(pairs.english[i] for i in drawn), *(pairs.english[i] for i in drawn)]
    known, place = unique_texts([clean(text, Cleaning()) for text in texts])
    _, other = unique_texts([*known, *(clean(text, Cleaning()) for text in english)])
    partner = np.arange(len(known))
    partner[place] = other[len(known) :]
    return known, partner


class Lesson(Struct, frozen=True):
    """What a student learns: texts, their pieces, and the vectors it is to give them, in the evened-out space."""

    texts: list[str]
    ids: list[list[int]]
    target: torch.Tensor  # (n, d) unit rows
    evening: Evening


def lesson(config: Config) -> Lesson:
    """Read by the whole encoder, once for as many students as there are."""
    texts, partner = material(config)
    teacher = Tower(config.model, 0)
    ids = teacher.ids(texts)
    found = teacher.read(ids)
    evening = Evening(*even_out(found.numpy(), 0.5))
    own = evening(found)
    share = config.english * torch.from_numpy(partner != np.arange(len(texts)))[:, None]
    target = F.normalize((1 - share) * own + share * own[torch.from_numpy(partner)], dim=-1)
    return Lesson(texts, ids, target, evening)


def main(config: Config) -> Path:
    if not config.model or not config.out:
        raise ConfigError("set model=DIR and out=DIR")
    if config.inner and config.frozen:
        raise ConfigError(f"inner={config.inner} narrows every layer, so every layer must learn: set frozen=0")
    began = time.monotonic()
    torch.manual_seed(config.seed)
    return learn(config, lesson(config), began)


def learn(config: Config, lesson: Lesson, began: float) -> Path:
    """The student as a directory. began: time.monotonic() of what `minutes` counts from."""
    student = Tower(config.model, config.frozen, config.keep, config.inner)
    texts, ids = lesson.texts, lesson.ids
    order = np.random.default_rng(config.seed).permutation(len(texts))
    held, learnt = order[: min(HELD_OUT, len(order) // 10)], order[min(HELD_OUT, len(order) // 10) :]

    def away(rows: np.ndarray) -> torch.Tensor:
        vectors = lesson.evening(student.vectors([ids[i] for i in rows]))
        return (1 - (vectors * lesson.target[torch.from_numpy(rows)]).sum(1)).mean()

    def losses(step: int) -> Iterator[torch.Tensor]:
        yield away(np.random.default_rng([config.seed, step]).choice(learnt, min(config.batch, len(learnt)), False))

    steps = max(1, round(config.epochs * len(learnt) / config.batch))
    left = minutes_left(config.minutes, began)
    pace = Pace(steps, config.rate, max(1, steps // 20), config.seed, 100, max(1, steps // 8), clip=1.0, minutes=left)
    key = run_key(config, hash_rows(texts))
    trace = fit(student.learning, losses, pace, Path(config.out) / "run", key, lambda: float(away(held)))
    print(f"{len(texts):,} texts, away from the teacher: " + " → ".join(f"{loss:.3f}" for _, loss in trace.history))
    return write_tower(student, Path(config.out) / "model")


if __name__ == "__main__":
    run(main, PRESETS)
