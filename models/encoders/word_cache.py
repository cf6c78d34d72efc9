"""The pieces of words, kept: a stream says the same words again and again, and a tokenizer reads each anew.

Exact, where a word's pieces do not depend on its neighbours: the tokenizer splits at white space before anything else,
and what it does to the text first (NFKC, lower case) does not reach across a space.
"""

from __future__ import annotations

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
_BY_CHARACTER = {"NFC", "NFD", "NFKC", "NFKD", "Lowercase"}


class _Steps(Struct):
    """What a tokenizer's file says beside its pieces, which take a tenth of a second to read as objects of Python."""

    normalizer: dict[str, Any] | None = None
    pre_tokenizer: dict[str, Any] | None = None
    post_processor: dict[str, Any] | None = None
    truncation: dict[str, Any] | None = None
    padding: dict[str, Any] | None = None
    added_tokens: list[dict[str, Any]] = []


def words_are_independent(tokenizer: Tokenizer) -> bool:
    """Does this tokenizer read a text as it reads the text's words, one after another?"""
    read = msgspec.json.decode(tokenizer.to_str(), type=_Steps)

    def parts(step: dict[str, Any] | None, plural: str) -> list[dict[str, Any]]:
        return [] if step is None else step[plural] if step["type"] == "Sequence" else [step]

    splits = [step["type"] for step in parts(read.pre_tokenizer, "pretokenizers")]
    return (
        splits[:1] == ["WhitespaceSplit"]
        and {step["type"] for step in parts(read.normalizer, "normalizers")} <= _BY_CHARACTER
        and read.post_processor is None
        and read.truncation is None
        and read.padding is None
        and not any(token["lstrip"] or token["rstrip"] or " " in token["content"] for token in read.added_tokens)
        and all(step.get("prepend_scheme", "always") == "always" for step in parts(read.pre_tokenizer, "pretokenizers"))
    )


class WordCache:
    """Pieces of texts by way of their words.

    When `words` are kept they become the older ones, and of those only the ones said again are kept on. A word's pieces
    are kept as bytes: those of a text are then joined in one call.
    """

    def __init__(self, tokenizer: Tokenizer, words: int = WORDS) -> None:
        self._tokenizer, self._most = tokenizer, words
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
            if missing:
                known.update(self._read(missing))
            pieces = [b"".join(map(known.__getitem__, words)) for words in split]
            for word in missing:
                if len(word) > LETTERS:
                    del known[word]
            if len(known) > self._most:
                self._older, self._pieces = known, {}
        return [np.frombuffer(ids, np.int32) for ids in pieces]

    def _read(self, words: set[str]) -> dict[str, bytes]:
        older = self._older
        found = {word: older[word] for word in words if word in older}
        new = [word for word in words if word not in found]
        read = self._tokenizer.encode_batch_fast(new, add_special_tokens=False)
        return found | {word: np.array(split.ids, np.int32).tobytes() for word, split in zip(new, read, strict=True)}
