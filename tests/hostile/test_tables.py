"""What a process remembers of characters is bounded, whatever strangers write, and forgetting changes no answer."""

import sys

from models.encoders import consonants, letter_ngrams

TEXTS = ["w4ter pls", "Клинтон", "क्लिंटन", "클린턴", "水を下さい", "كلينتون"]


def test_posts_with_all_of_unicode_leave_bounded_tables_behind_and_every_text_reads_as_before():
    before = [(letter_ngrams.fold(t), consonants.letters_of(t)) for t in TEXTS]
    for first in range(0, sys.maxunicode, 10_000):
        text = "".join(chr(code) for code in range(first, min(first + 10_000, sys.maxunicode)))
        letter_ngrams.fold(text), consonants.letters_of(text)
        assert max(len(letter_ngrams._TABLE), len(consonants._TABLE)) <= letter_ngrams.KEPT
    assert [(letter_ngrams.fold(t), consonants.letters_of(t)) for t in TEXTS] == before
