"""A label: what a person said about one reading of one post. A later word about it replaces an earlier one, and carries
it: who takes the later one back finds the earlier one again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from models.errors import LabelError
from models.moments import epoch_s
from models.privacy import mask
from models.records import KINDS, Alert, Level
from models.text import READ_CHARS

__all__ = [
    "Label",
    "VERDICTS",
    "Verdict",
    "answers",
    "check_label",
    "in_place_of",
    "label_alert",
    "label_key",
    "read_label",
    "without",
]

# handled: right, and somebody takes care of it; other: of another category; none: no need and no offer at all
Verdict = Literal["right", "handled", "wrong", "other", "none"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
LONGEST_NAME = 60
LONGEST_ID = 512


def label_key(post_id: str, query_id: str) -> str:
    """What a label of this reading is kept by: post id, space, query id (which holds none)."""
    return f"{post_id} {query_id}"


class Label(Struct, frozen=True, omit_defaults=True):
    """One verdict. The text is kept, masked, so that another encoder can learn from it."""

    post_id: str
    query_id: str
    verdict: Verdict
    by: str  # who said so
    at: float  # epoch seconds, UTC
    text: str
    lang: str = "und"
    encoder_version: str = ""  # that had read the post
    level: Level | None = None  # how it was shown; only verdicts on alerts measure precision
    instead: str = ""  # with "other": the query it is of, where that was said
    replaced: Label | None = None  # what somebody else had said before; of that only the last word

    @property
    def key(self) -> str:
        """Names the reading it is about."""
        return label_key(self.post_id, self.query_id)

    @property
    def word(self) -> tuple[Verdict, str]:
        """What is said, by whomever."""
        return self.verdict, self.instead

    @property
    def confirms(self) -> bool:
        """Is the reading so? What somebody takes care of is."""
        return self.verdict in ("right", "handled")


def read_label(line: bytes) -> Label:
    """A line of `crisis label export`, in which times are RFC 3339, or of what wrote epoch seconds.

    Raises MsgspecError, LabelError or Rejected for what is no label.
    """
    return check_label(msgspec.convert(_in_epoch_s(msgspec.json.decode(line, type=dict[str, Any])), Label))


def _in_epoch_s(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a label, and of the one it replaced, with their times as Label has them."""
    at, before = epoch_s(msgspec.convert(fields.get("at"), str | float)), fields.get("replaced")
    return fields | {"at": at} | ({"replaced": _in_epoch_s(before)} if isinstance(before, dict) else {})


def check_label(label: Label) -> Label:
    """The label as it may be kept: masked, its text cut to what is read. Raises LabelError saying what to change."""
    name = label.by.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise LabelError(f"by: say who labels, in 1 to {LONGEST_NAME} printable characters")
    if not label.text.strip():
        raise LabelError(f"post {label.post_id!r} has no text to learn from")
    for query_id in filter(None, (label.query_id, label.instead)):
        kind, dot, category = query_id.partition(".")
        if kind not in KINDS or not dot or not category or not query_id.isprintable() or " " in query_id:
            raise LabelError(f"query {query_id!r}: write need.…, offer.…, warning.…, order.… or report.…")
    if label.instead and (label.verdict != "other" or label.instead == label.query_id):
        raise LabelError(f"instead={label.instead} goes with the verdict other, and names another query")
    if not label.post_id or len(label.post_id) > LONGEST_ID or len(label.query_id) > LONGEST_ID:
        raise LabelError(f"an id is missing or longer than {LONGEST_ID} characters")
    before = label.replaced
    if before is not None and before.key != label.key:
        raise LabelError(f"replaced: {before.key!r} is another reading than {label.key!r}")
    before = before and check_label(replace(before, replaced=None))
    return replace(label, by=name, text=mask(label.text[:READ_CHARS]), replaced=before)


def in_place_of(label: Label, before: Label | None) -> Label:
    """The label, carrying the word that it replaces: the last one of somebody else."""
    if before is not None and before.by == label.by:
        before = before.replaced
    return replace(label, replaced=before and replace(before, replaced=None))


def without(label: Label, by: str | None = None) -> Label | None:
    """What stands once what this person said is taken back (default: the last word), if anything does."""
    if by is None or label.by == by:
        return label.replaced
    return replace(label, replaced=None) if label.replaced is not None and label.replaced.by == by else label


def label_alert(alert: Alert, verdict: Verdict, by: str, at: float, query_id: str = "", instead: str = "") -> Label:
    """What a person says about a reading of an alert: its first, or the one of `query_id`. at: epoch seconds.

    Raises LabelError if the alert has no such reading, was withdrawn, or the label cannot be kept.
    """
    levels = {reading.query_id: reading.level for reading in alert.also} | {alert.query_id: alert.level}
    query_id = query_id or alert.query_id
    if query_id not in levels:
        raise LabelError(f"post {alert.post.id!r} was not read as {query_id}, but as {', '.join(sorted(levels))}")
    if alert.status == "withdrawn":
        raise LabelError(f"post {alert.post.id!r} was deleted or edited: there is nothing left to learn from")
    post, level = alert.post, levels[query_id]
    return check_label(
        Label(post.id, query_id, verdict, by, at, post.text, post.lang, alert.encoder_version, level, instead)
    )


def answers(labels: Sequence[Label], query_id: str, near: Collection[int] = ()) -> dict[int, bool]:
    """Which labels, by their place, say whether their post answers a query, and what.

    A label of another query speaks too where it names this one instead, or stands in `near`: the places of posts that
    are no need and no offer, and that this query reads as one. Where several speak of one post, its own label wins,
    then the newest.
    """
    found: dict[str, tuple[bool, float, int, bool]] = {}  # post id → (is its own label, at, place, answer)
    for place, label in enumerate(labels):
        own, named = label.query_id == query_id, label.instead == query_id
        if own or named or place in near:
            word = (own, label.at, place, label.confirms if own else named)
            found[label.post_id] = max(found.get(label.post_id, word), word)
    return {place: answer for _, _, place, answer in found.values()}
