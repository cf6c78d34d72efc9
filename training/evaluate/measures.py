"""Each measure of an encoder on its material: `MEASURES[name](encoder, config)` gives one section of the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from msgspec import to_builtins

from models.encoders.load import load_encoder
from models.encoders.protocol import Encoder
from models.encoders.whitening import WhitenedEncoder, Whitening
from models.errors import ConfigError
from training.bundled_posts import bundled_posts
from training.evaluate import matching, material, needs, relatedness, speed
from training.evaluate.config import Config
from training.files import data_dir, hash_rows
from training.metrics import anisotropy, class_similarity, cosine_histogram, hard_negatives, mean_interval
from training.noise import measure as noise_job

__all__ = ["MEASURES", "load"]

T = TypeVar("T")
_PARTS = 5  # disjoint parts of a labelled set: their D_avg gives the interval
_SPREAD_PER_LANG = 40  # texts of each language for anisotropy


def load(config: Config) -> Encoder:
    encoder = load_encoder(None if config.encoder == "bundled" else config.encoder)
    return (
        WhitenedEncoder(encoder, Whitening.from_bytes(Path(config.whitening).read_bytes()))
        if config.whitening
        else encoder
    )


def measure_matching(encoder: Encoder, config: Config) -> dict:
    """Sentence matching by set and language, both directions, with xSIM++ on the first set."""
    sets = {
        name: _asked(texts, config.langs, ("en",))
        for name, texts in material.parallel(config.material, config.parallel).items()
    }
    found: dict = {"data_hash": hash_rows([sets])}
    for place, (name, texts) in enumerate(sets.items()):
        negatives = hard_negatives(texts["en"], config.seed, config.per_kind) if config.per_kind and not place else []
        figures = matching.match_all(encoder, texts, config.seed, negatives, name)
        accuracy = {lang: f["matching"] for lang, f in figures.items()}
        known = matching.summary(accuracy) if set(accuracy) & set(matching.PAPER_LANGUAGES) else {}
        found[name] = {**known, "by_script": matching.by_script(figures), "by_language": figures}
    return found


def measure_relatedness(encoder: Encoder, config: Config) -> dict:
    """Spearman by set and language beside the lexical-overlap baseline."""
    sets = {name: _asked(rows, config.langs) for name, rows in material.scored(config.material, config.seed).items()}
    found: dict = {"data_hash": hash_rows([{name: dict(rows) for name, rows in sets.items()}])}
    for name, rows in sets.items():
        figures = relatedness.relatedness(encoder, rows, config.seed)
        found[name] = {**relatedness.summary(figures), "by_language": figures}
    return found


def _asked(by_lang: Mapping[str, T], langs: Sequence[str], beside: Sequence[str] = ()) -> Mapping[str, T]:
    """What there is in these languages and in `beside`; of none named, everything as it came, so that its hash is what
    it was. Raises ConfigError where a set has none of them.
    """
    if not langs:
        return by_lang
    if not set(langs) & set(by_lang) - set(beside):
        raise ConfigError(f"langs={','.join(langs)}: the set has {', '.join(sorted(by_lang))}")
    return {lang: own for lang, own in by_lang.items() if lang in langs or lang in beside}


def measure_classes(encoder: Encoder, config: Config) -> dict:
    """D_avg of every labelled set with the mean between classes beside it.

    The interval is Student's over five disjoint parts: drawing rows again would compare a post with itself.
    """
    sets = material.labelled(config.material)
    found: dict = {"data_hash": hash_rows([[posts.texts, posts.labels] for posts in sets.values()])}
    for name, posts in sets.items():
        order = np.random.default_rng(config.seed).permutation(len(posts.texts))[: config.posts or None]
        vectors = encoder.encode([posts.texts[i] for i in order])
        labels = np.array(posts.labels, dtype=object)[order]
        whole = class_similarity(vectors, labels)
        parts = [class_similarity(vectors[k::_PARTS], labels[k::_PARTS]).d_avg for k in range(_PARTS)]
        found[name] = {
            "d_avg": whole.d_avg,
            "half_width": mean_interval(parts).half_width,
            "between": whole.between,
            "posts": len(order),
            "classes": len(whole.by_class),
            "by_class": whole.by_class,
            "twin": posts.twin,
            "left_out": list(whole.left_out),
        }
    return found


def measure_spread(encoder: Encoder, config: Config) -> dict:
    """Anisotropy of texts in many languages, and how the cosines of translations and of strangers are spread."""
    name, texts = next(iter(material.parallel(config.material, config.parallel[:1]).items()))
    rng = np.random.default_rng(config.seed)
    english, others, sample = [], [], []
    for lang in sorted(set(texts) - {"en"}):
        rows = [i for i in rng.permutation(len(texts[lang])) if texts[lang][i].strip()][:_SPREAD_PER_LANG]
        english += [texts["en"][i] for i in rows]
        others += [texts[lang][i] for i in rows]
    sample = encoder.encode(others)
    partners = encoder.encode(english)
    return {
        "data_hash": hash_rows([english, others]),
        "set": name,
        "texts": len(others),
        **to_builtins(anisotropy(sample)),
        "dim": encoder.dim,
        "translations": cosine_histogram(sample, partners)[0].tolist(),
        "strangers": cosine_histogram(sample, np.roll(partners, _SPREAD_PER_LANG // 2 + 1, axis=0))[0].tolist(),
    }


def measure_noise(encoder: Encoder, config: Config) -> dict:
    """Artificial noise by type (English, and others by language), and real posts against their normalised versions."""
    english = material.standard_english(config.material, config.noise_sentences)
    knobs = noise_job.Config(
        kinds=config.noise_kinds, seeds=config.noise_seeds, per_kind=config.noise_per_kind, seed=config.seed
    )
    first = next(iter(material.parallel(config.material, config.parallel[:1]).values()))
    others = {lang: [line for line in first[lang] if line.strip()] for lang in config.noise_langs if lang in first}
    pairs = (
        noise_job.normalisation_pairs(data_dir(), config.noise_pairs, config.seed)
        if config.material == "research"
        else {}
    )
    return {
        "data_hash": hash_rows([english, others, pairs]),
        "sentences": len(english),
        "by_kind": _over_seeds(noise_job.noise_figures(encoder, english, knobs)),
        "by_language": {
            lang: _over_seeds(figures)
            for lang, figures in noise_job.neutral_figures(encoder, others, config.noise_seeds).items()
        },
        "normalisation": noise_job.normalisation_figures(encoder, pairs),
    }


def measure_classification(encoder: Encoder, config: Config) -> dict:
    """Macro F1 of a linear head on the vectors as they are, mean and 95 % interval of the repeats."""
    from training import classify  # trains: torch, which the other measures and --help can do without

    sets = (
        {name: material.classified(name) for name in config.classified}
        if config.material == "research"
        else {"bundled queries": {}}
    )
    found: dict = {}
    for name, own in sets.items():
        # Batches and rate suit a head of one layer on unit vectors; the rest is the paper's (see training.classify).
        knobs = classify.Config(
            **own,
            repeats=config.repeats,
            batch=256 if own else 32,
            lr=0.05 if own else 0.1,
            most=config.rows,
            seed=config.seed,
        )
        found[name] = classify.probe(encoder, knobs)
    return {"data_hash": hash_rows(f.pop("data_hash") for f in found.values()), **found}


def measure_needs(encoder: Encoder, config: Config) -> dict:
    """Average precision of English queries over messages in other languages and over their translations."""
    if config.material != "research":
        found = needs.pack_precision(encoder)
        return {
            "data_hash": hash_rows(bundled_posts()),
            "by_label": found,
            "originals": float(np.mean([f["originals"] for f in found.values()])),
        }
    found = needs.need_precision(encoder, data_dir(), config.seed, repeats=200)
    return {
        "data_hash": hash_rows(needs.need_messages(data_dir())),
        **needs.summary(found),
        "translation_matching": needs.translation_matching(encoder, data_dir()),
        "by_label": found,
    }


def measure_speed(encoder: Encoder, config: Config) -> dict:
    """Posts a second, and the time to load; of several processes side by side, too, where they are asked for."""
    found = speed.speed(lambda: load(config), config.speed_posts, config.speed_words)
    if config.speed_processes:
        posts = speed.invented_posts(config.speed_posts, words=config.speed_words)
        found["posts_per_s_together"] = speed.together(partial(load, config), posts, config.speed_processes)
    return {"data_hash": "", **found}


def _over_seeds(figures: Mapping[str, Mapping[str, list[float]]]) -> dict:
    return {
        kind: {name: to_builtins(mean_interval(runs)) for name, runs in found.items()}
        for kind, found in figures.items()
    }


MEASURES: dict[str, Callable[[Encoder, Config], dict]] = {
    "matching": measure_matching,
    "relatedness": measure_relatedness,
    "classes": measure_classes,
    "spread": measure_spread,
    "noise": measure_noise,
    "classification": measure_classification,
    "needs": measure_needs,
    "speed": measure_speed,
}
