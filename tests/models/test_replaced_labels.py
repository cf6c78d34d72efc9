"""A label carries the word it replaced, and gives it back."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import LabelError
from models.feedback.records import Label, check_label, in_place_of, read_label, without


def says(by: str, verdict: str = "right", at: float = 1.0) -> Label:
    return Label("x:1", "need.water", verdict, by, at, "no water here", "en")


def said_in_turn(*labels: Label) -> Label:
    stands = None
    for label in labels:
        stands = in_place_of(label, stands)
    assert stands is not None
    return stands


def test_a_later_word_of_somebody_else_carries_the_earlier_one_and_gives_it_back():
    ada, bo = says("ada", "handled"), says("bo", "none", 2.0)
    stands = said_in_turn(ada, bo)
    assert (stands.by, stands.verdict, stands.replaced) == ("bo", "none", ada)
    assert without(stands) == without(stands, "bo") == ada and without(ada) is None


def test_who_says_one_thing_after_another_never_buries_what_somebody_else_said():
    ada = says("ada", "handled")
    stands = said_in_turn(ada, says("bo", "none", 2.0), says("bo", "wrong", 3.0), says("bo", "right", 4.0))
    assert without(stands, "bo") == ada


def test_what_one_person_said_is_taken_back_from_under_somebody_elses_word_too():
    stands = said_in_turn(says("bo", "none"), says("ada", "handled", 2.0))
    assert without(stands, "bo") == says("ada", "handled", 2.0)
    assert without(stands, "eve") == stands


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["right", "wrong", "handled"])), min_size=1))
def test_one_word_of_somebody_else_is_carried_the_last_and_none_of_ones_own(said):
    stands = said_in_turn(*(says(by, verdict, float(at)) for at, (by, verdict) in enumerate(said)))
    mine, others = said[-1][0], [(by, verdict) for by, verdict in said if by != said[-1][0]]
    assert stands.by == mine
    before = stands.replaced
    assert (before and (before.by, before.verdict)) == (others[-1] if others else None)
    assert before is None or before.replaced is None


def test_what_is_carried_is_masked_belongs_to_the_same_reading_and_carries_nothing_itself():
    deep = msgspec.structs.replace(says("ada"), text="call +977 98 4123 4567", replaced=says("eve"))
    kept = check_label(msgspec.structs.replace(says("bo"), replaced=deep)).replaced
    assert kept is not None and kept.text == "call [phone]" and kept.replaced is None
    with pytest.raises(LabelError, match="another reading"):
        check_label(msgspec.structs.replace(says("bo"), replaced=msgspec.structs.replace(deep, post_id="x:2")))


def test_a_label_of_before_is_read_and_one_that_carries_another_is_read_whole():
    old = {"post_id": "x:1", "query_id": "need.water", "verdict": "right", "by": "ada", "at": 1.0, "text": "dry"}
    ada = read_label(json.dumps(old).encode())
    assert ada.replaced is None and b"replaced" not in msgspec.json.encode(ada)
    new = old | {"by": "bo", "at": "1970-01-01T00:00:02Z", "replaced": old | {"at": "1970-01-01T00:00:01Z"}}
    assert read_label(json.dumps(new).encode()).replaced == ada
