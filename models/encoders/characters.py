"""A student that reads letters: a convolution over each word's bytes in place of a table of pieces, then a transformer.

Source: CharacterBERT (El Boukkouri et al. 2020, https://arxiv.org/abs/2010.10392), as c-RoLASER uses it (Nishimwe,
Sagot, Bawden 2024, section 5): 1 to 7 bytes wide, highway layers, projected to the transformer's width. A misspelt word
is a little other there, not a row of pieces that no one has seen.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import torch
from msgspec import Struct
from safetensors.torch import load_file, save_file
from tokenizers import pre_tokenizers
from transformers import BertConfig, BertModel

from models.encoders.batching import encode_in_windows, micro_batches
from models.encoders.stored_cleaning import stored_cleaning
from models.errors import EncoderError
from models.text import Cleaning

__all__ = ["CharacterAwareEncoder", "CharacterEncoder", "Shape", "words_of"]

WORDS = 1024  # in a batch, padding counted
BYTES = 50  # of a word; the rest is not read
SHAPE = "character_encoder.json"  # the file that tells such a directory
_PAD, _BEGIN, _END, _OFFSET = 0, 1, 2, 3  # a byte b is symbol b + 3
SYMBOLS = 256 + _OFFSET
_SPLIT = pre_tokenizers.BertPreTokenizer()


class Shape(Struct, frozen=True):
    """What a character-aware encoder is made of."""

    hidden: int = 768
    layers: int = 12
    heads: int = 12
    max_words: int = 128
    dim: int = 1024  # of the vectors it gives
    symbol_dim: int = 16
    filters: tuple[tuple[int, int], ...] = (
        (1, 32),
        (2, 32),
        (3, 64),
        (4, 128),
        (5, 256),
        (6, 512),
        (7, 1024),
    )  # width, count
    pooling: str = "max"  # "max" (the paper's) or "mean"
    highways: int = 2


def words_of(text: str, max_words: int) -> list[list[int]]:
    """The symbols of each word of a cleaned text, lower-cased, split at white space and punctuation."""
    words = [word for word, _ in _SPLIT.pre_tokenize_str(text.lower())][:max_words] or [""]
    return [[_BEGIN, *(b + _OFFSET for b in word.encode("utf-8", "replace")[: BYTES - 2]), _END] for word in words]


class CharacterEncoder(torch.nn.Module):
    """(words' symbols) → (n, dim), not of unit length: the teacher's space need not be a sphere."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.symbols = torch.nn.Embedding(SYMBOLS, shape.symbol_dim, padding_idx=_PAD)
        self.filters = torch.nn.ModuleList(
            torch.nn.Conv1d(shape.symbol_dim, count, width) for width, count in shape.filters
        )
        features = sum(count for _, count in shape.filters)
        self.highways = torch.nn.ModuleList(torch.nn.Linear(features, 2 * features) for _ in range(shape.highways))
        for layer in self.highways:
            assert isinstance(layer, torch.nn.Linear)
            layer.bias.data[features:] = 1.0  # gates begin open: the word passes as it is
        self.to_hidden = torch.nn.Linear(features, shape.hidden)
        # One row of pieces, never read: the words come as vectors.
        config = BertConfig(
            vocab_size=1,
            hidden_size=shape.hidden,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            intermediate_size=4 * shape.hidden,
            max_position_embeddings=shape.max_words + 2,
            pad_token_id=0,
        )
        self.body = BertModel(config, add_pooling_layer=False)
        self.to_out = torch.nn.Linear(shape.hidden, shape.dim)

    def forward(self, texts: Sequence[list[list[int]]]) -> torch.Tensor:
        where = self.to_out.weight.device
        rows, length = len(texts), max(map(len, texts))
        mask = np.zeros((rows, length), np.int64)
        places = np.zeros((rows, length), np.int64)  # which distinct word; behind a text's end any: masked
        distinct: dict[tuple[int, ...], int] = {}  # each is read once a batch: most of a batch's words occur again
        for i, words in enumerate(texts):
            mask[i, : len(words)] = 1
            places[i, : len(words)] = [distinct.setdefault(tuple(word), len(distinct)) for word in words]
        # Every word ends in padding as wide as the widest filter: else a word's features would hang on the batch's
        # longest.
        widest = max(map(len, distinct)) + max(width for width, _ in self.shape.filters)
        symbols = np.zeros((len(distinct), widest), np.int64)
        for word, place in distinct.items():
            symbols[place, : len(word)] = word
        seen = torch.from_numpy(mask).to(where)
        flat = self.symbols(torch.from_numpy(symbols).to(where)).transpose(1, 2)  # (distinct, symbol_dim, widest)
        features = torch.cat([torch.relu(conv(flat)).amax(-1) for conv in self.filters], -1)  # (distinct, features)
        for layer in self.highways:
            new, gate = layer(features).chunk(2, -1)
            gate = torch.sigmoid(gate)
            features = gate * features + (1 - gate) * torch.relu(new)
        read = torch.nn.functional.embedding(torch.from_numpy(places).to(where), self.to_hidden(features))
        states: torch.Tensor = self.to_out(
            self.body(inputs_embeds=read, attention_mask=seen).last_hidden_state
        )  # (rows, length, dim)
        if self.shape.pooling == "max":
            return states.masked_fill(seen[..., None] == 0, -1e4).amax(1)
        return (states * seen[..., None]).sum(1) / seen.sum(1, keepdim=True)

    def save(self, folder: Path) -> None:
        """config.json and model.safetensors, for `load_character_encoder`."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / SHAPE).write_bytes(msgspec.json.encode(self.shape))
        save_file(
            {name: tensor.contiguous() for name, tensor in self.state_dict().items()}, folder / "model.safetensors"
        )


def load_character_encoder(folder: Path) -> CharacterEncoder:
    """What `save` wrote. Raises EncoderError if it is not there."""
    try:
        shape = msgspec.json.decode((folder / SHAPE).read_bytes(), type=Shape)
        tensors = load_file(folder / "model.safetensors")
    except OSError as error:
        raise EncoderError(f"no character-aware encoder at {folder}: {error}") from None
    encoder = CharacterEncoder(shape)
    encoder.load_state_dict(tensors)
    return encoder.eval()


class CharacterAwareEncoder:
    """`Encoder` over a trained character-aware student, on a GPU where there is one."""

    def __init__(self, folder: Path, cleaning: Cleaning | None = None) -> None:
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._encoder = load_character_encoder(folder).to(self._device)
        self._max_words = self._encoder.shape.max_words
        self.dim: int = self._encoder.shape.dim
        self.cleaning = cleaning or stored_cleaning(folder)
        digest = hashlib.sha256(repr((self._encoder.shape, self.cleaning)).encode())
        digest.update((folder / "model.safetensors").read_bytes())
        self.version: str = digest.hexdigest()[:12]

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(n, dim) float32, unit rows, row i for texts[i]."""
        with torch.inference_mode():
            return encode_in_windows(texts, self.dim, self.cleaning, self._prepare, self._run)

    def _prepare(self, cleaned: list[str]) -> list[tuple[np.ndarray, list[list[list[int]]]]]:
        split = [words_of(text, self._max_words) for text in cleaned]
        return [(rows, [split[i] for i in rows]) for rows in micro_batches([len(words) for words in split], WORDS)]

    def _run(self, words: list[list[list[int]]]) -> Callable[[], np.ndarray]:
        vectors = torch.nn.functional.normalize(self._encoder(words).float(), dim=-1)
        return lambda: vectors.cpu().numpy()
