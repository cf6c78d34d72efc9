"""What people said of an alert, for a table or a map: whoever comes next must see what is handled, and by whom.

Names of people who judge stand in it: it goes where the topic `labels` may be read, or to the role label of the page.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from models.feedback.records import Label, label_key
from models.moments import rfc3339
from models.records import Alert

__all__ = ["Judged", "judged"]


class Judged(Struct, frozen=True):
    """None where nobody said anything. Of several readings that were judged "; " parts what was said of each, the
    alert's own first; the others name their query: "right; need.food: wrong".
    """

    judged: str | None = None  # right, handled, wrong, none, other, or other with the query it is of instead
    judged_by: str | None = None
    judged_at: str | None = None  # RFC 3339


def judged(alert: Alert, said: Mapping[str, Label]) -> Judged:
    """What was said of an alert that is open; nothing of one that was withdrawn. said: by post and query."""
    queries = [alert.query_id, *(reading.query_id for reading in alert.also)] if alert.status == "active" else []
    labels = [said[key] for query_id in queries if (key := label_key(alert.post.id, query_id)) in said]
    if not labels:
        return Judged()
    words = [
        f"{label.query_id}: " * (label.query_id != alert.query_id) + ", ".join(filter(None, label.word))
        for label in labels
    ]
    return Judged(
        "; ".join(words), "; ".join(label.by for label in labels), "; ".join(rfc3339(label.at) for label in labels)
    )
