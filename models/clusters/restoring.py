"""Restoring a clusterer from the parts of its state (state.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from models.clusters.cluster import Member
from models.clusters.config import ClusterConfig
from models.clusters.kernel import GRID
from models.clusters.live import LiveClusters
from models.clusters.memory import Memory
from models.clusters.saving import Saver
from models.clusters.state import FORMAT, Head, Progress, Saved, ledgers
from models.clusters.trail import Extent, Segment
from models.errors import ConfigError, CrisisError, Unreadable

__all__ = ["restore"]


def restore(parts: Mapping[str, bytes], config: ClusterConfig, saver: Saver) -> tuple[LiveClusters, Progress]:
    """Restore what was written. saver: goes on from these parts.

    Raises Unreadable for what are not the parts of a state, CrisisError for one of another format, ConfigError if the
    rows would differ.
    """
    try:
        head = msgspec.msgpack.decode(parts["head"], type=Head)
        if head.format != FORMAT:
            raise CrisisError(
                f"cluster snapshot has format {head.format}, this version reads {FORMAT}: start without it"
            )
        if head.lexical != config.lexical:
            raise ConfigError(
                f"cluster snapshot was made with lexical = {head.lexical}, the settings say {config.lexical}: rows of "
                "the two cannot be compared; set it back, or start without the snapshot"
            )
        live = _live(parts, head, config)
    except (KeyError, msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Unreadable(f"cluster snapshot of {len(parts)} parts is unreadable: {error}; start without it") from error
    saver.resume(live)
    applied = {origin.lane: origin for origin in head.applied}
    return live, Progress(head.encoder_version, applied, head.merge, head.quick)


def _live(parts: Mapping[str, bytes], head: Head, config: ClusterConfig) -> LiveClusters:
    live = LiveClusters(config, head.dim)
    live.lexicon.seen = head.lexicon_seen
    live.lexicon.table = np.frombuffer(parts["lexicon"], "<u4").astype(np.uint32)
    live.clock, live.started, live.counters, live.stream = head.clock, head.started, head.counters, head.stream
    live.changed = set(head.changed)
    sums, counts = np.zeros((len(head.clusters), live.lexicon.width)), np.zeros(len(head.clusters))
    decode, examples = msgspec.msgpack.Decoder(Saved).decode, msgspec.msgpack.Decoder(list[Member]).decode
    for slot, name in enumerate(head.clusters):
        saved = decode(parts[f"cluster/{name}"])
        sums[slot] = np.frombuffer(saved.steps, "<i4" if len(saved.steps) == 4 * sums.shape[1] else "<i8") / GRID
        counts[slot] = saved.posts
        saved.cluster.examples = examples(parts[f"examples/{name}"])
        live.clusters.append(saved.cluster)
        live.slots[name] = slot
    live.ages.note(range(len(live.clusters)), live.clusters)
    every = set(range(len(head.clusters)))  # pairs that were too far apart may be near enough for another config
    dirty = every if config.t_merge < head.t_merge else set(head.dirty)
    fresh = every if config.t_attach < head.t_attach else set(head.fresh)
    live.kernel.load(sums, counts, dirty, fresh, set(head.strange))
    live.vocabulary.since_s, live.vocabulary.total = head.terms_since, head.terms_total
    live.vocabulary.load(head.spans["terms"], _segments(parts, "terms", head.spans["terms"], float))
    head.spans.setdefault("gone", Extent(0, 0, 0))  # a state of before has none
    for ledger in ledgers(live):
        name = ledger.trail.name
        kind = {"members": Member, "retired": None, "gone": None}.get(name, str)
        ledger.load(head.spans[name], _segments(parts, name, head.spans[name], kind))
    if not head.counted:
        _count_with_originals(live.memory)
    live.find_outlived()
    live.memory.find_accounts()
    return live


def _count_with_originals(memory: Memory) -> None:
    """Of a state of before, which named each repeat's original: it was counted where that is."""
    for repeat, original in list(memory.repeats.items()):
        if (cluster := memory.placed.get(original)) is not None:
            memory.repeats[repeat] = cluster
        else:
            memory.repeats.forget(repeat)
    memory.repeats.trail.renew()


def _segments(parts: Mapping[str, bytes], name: str, span: Extent, kind: Any) -> list[Segment[Any]]:
    decode = msgspec.msgpack.Decoder(Segment[kind]).decode
    return [decode(parts[f"{name}/{number}"]) for number in range(span.first, span.end)]
