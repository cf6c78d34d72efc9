"""A reader that is given the pieces of scripts it could not read; the bundled one knows those of all our posts."""

from collections import defaultdict

import numpy as np
from tokenizers import Tokenizer

from models.encoders.load import folder_of
from training.posts import written_posts
from training.widen import Config, places, wanted

PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁rare", "▁rarer", "▁common", "x", "▁ക", "കക"]


def test_the_likeliest_pieces_of_a_script_come_in_with_every_letter_of_it():
    whole = [("ക", -9.0), ("▁കക", -3.0), ("കഖ", -5.0), ("▁കഗ", -4.0), ("▁water", -1.0), ("ഖ", -8.0)]
    config = Config(scripts=("MALAYALAM",), pieces=3)
    assert [whole[i][0] for i in wanted(config, whole, {"ഖ"})] == ["ക", "▁കക", "▁കഗ"]


def test_room_is_made_by_the_pieces_that_texts_use_least_and_never_by_a_letter_or_the_script_itself():
    counts = np.array([0, 0, 0, 0, 2, 1, 9, 0, 0, 0])
    assert places(counts, PIECES, ("MALAYALAM",), 2).tolist() == [4, 5]


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
