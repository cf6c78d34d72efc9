"""The pieces of words, kept: a stream says the same words again and again, and a tokenizer reads each anew.

Exact, where a word's pieces do not depend on its neighbours: the tokenizer splits at white space before anything else,
and what it does to the text first (NFKC, lower case) does not reach across a space. Where it also drops punctuation and
case, "Water!" is read as "water" is, and a word of nothing but letters of ASCII goes straight to its model.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from threading import Lock
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from tokenizers import Tokenizer

__all__ = ["WordCache", "words_are_independent"]

WORDS = 150_000  # kept, some 30 MB, beside as many older ones: 80 to 99 % of a stream's words are among them
LETTERS = 40  # of a word worth keeping: longer ones hardly come twice
_BEGINS = "▁"  # what stands before a word's first piece
_BY_CHARACTER = {"NFC", "NFD", "NFKC", "NFKD", "Lowercase"}
# Signs of ASCII around a word, but not "<", "=" and ">": special tokens have them, and a stroke behind them makes ≮,
# ≠ and ≯ of them.
_MARKS = "!\"#$%&'()*+,-./:;?@[\\]^_`{|}~"


class _Steps(Struct):
    """What a tokenizer's file says beside its pieces, which take a tenth of a second to read as objects of Python."""

    normalizer: dict[str, Any] | None = None
    pre_tokenizer: dict[str, Any] | None = None
    post_processor: dict[str, Any] | None = None
    truncation: dict[str, Any] | None = None
    padding: dict[str, Any] | None = None
    added_tokens: list[dict[str, Any]] = []


def _parts(step: dict[str, Any] | None, plural: str) -> list[dict[str, Any]]:
    return [] if step is None else step[plural] if step["type"] == "Sequence" else [step]


def _steps(tokenizer: Tokenizer) -> tuple[_Steps, set[str], list[dict[str, Any]]]:
    """All of them, and in parts: the types of what it does to a text, and how it splits it."""
    read = msgspec.json.decode(tokenizer.to_str(), type=_Steps)
    done = {step["type"] for step in _parts(read.normalizer, "normalizers")}
    return read, done, _parts(read.pre_tokenizer, "pretokenizers")


def words_are_independent(tokenizer: Tokenizer) -> bool:
    """Does this tokenizer read a text as it reads the text's words, one after another?"""
    read, done, splits = _steps(tokenizer)
    return (
        [step["type"] for step in splits[:1]] == ["WhitespaceSplit"]
        and done <= _BY_CHARACTER
        and read.post_processor is None
        and read.truncation is None
        and read.padding is None
        and not any(token["lstrip"] or token["rstrip"] or " " in token["content"] for token in read.added_tokens)
        and all(step.get("prepend_scheme", "always") == "always" for step in splits)
    )


def _drops_marks_and_case(tokenizer: Tokenizer) -> bool:
    """Of one whose words are independent: is a word read as its `_core` is, and one of letters by the model alone?"""
    read, done, splits = _steps(tokenizer)
    return (
        "Lowercase" in done
        and [step["type"] for step in splits] == ["WhitespaceSplit", "Punctuation", "Digits", "Metaspace"]
        and splits[1]["behavior"] == "Removed"
        and splits[3]["replacement"] == _BEGINS
        and all(token["content"][0] + token["content"][-1] == "<>" for token in read.added_tokens)
        and not any(token["single_word"] for token in read.added_tokens)
    )


def _core(word: str) -> str:
    """What is left of a word where marks around it and case say nothing."""
    core = word.strip(_MARKS)
    return core.lower() if core.isascii() and "<" not in core else core


class WordCache:
    """Pieces of texts by way of their words.

    When `words` are kept they become the older ones, and of those only the ones said again are kept on. A word's pieces
    are kept as bytes: those of a text are then joined in one call.
    """

    def __init__(self, tokenizer: Tokenizer, words: int = WORDS) -> None:
        self._tokenizer, self._most = tokenizer, words
        self._model = tokenizer.model if _drops_marks_and_case(tokenizer) else None
        self._pieces: dict[str, bytes] = {}
        self._older: dict[str, bytes] = {}
        self._turn = Lock()  # search encodes beside the stream

    def forget(self) -> None:
        """All words."""
        self._pieces, self._older = {}, {}

    def pieces(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The pieces of each text, int32: what the tokenizer itself would give."""
        split = [text.split(" ") for text in texts]
        with self._turn:
            known = self._pieces
            missing = set().union(*split).difference(known)  # `- known.keys()` would walk all that is known
            read = self._read(missing) if missing else {}
            known.update(read)
            pieces = [b"".join(map(known.__getitem__, words)) for words in split]
            for word in read:
                if len(word) > LETTERS:
                    del known[word]
            if len(known) > self._most:
                self._older, self._pieces = known, {}
        return [np.frombuffer(ids, np.int32) for ids in pieces]

    def _read(self, words: set[str]) -> dict[str, bytes]:
        """The words, and what they are read as where that is new too."""
        known, older, model = self._pieces, self._older, self._model
        cores = {word: _core(word) if model else word for word in words}
        found: dict[str, bytes] = {}
        new = []
        for core in set(cores.values()).difference(known):
            if core in older:
                found[core] = older[core]
            elif model and core.isascii() and core.isalpha():  # a third of the time
                found[core] = _packed([piece.id for piece in model.tokenize(_BEGINS + core)])
            else:
                new.append(core)
        read = self._tokenizer.encode_batch_fast(new, add_special_tokens=False)
        found |= {core: _packed(split.ids) for core, split in zip(new, read, strict=True)}
        return found | {word: found[core] if core in found else known[core] for word, core in cores.items()}


def _packed(ids: list[int]) -> bytes:
    return array("i", ids).tobytes()  # int32
