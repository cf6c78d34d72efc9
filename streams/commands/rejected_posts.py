"""What was refused behind the first stage, as frames for posts.clean.

It was claimed when it was read: its line sent to posts.raw again would only repeat itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from models.cutting import count_items
from models.errors import Rejected
from models.records import EmbeddedFrame, Frame, MatchedFrame, Origin, Post, Reject
from models.undecodable import UNDECODABLE
from streams.broker.rejects import READS, RETRIED, records_of
from streams.config import Settings
from streams.pipeline.frames import decode_frames, split_frame

__all__ = ["again", "taken_out"]

KINDS: Mapping[str, type[Frame]] = {
    "embed": Frame,
    "waiting": Frame,
    "match": EmbeddedFrame,
    "cluster": MatchedFrame,
}
_post = msgspec.msgpack.Decoder(Post).decode


def taken_out(
    settings: Settings, rejects: Sequence[Reject], not_so: Counter[str], made_of: list[Reject] | None = None
) -> Iterator[Frame]:
    """Frames of one post each, and of what else a record held; why the others cannot be is counted in `not_so`.
    made_of: where given, it gets the rejects that the frames come of.

    One by one: the post that workers died on takes no neighbour along a second time.
    """
    made_of = [] if made_of is None else made_of
    died = [reject for reject in rejects if reject.reason == "worker_died" and reject.stage in KINDS]
    for reject in rejects:
        if reject.reason == "stage_error":
            try:
                yield Frame(reject.origin, [_post(reject.raw)])
                made_of.append(reject)
            except UNDECODABLE:
                not_so[f"of the post only the first {len(reject.raw):,} bytes are kept"] += 1
        elif reject.reason != "worker_died" or reject.stage not in KINDS:
            not_so[f"no frame of ours: somebody else wrote to {READS.get(reject.stage, 'a topic')}"] += 1
    for reject, record in records_of(settings, died):
        try:
            frames = decode_frames(reject.raw if record is None else record, KINDS[reject.stage])
        except Rejected:
            where = f"no longer in {READS[reject.stage]}, and only the first {len(reject.raw):,} bytes are kept"
            not_so[where if record is None else "no frame of ours"] += 1
            continue
        made_of.append(reject)
        for frame in frames:
            waiting = frame.waiting if isinstance(frame, EmbeddedFrame) else []
            yield from (Frame(frame.origin, [post]) for post in (*frame.posts, *waiting))
            if frame.repeats or frame.deletions:
                yield Frame(frame.origin, [], frame.repeats, frame.deletions)


def again(frames: Iterable[Frame], ends: Mapping[int, int], most_bytes: int) -> Iterator[Frame]:
    """The frames at new places, behind whatever was sent again before. ends: of the partitions of posts.clean."""
    items: Counter[int] = Counter()
    for frame in frames:
        partition = frame.origin.partition % len(ends)
        origin = Origin(partition, ends[partition], items[partition], RETRIED)
        items[partition] += count_items(frame)
        yield from split_frame(msgspec.structs.replace(frame, origin=origin), most_bytes)
