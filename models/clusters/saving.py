"""Writing the clusterer's state in parts (state.py): what changed since the last save, or all of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import msgspec
import numpy as np

from models.clusters.cluster import Member
from models.clusters.kernel import GRID
from models.clusters.live import LiveClusters
from models.clusters.state import FORMAT, Changes, Head, Progress, Saved, ledgers
from models.clusters.trail import Extent, cut

__all__ = ["Saver", "everything"]

SLICE = 1_000  # clusters written ahead at once: some 20 ms
CHUNK = 128  # clusters made ready at once: their numbers stay in the cache
_pack = msgspec.msgpack.Encoder().encode


class Saver:
    """Writes live clusters in parts; the second time and later, those that changed. One caller at a time.

    Most is written ahead, in slices: a cluster that got nothing for a while. Should it change after all it is written
    again, so a save holds one moment of all; it has left to write what changed just before it.
    """

    def __init__(self) -> None:
        self._shown: dict[str, tuple[Member, ...]] = {}  # cluster id → examples as they were written
        self._ahead: dict[str, dict[str, bytes]] = {}  # cluster id → its parts that wait for the next save
        self._on = False  # the next save is of what changed, not of everything
        self._asked = False  # does anybody save?

    def stop(self, live: LiveClusters) -> None:
        """What was written got lost, or all of it changed: the next save is of everything."""
        self._shown, self._ahead, self._on = {}, {}, False
        live.unsaved.update(live.slots)
        for trail in (live.vocabulary.trail, *(ledger.trail for ledger in ledgers(live))):
            trail.stop()

    def ahead(self, live: LiveClusters, quiet: int) -> None:
        """Write what changed and got nothing for `quiet` posts, at most SLICE clusters."""
        if self._asked:
            before = live.counters.posts - quiet
            still = (
                slot for slot in map(live.slots.__getitem__, live.unsaved) if live.cluster(slot).touched_post <= before
            )
            self._write(live, sorted(islice(still, SLICE)))

    def save(self, live: LiveClusters, progress: Progress) -> Changes:
        """What changed since the last call, or everything at the first."""
        whole, gone, spans, put = not self._on, [], {}, {}
        self._write(live, sorted(live.slots[name] for name in live.unsaved))
        for name, parts in self._ahead.items():
            if name in live.slots:
                put.update(parts)
        self._ahead = {}
        for name in [name for name in self._shown if name not in live.slots]:
            del self._shown[name]
            gone += [f"cluster/{name}", f"examples/{name}"]
        trails = [(live.vocabulary.trail, live.vocabulary.counts), *((m.trail, m) for m in ledgers(live))]
        for trail, entries in trails:
            written, dead = trail.save(entries)
            put |= written
            gone += dead
            spans[trail.name] = trail.span(len(entries))
        put |= _small(live, progress, spans)
        self._on = self._asked = True
        return Changes(put, [] if whole else gone, whole)

    def _write(self, live: LiveClusters, slots: list[int]) -> None:
        for start in range(0, len(slots), CHUNK):
            for name, part in _clusters(live, slots[start : start + CHUNK]):
                cluster = live.cluster(live.slots[name])
                parts = self._ahead.setdefault(name, {})
                parts[f"cluster/{name}"] = part
                examples = tuple(cluster.examples)
                if self._shown.get(name) != examples:
                    self._shown[name] = examples
                    parts[f"examples/{name}"] = _pack(examples)
                live.unsaved.discard(name)

    def resume(self, live: LiveClusters) -> None:
        """These live clusters were just restored from parts that are still kept."""
        self._shown, self._on, self._asked = {c.id: tuple(c.examples) for c in live.living()}, True, True


def everything(live: LiveClusters, progress: Progress) -> dict[str, bytes]:
    """All parts, the same for the same state, however it came about; nothing is noted."""
    put = {f"cluster/{name}": part for name, part in _clusters(live, list(live.slots.values()))}
    spans: dict[str, Extent] = {}
    put |= {f"examples/{c.id}": _pack(c.examples) for c in live.living()}
    for gone in live.memory.redirects:
        live.memory.find(gone)  # the shortest way, as it may be or not be by now
    trails = [(live.vocabulary.trail, live.vocabulary.counts), *((m.trail, m) for m in ledgers(live))]
    for trail, entries in trails:
        segments = list(cut(entries, trail.full))
        put |= {f"{trail.name}/{n}": _pack(segment) for n, segment in enumerate(segments)}
        spans[trail.name] = Extent(0, len(segments), len(entries))
    return put | _small(live, progress, spans)


def _clusters(live: LiveClusters, slots: list[int]) -> Iterator[tuple[str, bytes]]:
    """The id and the part of each of these clusters."""
    steps = live.kernel.sums[slots] * GRID  # whole numbers
    wide = np.maximum(steps.max(axis=1, initial=0), -steps.min(axis=1, initial=0)) >= 2**31
    narrow, counts = steps.astype("<i4"), live.kernel.counts
    for slot, row, long, exact in zip(slots, narrow, wide, steps, strict=True):
        cluster = live.cluster(slot)
        data = exact.astype("<i8") if long else row
        without = msgspec.structs.replace(cluster, examples=[])
        yield cluster.id, _pack(Saved(int(counts[slot]), data.tobytes(), without))


def _small(live: LiveClusters, progress: Progress, spans: dict[str, Extent]) -> dict[str, bytes]:
    """The parts that are written with every save."""
    place = {slot: n for n, slot in enumerate(live.slots.values())}
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
        clusters=list(live.slots),
        dirty=sorted(place[slot] for slot in live.kernel.dirty),
        fresh=sorted(place[slot] for slot in live.kernel.fresh),
        strange=sorted(place[slot] for slot in live.kernel.strange - live.kernel.dirty),
        changed=sorted(place[slot] for slot in live.changed),
        lexicon_seen=live.lexicon.seen,
        terms_since=words.since_s,
        terms_total=words.total,
        spans=spans,
        counted=True,
    )
    return {"head": _pack(head), "lexicon": live.lexicon.table.astype("<u4").tobytes()}
