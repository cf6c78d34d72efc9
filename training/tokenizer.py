"""Train a tokenizer.

    python -m training.tokenizer laptop   # multilingual unigram for the static encoder, about 7 minutes of processor time
    python -m training.tokenizer laptop base=FILE  # FILE's pieces and, for each short form of the noise lists, one more
    python -m training.tokenizer paper             # byte-level BPE, 64k, for masked LM on English posts (file=…)

Unigram (Kudo 2018) over lower-cased NFKC words: users shout in capitals, and a static table has no context to learn
that WATER is water. Languages are read with a temperature, so that thin ones get whole words, not only letters. Short
forms ("ppl", "tmrw", "bzwen") are hardly in the data, but the robust job teaches them: each is a piece, for as a sum of
letters it says nothing, and the letters would have to change for it.
"""  # noqa: E501

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from models.errors import ConfigError
from models.text import clean
from training.data import SOURCES, training_pairs
from training.files import data_dir, read_lines
from training.jobs import cache_dir, run, write_atomically
from training.noise import own_lists

__all__ = ["Config", "main", "train"]


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the tokenizer job."""

    kind: str = "unigram"  # "unigram" (multilingual) or "bpe" (byte-level)
    pieces: int = 64_000  # size of the vocabulary
    temperature: float = 0.5  # a language's share of the text is its size to this power; 1 = as it is, 0 = equal
    texts: int = 1_200_000  # texts read, over all languages
    sources: tuple[str, ...] = tuple(SOURCES)  # of training.data.SOURCES: whose pairs are read
    base: str = ""  # a unigram tokenizer to go on from, instead of training one
    short_forms: bool = True  # unigram: a piece for each short form and misspelling of the noise lists
    file: str = ""  # train on the lines of this .gz file instead of the parallel sets
    out: str = ""  # where to write; default CRISIS_CACHE/tokenizer-<kind>-<pieces>.json
    seed: int = 1


PRESETS = {
    # All scripts together have 7,000 letters; these pairs are read in seconds.
    "smoke": Config(pieces=16_000, texts=20_000, sources=("tico19-dev", "crisis-lexicons")),
    "laptop": Config(),
    "paper": Config(kind="bpe", pieces=64_000),  # Lamsal, Read, Karunasekera 2023, section 3.1.2
}


def untrained(kind: str) -> Tokenizer:
    """A tokenizer with its normalisation and word splitting, before it knows a piece."""
    if kind == "bpe":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        return tokenizer
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    # Punctuation goes and every part begins a word, so "#flood", "(flood)" and "d'eau" hold the same pieces as "flood"
    # and "eau". These are native: regular expressions in their place took half of the encoder's time.
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.WhitespaceSplit(),
            pre_tokenizers.Punctuation("removed"),
            pre_tokenizers.Digits(),
            pre_tokenizers.Metaspace(),
        ]
    )
    return tokenizer


def train(texts: Iterator[str], config: Config) -> Tokenizer:
    tokenizer = untrained(config.kind)
    if config.kind == "bpe":
        trainer = trainers.BpeTrainer(
            vocab_size=config.pieces,
            min_frequency=2,
            special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        )
    else:
        trainer = trainers.UnigramTrainer(
            vocab_size=config.pieces, unk_token="<unk>", special_tokens=["<unk>"], max_piece_length=16
        )
    try:
        tokenizer.train_from_iterator(texts, trainer)
    except Exception as error:  # what the library raises
        raise ConfigError(f"pieces={config.pieces}: {error}") from None
    return tokenizer


def balanced_texts(by_lang: dict[str, list[str]], total: int, temperature: float, seed: int) -> Iterator[str]:
    """About `total` texts, each language in proportion to its size ** temperature; thin ones come round again."""
    rng = random.Random(seed)
    weights = {lang: len(texts) ** temperature for lang, texts in by_lang.items()}
    unit = total / sum(weights.values())
    for lang, texts in sorted(by_lang.items()):
        left = round(unit * weights[lang])
        while left > 0:
            part = rng.sample(texts, min(left, len(texts)))
            yield from part
            left -= len(part)


def with_words(tokenizer: Tokenizer, words: Iterable[str]) -> Tokenizer:
    """The unigram tokenizer with a piece for each of the words that it would split, e times as likely as the pieces."""
    content = json.loads(tokenizer.to_str())
    vocabulary = content["model"]["vocab"]
    score = dict(map(tuple, vocabulary))
    for word in sorted(words):
        pieces = tokenizer.encode(word, add_special_tokens=False).tokens
        whole = "".join(pieces)
        if len(pieces) > 1 and whole.rfind("▁") == 0 and whole not in score and score.keys() >= {*pieces}:
            score[whole] = sum(score[piece] for piece in pieces) + 1
            vocabulary.append([whole, score[whole]])
    return Tokenizer.from_str(json.dumps(content))


def short_forms() -> set[str]:
    """The words of the noise lists' forms that are letters alone: the tokenizer parts the others anyway."""
    forms = {form for words in own_lists().values() for form in words.forms()}
    return {word for form in forms for word in re.findall(r"(?<!\S)[^\W\d_]+(?!\S)", form)}


def main(config: Config) -> Path:
    if config.base:
        tokenizer = Tokenizer.from_file(config.base)
    else:
        tokenizer = train(training_texts(config), config)
    if config.short_forms and config.kind == "unigram":
        tokenizer = with_words(tokenizer, short_forms())
    out = Path(config.out) if config.out else cache_dir() / f"tokenizer-{config.kind}-{config.pieces}.json"
    write_atomically(out, tokenizer.to_str().encode())
    print(f"{tokenizer.get_vocab_size()} pieces → {out}")
    return out


def training_texts(config: Config) -> Iterator[str]:
    """Lines of `file`, or the training pairs, languages balanced."""
    if config.file:
        return (clean(line) for line in read_lines(Path(config.file)))
    pairs = training_pairs(data_dir(), config.sources)
    by_lang: dict[str, list[str]] = defaultdict(list)
    for lang, text in sorted({*zip(pairs.lang, pairs.text, strict=True), *(("en", t) for t in pairs.english)}):
        by_lang[lang].append(text)
    return balanced_texts(by_lang, config.texts, config.temperature, config.seed)


if __name__ == "__main__":
    run(main, PRESETS)
