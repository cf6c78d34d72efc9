"""The clusterer's state in parts, so that a save costs what changed: each is msgpack, arrays packed, never pickle.

| part | what |
|---|---|
| head | settings it was made with, clocks, counters, what was applied, ids of the live clusters in order |
| lexicon | its counters |
| cluster/ID, examples/ID | one live cluster: sum, number and bookkeeping; its sample of posts, which changes seldom |
| terms/N, placed/N, members/N, repeats/N, redirects/N, retired/N | segments of long maps (trail.py) |

Sums are whole numbers of grid steps, so the round trip is exact and a restored clusterer continues bit by bit.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from models.clusters.cluster import Cluster, Member, Rates
from models.clusters.config import ClusterConfig
from models.clusters.kernel import GRID
from models.clusters.live import Counters, Due, LiveClusters
from models.clusters.trail import Ledger, Segment, Span, cut
from models.errors import ConfigError, CrisisError
from models.records import Origin

FORMAT = 2

_pack = msgspec.msgpack.Encoder().encode


class Changes(Struct, frozen=True):
    """What to keep of a state so that it can be restored: parts to write, and names of those to forget.

    whole: these are all parts; whatever was kept before must go.
    """

    put: dict[str, bytes]
    gone: list[str]
    whole: bool


class Head(Struct):
    """What is small. Clusters are numbered by their place in `clusters`."""

    format: int
    encoder_version: str
    dim: int
    lexical: float
    t_attach: float
    t_merge: float
    clock: float
    started: float
    merge: Due
    quick: Due
    counters: Counters
    applied: list[Origin]
    stream: Rates
    clusters: list[str]  # ids, oldest first
    dirty: list[int]
    fresh: list[int]
    strange: list[int]
    changed: list[int]
    lexicon_seen: int
    terms_since: float | None
    terms_total: float
    spans: dict[str, Span]


class Saved(Struct, array_like=True):
    """One cluster, its examples apart."""

    posts: int  # with a vector
    steps: bytes  # (width,) grid steps: int32, or int64 if the cluster passed half a million posts
    cluster: Cluster


class Progress(Struct):
    """Where a clusterer stands in the stream."""

    encoder_version: str
    applied: dict[int, Origin]
    merge: Due
    quick: Due


class Saver:
    """Writes live clusters in parts; the second time and later, those that changed. One caller at a time."""

    def __init__(self) -> None:
        self._shown: dict[str, tuple[Member, ...]] = {}  # cluster id → examples as they were saved
        self._on = False

    def stop(self, live: LiveClusters) -> None:
        """What was written got lost, or all of it changed: the next save is of everything."""
        self._shown, self._on = {}, False
        for trail in (live.vocabulary.trail, *(ledger.trail for ledger in _ledgers(live))):
            trail.stop()

    def save(self, live: LiveClusters, progress: Progress) -> Changes:
        """What changed since the last call, or everything at the first."""
        whole = not self._on
        slots = sorted(live.slots[i] for i in live.unsaved) if self._on else list(live.slots.values())
        put, gone, spans = _clusters(live, slots), [], {}
        for slot in slots:
            cluster = live.cluster(slot)
            examples = tuple(cluster.examples)
            if self._shown.get(cluster.id) != examples:
                self._shown[cluster.id] = examples
                put[f"examples/{cluster.id}"] = _pack(examples)
        for name in [name for name in self._shown if name not in live.slots]:
            del self._shown[name]
            gone += [f"cluster/{name}", f"examples/{name}"]
        trails = [(live.vocabulary.trail, live.vocabulary.counts), *((m.trail, m) for m in _ledgers(live))]
        for trail, entries in trails:
            written, dead = trail.save(entries)
            put |= written
            gone += dead
            spans[trail.name] = trail.span(len(entries))
        put |= _small(live, progress, spans)
        live.unsaved.clear()
        self._on = True
        return Changes(put, [] if whole else gone, whole)

    def resume(self, live: LiveClusters) -> None:
        """These live clusters were just restored from parts that are still kept."""
        self._shown, self._on = {c.id: tuple(c.examples) for c in live.living()}, True


def everything(live: LiveClusters, progress: Progress) -> dict[str, bytes]:
    """All parts, the same for the same state, however it came about; nothing is noted."""
    put, spans = _clusters(live, list(live.slots.values())), {}
    put |= {f"examples/{c.id}": _pack(c.examples) for c in live.living()}
    for gone in live.memory.redirects:
        live.memory.find(gone)  # the shortest way, as it may be or not be by now
    trails = [(live.vocabulary.trail, live.vocabulary.counts), *((m.trail, m) for m in _ledgers(live))]
    for trail, entries in trails:
        segments = list(cut(entries, trail.full))
        put |= {f"{trail.name}/{n}": _pack(segment) for n, segment in enumerate(segments)}
        spans[trail.name] = Span(0, len(segments), len(entries))
    return put | _small(live, progress, spans)


def read(parts: Mapping[str, bytes], config: ClusterConfig, saver: Saver) -> tuple[LiveClusters, Progress]:
    """Restore what was written. saver: goes on from these parts.

    Raises CrisisError for what are not the parts of a state of this format, ConfigError if the rows would differ.
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
        raise CrisisError(f"cluster snapshot of {len(parts)} parts is unreadable: {error}; start without it") from error
    saver.resume(live)
    applied = {origin.partition: origin for origin in head.applied}
    return live, Progress(head.encoder_version, applied, head.merge, head.quick)


def _ledgers(live: LiveClusters) -> tuple[Ledger[Any], ...]:
    memory = live.memory
    return memory.placed, memory.members, memory.repeats, memory.redirects, memory.retired


def _clusters(live: LiveClusters, slots: list[int]) -> dict[str, bytes]:
    """The part of each of these clusters."""
    steps = np.rint(live.kernel.sums[slots] * GRID)
    wide = np.abs(steps).max(axis=1) >= 2**31
    narrow, counts, made = steps.astype("<i4"), live.kernel.counts, {}
    for slot, row, long, exact in zip(slots, narrow, wide, steps, strict=True):
        cluster = live.cluster(slot)
        data = exact.astype("<i8") if long else row
        without = msgspec.structs.replace(cluster, examples=[])
        made[f"cluster/{cluster.id}"] = _pack(Saved(int(counts[slot]), data.tobytes(), without))
    return made


def _small(live: LiveClusters, progress: Progress, spans: dict[str, Span]) -> dict[str, bytes]:
    """The parts that are written with every save."""
    ids = [c.id for c in live.living()]
    place = {live.slots[name]: n for n, name in enumerate(ids)}
    words = live.vocabulary
    head = Head(
        format=FORMAT,
        encoder_version=progress.encoder_version,
        dim=live.lexicon.dim,
        lexical=live.config.lexical,
        t_attach=live.config.t_attach,
        t_merge=live.config.t_merge,
        clock=live.clock,
        started=live.started,
        merge=progress.merge,
        quick=progress.quick,
        counters=live.counters,
        applied=sorted(progress.applied.values()),
        stream=live.stream,
        clusters=ids,
        dirty=sorted(place[slot] for slot in live.kernel.dirty),
        fresh=sorted(place[slot] for slot in live.kernel.fresh),
        strange=sorted(place[slot] for slot in live.kernel.strange - live.kernel.dirty),
        changed=sorted(place[slot] for slot in live.changed),
        lexicon_seen=live.lexicon.seen,
        terms_since=words.since_s,
        terms_total=words.total,
        spans=spans,
    )
    return {"head": _pack(head), "lexicon": np.frombuffer(live.lexicon.table, np.uint32).astype("<u4").tobytes()}


def _live(parts: Mapping[str, bytes], head: Head, config: ClusterConfig) -> LiveClusters:
    live = LiveClusters(config, head.dim)
    live.lexicon.seen = head.lexicon_seen
    live.lexicon.table = array("I", np.frombuffer(parts["lexicon"], "<u4").astype(np.uint32).tobytes())
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
    every = set(range(len(head.clusters)))  # pairs that were too far apart may be near enough for another config
    dirty = every if config.t_merge < head.t_merge else set(head.dirty)
    fresh = every if config.t_attach < head.t_attach else set(head.fresh)
    live.kernel.load(sums, counts, dirty, fresh, set(head.strange))
    live.vocabulary.since_s, live.vocabulary.total = head.terms_since, head.terms_total
    live.vocabulary.load(head.spans["terms"], _segments(parts, "terms", head.spans["terms"], float))
    for ledger in _ledgers(live):
        name = ledger.trail.name
        kind = {"members": Member, "retired": None}.get(name, str)
        ledger.load(head.spans[name], _segments(parts, name, head.spans[name], kind))
    live.memory.find_accounts()
    return live


def _segments(parts: Mapping[str, bytes], name: str, span: Span, kind: Any) -> list[Segment[Any]]:
    decode = msgspec.msgpack.Decoder(Segment[kind]).decode
    return [decode(parts[f"{name}/{number}"]) for number in range(span.first, span.end)]
