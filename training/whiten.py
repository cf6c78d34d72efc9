"""Fit a whitening for an encoder, with the language filtering of the paper, and apply it only where it helps.

    python -m training.whiten smoke                              # the bundled encoder on pairs of bundled sentences
    python -m training.whiten laptop encoder=MLM/best            # SemRel2024: fitted on train, judged on dev
    python -m training.whiten laptop encoder=MLM/best pairs=stsb langs=en     # STS-B: fitted on train, judged on test
    python -m training.whiten paper encoder=FacebookAI/xlm-roberta-base target=es

Source: Li et al. 2024 (USTCCTSU), sections 3.3, 3.4 and 4: k = 256; 1,000 sentence pairs a language, drawn again where
there are fewer; to choose the languages whose texts are used for a target T, whiten with T's texts and leave out every
language whose own Spearman falls by it. Labels of T itself are not used for that, so T may have none. A whitening that
lowers the mean dev Spearman is refused: nothing is written unless force=true.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from models.encoders.load import load_encoder
from models.encoders.protocol import Encoder
from models.encoders.whitening import Whitening, fit_whitening
from models.errors import ConfigError, CrisisError
from training.bundled_posts import bundled_posts
from training.files import data_dir, hash_rows, read_rows
from training.jobs import cache_dir, run, write_atomically, write_result
from training.keeping import keeping
from training.metrics import anisotropy, cosine_histogram
from training.metrics import spearman as rank_correlation

__all__ = ["Splits", "bundled_pairs", "stored_pairs"]

Splits = dict[str, dict[str, list[tuple[str, str, float]]]]  # split, language: two texts and the score people gave them


class WhiteningRefused(CrisisError):
    """The whitening makes this encoder worse; the message has the figures."""


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the whitening job."""

    encoder: str = "bundled"  # "bundled", a bundle, a transformers or sentence-transformers directory, or a hub id
    pairs: str = (
        "semrel"  # "semrel", "stsb" (CRISIS_DATA) or "posts" (of the bundled sentences: same query, category, neither)
    )
    langs: tuple[str, ...] = ()  # only these languages of the pairs; empty = all
    target: str = ""  # a language to whiten for, with the others filtered; empty = all languages together
    filtering: bool = True  # leave out languages that the target's whitening harms
    dim: int = 256  # k: axes kept, at most the encoder's
    per_lang: int = 1000  # sentence pairs a language
    force: bool = False  # write the whitening even if it makes the encoder worse
    seed: int = 1
    out: str = ""  # default CRISIS_CACHE/whiten
    result: str = ""  # where the JSON of the figures goes as well; empty = only out/run.json


PRESETS = {"smoke": Config(pairs="posts", per_lang=200, force=True), "laptop": Config(), "paper": Config()}


class Labelled(Struct, frozen=True, eq=False):
    """Sentence pairs of one language with people's scores, as vectors."""

    first: np.ndarray  # (n, d) unit rows
    second: np.ndarray
    gold: np.ndarray  # (n,)

    def texts(self, pairs: int, rng: np.random.Generator) -> np.ndarray:
        """(2 · pairs, d): both sides of `pairs` pairs; each once, then some again where there are fewer."""
        n = len(self.gold)
        chosen = (
            rng.permutation(n)[:pairs] if n >= pairs else np.concatenate([np.arange(n), rng.integers(0, n, pairs - n)])
        )
        return np.concatenate([self.first[chosen], self.second[chosen]])


def spearman(pairs: Labelled, whitening: Whitening | None = None) -> float:
    """Of the cosines with the gold scores; nan if one of them is constant."""
    first, second = pairs.first, pairs.second
    if whitening is not None:
        first, second = whitening.apply(first), whitening.apply(second)
    norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return rank_correlation((first * second).sum(1) / np.maximum(norms, 1e-12), pairs.gold)


def filter_languages(
    sets: dict[str, Labelled], target: str, dim: int, pairs: int, seed: int
) -> dict[str, tuple[float, float]]:
    """By language other than the target: Spearman without, and with the whitening of the target's texts.

    A language is kept for the target if the second is not lower (section 3.4).
    """
    whitening = fit_whitening(sets[target].texts(pairs, np.random.default_rng(seed)), dim)
    return {lang: (spearman(own), spearman(own, whitening)) for lang, own in sets.items() if lang != target}


def fit_on(sets: dict[str, Labelled], langs: Sequence[str], dim: int, pairs: int, seed: int) -> Whitening:
    """A whitening of `pairs` pairs of each of the languages."""
    rng = np.random.default_rng(seed)
    return fit_whitening(np.concatenate([sets[lang].texts(pairs, rng) for lang in langs]), dim)


def main(config: Config, encoder: Encoder | None = None) -> Path:
    out = Path(config.out) if config.out else cache_dir() / "whiten"
    if encoder is None:  # one target after another reads the same texts
        named = load_encoder(None if config.encoder == "bundled" else config.encoder)
        encoder = keeping(named, cache_dir() / "vectors")
    rows = read_pairs(config)
    train, dev = (embed(encoder, rows[split]) for split in ("train", "dev"))
    dim = min(config.dim, encoder.dim)
    if config.target and config.target not in dev:
        raise CrisisError(f"target={config.target}: no dev pairs; there are {', '.join(sorted(dev))}")
    judged = [config.target] if config.target else sorted(dev)
    kept, filtered = sorted(train), {}
    if config.target:
        # The target's labels are not looked at: its texts come from dev where it has no train split.
        known = train if config.target in train else {**train, config.target: dev[config.target]}
        if not (kept := [lang for lang in sorted(train) if lang != config.target]):
            raise ConfigError(
                f"target={config.target}: it is fitted on other languages, and langs= names none with pairs"
            )
        if config.filtering:
            filtered = filter_languages(known, config.target, dim, config.per_lang, config.seed)
            kept = [lang for lang in kept if filtered[lang][1] >= filtered[lang][0]]
        if not kept:
            raise WhiteningRefused(
                f"whitening with the texts of {config.target} harms every other language: none is left to fit on"
            )
    whitening = fit_on(train, kept, dim, config.per_lang, config.seed)
    before = {lang: spearman(dev[lang]) for lang in judged}
    after = {lang: spearman(dev[lang], whitening) for lang in judged}
    mean_before, mean_after = np.nanmean(list(before.values())), np.nanmean(list(after.values()))
    sample = np.concatenate([dev[lang].first for lang in judged])
    metrics = {
        "spearman_before": float(mean_before),
        "spearman_after": float(mean_after),
        "helps": bool(mean_after > mean_before),
        "by_language": {lang: [before[lang], after[lang]] for lang in judged},
        "fitted_on": kept,
        "left_out": {lang: list(pair) for lang, pair in filtered.items() if lang not in kept},
        "by_source": {lang: list(pair) for lang, pair in filtered.items()},
        "axes": whitening.axes.shape[1],
        "anisotropy_before": anisotropy(sample),
        "anisotropy_after": anisotropy(_unit(whitening.apply(sample))),
        "cosines_before": _histogram(dev, judged, None),
        "cosines_after": _histogram(dev, judged, whitening),
    }
    metrics = {name: _plain(value) for name, value in metrics.items()}
    metrics = {"encoder": encoder.version, **metrics}
    for path in filter(None, (str(out / "run.json"), config.result)):
        write_result(Path(path), config, hash_rows([rows]), config.seed, metrics)
    figures = f"mean dev Spearman {mean_before:.4f} → {mean_after:.4f} ({len(judged)} languages, fitted on {len(kept)})"
    if mean_after <= mean_before and not config.force:
        (out / "whitening.safetensors").unlink(missing_ok=True)
        raise WhiteningRefused(
            f"whitening makes {encoder.version} worse: {figures}. It suits raw masked LMs, not encoders "
            "trained to be compared;"
            " use the encoder as it is, or write it all the same with force=true"
        )
    write_atomically(out / "whitening.safetensors", whitening.to_bytes())
    print(f"{figures} → {out / 'whitening.safetensors'}")
    return out


def read_pairs(config: Config) -> Splits:
    """The pairs to fit on ("train") and to judge by ("dev", of STS-B its test split). Raises ConfigError."""
    if config.pairs == "posts":
        found = bundled_pairs(config.seed)
    elif config.pairs == "semrel":
        found = stored_pairs("semrel2024/semrel2024", "score_0_1", {"train": "train", "dev": "dev"})
    elif config.pairs == "stsb":
        found = stored_pairs("stsb-multi/stsb_multi", "score_0_5", {"train": "train", "test": "dev"})
    else:
        raise ConfigError(f"pairs={config.pairs}: choose from semrel, stsb, posts")
    if unknown := set(config.langs) - set(found["dev"]):
        raise ConfigError(
            f"langs={','.join(config.langs)}: no pairs in {', '.join(sorted(unknown))}; there are "
            f"{', '.join(sorted(found['dev']))}"
        )
    if config.langs and not set(config.langs) & set(found["train"]):
        raise ConfigError(
            f"langs={','.join(config.langs)}: no pairs to fit on; there are {', '.join(sorted(found['train']))}"
        )
    return {
        split: {lang: p for lang, p in own.items() if not config.langs or lang in config.langs}
        for split, own in found.items()
    }


def stored_pairs(file: str, score: str, splits: dict[str, str]) -> Splits:
    """Pairs of a set of CRISIS_DATA, its splits renamed."""
    found: Splits = {name: {} for name in splits.values()}
    for row in read_rows(data_dir() / f"{file}.tsv.gz"):
        if row["split"] in splits:
            pair = (row["sentence1"], row["sentence2"], float(row[score]))
            found[splits[row["split"]]].setdefault(row["lang"], []).append(pair)
    return found


def bundled_pairs(seed: int) -> Splits:
    """The same form from bundled sentences: 1 for two of a query, ½ for its need and its offer, 0 for others."""
    rng = np.random.default_rng(seed)
    found: dict = {"train": {}, "dev": {}}
    posts = bundled_posts()
    for lang in ("de", "en", "es", "fr", "it", "pt"):
        own = [post for post in posts if post.lang == lang]
        for post in own:
            same = [o for o in own if o.query == post.query and o.text != post.text]
            near = [o for o in own if o.query != post.query and o.query.split(".")[1] == post.query.split(".")[1]]
            for others, score in ((same, 1.0), (near, 0.5), (own, 0.0)):
                if others:
                    split = "train" if rng.random() < 0.5 else "dev"
                    other = others[rng.integers(len(others))]
                    found[split].setdefault(lang, []).append((post.text, other.text, score))
    return found


def embed(encoder: Encoder, rows: dict[str, list[tuple[str, str, float]]]) -> dict[str, Labelled]:
    """Languages whose scores differ at all, as vectors."""
    return {
        lang: Labelled(
            encoder.encode([row[0] for row in pairs]),
            encoder.encode([row[1] for row in pairs]),
            np.array([row[2] for row in pairs]),
        )
        for lang, pairs in rows.items()
        if len({row[2] for row in pairs}) > 1
    }


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _histogram(sets: dict[str, Labelled], langs: list[str], whitening: Whitening | None) -> list[int]:
    """Figure 2: how the cosines of the pairs are spread, 40 bins over [-1, 1]."""
    first, second = (np.concatenate([getattr(sets[lang], side) for lang in langs]) for side in ("first", "second"))
    if whitening is not None:
        first, second = _unit(whitening.apply(first)), _unit(whitening.apply(second))
    return cosine_histogram(first, second)[0].tolist()


def _plain(value):
    return {f: getattr(value, f) for f in value.__struct_fields__} if isinstance(value, Struct) else value


if __name__ == "__main__":
    run(main, PRESETS)
