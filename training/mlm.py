"""Pre-train a masked language model on posts, as RoBERTa was.

    python -m training.mlm smoke                                   # a toy on the bundled posts, a minute on 2 cores
    python -m training.mlm laptop file=posts.txt.gz                # 4 layers, a night
    python -m training.mlm laptop sources=tatoeba-train langs=en   # licensed sentences of CRISIS_DATA instead of posts
    python -m training.mlm paper file=posts.txt.gz                 # CT-M1: from scratch
    python -m training.mlm paper file=posts.txt.gz init=roberta epochs=20      # CT-M2; init=bertweet: CT-M3
    python -m training.mlm laptop posts=humaid,crisislex-t6 langs=en init=DIR  # the labelled sets' texts: never shipped

Source: Lamsal, Read, Karunasekera 2023, section 3.2: blocks of 128, AdamW at 4e-4, 5 % warm-up, batches of 8k. Kept are
`onelook` (after one epoch), `best` (lowest validation loss) and `complete`. With `init`, the model's own tokenizer is
used: its embeddings mean nothing to another one's pieces.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import repeat
from pathlib import Path

import numpy as np
import torch
from msgspec import Struct
from tokenizers import Tokenizer, processors
from transformers import AutoModelForMaskedLM, AutoTokenizer, PreTrainedTokenizerFast, RobertaConfig, RobertaForMaskedLM
from transformers.utils import logging

from models.encoders.stored_cleaning import store_cleaning
from models.errors import ConfigError
from models.text import Cleaning, clean
from training import tokenizer as tokenizer_job
from training.bundled_posts import bundled_posts
from training.data import labelled_posts, training_pairs
from training.files import DataError, data_dir, hash_rows, read_texts
from training.jobs import Count, Positive, cache_dir, model_named, run, write_result
from training.loop import BEST, Pace, autocast, device, fit, load_weights
from training.run_key import run_key

__all__ = ["Config", "main", "random_base"]

KNOWN = {"roberta": "FacebookAI/roberta-base", "bertweet": "vinai/bertweet-base"}


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the masked-LM job."""

    file: str = ""  # texts, one a line, plain or .gz; empty = `sources`, or else the bundled posts
    sources: tuple[str, ...] = ()  # of training.data.SOURCES: both sides of their pairs, each text once
    posts: tuple[str, ...] = ()  # labelled sets of CRISIS_DATA instead, their texts but for test rows: research alone
    langs: tuple[str, ...] = ()  # of these only texts in these languages; empty = all
    init: str = "scratch"  # "scratch", "roberta", "bertweet", or a transformers directory
    tokenizer: str = ""  # a tokenizers file for "scratch"; empty = train a byte-level BPE on the texts
    pieces: Count = 64_000  # of that BPE
    layers: Count = 12
    hidden: Count = 768
    heads: Count = 12
    block: Count = 128  # pieces in a sequence; texts are laid end to end
    max_texts: int = 0  # 0 = all; else a sample
    min_words: int = 11  # shorter texts are left out: "more than ten tokens"
    mask: float = 0.15  # share of pieces to guess: 80 % masked, 10 % another piece, 10 % as they are
    epochs: Positive = 40
    batch: Count = 8192  # blocks a step
    micro_batch: Count = 512  # blocks at a time: 16 accumulation steps
    lr: Positive = 4e-4
    warmup: float = 0.05  # share of the steps
    validation: float = 0.01  # share of the blocks that is kept to validate on, at least one
    validate_every: int = 500
    checkpoint_every: Count = 500
    mention_token: str = "@USER"
    seed: int = 1
    out: str = ""  # default CRISIS_CACHE/mlm-<init>


PRESETS = {
    "smoke": Config(
        pieces=400,
        layers=1,
        hidden=32,
        heads=2,
        block=32,
        max_texts=300,
        min_words=3,
        epochs=3,
        batch=32,
        micro_batch=16,
        lr=5e-3,
        validation=0.1,
        validate_every=20,
        checkpoint_every=20,
    ),
    "laptop": Config(
        pieces=16_000,
        layers=4,
        hidden=256,
        heads=4,
        epochs=5,
        batch=256,
        micro_batch=64,
        lr=5e-4,
        validate_every=200,
        checkpoint_every=200,
    ),
    "paper": Config(),
}


def blocks_of(ids: list[list[int]], size: int) -> np.ndarray:
    """(n, size) int32: the texts' pieces end to end, cut into blocks; what is left over at the end is dropped."""
    flat = np.fromiter((i for row in ids for i in row), np.int32)
    return flat[: len(flat) // size * size].reshape(-1, size)


def mask_pieces(
    ids: torch.Tensor, special: torch.Tensor, share: float, mask_id: int, vocabulary: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """(inputs, labels) of (n, length) ids: `share` of the pieces that are not special must be guessed.

    Of those, 80 % read <mask>, 10 % another piece, 10 % what they are (Devlin et al. 2019, as RoBERTa: drawn anew each
    time). Labels are -100 where nothing is asked. transformers' collator does the same from a global seed; ours takes
    the generator, so that a resumed run masks what an unbroken one would.
    """
    draw = torch.rand(ids.shape, generator=generator)
    guessed = (draw < share) & ~torch.isin(ids, special)
    fate = torch.rand(ids.shape, generator=generator)
    other = torch.randint(vocabulary, ids.shape, generator=generator)
    inputs = torch.where(guessed & (fate < 0.8), mask_id, ids)
    inputs = torch.where(guessed & (fate >= 0.9), other, inputs)
    return inputs, torch.where(guessed, ids, -100)


def new_tokenizer(config: Config, texts: list[str]) -> PreTrainedTokenizerFast:
    """A byte-level BPE with RoBERTa's special pieces, from a file or trained on the texts."""
    if config.tokenizer and not Path(config.tokenizer).is_file():
        raise ConfigError(f"tokenizer={config.tokenizer}: no such file")
    if config.tokenizer:
        bpe = Tokenizer.from_file(config.tokenizer)
    else:
        bpe = tokenizer_job.train(iter(texts), tokenizer_job.Config(kind="bpe", pieces=config.pieces))
    ends = [(piece, bpe.token_to_id(piece)) for piece in ("</s>", "<s>")]
    if any(number is None for _, number in ends) or bpe.token_to_id("<mask>") is None:
        raise ConfigError(
            f"the tokenizer {config.tokenizer} lacks <s>, </s> or <mask>: make it with training.tokenizer"
        )
    bpe.post_processor = processors.RobertaProcessing(*ends)
    return PreTrainedTokenizerFast(
        tokenizer_object=bpe,
        bos_token="<s>",
        eos_token="</s>",
        sep_token="</s>",
        cls_token="<s>",
        unk_token="<unk>",
        pad_token="<pad>",
        mask_token="<mask>",
        model_max_length=config.block,
    )


def load_start(config: Config, texts: list[str]):
    """(tokenizer, model) to begin with. The head of an encoder that has none is drawn at random by the seed."""
    torch.manual_seed(config.seed)
    if config.init != "scratch":
        name = KNOWN.get(config.init) or model_named(config.init, "init")
        tokenizer = AutoTokenizer.from_pretrained(name)
        if tokenizer.mask_token_id is None:
            raise ConfigError(f"init={config.init}: its tokenizer has no <mask>")
        return tokenizer, AutoModelForMaskedLM.from_pretrained(name)
    tokenizer = new_tokenizer(config, texts)
    shape = RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=config.hidden,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=4 * config.hidden,
        max_position_embeddings=config.block + 2,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        type_vocab_size=1,
    )
    return tokenizer, RobertaForMaskedLM(shape)


def random_base(config: Config, texts: list[str], folder: Path) -> str:
    """A small transformer drawn at random, for jobs that were given no base; kept, so that a resumed run
    has the same.
    """
    path = folder / f"base-{hash_rows([config, *texts])[:12]}"
    logging.disable_progress_bar()
    if not path.exists():
        draft = path.with_name(f".{path.name}")  # half a base, after a kill, is none
        tokenizer, model = load_start(config, texts)
        model.base_model.save_pretrained(draft)
        tokenizer.save_pretrained(draft)
        draft.rename(path)
    logging.set_verbosity_error()  # no pooler in it, and none is wanted
    return str(path)


def texts_of(config: Config) -> list[str]:
    """What to train on: the file, the licensed sources, or the bundled posts."""
    if config.file:
        return read_texts(Path(config.file))
    if config.posts:
        both = labelled_posts(data_dir(), config.posts)
        return asked_for(both, config, config.posts)
    if not config.sources:
        return [post.text for post in bundled_posts()]
    pairs = training_pairs(data_dir(), config.sources)
    both = [*zip(pairs.english, repeat("en")), *zip(pairs.text, pairs.lang, strict=True)]
    return asked_for(both, config, config.sources)


def asked_for(rows: Iterable[tuple[str, str]], config: Config, names: Sequence[str]) -> list[str]:
    """Each text once of (text, language), in the languages asked for. Raises DataError where there is none."""
    found = list(dict.fromkeys(text for text, lang in rows if not config.langs or lang in config.langs))
    if not found:
        raise DataError(f"no text in {', '.join(config.langs)} among {', '.join(names)}")
    return found


def drawn(count: int, start: int, size: int, seed: int) -> np.ndarray:
    """(size,) rows `start` and on of an order that has each of `count` rows once an epoch, each epoch shuffled anew."""
    epochs = range(start // count, (start + size - 1) // count + 1)
    return np.concatenate([order_of(count, epoch, seed) for epoch in epochs])[start - epochs[0] * count :][:size]


@lru_cache(2)  # a step reads of one epoch or two
def order_of(count: int, epoch: int, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(count)


def loss_of_asked(model: torch.nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy over the pieces asked for; the same value as the model's own `loss`.

    The head is run on those pieces alone where it can be reached (RoBERTa's family, BERT's): its product with the whole
    vocabulary is the dearest part of a small model, and 85 % of it would be thrown away.
    """
    head = getattr(model, "lm_head", None) or getattr(model, "cls", None)
    if head is None:
        return model(input_ids=inputs, labels=labels).loss
    asked = labels != -100
    states = model.base_model(input_ids=inputs).last_hidden_state[asked]  # (asked, hidden)
    return torch.nn.functional.cross_entropy(head(states).float(), labels[asked])


def main(config: Config) -> Path:
    out = Path(config.out) if config.out else cache_dir() / f"mlm-{Path(config.init).name}"
    texts = texts_of(config)
    if 0 < config.max_texts < len(texts):
        chosen = np.random.default_rng(config.seed).choice(len(texts), config.max_texts, replace=False)
        texts = [texts[i] for i in np.sort(chosen)]
    cleaning = Cleaning(mention_token=config.mention_token)
    cleaned = [clean(text, cleaning) for text in texts]
    kept = [text for text in cleaned if len(text.split()) >= config.min_words]
    print(f"{len(kept)} texts; left out as shorter than {config.min_words} words: {len(cleaned) - len(kept)}")
    tokenizer, model = load_start(config, kept)
    model.to(device())
    # Whole texts are wanted here, they are cut into blocks: the warning about long ones would mislead.
    blocks = blocks_of(tokenizer(kept, verbose=False)["input_ids"] if kept else [], config.block)
    held_out = max(1, round(config.validation * len(blocks)))
    if len(blocks) < held_out + config.micro_batch:
        raise ConfigError(
            f"{len(blocks)} blocks of {config.block} pieces: too few for micro_batch={config.micro_batch}"
        )
    order = np.random.default_rng(config.seed).permutation(len(blocks))
    held, train = blocks[order[:held_out]], blocks[order[held_out:]]
    batch = min(config.batch, len(train) // config.micro_batch * config.micro_batch)
    steps = max(1, math.ceil(config.epochs * len(train) / batch))
    special = torch.tensor(sorted(tokenizer.all_special_ids))

    def loss_of(rows: np.ndarray, generator: torch.Generator) -> torch.Tensor:
        ids = torch.from_numpy(rows).long()
        inputs, labels = mask_pieces(ids, special, config.mask, tokenizer.mask_token_id, len(tokenizer), generator)
        with autocast(model.device):
            return loss_of_asked(model, inputs.to(model.device), labels.to(model.device))

    def losses(step: int) -> Iterator[torch.Tensor]:
        generator = torch.Generator().manual_seed(int(np.random.default_rng([config.seed, step]).integers(2**62)))
        chosen = train[drawn(len(train), step * batch, batch, config.seed)]
        parts = range(0, batch, config.micro_batch)
        for start in parts:
            yield loss_of(chosen[start : start + config.micro_batch], generator) / len(parts)

    def validate() -> float:
        generator = torch.Generator().manual_seed(config.seed)  # the same pieces are asked every time
        parts = [held[s : s + config.micro_batch] for s in range(0, len(held), config.micro_batch)]
        return float(np.average([loss_of(p, generator).item() for p in parts], weights=[len(p) for p in parts]))

    def after_step(step: int) -> None:
        if step == math.ceil(len(train) / batch):  # every block was read
            save_model(out / "onelook", model, tokenizer, cleaning)

    pace = Pace(
        steps=steps,
        lr=config.lr,
        warmup=round(config.warmup * steps),
        seed=config.seed,
        checkpoint_every=config.checkpoint_every,
        validate_every=config.validate_every,
    )
    data_hash = hash_rows(texts)
    trace = fit(model, losses, pace, out, run_key(config, data_hash), validate, after_step, "masked LM")
    save_model(out / "complete", model, tokenizer, cleaning)
    load_weights(out / BEST, model)
    save_model(out / "best", model, tokenizer, cleaning)
    metrics = trace.figures() | {
        "loss_complete": trace.history[-1][1],
        "steps": trace.step,
        "blocks": len(train),
    }
    write_result(out / "run.json", config, data_hash, config.seed, metrics)
    print(f"loss {metrics['loss_before']:.3f} → {metrics['loss_complete']:.3f}, lowest {trace.best:.3f} → {out}")
    return out


def save_model(folder: Path, model, tokenizer, cleaning: Cleaning) -> None:
    """A directory that transformers and sentence-transformers (with mean pooling) load."""
    logging.disable_progress_bar()  # one bar a job is enough
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    store_cleaning(folder, cleaning)


if __name__ == "__main__":
    run(main, PRESETS)
