"""The word cache gives what the tokenizer gives, or is not used."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from models.encoders.load import FLOOD, load_encoder
from models.encoders.word_cache import _MARKS, WordCache, _drops_marks_and_case, words_are_independent
from models.queries import load_queries

BUNDLE = Tokenizer.from_file(str(FLOOD / "tokenizer.json"))
WORDS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        [
            "water",
            "WATER!",
            "need",
            "ΟΔΟΣ",
            "e\u0301",
            "\u0301",
            "\u00b4",
            "<unk>",
            "<UNK>",
            "'<unk>',",
            "Don't!",
            "(_Water_)",
            ">\u0338a",
            "!\u0338a",
            "...",
            "水が",
            "a" * 60,
            "İ",
            "ﬁre",
            "10km",
        ]
    ),
)


@given(st.lists(st.lists(WORDS, max_size=8).map(" ".join), max_size=12), st.integers(1, 30))
@settings(max_examples=200, deadline=None)
def test_the_pieces_are_the_tokenizers_own_however_few_words_are_kept(texts, kept):
    cache = WordCache(BUNDLE, kept)
    for _ in range(2):
        plain = BUNDLE.encode_batch_fast(texts, add_special_tokens=False)
        assert [pieces.tolist() for pieces in cache.pieces(texts)] == [encoding.ids for encoding in plain]
        assert len(cache._pieces) <= kept


def test_posts_in_the_languages_of_the_queries_read_the_same():
    texts = [text for query in load_queries() for _, text in query.texts()]
    plain = BUNDLE.encode_batch_fast(texts, add_special_tokens=False)
    assert [pieces.tolist() for pieces in WordCache(BUNDLE).pieces(texts)] == [encoding.ids for encoding in plain]


def test_the_flood_encoder_uses_it():
    assert words_are_independent(BUNDLE) and load_encoder("flood")._reader._words is not None


def test_no_mark_that_is_left_out_makes_another_character_with_what_follows():
    after = [chr(code) for code in range(0x110000) if unicodedata.combining(chr(code))]
    assert all(unicodedata.normalize("NFKC", mark + sign)[0] == mark for mark in _MARKS for sign in after)


def test_a_tokenizer_that_tells_water_from_WATER_or_from_a_mark_behind_it_is_asked_each_way_it_is_written():
    assert _drops_marks_and_case(BUNDLE)
    split, metaspace = pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()
    dropped = [split, pre_tokenizers.Punctuation("removed"), pre_tokenizers.Digits(), metaspace]
    kept = [split, pre_tokenizers.Punctuation("isolated"), pre_tokenizers.Digits(), metaspace]
    texts = ["water Water WATER! (water)"]
    for tokenizer in (
        _with(pre_tokenizer=pre_tokenizers.Sequence(dropped)),
        _with(pre_tokenizer=pre_tokenizers.Sequence(kept), normalizer=normalizers.Lowercase()),
        _with(normalizer=normalizers.Lowercase()),
    ):
        tokenizer.model = models.WordLevel(
            {"<unk>": 0, "▁water": 1, "water": 2, "▁Water": 3, "▁!": 4}, unk_token="<unk>"
        )
        assert words_are_independent(tokenizer) and not _drops_marks_and_case(tokenizer)
        plain = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        assert [pieces.tolist() for pieces in WordCache(tokenizer).pieces(texts)] == [one.ids for one in plain]


def _with(**parts) -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    for name, part in parts.items():
        setattr(tokenizer, name, part)
    return tokenizer


@pytest.mark.parametrize(
    "tokenizer",
    [
        _with(pre_tokenizer=pre_tokenizers.Metaspace()),
        _with(normalizer=normalizers.Replace(" ", "")),
        _with(post_processor=processors.TemplateProcessing(single="<unk> $A", special_tokens=[("<unk>", 0)])),
        _with(
            pre_tokenizer=pre_tokenizers.Sequence(
                [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="first")]
            )
        ),
    ],
)
def test_a_tokenizer_that_looks_beyond_a_word_is_asked_itself(tokenizer):
    assert words_are_independent(_with()) and not words_are_independent(tokenizer)
