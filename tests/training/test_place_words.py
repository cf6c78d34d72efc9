"""Which names of places are words of a language."""

from __future__ import annotations

from collections import Counter
from importlib.resources import files

from hypothesis import given
from hypothesis import strategies as st

from models.places.gazetteer import Gazetteer, Place
from models.places.names import code, keys, unjoined
from training.place_words import Config, is_marked, ordinary_words

KINDS = {"lalo": "town", "mura": "town", "pero": "country", "peru": "country"}
PEOPLE = {"lalo": 900, "mura": 90_000, "pero": 30_000_000, "peru": 30_000_000}
BOX = (0.0, 0.0, 1.0, 1.0)
PLACES = {key: Place(key, KINDS[key], "XX", "", 0.5, 0.5, PEOPLE[key], BOX) for key in KINDS}  # type: ignore[arg-type]

said = st.lists(
    st.tuples(st.sampled_from(["es", "az"]), st.sampled_from(sorted(PLACES)), st.booleans()).map(
        lambda one: (one[0], one[1], PLACES[one[1]], one[2])
    ),
    max_size=60,
)


@given(said)
def test_a_name_is_a_word_where_it_is_mostly_said_without_a_place_being_meant(told):
    config = Config(least=2, to_right=3, people=20_000)
    counts = Counter((lang, key, meant) for lang, key, _, meant in told)
    expected: dict[str, list[str]] = {}
    for lang in ("az", "es"):
        for key in sorted(PLACES):
            wrong, right = counts[lang, key, False], counts[lang, key, True]
            small = KINDS[key] == "country" or PEOPLE[key] < 20_000 * wrong
            if wrong >= 2 and wrong > 3 * right and small and key != "peru":
                expected.setdefault(lang, []).append(key)
    assert ordinary_words(told, config, lambda _: {"peru"}) == expected


def test_a_marked_place_is_marked_where_something_is_written_onto_it():
    assert is_marked("בחיפה", "חיפה") and is_marked("Haifa", "haifa bay")
    assert not is_marked("בחיפה", "אילת") and not is_marked("בואו", "חיפה")


def test_every_word_of_the_bundled_list_names_a_place_and_is_kept_as_the_table_keeps_it():
    lines = (files("models") / "data" / "place_words.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in lines] == sorted({line.split("\t")[0] for line in lines})
    gazetteer = Gazetteer.bundled()
    for key in (key for line in lines for key in line.split("\t")[1].split(",")):
        assert keys(key) == key, key
        assert gazetteer.holds(code(key)) or gazetteer.holds(code(unjoined(key))), key  # with its article before it
