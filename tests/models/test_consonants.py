"""Names by their consonants, in every script."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.encoders.consonants import BASE, GRAMS, LETTERS, letters_of, skeleton_grams


def skeleton(text: str) -> str:
    """The words as consonants, a doubled one once: by hand."""
    return re.sub(r"([a-z])\1+", r"\1", " ".join(letters_of(text).split()))


def groups_by_hand(text: str) -> list[int]:
    padded = f" {skeleton(text)}"
    windows = [padded[i : i + 4] for i in range(len(padded) - 3) if " " not in padded[i + 1 : i + 4]]
    return [
        sum(LETTERS.index(letter) * BASE ** (3 - place) for place, letter in enumerate(window)) for window in windows
    ]


@pytest.mark.parametrize(
    "name", ["Клинтон", "კლინტონი", "كلينتون", "क्लिंटन", "ክሊንተን", "คลินตัน", "Κλίντον", "קלינטון", "క్లింటన్", "ક્લિન્ટન"]
)
def test_a_name_keeps_its_consonants_in_every_script(name):
    assert skeleton(name) == skeleton("Clinton") == "klntn"


def by_text(found, texts):
    ids, owner = found
    return [ids[owner == place] for place in range(len(texts))]


def test_a_skeleton_group_is_four_letters_inside_one_word():
    texts = ["too late", "Clinton", "Clinton into Clinton", "学校需要水 123 !?"]
    none, three, twice, chinese = by_text(skeleton_grams(texts), texts)
    assert skeleton("too late") == "t lt" and len(none) == len(chinese) == 0
    assert len(three) == 3  # " kln", "klnt", "lntn"
    assert len(set(twice.tolist())) == 3


@given(texts=st.lists(st.text(max_size=40), max_size=5))
@settings(max_examples=200, deadline=None)
def test_skeleton_groups_are_those_found_by_hand_alone_and_among_others(texts):
    found = by_text(skeleton_grams(texts), texts)
    assert [groups.tolist() for groups in found] == [groups_by_hand(text) for text in texts]
    assert all(
        ((groups >= 0) & (groups < GRAMS)).all() and set(skeleton(t)) <= set(LETTERS)
        for groups, t in zip(found, texts, strict=True)
    )
