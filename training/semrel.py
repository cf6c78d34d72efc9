"""SemRel2024's supervised and cross-lingual baselines: an encoder fine-tuned on people's scores of sentence pairs.

    python -m training.semrel smoke                                            # pairs of bundled sentences
    python -m training.semrel laptop                                           # a linear map on the static encoder
    python -m training.semrel laptop setting=crosslingual
    python -m training.semrel paper base=sentence-transformers/LaBSE           # all of a transformer, as the paper

Source: Ousidhoum et al. 2024 (SemRel2024), section 4.4: LaBSE, a cosine loss. Supervised: trained on a language's own
train split. Cross-lingual: on English, for English on Spanish. We differ: judged on the dev splits, which we have; the
best epoch by a tenth of the train split. A bundle stays as it is and gets a linear map, which begins as the identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import torch
from msgspec import Struct
from sentence_transformers import SentenceTransformer

from models.encoders.bundle import MANIFEST
from models.encoders.load import folder_of, load_encoder
from models.encoders.protocol import Encoder
from models.errors import ConfigError
from training.files import hash_rows
from training.jobs import Count, Positive, cache_dir, model_loaded, run, write_result
from training.loop import BEST, Pace, autocast, device, fit, load_weights
from training.losses import cosine_regression
from training.metrics import spearman
from training.run_key import run_key
from training.whiten import Splits, bundled_pairs, stored_pairs

__all__ = ["Config", "main"]

Rows = Sequence[tuple[str, str, float]]  # two texts and the score people gave them, 0 to 1


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the job."""

    base: str = "flood"  # a bundle (it gets a linear map) or a sentence-transformers directory or hub id (all of it)
    setting: Literal["supervised", "crosslingual"] = "supervised"
    pairs: Literal["semrel", "posts"] = "semrel"  # of CRISIS_DATA, or of the bundled sentences
    source: str = "en"  # crosslingual: the language trained on
    other: str = "es"  # crosslingual: trained on for `source` itself
    langs: tuple[str, ...] = ()  # judged; empty = all there are
    epochs: Count = 10
    batch: Count = 32
    lr: Positive = 1e-3
    warmup: float = 0.1  # share of the steps
    validation: float = 0.1  # share of the train split that finds the best epoch
    seed: int = 1
    out: str = ""  # default CRISIS_CACHE/semrel-<setting>
    result: str = ""  # where the JSON of the figures goes as well


PRESETS = {
    "smoke": Config(pairs="posts", epochs=3),
    "laptop": Config(),
    "paper": Config(base="sentence-transformers/LaBSE", epochs=4, lr=2e-5),
}


class Model(Protocol):
    """What is trained; `embed` gives (n, d) unit rows with gradients."""

    module: torch.nn.Module

    def embed(self, texts: Sequence[str]) -> torch.Tensor: ...


class LinearMap:
    """A linear map on vectors that stay as they are."""

    def __init__(self, encoder: Encoder, texts: Sequence[str]) -> None:
        self._vectors = dict(zip(texts, encoder.encode(texts), strict=True))
        self._width = encoder.dim

    def fresh(self) -> LinearMap:
        """Begin anew: as the encoder is."""
        self.module = torch.nn.Linear(self._width, self._width, bias=False)
        torch.nn.init.eye_(self.module.weight)
        return self

    def embed(self, texts: Sequence[str]) -> torch.Tensor:
        rows = torch.from_numpy(np.stack([self._vectors[text] for text in texts]))
        return torch.nn.functional.normalize(self.module(rows), dim=-1)


class Whole:
    """All of a transformer."""

    def __init__(self, base: str) -> None:
        self._base = base

    def fresh(self) -> Whole:
        self.module = model_loaded(lambda base: SentenceTransformer(base, device=str(device())), self._base, "base")
        return self

    def embed(self, texts: Sequence[str]) -> torch.Tensor:
        features = self.module.preprocess(list(texts))
        features = {n: v.to(self.module.device) if isinstance(v, torch.Tensor) else v for n, v in features.items()}
        with autocast(self.module.device):
            vectors = self.module(features)["sentence_embedding"].float()
        return torch.nn.functional.normalize(vectors, dim=-1)


def correlation(model: Model, rows: Rows) -> float:
    """Spearman of the cosines with people's scores."""
    with torch.no_grad():
        cosines = [
            (model.embed([row[0] for row in part]) * model.embed([row[1] for row in part])).sum(-1).cpu().numpy()
            for part in (rows[start : start + 256] for start in range(0, len(rows), 256))
        ]
    return spearman(np.concatenate(cosines), np.array([row[2] for row in rows]))


def train(config: Config, model: Model, rows: Rows, key: str, folder: Path) -> None:
    """Train in place on the rows, less those that validate; ends with the best epoch's weights."""
    order = np.random.default_rng(config.seed).permutation(len(rows))
    held = [rows[i] for i in order[: max(2, round(config.validation * len(rows)))]]
    taught = [rows[i] for i in order[len(held) :]]
    per_epoch = -(-len(taught) // config.batch)

    def losses(step: int) -> Iterator[torch.Tensor]:
        epoch, part = divmod(step, per_epoch)
        chosen = np.random.default_rng([config.seed, epoch]).permutation(len(taught))
        batch = [taught[i] for i in chosen[part * config.batch : (part + 1) * config.batch]]
        first, second = (model.embed([row[side] for row in batch]) for side in (0, 1))
        yield cosine_regression(first, second, torch.tensor([row[2] for row in batch]).to(first.device))

    steps = config.epochs * per_epoch
    pace = Pace(steps, config.lr, round(config.warmup * steps), config.seed, per_epoch, per_epoch, weight_decay=0.0)
    fit(model.module, losses, pace, folder, key, lambda: -correlation(model, held), title=folder.name)
    load_weights(folder / BEST, model.module)
    model.module.eval()


def main(config: Config) -> Path:
    out = Path(config.out) if config.out else cache_dir() / f"semrel-{config.setting}"
    splits = read_splits(config)
    if unknown := set(config.langs) - set(splits["dev"]):
        raise ConfigError(f"langs={','.join(sorted(unknown))}: no pairs; there are {', '.join(sorted(splits['dev']))}")
    texts = list(dict.fromkeys(t for own in splits.values() for rows in own.values() for row in rows for t in row[:2]))
    is_bundle = (folder_of(config.base) / MANIFEST).exists()
    model = LinearMap(load_encoder(config.base), texts) if is_bundle else Whole(config.base)
    data_hash = hash_rows([splits])
    figures: dict[str, dict] = {}
    judged = config.langs or tuple(sorted(splits["dev"]))
    before = {lang: correlation(model.fresh(), splits["dev"][lang]) for lang in judged}
    for source in sorted({source_of(config, lang) for lang in judged}):
        if source not in splits["train"]:
            continue
        train(config, model.fresh(), splits["train"][source], run_key(config, data_hash + source), out / source)
        for lang in judged:
            if source_of(config, lang) == source:
                after = correlation(model, splits["dev"][lang])
                figures[lang] = {"trained_on": source, "before": before[lang], "after": after}
                print(f"{lang}: {before[lang]:.3f} → {after:.3f}, trained on {source}")
    if not figures:
        raise ConfigError(f"no train split for {', '.join(judged)}; there are {', '.join(sorted(splits['train']))}")
    metrics = {
        "mean_before": float(np.mean([found["before"] for found in figures.values()])),
        "mean_after": float(np.mean([found["after"] for found in figures.values()])),
        "languages": len(figures),
        "by_language": figures,
    }
    for path in filter(None, (str(out / "run.json"), config.result)):
        write_result(Path(path), config, data_hash, config.seed, metrics)
    print(f"mean of {len(figures)} languages {metrics['mean_before']:.3f} → {metrics['mean_after']:.3f}")
    return out


def source_of(config: Config, lang: str) -> str:
    """The language whose train split a language's model is trained on."""
    if config.setting == "supervised":
        return lang
    return config.other if lang == config.source else config.source


def read_splits(config: Config) -> Splits:
    """ "train" and "dev" by language; languages whose scores are all the same are left out."""
    if config.pairs == "posts":
        found = bundled_pairs(config.seed)
    else:
        found = stored_pairs("semrel2024/semrel2024", "score_0_1", {"train": "train", "dev": "dev"})
    return {
        split: {lang: rows for lang, rows in own.items() if len({row[2] for row in rows}) > 1}
        for split, own in found.items()
    }


if __name__ == "__main__":
    run(main, PRESETS)
