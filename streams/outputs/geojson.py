"""Alerts as GeoJSON (RFC 7946): one Feature each; its geometry is null where the post says no place.

A post that only names a place stands at the middle of the likeliest; the property `place` then says which it is, how
likely it is meant and how far it reaches. Without that property the point is the post's own. Where it is known what
people said of alerts, `judged`, `judged_by` and `judged_at` stand on every Feature, null where nobody did (judged.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from models.feedback.records import Label
from models.records import Alert, Geo, NamedPlace
from streams.outputs import Options, Print, open_alerts, print_lines
from streams.outputs.judged import judged
from streams.outputs.printable import safe_json

__all__ = ["as_geojson", "collection_lines"]


def as_geojson(options: Options) -> Print:
    """A FeatureCollection of the open alerts; followed, a Feature a line."""
    if options.follow:
        return lambda told: print_lines(feature_line(alert) for alert, _ in told)
    return lambda told: print_lines(collection_lines((alert for alert, _ in told), options.said))


def feature(alert: Alert, said: Mapping[str, Label] | None = None) -> dict:
    """A Feature whose properties are the alert itself, without the place, and what people said of it. GeoJSON puts
    longitude first.
    """
    properties = msgspec.to_builtins(alert)
    properties["post"].pop("geo", None)
    geo: Geo | NamedPlace | None = alert.post.geo
    if geo is None and alert.post.places:
        geo = alert.post.places[0]
        properties["place"] = msgspec.to_builtins(geo)
    if said is not None:
        properties |= msgspec.to_builtins(judged(alert, said))
    geometry = None if geo is None else {"type": "Point", "coordinates": [geo.lon, geo.lat]}
    return {"type": "Feature", "id": alert.alert_id, "geometry": geometry, "properties": properties}


def feature_line(alert: Alert, said: Mapping[str, Label] | None = None) -> str:
    """One Feature on one line: a stream of them is newline-delimited GeoJSON."""
    return safe_json(msgspec.json.encode(feature(alert, said)))


def collection_lines(alerts: Iterable[Alert], said: Mapping[str, Label] | None = None) -> Iterator[str]:
    """A FeatureCollection, line by line: each alert as it stands now; withdrawn ones are not on a map.

    said: what people said of alerts, by post and query.
    """
    yield '{"type":"FeatureCollection","features":['
    lines = [feature_line(alert, said) for alert in open_alerts(alerts)]
    yield from (line + "," for line in lines[:-1])
    yield from lines[-1:]
    yield "]}"
