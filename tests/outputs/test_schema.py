"""alert.schema.json and cluster.schema.json say exactly what models.records.Alert and ClusterEvent are."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import get_args

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.records import Alert, ClusterEvent, EventKind, Example
from streams.broker.topics import LAST_STATES
from streams.worker.outbox import cloud_event
from tests.house import ROOT
from tests.outputs.invented import alerts, invent, later


def read(name: str) -> dict:
    return json.loads((files("streams.outputs") / name).read_text(encoding="utf-8"))


def validator(schema: dict) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())


SCHEMA, CLUSTERS = read("alert.schema.json"), read("cluster.schema.json")
VALIDATOR = validator(SCHEMA)


@pytest.mark.parametrize("schema", [SCHEMA, CLUSTERS], ids=["alert", "cluster"])
def test_the_schema_is_valid_json_schema(schema):
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    "schema, record, name",
    [(SCHEMA, Alert, name) for name in ("Alert", "AlertPost", "Evidence", "Geo")]
    + [(CLUSTERS, ClusterEvent, name) for name in ("ClusterEvent", "Example")],
)
def test_fields_and_required_fields_are_those_of_the_record(schema, record, name):
    made = msgspec.json.schema(record)["$defs"][name]
    ours = schema if name == record.__name__ else schema["$defs"][name]
    assert list(ours["properties"]) == list(made["properties"])
    assert ours["required"] == made["required"]
    for field, of_field in made["properties"].items():
        assert ours["properties"][field].get("default", "none") == of_field.get("default", "none"), field
        assert "description" in ours["properties"][field] or "$ref" in ours["properties"][field], field


@given(alerts())
def test_every_alert_we_can_make_is_valid(alert):
    VALIDATOR.validate(json.loads(msgspec.json.encode(alert)))


def test_a_withdrawn_alert_is_valid():
    VALIDATOR.validate(
        json.loads(msgspec.json.encode(later(invent(), status="withdrawn", withdrawn_because="deleted")))
    )


@pytest.mark.parametrize(
    "field, value",
    [
        ("level", "loud"),
        ("kind", "want"),
        ("score", 2),
        ("alert_id", "x"),
        ("post", None),
        ("status", "gone"),
        ("seen_at", 5),
    ],
)
def test_a_wrong_value_is_refused(field, value):
    record = json.loads(msgspec.json.encode(invent())) | {field: value}
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(record)


def test_a_missing_field_is_refused():
    record = json.loads(msgspec.json.encode(invent()))
    for field in SCHEMA["required"]:
        with pytest.raises(jsonschema.ValidationError):
            VALIDATOR.validate({k: v for k, v in record.items() if k != field})


EXAMPLES = st.builds(Example, st.text(), st.text(), st.sampled_from(["en", "und", "?!"]))
COUNTS = st.dictionaries(st.text(), st.integers(0))
EVENTS = st.builds(
    ClusterEvent,
    event=st.sampled_from(get_args(EventKind)),
    cluster_id=st.text(),
    version=st.integers(1, 2**53),
    posts=st.integers(0, 2**53),
    weight=st.floats(0, 1e9),
    first_at=st.just("2026-11-20T06:00:00.000Z"),
    last_at=st.just("2026-11-20T06:00:01.250Z"),
    label=st.text(),
    encoder_version=st.text(),
    medoid=st.none() | EXAMPLES,
    examples=st.lists(EXAMPLES, max_size=3),
    burst=st.floats(-1e9, 1e9),
    categories=COUNTS,
    languages=COUNTS,
    sources=COUNTS,
    into=st.none() | st.text(),
)


@given(EVENTS)
def test_every_cluster_we_can_tell_of_is_valid(event):
    validator(CLUSTERS).validate(json.loads(msgspec.json.encode(event)))


@pytest.mark.parametrize(
    "field, value", [("event", "gone"), ("version", 0), ("posts", -1), ("first_at", 5), ("examples", [{"text": "x"}])]
)
def test_a_wrong_cluster_is_refused(field, value):
    event = ClusterEvent("new", "c1", 1, 3, 2.5, "2026-11-20T06:00:00.000Z", "2026-11-20T06:01:00.000Z", "water", "v1")
    record = json.loads(msgspec.json.encode(event))
    validator(CLUSTERS).validate(record)
    with pytest.raises(jsonschema.ValidationError):
        validator(CLUSTERS).validate(record | {field: value})


def test_the_guide_for_subscribers_names_the_topics_their_schemas_and_every_header():
    guide = (ROOT / "deploy" / "subscribers.md").read_text(encoding="utf-8")
    for topic, name in zip(LAST_STATES, ("alert.schema.json", "cluster.schema.json"), strict=True):
        assert f"| `{topic}` |" in guide and f"`streams/outputs/{name}`" in guide
    for header, value in cloud_event("alert", "ID", "TIME"):
        shown = value.decode() if header not in ("ce_id", "ce_time") else ""
        assert f"| `{header}` | {f'`{shown}`' if shown else ''}" in guide, header
    fields = set(SCHEMA["properties"]) | set(CLUSTERS["properties"]) | set(SCHEMA["$defs"]["AlertPost"]["properties"])
    named = set(re.findall(r"`([a-z_]+)`", guide))
    assert {"alert_id", "revision", "status", "withdrawn_because", "cluster_id", "version", "into"} <= named & fields
