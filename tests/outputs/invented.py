"""Invented alerts for the tests of the outputs."""

from __future__ import annotations

import msgspec
from hypothesis import strategies as st

from models.alerts import alert_id
from models.records import Alert, AlertPost, Evidence, Geo

HOSTILE = "<script>alert(1)</script> \x1b[2J\x1b]0;owned\x07 \u202ednes\u202c \x9b31m & ]]> \x00 \ud800"


def invent(
    post_id: str = "p1", text: str = "No water since Tuesday", *, query: str = "need.water", **more: object
) -> Alert:
    """One valid alert; any field of the alert or its post can be overridden."""
    kind, category = query.split(".")
    post = AlertPost(
        post_id,
        text,
        more.pop("lang", "en"),
        more.pop("created_at", "2026-11-20T06:00:00.000Z"),
        more.pop("source", "sms"),
        more.pop("url", None),
        more.pop("geo", None),
        more.pop("places", []),
        more.pop("author", None),
    )
    alert = Alert(
        alert_id=alert_id(post_id, query, "0a1b2c3d"),
        revision=1_795_154_401_250,
        status="active",
        level="alert",
        kind=kind,
        query_id=query,
        query_version="0a1b2c3d",
        category=category,
        label=category.replace("_", " ").capitalize(),
        iasc="WASH",
        hxl="#need +water",
        post=post,
        score=0.61,
        threshold=0.47,
        encoder_version="tiny-1",
        evidence=Evidence("We have no drinking water", "en", 0.72),
        seen_at="2026-11-20T06:00:01.250Z",
    )
    return msgspec.structs.replace(alert, **more)


def later(alert: Alert, **changes: object) -> Alert:
    """The next revision."""
    return msgspec.structs.replace(alert, revision=alert.revision + 1, **changes)


def alerts() -> st.SearchStrategy[Alert]:
    """Any alert: text of every kind, with and without place, link, probability and cluster."""
    text = st.text(max_size=80)
    return st.builds(
        invent,
        post_id=st.text(min_size=1, max_size=20),
        text=text | st.just(HOSTILE.replace("\ud800", "")),
        query=st.sampled_from(["need.water", "offer.shelter", "need.boats"]),
        lang=st.sampled_from(["en", "ar", "und", "zh-Hant", "?!"]),
        source=text,
        url=st.none() | st.just("https://example.org/p/1") | text,
        geo=st.none() | st.builds(Geo, st.floats(-90, 90), st.floats(-180, 180)),
        level=st.sampled_from(["alert", "suggestion"]),
        label=text,
        probability=st.none() | st.floats(0, 1),
        cluster_id=st.none() | text,
        score=st.floats(-1, 1),
        threshold=st.floats(-1, 1),
    )
