"""What is written in capitals is read as if it were not; what has some capitals stays as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.encoders.load import load_encoder
from models.encoders.shouting import quieter

CALLS = [
    "one man is bleeding badly, water is up to the beds",
    "помогите мы на крыше вода поднимается",
    "meine schwester ist im auto eingeschlossen",
    "βοήθεια είμαστε στην ταράτσα μας",
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("way", [str.upper, str.title])
def test_a_call_in_capitals_or_as_a_title_is_the_same_call(call, way):
    assert quieter(way(call)).replace("ς", "σ") == call.replace("ς", "σ")  # Greek has a small s for the end of words


@pytest.mark.parametrize(
    "text",
    [
        "We need WHO and UN staff in Jacmel",
        "SOS SOS 3 ppl on the roof SOS",
        "Wir brauchen Wasser und Decken im alten Rathaus von Tesk",
        "Need insulin NOW",
        "A B C D E F",
        "عندنا صهريج ماء",
        "需要饮用水和药品",
        "",
        "   ",
    ],
)
def test_names_abbreviations_and_scripts_without_capitals_stay_as_they_are(text):
    assert quieter(text) == text


def test_only_the_part_that_is_shouted_is_read_quietly():
    place = "\n at 12 Weir Lane, by the old mill"
    assert quieter("PLEASE HELP US 4 KIDS" + place) == "please help us 4 kids" + place
    assert quieter("At 12 Weir lane: HELP, WE ARE STUCK!") == "At 12 Weir lane: help, we are stuck!"


@given(st.text())
def test_nothing_but_case_changes_and_twice_is_once(text):
    quiet = quieter(text)
    assert quiet.lower() == text.lower() or "ς" in quiet or "Σ" in text
    assert quieter(quiet) == quiet


def test_the_reader_gives_a_call_in_capitals_the_vector_of_the_call():
    encoder = load_encoder()
    shouted, said = encoder.encode([CALLS[0].upper(), CALLS[0]])
    assert float(shouted @ said) > 0.999
