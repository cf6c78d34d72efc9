"""Whether what an agent makes of a record lies on the broker already.

A worker that is killed from outside dies on whatever it has in hand, and a take-over or a busy machine draws out the
moment between the broker's acknowledgement and the last word to Redis: two kills met the same record there, its posts
were refused, and counted once more as they were matched. A record whose frames lie in the next topic has been read
without harm, so it is not what workers die on.
"""

from __future__ import annotations

import time
from collections.abc import Collection

import msgspec

from models.records import Origin
from models.undecodable import UNDECODABLE
from streams.broker.reading import read_values
from streams.config import Settings

__all__ = ["lies_in"]

SKEW_S = 60.0  # that the clock of who wrote the record may be ahead of the worker's
LONGEST_S = 900.0  # two deaths and the start after each are over sooner, however old the record is


class _Placed(msgspec.Struct):
    """Of a frame of any kind only where it came from."""

    origin: Origin


_decode = msgspec.msgpack.Decoder(_Placed | list[_Placed]).decode  # type: ignore[operator]


def lies_in(settings: Settings, topic: str, origins: Collection[tuple[int, int, int]], written_s: float) -> bool:
    """Does a frame of one of these (partition, offset, turn) lie in the topic? Blocking.

    written_s: when the record was written (epoch seconds); what was made of it came later. Raises ServiceError if the
    broker cannot be asked.
    """
    last_s = min(max(time.time() - written_s, 0.0) + SKEW_S, LONGEST_S)
    for value in read_values(settings, topic, last_s):
        try:
            found = _decode(value)
        except UNDECODABLE:  # somebody else wrote there
            continue
        for frame in found if isinstance(found, list) else [found]:
            if (frame.origin.partition, frame.origin.offset, frame.origin.turn) in origins:
                return True
    return False
