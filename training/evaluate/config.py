"""Knobs of the evaluation job and its presets."""

from __future__ import annotations

from msgspec import Struct

from training.evaluate.material import CLASSIFIED, PARALLEL
from training.noise.mix import PAPER

__all__ = ["Config", "MEASURES", "PRESETS"]

MEASURES = ("matching", "relatedness", "classes", "spread", "noise", "classification", "needs", "speed")
# Table 8 of Nishimwe, Sagot, Bawden 2024, by their names in the mteb library
ROLASER_TASKS = ("TweetSentimentExtractionClassification", "TwitterSemEval2015", "TwitterURLCorpus", "STSBenchmark")


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the evaluation job."""

    encoder: str = "bundled"  # the first word: "bundled", "flood", a bundle, a model directory or a hub id
    whitening: str = ""  # a whitening.safetensors of training.whiten, applied to its vectors
    material: str = "research"  # "research" (CRISIS_DATA) or "bundled" (sentences of the query packs)
    measures: tuple[str, ...] = MEASURES  # any of these, by comma
    parallel: tuple[str, ...] = PARALLEL  # sets of sentence matching, any of these
    langs: tuple[str, ...] = ()  # of matching (beside English) and relatedness, only these; empty = all
    per_kind: int = 2  # hard negatives of each kind for xSIM++ from each language to English; 0 = no xSIM++ there
    posts: int = 20_000  # of each labelled set for D_avg, a sample; 0 = all
    noise_kinds: tuple[str, ...] = (*PAPER, "mix_all")  # of English, from training.noise.mix; mix_all draws among them
    noise_seeds: int = 3  # generation seeds
    noise_sentences: int = 0  # 0 = all 1,012 of FLORES devtest
    noise_per_kind: int = 15  # hard negatives of each kind for xSIM++ of noised English
    noise_langs: tuple[str, ...] = (
        "ar",
        "de",
        "el",
        "es",
        "fr",
        "hi",
        "ht",
        "pt",
        "ru",
        "sw",
        "tr",
        "vi",
    )  # of the first `parallel` set, noised too
    noise_pairs: int = 1_000  # of each set of real posts and their normalised versions; 0 = all
    classified: tuple[str, ...] = CLASSIFIED  # labelled sets, any of these
    rows: int = 20_000  # of each classified set, a sample; 0 = all
    repeats: int = 5  # of each classification
    speed_posts: int = 20_000  # invented ones, to be timed
    speed_words: int = 19  # of one on average, 28 pieces of the bundled reader; 28 words are 40; of 5 to 40 each
    speed_processes: int = 0  # also timed side by side, as workers run; 0 = not
    clusters: tuple[str, ...] = ()  # streams of training.evaluate_clusters: tweets-t, crisis-t26
    tasks: tuple[str, ...] = ()  # of the mteb library: needs the extra mteb and a reachable hub
    seed: int = 1  # of samples, hard negatives, noise and classification
    out: str = ""  # a folder for report.json, report.md and the plots; default CRISIS_CACHE/evaluate/VERSION


PRESETS = {
    "smoke": Config(
        material="bundled",
        noise_kinds=("mix_all", "leet"),
        noise_seeds=2,
        noise_sentences=60,
        noise_per_kind=3,
        noise_langs=("es", "ru"),
        repeats=2,
        rows=600,
        speed_posts=1_000,
    ),
    "laptop": Config(),
    "paper": Config(per_kind=15, posts=0, noise_seeds=10, noise_pairs=0, rows=0, clusters=("tweets-t", "crisis-t26")),
    "rolaser": Config(measures=(), tasks=ROLASER_TASKS),
}
