"""The clusterer's snapshot: one msgpack record, arrays as packed integers, never pickle.

Sums are whole numbers of grid steps, so the round trip is exact and a restored clusterer continues bit by bit.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict

import msgspec
import numpy as np
from msgspec import Struct

from models.clusters.book import Book, Counters, Due
from models.clusters.cluster import Cluster, Member, Rates
from models.clusters.config import ClusterConfig
from models.clusters.kernel import GRID
from models.errors import ConfigError, CrisisError
from models.records import Origin

FORMAT = 1


class State(Struct):
    """Everything a Clusterer holds but its config. Slots are listed without gaps."""

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
    clusters: list[Cluster]
    wide: bool  # sums are int64, not int32: a cluster passed half a million posts
    sums: bytes  # (k, width) grid steps
    counts: bytes  # (k,) int64
    dirty: list[int]
    fresh: list[int]
    changed: list[int]
    lexicon_seen: int
    lexicon_table: bytes
    terms_since: float | None
    terms_total: float
    terms: dict[str, float]
    placed: dict[str, str]
    members: list[Member]
    repeats: dict[str, str]
    redirects: dict[str, str]
    retired: list[str]



def write(book: Book, encoder_version: str, applied: dict[int, Origin], merge: Due, quick: Due) -> bytes:
    """Closes the book's gaps first, so that a restored book gives the same bytes."""
    book.compact()
    k, memory, words = len(book.clusters), book.memory, book.vocabulary
    steps = np.rint(book.kernel.sums[:k] * GRID)
    wide = bool(steps.size and np.abs(steps).max() >= 2**31)
    return msgspec.msgpack.encode(State(
        format=FORMAT, encoder_version=encoder_version, dim=book.lexicon.dim,
        lexical=book.config.lexical, t_attach=book.config.t_attach,
        t_merge=book.config.t_merge, clock=book.clock, started=book.started, merge=merge, quick=quick,
        counters=book.counters, applied=sorted(applied.values()), stream=book.stream, clusters=book.clusters,
        wide=wide, sums=steps.astype("<i8" if wide else "<i4").tobytes(),
        counts=book.kernel.counts[:k].astype("<i8").tobytes(),
        dirty=sorted(book.kernel.dirty), fresh=sorted(book.kernel.fresh), changed=sorted(book.changed),
        lexicon_seen=book.lexicon.seen,
        lexicon_table=np.frombuffer(book.lexicon.table, np.uint32).astype("<u4").tobytes(),
        terms_since=words.since_s, terms_total=words.total, terms=words.counts,
        placed=memory.placed, members=list(memory.members.values()), repeats=memory.repeats,
        redirects=memory.redirects, retired=list(memory.retired),
    ))  # fmt: skip


def read(data: bytes, config: ClusterConfig) -> tuple[Book, State]:
    """Raises CrisisError for bytes that are not a snapshot of this format, ConfigError if the rows would differ."""
    try:
        state = msgspec.msgpack.decode(data, type=State)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise CrisisError(f"cluster snapshot of {len(data)} bytes is unreadable: {error}; start without it") from error
    if state.format != FORMAT:
        raise CrisisError(f"cluster snapshot has format {state.format}, this version reads {FORMAT}: start without it")
    if state.lexical != config.lexical:
        raise ConfigError(
            f"cluster snapshot was made with lexical = {state.lexical}, the settings say {config.lexical}: rows of the "
            "two cannot be compared; set it back, or start without the snapshot"
        )
    book = Book(config, state.dim)
    book.lexicon.seen = state.lexicon_seen
    book.lexicon.table = array("I", np.frombuffer(state.lexicon_table, "<u4").astype(np.uint32).tobytes())
    book.clock, book.started, book.counters, book.stream = state.clock, state.started, state.counters, state.stream
    book.clusters, book.changed = list(state.clusters), set(state.changed)
    book.slots = {c.id: slot for slot, c in enumerate(state.clusters)}
    sums = np.frombuffer(state.sums, "<i8" if state.wide else "<i4").reshape(-1, book.lexicon.width) / GRID
    every = set(range(len(state.clusters)))  # pairs that were too far apart may be near enough for another config
    dirty = every if config.t_merge < state.t_merge else set(state.dirty)
    fresh = every if config.t_attach < state.t_attach else set(state.fresh)
    book.kernel.load(sums, np.frombuffer(state.counts, "<i8").astype(np.float64), dirty, fresh)
    words, memory = book.vocabulary, book.memory
    words.since_s, words.total, words.counts = state.terms_since, state.terms_total, state.terms
    memory.placed, memory.repeats = OrderedDict(state.placed), OrderedDict(state.repeats)
    memory.find_accounts()
    memory.members = OrderedDict((m.post_id, m) for m in state.members)
    memory.redirects, memory.retired = OrderedDict(state.redirects), OrderedDict.fromkeys(state.retired)
    return book, state
