"""Teach a multilingual student the English teacher's vectors over translation pairs.

    python -m training.distill laptop              # the static encoder we ship, on 2 cores
    python -m training.distill paper student=xlmr teacher=MNR/best      # the paper's transformer students, on a GPU
    python -m training.distill laptop teacher=flood+1.4*e5 targets=both # of a mixture that reads every language
    python -m training.distill h200 student=lent/small teacher=lent/model file=lent/texts.tsv out=lent/run   # lent GPU

student(english) → teacher(english) and student(text) → teacher(english), by mean squared error (Reimers, Gurevych
2020; Lamsal, Read, Karunasekera 2024, equation 1). We add in-batch contrast, because the static student cannot match
the teacher everywhere and must spend what it has on telling sentences apart. A teacher that reads the text's language
may also be followed there directly (targets=own), which needs no translation, or in both.

`h200` is carried to a lent machine as training.shorten tells, with the student it begins from and a file of texts
(columns lang, text): nothing is fetched. After `minutes` it writes its checkpoint and ends; the same command goes on.
Since all of the student learns, what is brought back is the int8 bundle that training.export_onnx makes of it there.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import torch
from msgspec import Struct
from safetensors.torch import save_file
from tokenizers import Tokenizer

from models.encoders.bundle import MANIFEST
from models.encoders.load import FLOOD, folder_of
from models.encoders.static import Reader, Reading
from models.errors import ConfigError
from models.text import Cleaning
from training.axes import on_axes, projection
from training.corpus import SOURCE_WEIGHT, Corpus, capped, pair_weights, to_bags, without_accents
from training.data import SOURCES, Pairs, training_pairs, unique_texts
from training.files import data_dir, hash_rows, read_table
from training.jobs import Count, cache_dir, run, write_atomically, write_result
from training.loop import Pace, fit, minutes_left
from training.losses import in_batch_contrast
from training.mixture import find_teacher
from training.run_key import run_key
from training.runs import read_run
from training.static_table import Static, join, start_table, with_dropout
from training.students import distil_transformer
from training.teacher import encode_with_teacher

__all__ = ["Config", "main"]

MAX_LENGTH = 256  # pieces; posts have fewer, and a sum does not mind


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the distillation job."""

    student: str = "static"  # "static", or a transformers directory or hub id ("xlmr", "mbert" for the paper's)
    teacher: str = "minilm"  # or a bundle, a model directory, a mixture of them (training.mixture); vectors are kept
    targets: Literal["english", "own", "both"] = (
        "english"  # what a text is taught: its pair's, its own vector, their mean
    )
    file: str = ""  # a table with the columns lang and text instead of the parallel sets; of targets=own
    tokenizer: str = ""  # of the static student; default flood's
    sources: tuple[str, ...] = tuple(SOURCES)
    langs: tuple[str, ...] = ()  # only pairs of these languages; empty = all
    dim: int = 256  # the teacher's axes (MiniLM has 384) are projected to their widest ones; 0 = all of them
    steps: Count = 5_200  # 27 minutes on 2 cores
    batch: Count = 4_096  # pairs a step
    contrast_batch: Count = 2_048  # pairs that are told apart at a time
    lr: float = 0.012  # Adam's; falls linearly to 0 after a short warm-up
    warmup: int = 100
    mse: float = 1.0  # weight of the distance to the teacher
    contrast: float = 0.4  # weight of the in-batch contrast
    contrast_temperature: float = 0.05
    lang_temperature: float = 0.4  # see corpus.pair_weights
    skeleton: bool = True  # read consonant groups beside the pieces (models.encoders.consonants)
    letters: int = 49_152  # rows for letter groups (models.encoders.letter_ngrams); 0 = read none
    leet: bool = True  # read digits and signs inside words as letters (models.encoders.leet)
    without_accents: float = 0.15  # share of texts read as typed without accents on Latin letters
    crisis_weight: float = SOURCE_WEIGHT["disaster-messages"]  # of a pair of those; others': corpus.SOURCE_WEIGHT
    drop: float = 0.25  # chance that a row is left out: at 0.1 more steps made FLORES dev worse (.874 → .866, not .887)
    drop_letters: float = 0.5  # chance that a text's letter groups are all left out: else they learn the pairs by heart
    init: str = ""  # go on from the table of this run or static bundle ("flood") and not a random one; see start_table
    shrink_letters: float = 1.0  # what the letter groups of `init` are multiplied by at the start
    cap: int = 500_000  # most pairs of one language from one source
    max_pairs: int = 0  # 0 = all; the smoke preset takes a sample
    validation: int = 1_000  # transformer students: English sentences set aside, by which the best weights are found
    validate_every: int = 1_000  # steps, of a transformer student
    minutes: float = 0.0  # after which the job writes its checkpoint and ends, to be started again; 0 = no limit
    seed: int = 1
    checkpoint_every: Count = 200
    out: str = ""  # default CRISIS_CACHE/distill-<student>


PRESETS = {
    "smoke": Config(
        steps=60, batch=512, contrast_batch=512, max_pairs=5_000, checkpoint_every=20, warmup=5, letters=4_096
    ),
    "laptop": Config(),
    # The paper's run: no contrast, the teacher's own dimensions, batches of 64, 20 epochs: 20 times as many pairs as
    # our 2,748,240. We differ: pairs are drawn, of thin languages more than their share, and theirs were 128 million.
    "paper": Config(
        student="xlmr",
        dim=0,
        batch=64,
        steps=858_800,
        lr=2e-5,
        warmup=20_000,
        contrast=0,
        checkpoint_every=5_000,
        validate_every=5_000,
    ),
    # A small student at a small student's rate. No GPU has run it yet.
    "h200": Config(
        student="",
        teacher="",
        targets="own",
        dim=0,
        batch=512,
        steps=8_000,
        lr=1e-4,
        warmup=400,
        contrast=0,
        checkpoint_every=500,
        validate_every=500,
        minutes=9,
    ),
}


def step_loss(config: Config, model: Static, batch: dict) -> torch.Tensor:
    english = model(*batch["english"])
    text = model(*batch["text"])
    target, goal = batch["target"], batch["goal"]
    loss = config.mse * ((1 - (english * target).sum(-1)).mean() + (1 - (text * goal).sum(-1)).mean())
    for start in range(0, len(target), config.contrast_batch):
        part = slice(start, start + config.contrast_batch)
        ids = batch["ids"][part]
        same = (ids[:, None] == ids[None, :]).fill_diagonal_(False)
        share = config.contrast * len(ids) / len(target)
        # In turn against the teacher and against the student's own English: both at once cost twice as much.
        other = (goal, english)[start // config.contrast_batch % 2][part]
        loss = loss + share * in_batch_contrast(text[part], other, same, config.contrast_temperature)
    return loss


def load_corpus(config: Config) -> Corpus:
    if config.file and config.targets != "own":
        raise ConfigError(f"file={config.file} holds no English: say targets=own")
    if config.targets != "english" and config.teacher == "minilm":
        raise ConfigError(f"targets={config.targets}: MiniLM reads English alone, name another teacher=")
    pairs = lone_texts(Path(config.file)) if config.file else training_pairs(data_dir(), config.sources)
    kept = capped(pairs, config.cap, config.seed)
    if config.langs:
        kept = kept[np.isin(np.array(pairs.lang)[kept], config.langs)]
        if missing := set(config.langs) - {pairs.lang[i] for i in kept}:
            raise ConfigError(f"langs={','.join(config.langs)}: no pair in {', '.join(sorted(missing))}")
    if config.max_pairs:
        kept = np.sort(np.random.default_rng(config.seed).choice(kept, min(config.max_pairs, len(kept)), replace=False))
    lang, source = [pairs.lang[i] for i in kept], [pairs.source[i] for i in kept]
    english, english_id = unique_texts([pairs.english[i] for i in kept])
    texts, text_id = unique_texts([pairs.text[i] for i in kept])
    encode = encode_with_teacher if config.teacher == "minilm" else find_teacher(config.teacher).encode
    taught = encode(english)
    own = None if config.targets == "english" else encode(texts)
    # Before they are projected: an eigenvector's last bits depend on the threads, and a resumed run must be the same.
    vectors = hashlib.sha256(np.ascontiguousarray(taught).data)
    vectors.update(b"" if own is None else np.ascontiguousarray(own).data)
    axes = projection(taught if own is None else own, config.dim or taught.shape[1])
    target = on_axes(taught, axes)
    own = None if own is None else on_axes(own, axes)
    weights = {**SOURCE_WEIGHT, "disaster-messages": config.crisis_weight}
    chance = pair_weights(lang, source, config.lang_temperature, weights)
    counts = dict(sorted(Counter(lang).items()))
    return Corpus(
        english,
        texts,
        english_id,
        text_id,
        chance,
        target,
        pairs.data_hash,
        counts,
        own,
        both=config.targets == "both",
        taught_hash=vectors.hexdigest(),
    )


def lone_texts(path: Path) -> Pairs:
    """Texts without a translation, each as its own partner: from a table with the columns lang and text."""
    rows = read_table(path, ("lang", "text"))
    texts, langs = [row["text"] for row in rows], [row["lang"] for row in rows]
    return Pairs(texts, texts, langs, ["file"] * len(rows), hash_rows(rows))


def main(config: Config) -> Path:
    if not config.student:
        raise ConfigError("name what begins to learn, student=DIR, and what teaches it, teacher=DIR")
    began = time.monotonic()
    out = Path(config.out) if config.out else cache_dir() / f"distill-{config.student.replace('/', '--')}"
    out.mkdir(parents=True, exist_ok=True)
    corpus = load_corpus(config)
    if config.student == "static":
        return distil_static(config, corpus, out, began)
    pace = Pace(
        config.steps,
        config.lr,
        config.warmup,
        config.seed,
        config.checkpoint_every,
        config.validate_every,
        minutes=minutes_left(config.minutes, began),
    )
    trace = distil_transformer(
        config.student,
        corpus,
        pace,
        config.batch,
        run_key(config, corpus.data_hash + corpus.taught_hash),
        out,
        config.validation,
    )
    metrics = trace.figures() | {"pairs": len(corpus.text_id)}
    write_result(out / "run.json", config, corpus.data_hash, config.seed, metrics)
    return out / "model"


def distil_static(config: Config, corpus: Corpus, out: Path, began: float) -> Path:
    if config.tokenizer and not Path(config.tokenizer).is_file():
        raise ConfigError(f"tokenizer={config.tokenizer}: no such file")
    tokenizer = Tokenizer.from_file(config.tokenizer or str(FLOOD / "tokenizer.json"))
    reading = Reading(MAX_LENGTH, config.skeleton, config.letters, config.leet)
    reader = Reader(tokenizer, Cleaning(), reading)
    bare, bare_id = unique_texts([without_accents(text) for text in corpus.texts])
    english_bags, text_bags, bare_bags = (to_bags(reader, texts) for texts in (corpus.english, corpus.texts, bare))
    english_id, text_id = corpus.english_id, corpus.text_id
    # A text without a piece teaches nothing.
    usable = (np.diff(english_bags.starts)[english_id] > 0) & (np.diff(text_bags.starts)[text_id] > 0)
    chances = np.cumsum(np.where(usable, corpus.chance, 0))
    chances /= chances[-1]

    model = Static(reading.rows(tokenizer.get_vocab_size()), corpus.target.shape[1], config.seed)
    groups_from = len(model.table) - reading.letters
    if config.init:
        folder = folder_of(None if config.init == "bundled" else config.init)
        known = start_table(read_run(folder), english_bags, corpus.target, is_bundle=(folder / MANIFEST).exists())
        model.table.data *= 0.1  # letter groups that the run did not have begin near nothing
        model.table.data[: len(known)] = torch.from_numpy(known)
        model.table.data[groups_from:] *= config.shrink_letters
    drop = partial(with_dropout, drop=config.drop, groups_from=groups_from, drop_groups=config.drop_letters)

    def losses(step: int) -> Iterator[torch.Tensor]:
        # Each step has its own generator: a resumed run draws what the unbroken one would have drawn.
        rng = np.random.default_rng([config.seed, step])
        chosen = np.searchsorted(chances, rng.random(config.batch))
        without = rng.random(config.batch) < config.without_accents
        text = join(text_bags.take(text_id[chosen[~without]]), bare_bags.take(bare_id[text_id[chosen[without]]]))
        chosen = np.concatenate([chosen[~without], chosen[without]])
        batch = {
            "english": drop(english_bags.take(english_id[chosen]), rng),
            "text": drop(text, rng),
            "target": torch.from_numpy(corpus.target[english_id[chosen]]),
            "goal": torch.from_numpy(corpus.goals(chosen)),
            "ids": torch.from_numpy(english_id[chosen]),
        }
        loss = step_loss(config, model, batch)
        yield loss
        if (step + 1) % 50 == 0:
            with open(out / "log.jsonl", "a") as log:
                log.write(f'{{"step": {step + 1}, "loss": {loss.item():.4f}}}\n')

    # Adam as it was tuned with: short memory of squares, no decay, one pass over the table (its gradient is dense).
    pace = Pace(
        steps=config.steps,
        lr=config.lr,
        warmup=config.warmup,
        seed=config.seed,
        checkpoint_every=config.checkpoint_every,
        weight_decay=0.0,
        betas=(0.9, 0.99),
        fused=True,
        falls_from_start=True,
        minutes=minutes_left(config.minutes, began),
    )
    key = run_key(
        config, corpus.data_hash + corpus.taught_hash + hashlib.sha256(tokenizer.to_str().encode()).hexdigest()
    )
    fit(model, losses, pace, out, key, title="distilling")

    # Texts read all their letter groups from here on: scaled by the chance that they were kept (Srivastava et al. 2014,
    # section 10). As trained they drown the pieces: FLORES dev .878, scaled .899.
    model.table.data[groups_from:] *= 1 - config.drop_letters
    # The narrowest axis stands for "nothing said": it is the one nearest to no sentence at all.
    empty = torch.eye(corpus.target.shape[1])[-1]
    save_file({"table": model.table.data, "empty": empty.clone()}, out / "model.safetensors")
    write_atomically(out / "tokenizer.json", tokenizer.to_str().encode())
    record = {
        "reading": msgspec.to_builtins(reading),
        "training": {"job": "training.distill", "config": msgspec.to_builtins(config), "seed": config.seed},
        "data_hashes": {"training_pairs": corpus.data_hash},
        "pairs_by_language": corpus.pairs_by_language,
    }
    write_atomically(out / "run.json", msgspec.json.encode(record))
    return out


if __name__ == "__main__":
    run(main, PRESETS)
