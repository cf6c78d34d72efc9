"""Alerts as OASIS Common Alerting Protocol 1.2 messages, for systems that take nothing else.

A machine wrote these from public posts and nobody has checked them, and the messages say so: status Test unless told
otherwise, scope Restricted, certainty Possible, severity Unknown, response Assess. Urgency follows the priority that
was told: Immediate, Expected or Future, and Unknown where none was. No value is invented: what was measured travels as
parameters.
Source: CAP 1.2, section 3.2, https://docs.oasis-open.org/emergency/cap/v1.2/CAP-v1.2-os.html
"""

from __future__ import annotations

import re

from cap_tools import models as cap
from msgspec import Struct
from xsdata.formats.dataclass.serializers import XmlSerializer
from xsdata.formats.dataclass.serializers.config import SerializerConfig
from xsdata.models.datatype import XmlDateTime

from models.errors import ConfigError
from models.moments import epoch_s, rfc3339
from models.records import Alert
from streams.outputs import Options, Print, print_lines
from streams.outputs.printable import printable, shorten, web_link
from streams.outputs.sureness import how_sure

__all__ = ["as_cap"]

NAMESPACE = "urn:oasis:names:tc:emergency:cap:1.2"

# CAP's closed list of categories; a category not named here is "Other".
CATEGORIES = {
    "search_rescue": cap.Category.RESCUE,
    "missing_people": cap.Category.RESCUE,
    "heavy_equipment": cap.Category.RESCUE,
    "medical_help": cap.Category.HEALTH,
    "medicine": cap.Category.HEALTH,
    "baby_hygiene": cap.Category.HEALTH,
    "psychosocial": cap.Category.HEALTH,
    "water": cap.Category.HEALTH,
    "food": cap.Category.SAFETY,
    "shelter": cap.Category.SAFETY,
    "clothing_blankets": cap.Category.SAFETY,
    "volunteers_labour": cap.Category.SAFETY,
    "evacuation_transport": cap.Category.TRANSPORT,
    "electricity_fuel": cap.Category.INFRA,
    "communications": cap.Category.INFRA,
    "safety_looting": cap.Category.SECURITY,
    "danger": cap.Category.SAFETY,
    "evacuation": cap.Category.SAFETY,
    "damage": cap.Category.INFRA,
    "sub_event": cap.Category.SAFETY,
}
URGENCIES = {"urgent": cap.Urgency.IMMEDIATE, "soon": cap.Urgency.EXPECTED, "routine": cap.Urgency.FUTURE}

RESTRICTION = "Written by a machine from public posts and checked by nobody. For people who verify before they act."


class CapConfig(Struct, frozen=True):
    """How messages are marked."""

    sender: str = "crisis-streams@localhost"  # globally unique by agreement: a name of yours
    status: str = "Test"
    remembered: int = 100_000  # alerts whose last message is kept, so that updates can refer to it


class _Sent(XmlDateTime):
    """A CAP time: "2026-11-20T06:00:00-00:00". CAP forbids the Z that XML Schema would write."""

    def __str__(self) -> str:
        return super().__str__().replace("Z", "-00:00")


def cap_time(at: str) -> _Sent:
    """RFC 3339 → CAP time in UTC, whole seconds."""
    return _Sent(*XmlDateTime.from_string(rfc3339(epoch_s(at), "seconds")))


def check_sender(sender: str) -> str:
    """The sender, or ConfigError: CAP allows no space, comma, < or & in it."""
    if not sender or re.search(r"[\s,<&]", sender) or printable(sender) != sender:
        raise ConfigError(f"CAP sender {sender!r}: use a name without spaces, commas, < and &, such as crisis@my.org")
    return sender


def as_cap(options: Options) -> Print:
    """CAP messages, a line each. Raises ConfigError for a sender that CAP does not allow."""
    writer = CapWriter(CapConfig(sender=options.cap_sender, status=options.cap_status))
    return lambda told: print_lines(line for alert, _ in told if (line := writer.write(alert)) is not None)


class CapWriter:
    """Turns a sequence of alerts into CAP messages; an update or a cancel refers to what was sent before it."""

    def __init__(self, config: CapConfig) -> None:
        check_sender(config.sender)
        self.config = config
        self._sent: dict[str, cap.Reference] = {}  # alert id → its last message, oldest first
        self._serializer = XmlSerializer(config=SerializerConfig(ignore_default_attributes=True))

    def write(self, alert: Alert) -> str | None:
        """One message on one line, or None: a withdrawal of something never sent needs no cancel."""
        message = self.message(alert)
        if message is None:
            return None
        xml = self._serializer.render(message, ns_map={None: NAMESPACE})
        return xml.replace("\n", "")  # text holds no newline: printable() made it one line

    def message(self, alert: Alert) -> cap.Alert | None:
        """The same as an object of the library."""
        before = self._sent.pop(alert.alert_id, None)
        if alert.status == "withdrawn" and before is None:
            return None
        message = cap.Alert(
            identifier=f"{alert.alert_id}.{alert.revision}",
            sender=self.config.sender,
            sent=cap_time(alert.seen_at),
            status=cap.Status(self.config.status),
            msg_type=_msg_type(alert, before),
            scope=cap.Scope.RESTRICTED,
            restriction=RESTRICTION,
            source="crisis-streams",
            infos=[_info(alert)],
            note=f"Withdrawn: the post was {alert.withdrawn_because}." if alert.status == "withdrawn" else None,
        )
        if before is not None:
            message.references_from_list([before])
        if alert.status == "active":
            self._sent[alert.alert_id] = cap.Reference.from_alert(message)
        if len(self._sent) > self.config.remembered:
            del self._sent[next(iter(self._sent))]
        return message


def _msg_type(alert: Alert, before: cap.Reference | None) -> cap.MsgType:
    if before is None:
        return cap.MsgType.ALERT
    return cap.MsgType.CANCEL if alert.status == "withdrawn" else cap.MsgType.UPDATE


def _info(alert: Alert) -> cap.Info:
    """What is said. A withdrawn alert no longer repeats the post."""
    active = alert.status == "active"
    what = f"{alert.kind}: {printable(alert.label) or alert.category}"
    info = cap.Info(
        categories=[CATEGORIES.get(alert.category, cap.Category.OTHER)],
        event=what,
        response_types=[cap.ResponseType.ASSESS if active else cap.ResponseType.NONE],
        urgency=URGENCIES.get(alert.priority or "", cap.Urgency.UNKNOWN) if active else cap.Urgency.UNKNOWN,
        severity=cap.Severity.UNKNOWN,
        certainty=cap.Certainty.POSSIBLE,
        sender_name="crisis-streams (automatic)",
        headline=shorten(f"{'Unverified' if active else 'Withdrawn'} {what}", 160),
        description=printable(alert.post.text) if active else None,
        web=web_link(alert.post.url) if active else None,
        areas=[_area(alert)] if active and (alert.post.geo or alert.post.places) else [],
    )
    info.language = _language(alert.post.lang) if active else "en"
    info.parameters_from_dict(_parameters(alert))
    return info


def _language(lang: str) -> str:
    """The post's language if it is written like a tag (RFC 3066); CAP reads none as en-US, so say "und"."""
    return lang if re.fullmatch(r"[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8})*", lang) else "und"


def _parameters(alert: Alert) -> dict[str, str]:
    found = {
        "alert_id": alert.alert_id,
        "revision": alert.revision,
        "kind": alert.kind,
        "level": alert.level,
        "query_id": alert.query_id,
        "query_version": alert.query_version,
        "iasc": alert.iasc,
        "hxl": alert.hxl,
        "score": f"{alert.score:.4f}",
        "threshold": f"{alert.threshold:.4f}",
        "probability": None if alert.probability is None else f"{alert.probability:.4f}",
        "how_sure": how_sure(alert),  # which number is which
        "priority": alert.priority,
        "priority_probability": None if alert.priority_probability is None else f"{alert.priority_probability:.4f}",
        "encoder_version": alert.encoder_version,
        "cluster_id": alert.cluster_id,
        "post_id": alert.post.id,
        "source": alert.post.source,
        "created_at": alert.post.created_at,
        "nearest": alert.evidence.nearest,
        "nearest_lang": alert.evidence.nearest_lang,
        "nearest_cosine": f"{alert.evidence.nearest_cosine:.4f}",
        "signs": ", ".join(alert.evidence.signs),
    }
    said = {name: printable(str(value)) for name, value in found.items() if value is not None}
    return {name: value for name, value in said.items() if value}


def _area(alert: Alert) -> cap.Area:
    """The point the post carries, as a circle of radius 0: how exact it is nobody said. Else the place it names."""
    geo = alert.post.geo
    if geo is None:
        named = alert.post.places[0]
        told = f"{printable(named.name)}, named in the post ({named.confidence:.0%} likely meant)"
        return cap.Area(area_desc=told, circles=[f"{named.lat:.6f},{named.lon:.6f} {named.radius_km:.1f}"])
    return cap.Area(area_desc="Place given by the post", circles=[f"{geo.lat:.6f},{geo.lon:.6f} 0"])
