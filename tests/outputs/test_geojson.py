"""GeoJSON (RFC 7946) of alerts."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from models.feedback.records import Label
from models.records import Geo, NamedPlace
from streams.outputs.geojson import collection_lines, feature_line
from tests.outputs.invented import alerts, invent, later


def test_longitude_comes_first():
    feature = json.loads(feature_line(invent(geo=Geo(lat=34.2, lon=27.9))))
    assert feature["geometry"] == {"type": "Point", "coordinates": [27.9, 34.2]}
    assert "geo" not in feature["properties"]["post"]


def test_a_post_that_names_a_place_stands_in_its_middle_and_says_so():
    named = NamedPlace("Okay", "Les Cayes, Sud, HT", "town", 18.19, -73.75, 5.0, 0.62)
    feature = json.loads(feature_line(invent(places=[named])))
    assert feature["geometry"] == {"type": "Point", "coordinates": [-73.75, 18.19]}
    assert feature["properties"]["place"]["confidence"] == 0.62
    assert "place" not in json.loads(feature_line(invent(geo=Geo(lat=34.2, lon=27.9))))["properties"]


def test_a_post_without_a_place_has_a_null_geometry():
    assert json.loads(feature_line(invent()))["geometry"] is None


@given(alerts())
def test_a_feature_is_one_line_and_keeps_the_alert(alert):
    line = feature_line(alert)
    feature = json.loads(line)
    assert len(line.splitlines()) == 1
    assert feature["type"] == "Feature" and feature["id"] == alert.alert_id
    assert feature["properties"]["post"]["text"] == alert.post.text


@given(st.lists(alerts(), max_size=5, unique_by=lambda a: a.alert_id))
def test_a_collection_is_one_document_with_a_feature_per_alert(several):
    document = json.loads("\n".join(collection_lines(several)))
    assert document["type"] == "FeatureCollection"
    assert [f["id"] for f in document["features"]] == [a.alert_id for a in several]


def test_a_collection_shows_the_newest_state_and_nothing_withdrawn():
    kept, gone = invent("a"), invent("b")
    told = [
        kept,
        gone,
        later(kept, cluster_id="c1"),
        later(gone, status="withdrawn", withdrawn_because="deleted"),
    ]
    (feature,) = json.loads("".join(collection_lines(told)))["features"]
    assert feature["id"] == kept.alert_id and feature["properties"]["cluster_id"] == "c1"


def test_what_people_said_stands_on_every_feature_where_it_is_known():
    label = Label("a", "need.water", "wrong", "Ada \u202e", 1_795_154_400.0, "no water")
    lines = "".join(collection_lines([invent("a"), invent("b")], {label.key: label}))
    said, silent = (feature["properties"] for feature in json.loads(lines)["features"])
    assert "\u202e" not in lines
    assert (said["judged"], said["judged_by"], said["judged_at"]) == ("wrong", "Ada \u202e", "2026-11-20T06:00:00.000Z")
    assert (silent["judged"], silent["judged_by"], silent["judged_at"]) == (None, None, None)
    assert not [name for name in json.loads(feature_line(invent("a")))["properties"] if name.startswith("judged")]
