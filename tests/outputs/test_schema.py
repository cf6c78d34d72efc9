"""alert.schema.json says exactly what models.records.Alert is."""

from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import msgspec
import pytest
from hypothesis import given

from models.records import Alert
from tests.outputs.invented import alerts, invent, later

SCHEMA = json.loads((files("streams.outputs") / "alert.schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA, format_checker=jsonschema.FormatChecker())


def _resolved(schema: dict) -> dict:
    return schema if "$defs" not in schema or "$ref" not in schema else schema["$defs"][schema["$ref"].split("/")[-1]]


def test_the_schema_is_valid_json_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", ["Alert", "AlertPost", "Evidence", "Geo"])
def test_fields_and_required_fields_are_those_of_the_record(name):
    made = msgspec.json.schema(Alert)["$defs"][name]
    ours = SCHEMA if name == "Alert" else SCHEMA["$defs"][name]
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
