"""Where the posts are that the map shows: each once, where it says or what it names, and found again by its area."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.areas import Area, area_of, lies_there
from models.feedback.records import label_alert
from models.places.gazetteer import Gazetteer, radius_km
from models.records import Alert, Geo, NamedPlace
from streams.dashboard.filters import Filter
from streams.dashboard.page_model import Board, fitting
from streams.dashboard.spots import spots
from tests.dashboard.invented import invent

NOW = 1_795_000_000.0


def named(name: str, confidence: float = 0.9) -> NamedPlace:
    """A place as an alert names it."""
    place = Gazetteer.bundled().choose(name)[0]
    return NamedPlace(name, place.full_name, place.kind, place.lat, place.lon, round(place.radius_km, 1), confidence)


NAMED = [named(name) for name in ("Jacmel", "Port-au-Prince", "Haiti", "Fiji", "Suva, FJ", "Springfield, Illinois")]

wheres = st.one_of(
    st.just({}),
    st.builds(lambda lat, lon: {"geo": Geo(lat, lon)}, st.floats(-90, 90), st.floats(-180, 180)),
    st.builds(lambda lat, lon: {"geo": Geo(lat, lon)}, st.sampled_from([34.28, -90.0, 90.0]), st.just(180.0)),
    st.lists(st.sampled_from(NAMED), min_size=1, max_size=3).map(lambda places: {"places": places}),
)
posts = st.lists(
    st.tuples(wheres, st.sampled_from(["need.water", "offer.water", "need.food"]), st.booleans()), max_size=25
)


def board_of(told: list) -> Board:
    board = Board()
    for n, (where, query, gone) in enumerate(told):
        board.put_alert(invent(n, query, at=NOW + n, status="withdrawn" if gone else "active", **where))
    return board


def says_where(alert: Alert) -> bool:
    return alert.post.geo is not None or bool(alert.post.places)


@given(posts)
def test_every_open_post_that_says_where_it_is_or_names_a_place_is_counted_once(told):
    kept = board_of(told).kept()
    found = spots(kept, Filter(), {})
    standing = [alert for alert, _, _ in kept if alert.status == "active"]
    assert found.standing == len(standing) and found.placed == sum(map(says_where, standing))
    counted = sum((Counter(spot.kinds) for spot in found.spots), Counter())
    assert counted == Counter(alert.kind for alert in standing if says_where(alert))


@given(posts)
def test_the_area_of_a_spot_finds_all_posts_that_it_counts(told):
    kept = board_of(told).kept()
    for spot in spots(kept, Filter(), {}).spots:
        there, _ = fitting(kept, Filter(area=spot.area))
        here = [
            alert
            for alert, _, _ in there
            if (alert.post.places[0].name == spot.name if spot.name else alert.post.geo is not None)
        ]
        assert len(here) >= sum(spot.kinds.values())


@given(posts, st.sampled_from(["Haiti", "Fiji", "18,-74.5,20,-71.6", "-90,-180,90,180", "-20,177,-15,-178"]))
def test_an_area_takes_what_lies_in_it_and_no_wider_place(told, asked):
    kept, area = board_of(told).kept(), area_of(asked)
    assert isinstance(area, Area)
    south, west, north, east = area.box

    def there(lat: float, lon: float) -> bool:
        return south <= lat <= north and (lon - west) % 360 <= (east - west if east >= west else east - west + 360)

    def fits(alert: Alert) -> bool:
        if alert.status != "active":
            return False
        if alert.post.geo is not None:
            return there(alert.post.geo.lat, alert.post.geo.lon)
        return any(
            there(p.lat, p.lon) and (p.kind == "town" or p.radius_km <= 1.01 * area.reach_km) for p in alert.post.places
        )

    found, _ = fitting(kept, Filter(area=asked))
    assert [alert.alert_id for alert, _, _ in found] == [alert.alert_id for alert, _, _ in kept if fits(alert)]


def test_every_country_and_province_lies_in_its_own_area():
    gazetteer = Gazetteer.bundled()
    for index in range(0, len(gazetteer), 7):
        if not gazetteer.is_wide(index):
            continue
        place = gazetteer.place(index)
        told = NamedPlace("x", place.full_name, place.kind, place.lat, place.lon, round(place.radius_km, 1), 0.9)
        area = Area(place.box, radius_km(place.box))
        assert lies_there(area, invent(1, at=NOW, places=[told]).post), place


def test_a_map_shows_what_lies_beside_the_area_that_is_wanted_too():
    kept = board_of(
        [({"places": [named("Jacmel")]}, "need.water", False), ({"places": [named("Suva, FJ")]}, "need.food", False)]
    ).kept()
    found = spots(kept, Filter(area="Jacmel"), {})
    assert {spot.name for spot in found.spots} == {"Jacmel, Sud-Est, HT", "Suva, Central, FJ"} and found.box
    assert [spot.name for spot in spots(kept, Filter(area="Jacmel", category="food"), {}).spots] == [
        "Suva, Central, FJ"
    ]


def test_posts_near_each_other_stand_in_their_middle_and_a_name_where_its_place_is():
    near = [Geo(34.281, 27.881), Geo(34.283, 27.889)]
    kept = board_of([({"geo": geo}, "need.water", False) for geo in near]).kept()
    [spot] = spots(kept, Filter(), {}).spots
    assert (spot.lat, spot.lon, spot.name, spot.radius_km) == (34.282, 27.885, "", 0.0)
    haiti = named("Haiti")
    [spot] = spots(board_of([({"places": [haiti]}, "offer.water", False)]).kept(), Filter(), {}).spots
    assert (spot.lat, spot.lon, spot.wide, spot.kinds) == (haiti.lat, haiti.lon, True, {"offer": 1})


def test_what_somebody_takes_care_of_is_on_the_map_no_longer_and_a_corrected_post_counts_as_what_it_is():
    first, second = (invent(n, "need.water", at=NOW + n, places=[named("Jacmel")]) for n in (1, 2))
    board = Board()
    board.put_alert(first)
    board.put_alert(second)
    handled = label_alert(first, "handled", "ada", time.time())
    instead = label_alert(second, "other", "ada", time.time(), instead="offer.water")
    said = {label.key: label for label in (handled, instead)}
    [spot] = spots(board.kept(), Filter(), said).spots
    assert spot.kinds == {"offer": 1}


def test_a_province_that_is_called_as_its_town_is_asked_for_with_its_kind():
    province = next(place for place in Gazetteer.bundled().called("Puebla") if place.kind == "province")
    told = NamedPlace("Puebla", province.full_name, province.kind, province.lat, province.lon, province.radius_km, 0.9)
    [spot] = spots(board_of([({"places": [told]}, "need.water", False)]).kept(), Filter(), {}).spots
    assert spot.area == "Puebla (province), MX" and area_of(spot.area).box == province.box


def test_a_place_whose_name_means_others_too_is_asked_for_by_its_box():
    one = NamedPlace("Springfield", "Springfield, US", "town", 39.8, -89.6, 8.0, 0.9)
    [spot] = spots(board_of([({"places": [one]}, "need.water", False)]).kept(), Filter(), {}).spots
    area = area_of(spot.area)
    assert isinstance(area, Area) and area.box == pytest.approx((39.7281, -89.6936, 39.8719, -89.5064), abs=2e-3)


@pytest.mark.parametrize("asked", ["Xyzzyville", "1,2,3", "91,0,92,1", "nan,0,1,1", ",", "Springfield"])
def test_what_is_no_area_is_told_and_nothing_fits_it(asked):
    kept = board_of([({"geo": Geo(1.0, 2.0)}, "need.water", False)]).kept()
    assert isinstance(area_of(asked), str) and area_of(asked)
    assert fitting(kept, Filter(area=asked)) == ([], 0)
