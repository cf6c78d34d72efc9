"""Make an encoder robust to how people write: a student of a frozen teacher on standard and artificially noised text.

    python -m training.robust smoke                                      # a toy on the bundled posts
    python -m training.robust laptop base=RUN                         # the static student: RUN is of training.distill
    python -m training.robust paper student=token base=FacebookAI/roberta-base teacher=DIR file=sentences.txt.gz
    python -m training.robust paper student=char teacher=DIR file=sentences.txt.gz lr=5e-5

Source: Nishimwe, Sagot, Bawden 2024 (RoLASER, c-RoLASER), section 5. Training: MSE between the teacher on the standard
text and the student on standard and noised text. The checkpoint kept has the lowest MSE(T[std], S[std]) + MSE(T[std],
S[ugc]) on held-out text, noised from another seed. We differ: every step shows both versions (there, .9 ** 12 = 28 % of
the texts stay standard by chance); texts may be of any language, each with the noise of its own; and the static student
of a static teacher begins as its copy, so that only noise has to be learnt and the alignment of languages is what it
was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Literal, Protocol

import msgspec
import numpy as np
import torch
from msgspec import Struct
from rich.progress import track
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Pooling, Transformer
from transformers.utils import logging

from models.encoders.characters import CharacterEncoder, Shape, words_of
from models.encoders.load import FLOOD
from models.encoders.protocol import Encoder
from models.encoders.stored_cleaning import store_cleaning
from models.errors import ConfigError
from models.text import Cleaning, clean
from training import mlm
from training.corpus import to_bags
from training.data import SOURCES, data_dir, training_pairs
from training.distill import Static, with_dropout
from training.jobs import cache_dir, model_named, run, write_atomically, write_result
from training.loop import BEST, Pace, autocast, device, fit, load_weights, run_key
from training.losses import hard_negative_contrast, in_batch_contrast, mse
from training.metrics import hard_negatives, pairwise_cosine_distance
from training.mixture import find_teacher
from training.noise import kinds_of, noise
from training.runs import read_run
from training.tables import bundled_posts, hash_rows, read_texts


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the robust job."""

    student: str = "static"  # "static", "token" (a transformer over pieces) or "char" (over letters)
    base: str = ""  # static: a distill run or a bundle (empty = bundled); token: a transformers directory or hub id
    teacher: str = (
        ""  # a bundle, a model directory or a mixture (training.mixture); empty = the static base as it begins
    )
    targets: Literal["own", "english", "both"] = "own"  # what a text is taught: its own vector, its pair's, their mean
    file: str = ""  # English texts, one a line; empty = the parallel sets, all languages ("posts" = the bundled posts)
    sources: tuple[str, ...] = tuple(SOURCES)  # which parallel sets
    max_texts: int = 400_000  # a sample, languages by size ** lang_temperature; 0 = all
    lang_temperature: float = 0.5
    english: float = (
        0.3  # share of English in the sample: most kinds of noise are known for it alone; 0 = like the others
    )
    noise_rate: float = 0.1  # chance of each transformation (the paper's p_all); other languages have fewer of them
    copies: int = 2  # noised versions of each text
    contrast: float = 0.0  # weight of telling the batch's texts apart, beside the MSE; not in the paper
    contrast_temperature: float = 0.05
    hard: float = 0.0  # weight of telling a noised English text from one that says something else (negation, opposites,
    # numbers, names by the rules of training.metrics.hard_negatives, the same as xSIM++'s); not in the paper
    hard_per_kind: int = 2  # such texts of each of the three kinds, made once of every English text
    drop: float = 0.1  # static: chance that a piece is left out
    steps: int = 2_000
    batch: int = 2_048  # texts a step
    lr: float = 0.001  # at 0.004 the static table forgets faster than it learns
    warmup: int = 50
    betas: tuple[float, float] = (0.9, 0.999)  # Adam's memory of gradients and of their squares
    eps: float = 1e-8  # Adam's, beside the root of the squares
    clip: float = 0.0  # largest gradient norm; 0 = no limit
    pooling: str = "max"  # of torch students
    layers: int = 12  # of a student drawn at random (char, or token with an empty base)
    hidden: int = 768
    heads: int = 12
    max_length: int = 128  # pieces or words a torch student reads
    validation: int = 2_000  # texts held out
    validate_every: int = 200
    checkpoint_every: int = 200
    seed: int = 1
    out: str = ""  # default CRISIS_CACHE/robust-<student>


PRESETS = {
    "smoke": Config(
        file="posts", noise_rate=0.3, copies=2, steps=60, batch=128, warmup=5, drop=0.0, validation=200, validate_every=20,  # noqa: E501
        checkpoint_every=20, layers=1, hidden=48, heads=2, max_length=48,
    ),
    # Measured: of 240,000 texts a static table begins to learn the noised versions by heart after 200 steps (loss .187
    # → .178); of 800,000 it still gains at the last step (.185 → .167). 20 minutes on 2 cores.
    "laptop": Config(contrast=0.1, max_texts=800_000, noise_rate=0.15, steps=2_000, lr=0.002),
    # 2 million sentences, 683k steps of 8 × 4,000 tokens; Adam as in the paper, lr=5e-5 for student=char. Their loss is
    # a sum and ours a mean over texts, so the same clip norm binds there far more often; Adam itself does not mind.
    "paper": Config(
        student="token", max_texts=2_000_000, copies=1, steps=683_000, batch=1_000, lr=1e-4, warmup=1_000, clip=5.0,
        betas=(0.9, 0.98), eps=1e-6, validation=997, validate_every=30_000, checkpoint_every=30_000,
    ),
}  # fmt: skip


class Text(Struct, frozen=True):
    text: str
    lang: str
    english: str = ""  # the same in English, where that is what it is taught


class Student(Protocol):
    """What is taught. `prepare` is done once for all texts, `embed` every step."""

    module: torch.nn.Module
    cleaning: Cleaning

    def prepare(self, texts: list[str]) -> Any: ...

    def embed(self, prepared: Any, index: np.ndarray, rng: np.random.Generator | None) -> torch.Tensor:
        """(len(index), d); rng: for what is left out at random, None when measuring."""
        ...

    def save(self, folder: Path, record: dict) -> None: ...


class StaticStudent:
    """The static encoder's table, from a run of training.distill or a bundle."""

    def __init__(self, base: Path, drop: float) -> None:
        self._run, self._drop = read_run(base), drop
        run = self._run
        self.cleaning = run.cleaning
        self.module = Static(*run.table.shape, seed=0)
        self.module.table.data.copy_(torch.from_numpy(run.table))

    def prepare(self, texts: list[str]) -> Any:
        return to_bags(self._run.reader, texts)

    def embed(self, prepared: Any, index: np.ndarray, rng: np.random.Generator | None) -> torch.Tensor:
        bag = prepared.take(index)
        filled = np.diff(prepared.starts)[index] > 0
        if rng is None or not filled.all():
            return self.module(*bag)
        return self.module(*with_dropout(bag, rng, self._drop))

    def save(self, folder: Path, record: dict) -> None:
        """A run as training.distill leaves it, so that training.bundle makes a bundle of it."""
        folder.mkdir(parents=True, exist_ok=True)
        run = self._run
        tensors = {"table": self.module.table.data.contiguous(), "empty": torch.from_numpy(run.empty)}
        save_file(tensors, folder / "model.safetensors")
        write_atomically(folder / "tokenizer.json", run.tokenizer.to_str().encode())
        whole = {**run.record, "reading": msgspec.to_builtins(run.reading)}
        whole["training"] = {**run.record.get("training", {}), "robust": record}
        write_atomically(folder / "run.json", msgspec.json.encode(whole))


class TokenStudent:
    """RoLASER: a transformer over pieces, a linear layer to the teacher's width on every token, then pooling."""

    def __init__(self, config: Config, dim: int, texts: list[str], folder: Path) -> None:
        self.cleaning, self._config = Cleaning(), config
        base = model_named(config.base, "base") if config.base else _random_base(config, texts, folder)
        transformer = Transformer(base, max_seq_length=config.max_length)
        width = transformer.get_embedding_dimension()
        torch.manual_seed(config.seed)
        dense = Dense(width, dim, activation_function=None, module_input_name="token_embeddings")
        self.module = SentenceTransformer(
            modules=[transformer, dense, Pooling(dim, config.pooling)], device=str(device())
        )

    def prepare(self, texts: list[str]) -> list[str]:
        return [clean(text, self.cleaning) for text in texts]

    def embed(self, prepared: list[str], index: np.ndarray, rng: np.random.Generator | None) -> torch.Tensor:
        features = self.module.preprocess([prepared[i] for i in index])
        features = {n: v.to(self.module.device) if isinstance(v, torch.Tensor) else v for n, v in features.items()}
        with autocast(self.module.device):
            return self.module(features)["sentence_embedding"].float()

    def save(self, folder: Path, record: dict) -> None:
        logging.disable_progress_bar()
        self.module.save_pretrained(str(folder), create_model_card=False)
        store_cleaning(folder, self.cleaning)


class CharStudent:
    """c-RoLASER: the same over letters."""

    def __init__(self, config: Config, dim: int) -> None:
        self.cleaning, self._config = Cleaning(), config
        torch.manual_seed(config.seed)
        small = {} if config.hidden >= 256 else {"filters": ((1, 8), (2, 8), (3, 16), (4, 16))}
        shape = Shape(
            hidden=config.hidden,
            layers=config.layers,
            heads=config.heads,
            max_words=config.max_length,
            dim=dim,
            pooling=config.pooling,
            **small,
        )
        self.module = CharacterEncoder(shape).to(device())

    def prepare(self, texts: list[str]) -> list[list[list[int]]]:
        return [words_of(clean(text, self.cleaning), self._config.max_length) for text in texts]

    def embed(self, prepared: Any, index: np.ndarray, rng: np.random.Generator | None) -> torch.Tensor:
        with autocast(device()):
            return self.module([prepared[i] for i in index]).float()

    def save(self, folder: Path, record: dict) -> None:
        self.module.save(folder)
        store_cleaning(folder, self.cleaning)


def _random_base(config: Config, texts: list[str], folder: Path) -> str:
    small = mlm.Config(
        pieces=2_000,
        layers=config.layers,
        hidden=config.hidden,
        heads=config.heads,
        block=config.max_length,
        seed=config.seed,
    )
    return mlm.random_base(small, texts, folder)


def read_corpus(config: Config) -> list[Text]:
    """The texts to learn from, each once, with their languages."""
    if config.file == "posts":
        texts = [Text(p.text, p.lang or "und") for p in bundled_posts()]
    elif config.file:
        texts = [Text(text, "en") for text in dict.fromkeys(read_texts(Path(config.file)))]
    else:
        pairs = training_pairs(data_dir(), config.sources)
        english = [""] * len(pairs.text) if config.targets == "own" else pairs.english
        found = {*zip(pairs.text, pairs.lang, english, strict=True), *((text, "en", "") for text in pairs.english)}
        texts = [Text(*row) for row in sorted(found)]
    return sample_texts(texts, config.max_texts, config.lang_temperature, config.seed, config.english)


def sample_texts(texts: list[Text], size: int, temperature: float, seed: int, english: float = 0.0) -> list[Text]:
    """At most `size` texts (0 = all), each language in proportion to its number of texts ** temperature; English, where
    `english` is not 0, in that share.
    """
    if not size or size >= len(texts):
        return texts
    rng = np.random.default_rng(seed)
    langs, index, counts = np.unique([t.lang for t in texts], return_inverse=True, return_counts=True)
    share = counts.astype(float) ** temperature
    if english and "en" in langs:
        share[langs == "en"] = share[langs != "en"].sum() * english / (1 - english)
    weight = (share / counts)[index]
    # The keys u ** (1 / w) of Efraimidis and Spirakis: the largest are a weighted sample without replacement.
    chosen = np.argpartition(-np.log(rng.random(len(texts))) / weight, size)[:size]
    return [texts[i] for i in np.sort(chosen)]


def noised(texts: list[Text], rate: float, seed: int) -> list[str]:
    """One noised version of each, in the manner of its language. A text's own seed: adding one changes no other."""
    return [
        noise(t.text, Random(f"{seed} {t.text}"), rate, t.lang, kinds_of(t.lang))
        for t in track(texts, description="noise", disable=len(texts) < 5_000)
    ]


class HardNegatives:
    """Texts that say something else than an English text in almost its words, by the text's place."""

    def __init__(self, texts: list[Text], per_kind: int, seed: int) -> None:
        """per_kind: of each kind, at most; 0 = none are made."""
        english = np.array([i for i, text in enumerate(texts) if text.lang == "en"], np.int64)
        made = hard_negatives([texts[i].text for i in english], seed, per_kind) if per_kind else []
        self.texts = [negative.text for negative in made]
        of = english[[negative.of for negative in made]] if made else np.zeros(0, np.int64)  # rises
        self._starts = np.searchsorted(of, np.arange(len(texts) + 1))

    def draw(self, index: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """(places in `index` of texts that have any, one of each text's, as a place in `texts`)."""
        first, count = self._starts[index], self._starts[index + 1] - self._starts[index]
        rows = np.flatnonzero(count)
        return rows, first[rows] + rng.integers(0, count[rows])


def load_teacher(config: Config) -> Encoder:
    """The frozen teacher; for a static student without one, the base itself, for others the default encoder."""
    if config.teacher or config.student != "static":
        return find_teacher(config.teacher or "reader")
    return _Frozen(StaticStudent(_base(config), 0.0))


def targets_of(teacher: Encoder, texts: list[Text], which: str) -> np.ndarray:
    """(n, d) float32: the teacher's vector of each text ("own"), of what it is in English ("english"; a text without a
    pair keeps its own), or the mean of the two ("both")."""
    own = None if which == "english" else teacher.encode([t.text for t in texts])
    english = None if which == "own" else teacher.encode([t.english or t.text for t in texts])
    return own if english is None else english if own is None else (own + english) / 2  # type: ignore[return-value]


class _Frozen:
    """A static student as an encoder, before training."""

    def __init__(self, student: StaticStudent) -> None:
        self._student = student
        self.version, self.cleaning = "base", student.cleaning
        self.dim = student.module.table.shape[1]

    def encode(self, texts: list[str]) -> np.ndarray:
        bags = self._student.prepare(list(texts))
        parts = np.array_split(np.arange(len(texts)), max(1, len(texts) // 16_384))
        with torch.no_grad():
            return np.concatenate([self._student.embed(bags, part, None).numpy() for part in parts])


def _base(config: Config) -> Path:
    return Path(config.base) if config.base else FLOOD


def main(config: Config) -> Path:
    out = Path(config.out) if config.out else cache_dir() / f"robust-{config.student}"
    corpus = read_corpus(config)
    order = np.random.default_rng(config.seed).permutation(len(corpus))
    held = [corpus[i] for i in order[: config.validation]]
    train = [corpus[i] for i in order[config.validation :]]
    if not train:
        raise ConfigError(f"{len(corpus)} texts, {config.validation} of them held out: none is left to train on")
    data_hash = hash_rows(corpus)
    teacher = load_teacher(config)
    target, held_target = (torch.from_numpy(targets_of(teacher, texts, config.targets)) for texts in (train, held))
    if config.student == "static":
        student: Student = StaticStudent(_base(config), config.drop)
        if student.module.table.shape[1] != teacher.dim:
            raise ConfigError(
                f"a static base of dim {student.module.table.shape[1]} cannot follow a teacher of dim {teacher.dim}"
            )
    elif config.student == "token":
        student = TokenStudent(config, teacher.dim, [t.text for t in train], out)
    elif config.student == "char":
        student = CharStudent(config, teacher.dim)
    else:
        raise ConfigError(f"student={config.student}: choose static, token or char")

    standard = student.prepare([t.text for t in train])
    versions = [
        student.prepare(noised(train, config.noise_rate, 1000 * config.seed + copy)) for copy in range(config.copies)
    ]
    held_standard = student.prepare([t.text for t in held])
    held_noised = student.prepare(noised(held, config.noise_rate, 1000 * config.seed + 999))  # a seed no copy has
    turned = HardNegatives(train, config.hard_per_kind if config.hard else 0, config.seed)
    negatives = student.prepare(turned.texts) if turned.texts else None
    where = next(student.module.parameters()).device

    def losses(step: int) -> Iterator[torch.Tensor]:
        rng = np.random.default_rng([config.seed, step])
        index = rng.choice(len(train), min(config.batch, len(train)), replace=False)
        wanted = target[index].to(where)
        ugc = student.embed(versions[step % config.copies], index, rng)
        plain = student.embed(standard, index, rng)
        loss = mse(plain, wanted) + mse(ugc, wanted)
        if config.contrast:
            same = torch.zeros(len(index), len(index), dtype=torch.bool, device=where)
            unit = torch.nn.functional.normalize(ugc, dim=-1)
            loss = loss + config.contrast * in_batch_contrast(unit, wanted, same, config.contrast_temperature)
        if negatives is not None:
            rows, chosen = turned.draw(index, rng)
            if len(rows):
                sides = ugc[rows], plain[rows], student.embed(negatives, chosen, rng)
                unit = (torch.nn.functional.normalize(side, dim=-1) for side in sides)
                loss = loss + config.hard * hard_negative_contrast(*unit, config.contrast_temperature)
        yield loss

    def embed_all(prepared: Any, count: int) -> torch.Tensor:
        parts = np.array_split(np.arange(count), max(1, count // 256))
        return torch.cat([student.embed(prepared, part, None).cpu() for part in parts])

    def two_terms() -> tuple[float, float]:
        """MSE(T[std], S[std]) and MSE(T[std], S[ugc]) of the held-out texts."""
        return (
            mse(embed_all(held_standard, len(held)), held_target).item(),
            mse(embed_all(held_noised, len(held)), held_target).item(),
        )

    pace = Pace(
        steps=config.steps,
        lr=config.lr,
        warmup=config.warmup,
        seed=config.seed,
        clip=config.clip,
        weight_decay=0.0,
        betas=config.betas,
        eps=config.eps,
        checkpoint_every=config.checkpoint_every,
        validate_every=config.validate_every,
    )
    digest = hashlib.sha256(target.numpy().tobytes()).hexdigest()
    trace = fit(
        student.module, losses, pace, out, run_key(config, data_hash + digest), lambda: sum(two_terms()), title="robust"
    )
    load_weights(out / BEST, student.module)
    student.module.eval()
    with torch.no_grad():
        terms = two_terms()
        distance = pairwise_cosine_distance(
            *(
                torch.nn.functional.normalize(embed_all(p, len(held)), dim=-1).numpy()
                for p in (held_standard, held_noised)
            )
        )
    metrics = {
        "loss_before": trace.history[0][1],
        "loss_best": trace.best,
        "best_step": trace.best_step,
        "standard": terms[0],
        "ugc": terms[1],
        "cosine_distance": distance,
        "texts": len(train),
        "languages": len({t.lang for t in train}),
        "steps": trace.step,
        "history": trace.history,
    }
    record = {
        "config": msgspec.to_builtins(config),
        "data_hash": data_hash,
        "teacher": teacher.version,
        "loss_best": trace.best,
    }
    student.save(out / "best", record)
    write_result(out / "result.json", config, data_hash, config.seed, metrics)
    print(f"two-term loss {trace.history[0][1]:.4f} → {trace.best:.4f} at step {trace.best_step} → {out / 'best'}")
    return out / "best"


if __name__ == "__main__":
    run(main, PRESETS)
