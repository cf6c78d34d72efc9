"""Tokenizers: trained, and given a piece for each short form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from models.encoders.load import FLOOD
from training import tokenizer as job
from training.data import SOURCES, Pairs
from training.jobs import read_config
from training.noise import own_lists

BASE = Tokenizer.from_file(str(FLOOD / "tokenizer.json"))
WORDS = ["zqkt", "flodd wtrz", "Kltx", "the"]
MORE = job.with_words(BASE, ["zqkt", "wtrz", "Kltx", "the", "👍"])


def pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    return tokenizer.encode(text, add_special_tokens=False).tokens


def test_each_word_that_was_split_has_a_piece_of_its_own_and_no_other_has():
    assert len(pieces(BASE, "zqkt")) > 1
    assert [pieces(MORE, word) for word in ("zqkt", "WTRZ", "kltx", "the")] == [
        ["▁zqkt"],
        ["▁wtrz"],
        ["▁kltx"],
        ["▁the"],
    ]
    assert MORE.get_vocab_size() == BASE.get_vocab_size() + 3


def test_the_pieces_that_were_there_keep_their_numbers():
    known = MORE.get_vocab()
    assert all(known[piece] == number for piece, number in BASE.get_vocab().items())


@given(st.text(max_size=60))
def test_other_texts_are_split_as_before(text):
    if not any(word in text.casefold() for word in ("zqkt", "wtrz", "kltx")):
        assert pieces(MORE, text) == pieces(BASE, text)


def test_short_forms_are_words_of_letters_from_the_noise_lists():
    found = job.short_forms()
    assert {"ppl", "tmrw", "bezwenn", "acc"} <= found and not {"gr8", "acc to", "w/"} & found
    assert found <= {word for words in own_lists().values() for form in words.forms() for word in form.split()}


def test_the_bundled_encoder_has_a_piece_for_every_short_form_it_can_write():
    assert job.with_words(BASE, job.short_forms()).get_vocab_size() == BASE.get_vocab_size()


def test_a_base_is_extended_instead_of_trained_anew(tmp_path):
    small = job.with_words(BASE, ["zqkt"])
    small.save(str(tmp_path / "base.json"))
    config = read_config(job.PRESETS, ["smoke", f"base={tmp_path / 'base.json'}", f"out={tmp_path / 'out.json'}"])
    made = Tokenizer.from_file(str(job.main(config)))
    assert pieces(made, "zqkt") == ["▁zqkt"] and pieces(made, "ppl") == ["▁ppl"]


def test_the_pairs_of_the_sources_that_are_named_are_read_and_no_others(monkeypatch, tmp_path):
    asked = []

    def pairs(root, sources):
        asked.append(sources)
        return Pairs(["water"], ["dlo"], ["ht"], ["tico19-dev"], "")

    monkeypatch.setattr(job, "training_pairs", pairs)
    monkeypatch.setattr(job, "data_dir", lambda: tmp_path)
    for preset in ("smoke", "laptop"):
        assert set(job.training_texts(job.PRESETS[preset])) == {"dlo", "water"}
    assert set(asked[0]) < set(asked[1]) == set(SOURCES)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_tokenizer_is_trained_on_the_lines_of_a_file(tmp_path, kind):
    import gzip

    with gzip.open(tmp_path / "texts.txt.gz", "wt") as file:
        file.writelines(f"we need water in camp {i % 7} and food for {i} people\n" for i in range(400))
    made = job.main(
        job.Config(
            kind=kind, pieces=300, file=str(tmp_path / "texts.txt.gz"), out=str(tmp_path / "t.json"), short_forms=False
        )
    )
    assert "water" in "".join(pieces(Tokenizer.from_file(str(made)), "we need water"))
