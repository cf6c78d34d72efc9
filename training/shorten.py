"""Take layers out of a sentence encoder and teach what is left to give the whole one's vectors.

    python -m training.shorten laptop model=DIR out=DIR keep=0,1,2,3,4,8,9,10,11

Self-distillation (Reimers, Gurevych 2020, https://arxiv.org/abs/2004.09813; which layers to take out: Sajjad et al.
2020, https://arxiv.org/abs/2004.03844) over translation pairs and the written posts. A text's target is the teacher's
vector of it, mixed with that of its English side, which lifts languages the teacher reads badly. Loss: 1 − cosine in
the teacher's space evened out half-way; in the space as it is all texts are alike and little is left to learn from.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from msgspec import Struct

from models.errors import ConfigError
from models.queries import background_texts, load_queries
from models.text import Cleaning, clean
from training.corpus import SOURCE_WEIGHT, pair_weights
from training.data import training_pairs, unique_texts
from training.files import data_dir, hash_rows
from training.jobs import run
from training.loop import Pace, fit
from training.posts import read_posts, written_posts
from training.run_key import run_key
from training.tower import Evening, Tower, even_out
from training.tower_files import write_tower

__all__ = ["Config", "main", "material"]

UI_STRINGS = {
    "software-l10n": 0.05,
    "debian-apps": 0.05,
    "humanitarian-l10n": 0.3,
    "osm-presets": 0.1,
    "disaster-messages": 30.0,
}
HELD_OUT = 400  # texts that say how near the student has come


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the job."""

    model: str = ""  # directory of the whole encoder, as training.vocabulary writes it
    out: str = ""  # directory to write
    keep: tuple[int, ...] = (0, 1, 2, 3, 4, 8, 9, 10, 11)  # the nine that alone come nearest to all twelve
    frozen: int = 5  # lower layers that stay as they are
    pairs: int = 30_000  # drawn over all languages, thin ones more often than their share
    lang_temperature: float = 0.3  # see corpus.pair_weights
    english: float = 0.4  # share of the English side in the target of a text
    epochs: float = 2.0
    batch: int = 96  # texts a step
    rate: float = 2e-4
    written: int = 0  # of the written posts and sentences at most; 0 = all
    data: bool = True  # also learn from the research data under CRISIS_DATA; false = packs and written posts alone
    seed: int = 0


PRESETS = {"laptop": Config(), "smoke": Config(keep=(0, 1), frozen=1, batch=16, written=200, data=False)}


def material(config: Config) -> tuple[list[str], np.ndarray]:
    """Distinct cleaned texts, and the place of the English side of each (its own where it has none)."""
    texts = [post.text for post in written_posts() if not post.judges]
    texts += [text for query in load_queries() for _, text in query.texts()] + background_texts()
    texts = texts[:: max(1, len(texts) // config.written)] if config.written else texts
    english = list(texts)
    if config.data:
        read = [post.text for post in read_posts(data_dir()) if not post.judges]
        pairs = training_pairs(data_dir())
        weights = pair_weights(pairs.lang, pairs.source, config.lang_temperature, {**SOURCE_WEIGHT, **UI_STRINGS})
        rng = np.random.default_rng(config.seed)
        drawn = rng.choice(len(weights), min(config.pairs, len(weights)), replace=False, p=weights)
        texts += [*read, *(pairs.text[i] for i in drawn), *(pairs.english[i] for i in drawn)]
        english += [*read, *(pairs.english[i] for i in drawn), *(pairs.english[i] for i in drawn)]
    known, place = unique_texts([clean(text, Cleaning()) for text in texts])
    _, other = unique_texts([*known, *(clean(text, Cleaning()) for text in english)])
    partner = np.arange(len(known))
    partner[place] = other[len(known) :]
    return known, partner


def main(config: Config) -> Path:
    if not config.model or not config.out:
        raise ConfigError("set model=DIR and out=DIR")
    torch.manual_seed(config.seed)
    texts, partner = material(config)
    teacher = Tower(config.model, 0)
    ids = teacher.ids(texts)
    found = teacher.read(ids)
    evening = Evening(*even_out(found.numpy(), 0.5))
    own = evening(found)
    share = config.english * torch.from_numpy(partner != np.arange(len(texts)))[:, None]
    target = F.normalize((1 - share) * own + share * own[torch.from_numpy(partner)], dim=-1)
    student = Tower(config.model, config.frozen, config.keep)
    order = np.random.default_rng(config.seed).permutation(len(texts))
    held, learnt = order[: min(HELD_OUT, len(order) // 10)], order[min(HELD_OUT, len(order) // 10) :]

    def away(rows: np.ndarray) -> torch.Tensor:
        vectors = evening(student.vectors([ids[i] for i in rows]))
        return (1 - (vectors * target[torch.from_numpy(rows)]).sum(1)).mean()

    def losses(step: int) -> Iterator[torch.Tensor]:
        yield away(np.random.default_rng([config.seed, step]).choice(learnt, min(config.batch, len(learnt)), False))

    steps = max(1, round(config.epochs * len(learnt) / config.batch))
    pace = Pace(steps, config.rate, max(1, steps // 20), config.seed, 100, max(1, steps // 8), clip=1.0)
    key = run_key(config, hash_rows(texts))
    trace = fit(student.learning, losses, pace, Path(config.out) / "run", key, lambda: float(away(held)))
    print(f"{len(texts):,} texts, away from the teacher: " + " → ".join(f"{loss:.3f}" for _, loss in trace.history))
    return write_tower(student, Path(config.out) / "model")


if __name__ == "__main__":
    run(main, PRESETS)
