"""What a post on the page is said to be: its readings, as people corrected them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from models.feedback.records import Label, label_key
from models.records import Alert, Level

__all__ = ["Readings", "Said", "readings"]

Said = Mapping[str, Label]  # what people said, by post and query (`Label.key`)


class Readings(NamedTuple):
    """Query ids. main: what the post counts as, "" where somebody said it is not so or takes care of it; beside: what
    it says else, and at which level."""

    main: str
    beside: dict[str, Level]


def readings(alert: Alert, said: Said) -> Readings:
    """Of an alert, by what people said of its post."""

    def called(query_id: str) -> str:
        label = said.get(label_key(alert.post.id, query_id))
        return query_id if label is None or label.verdict == "right" else label.instead

    own = said.get(label_key(alert.post.id, alert.query_id))
    if own is not None and own.verdict == "handled":  # all of it
        return Readings("", {})
    main, beside = called(alert.query_id), {called(other.query_id): other.level for other in alert.also}
    return Readings(main, {query_id: level for query_id, level in beside.items() if query_id not in ("", main)})
