"""The `labels` topic: what people said about alerts, written by the page and `crisis label`, followed by every worker.

Compacted: key = post id and query id, value = Label JSON, an empty value takes the word back.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

import msgspec

from models.errors import LabelError
from models.feedback.records import Label, check_label
from models.undecodable import UNDECODABLE
from streams.broker.compacted import follow_table, open_compacted, read_table
from streams.config import Settings

__all__ = ["Labels", "follow_labels", "publish_labels", "read_labels"]

log = logging.getLogger(__name__)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Label).decode
Labels = dict[str, Label]  # by key


def apply_records(labels: Labels, records: Iterable) -> bool:
    """Apply records of the topic in place; was there a change? A bad record is logged and changes nothing."""
    before = dict(labels)
    for record in records:
        key = (record.key or b"").decode("utf-8", "replace")
        try:
            label = check_label(_decode(record.value)) if record.value else None
            if label is not None and label.key != key:
                raise LabelError(f"its key is {key!r}, its post and query are {label.key!r}")
        except (*UNDECODABLE, LabelError) as error:
            log.error("ignored a record of the labels topic: %s", error)
            continue
        labels.pop(key, None)
        if label is not None:
            labels[key] = label
    return labels != before


def publish_labels(settings: Settings, given: Sequence[Label], taken_back: Sequence[str] = ()) -> None:
    """Write labels, and take back those with these keys that are not given anew; returns when the broker has them.

    Raises LabelError for one that cannot be kept, ServiceError if the broker cannot be reached or has no such topic.
    """
    changes: Mapping[bytes, bytes | None] = {key.encode(): None for key in taken_back} | {
        label.key.encode(): _encode(check_label(label)) for label in given
    }
    with open_compacted(settings, "labels") as topic:
        topic.write(changes)


def read_labels(settings: Settings) -> Labels:
    """All labels, the oldest change first. Raises ServiceError if the topic cannot be reached or is not there."""
    return read_table(settings, "labels", apply_records)


def follow_labels(
    settings: Settings, changed: Callable[[Labels], Awaitable[None]]
) -> AbstractAsyncContextManager[Labels]:
    """Read the topic to its end, yield the labels, and keep calling `changed` with all of them as they change."""
    return follow_table(settings, "labels", apply_records, changed)
