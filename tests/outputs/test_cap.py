"""CAP 1.2 messages follow the rules of the standard's section 3.2, and never say more than was measured."""

from __future__ import annotations

import re

import pytest
from cap_tools import models as cap
from hypothesis import given
from hypothesis import strategies as st
from xsdata.formats.dataclass.parsers import XmlParser
from xsdata.formats.dataclass.parsers.config import ParserConfig

from models.errors import ConfigError
from models.queries import load_queries
from models.records import Geo, NamedPlace, is_notice
from streams.outputs.cap import CapConfig, CapWriter, check_sender
from tests.outputs.invented import HOSTILE, alerts, invent, later

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[-+]\d\d:\d\d"
PARSER = XmlParser(config=ParserConfig(fail_on_unknown_attributes=True, fail_on_unknown_properties=True))


def read(xml: str) -> cap.Alert:
    """Parse strictly and hold the message to what the schema alone cannot say."""
    assert "\n" not in xml
    message = PARSER.from_string(xml, cap.Alert)
    assert re.fullmatch(TIME, re.search("<sent>(.*?)</sent>", xml)[1]), "3.2.1: sent has an offset and never Z"
    for name in (message.identifier, message.sender):
        assert name and not re.search(r"[ ,<&]", name), "3.2.1: no spaces, commas, < or &"
    assert message.scope is cap.Scope.RESTRICTED and message.restriction, "3.2.1: Restricted says whom"
    assert (message.msg_type is cap.MsgType.ALERT) == (message.references is None), "3.2.1: updates refer to what was"
    for reference in (message.references or "").split():
        assert re.fullmatch(rf"[^ ,<&]+,[^ ,<&]+,{TIME}", reference)
    (info,) = message.infos
    assert info.categories and info.event and info.urgency and info.severity and info.certainty
    assert re.fullmatch(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*", info.language)
    for area in info.areas:
        assert area.area_desc
        for circle in area.circles:
            lat, lon, radius_km = map(float, re.fullmatch(r"(\S+),(\S+) (\S+)", circle).groups())
            assert -90 <= lat <= 90 and -180 <= lon <= 180 and radius_km >= 0
    return message


@given(alerts())
def test_any_alert_is_a_valid_message(alert):
    message = read(CapWriter(CapConfig()).write(alert))
    assert message.identifier == f"{alert.alert_id}.{alert.revision}"


def test_nobody_is_told_to_act_on_what_a_machine_wrote():
    message = read(CapWriter(CapConfig()).write(invent()))
    info = message.infos[0]
    assert message.status is cap.Status.TEST
    assert (info.certainty, info.urgency, info.severity) == (
        cap.Certainty.POSSIBLE,
        cap.Urgency.UNKNOWN,
        cap.Severity.UNKNOWN,
    )
    assert info.response_types == [cap.ResponseType.ASSESS]
    assert info.headline.startswith("Unverified")


NOTICES = [query for query in load_queries() if is_notice(query.id)]


@pytest.mark.parametrize("query", NOTICES, ids=lambda query: query.id)
@pytest.mark.parametrize(
    "priority, urgency",
    [("urgent", "Immediate"), ("soon", "Expected"), ("routine", "Future"), (None, "Unknown")],
)
def test_a_notice_is_a_valid_message_whose_urgency_is_its_priority_and_whose_severity_nobody_measured(
    query, priority, urgency
):
    told = None if priority is None else 0.7
    alert = invent(query=query.id, label=query.label, priority=priority, priority_probability=told)
    info = read(CapWriter(CapConfig()).write(alert)).infos[0]
    assert (info.urgency, info.severity, info.certainty) == (
        cap.Urgency(urgency),
        cap.Severity.UNKNOWN,
        cap.Certainty.POSSIBLE,
    )
    assert info.categories[0] is not cap.Category.OTHER
    assert info.event == f"{query.kind}: {query.label}" and info.headline == f"Unverified {info.event}"
    assert info.response_types == [cap.ResponseType.ASSESS]  # nobody is told to leave by what a stranger wrote
    said = info.parameters_to_dict()
    assert (said["kind"], said.get("priority")) == (query.kind, priority)
    assert said.get("priority_probability") == (None if priority is None else "0.7000")


def test_a_withdrawn_order_is_no_longer_urgent():
    writer, first = CapWriter(CapConfig()), invent(query="order.evacuation", priority="urgent")
    assert read(writer.write(first)).infos[0].urgency is cap.Urgency.IMMEDIATE
    gone = read(writer.write(later(first, status="withdrawn", withdrawn_because="deleted")))
    assert gone.infos[0].urgency is cap.Urgency.UNKNOWN


@pytest.mark.parametrize("status", ["Test", "Exercise", "Draft", "Actual"])
def test_the_status_is_the_users_choice(status):
    assert read(CapWriter(CapConfig(status=status)).write(invent())).status.value == status


def test_update_and_cancel_refer_to_the_message_before_them():
    writer, first = CapWriter(CapConfig(sender="desk@example.org")), invent()
    second = later(first, cluster_id="c7")
    third = later(second, status="withdrawn", withdrawn_because="deleted")
    a, b, c = (read(writer.write(x)) for x in (first, second, third))
    assert [m.msg_type.value for m in (a, b, c)] == ["Alert", "Update", "Cancel"]
    assert b.references_to_list() == [cap.Reference.from_alert(a)]
    assert c.references_to_list() == [cap.Reference.from_alert(b)]


def test_a_cancel_does_not_repeat_the_deleted_post():
    writer, first = (
        CapWriter(CapConfig()),
        invent(text="my street and my name", url="https://example.org/1", geo=Geo(1, 2)),
    )
    writer.write(first)
    xml = writer.write(later(first, status="withdrawn", withdrawn_because="deleted"))
    assert "my street" not in xml and "example.org" not in xml and not read(xml).infos[0].areas


def test_a_withdrawal_of_something_never_sent_is_not_sent():
    assert CapWriter(CapConfig()).write(invent(status="withdrawn", withdrawn_because="deleted")) is None


def test_an_alert_that_comes_back_after_its_cancel_is_a_new_alert():
    writer, first = CapWriter(CapConfig()), invent()
    gone = later(first, status="withdrawn", withdrawn_because="edited")
    writer.write(first), writer.write(gone)
    assert read(writer.write(later(gone, status="active", withdrawn_because=None))).msg_type is cap.MsgType.ALERT


def test_memory_is_bounded_and_a_forgotten_alert_starts_anew():
    writer = CapWriter(CapConfig(remembered=2))
    several = [invent(f"p{i}") for i in range(4)]
    for alert in several:
        writer.write(alert)
    assert read(writer.write(later(several[0]))).msg_type is cap.MsgType.ALERT
    assert read(writer.write(later(several[3]))).msg_type is cap.MsgType.UPDATE


def test_a_place_is_a_circle_of_radius_zero_latitude_first():
    (area,) = read(CapWriter(CapConfig()).write(invent(geo=Geo(34.25, -27.5)))).infos[0].areas
    assert area.circles == ["34.250000,-27.500000 0"]


def test_the_area_of_a_post_that_names_a_place_is_that_place_and_says_how_sure_that_is():
    named = NamedPlace("Okay", "Les Cayes, Sud, HT", "town", 18.19, -73.75, 5.0, 0.62)
    (area,) = read(CapWriter(CapConfig()).write(invent(places=[named]))).infos[0].areas
    assert area.circles == ["18.190000,-73.750000 5.0"] and "Les Cayes" in area.area_desc and "62%" in area.area_desc


def test_measured_values_travel_as_parameters_and_missing_ones_are_absent():
    found = read(CapWriter(CapConfig()).write(invent())).infos[0].parameters_to_dict()
    assert found["score"] == "0.6100" and found["threshold"] == "0.4700" and found["query_id"] == "need.water"
    assert "probability" not in found and "cluster_id" not in found


def test_hostile_text_arrives_as_text():
    message = read(CapWriter(CapConfig()).write(invent(text=HOSTILE)))
    assert message.infos[0].description == "<script>alert(1)</script> [2J]0;owned dnes 31m & ]]>"


@given(st.text(max_size=12))
def test_a_sender_is_accepted_only_if_the_standard_allows_it(sender):
    allowed = bool(sender) and not re.search(r"[\s,<&]", sender)
    try:
        assert check_sender(sender) == sender and allowed
    except ConfigError:
        pass


@pytest.mark.parametrize("sender", ["", "a b", "a,b", "a<b", "a&b"])
def test_a_sender_the_standard_forbids_is_refused(sender):
    with pytest.raises(ConfigError, match="CAP sender"):
        CapWriter(CapConfig(sender=sender))
