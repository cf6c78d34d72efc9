"""Words that a viewer filters alerts by."""

import pytest

from streams.dashboard.filters import Filter
from tests.dashboard.invented import invent


@pytest.mark.parametrize(
    "one, other",
    [
        ("diyaliz", "DİYALİZ HASTASI"),
        ("νερό", "ΝΕΡΟ"),
        ("أطفال", "حليب للاطفال"),
        ("کمک", "كمك"),
        ("میخواهیم", "آب می‌خواهیم"),
        ("می‌خواهیم", "آب میخواهیم"),
        ("can't", "we can’t"),
    ],
)
def test_a_text_is_found_in_each_spelling_of_its_words_and_by_their_parts(one, other):
    assert Filter(q=one).accepts(invent(1, text=other, at=0.0))
    assert Filter(q=other).accepts(invent(1, text=f"{other} {one}", at=0.0))
    assert not Filter(q=f"{one}x").accepts(invent(1, text=other, at=0.0))
