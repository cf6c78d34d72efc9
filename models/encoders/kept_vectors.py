"""Vectors of the sentences people added, kept on this machine: a worker that starts need not encode them again.

What a version brings along (models/encoders/query_vectors.py) are the bundled queries' sentences. Those of custom
queries are kept here when they are first encoded, by encoder version and a hash of the sentence, no text: 1.5 kB each.
Several processes share the file (SQLite). Nothing hangs on it: where it cannot be read or written, sentences are
encoded as ever. What no start has asked for in 30 days is dropped.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from itertools import islice
from pathlib import Path

import numpy as np

__all__ = ["KeptVectors"]

log = logging.getLogger(__name__)
KEPT_S = 30 * 86_400.0
AT_ONCE = 500  # hashes asked for at a time: SQLite's limit of variables is 999 where it is old
BUSY_S = 5.0  # how long another process may write
UNIT_WITHIN = 1e-3  # of its length, as of the probes'


class KeptVectors:
    """The file. Every call opens it anew: calls come from threads, at a start and after a change of queries."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path, self._clock = path, clock

    def read(self, encoder_version: str, dim: int, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """Those that are kept: text → (dim,) float32."""
        hashes = {_hash(text): text for text in texts}
        found: dict[str, np.ndarray] = {}
        try:
            with self._open() as db:
                for some in _parts(hashes):
                    marks = ",".join("?" * len(some))
                    where = f"FROM vectors WHERE encoder = ? AND hash IN ({marks})"
                    for hashed, raw in db.execute(f"SELECT hash, vector {where}", [encoder_version, *some]):
                        if len(raw) == 4 * dim and _is_unit(vector := np.frombuffer(raw, "<f4")):
                            found[hashes[hashed]] = vector
                    used = f"UPDATE vectors SET used_at = ? WHERE encoder = ? AND hash IN ({marks})"
                    db.execute(used, [self._clock(), encoder_version, *some])
        except (OSError, sqlite3.Error) as error:
            log.warning("vectors of custom queries cannot be read from %s: %s", self.path, error)
        return found

    def write(self, encoder_version: str, vectors: Mapping[str, np.ndarray]) -> None:
        """Keep those that are unit vectors, and drop what nobody asked for in 30 days."""
        now, whole = self._clock(), {text: vector for text, vector in vectors.items() if _is_unit(vector)}
        rows = [(encoder_version, _hash(text), vector.astype("<f4").tobytes(), now) for text, vector in whole.items()]
        try:
            with self._open() as db:
                db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", rows)
                db.execute("DELETE FROM vectors WHERE used_at < ?", [now - KEPT_S])
        except (OSError, sqlite3.Error) as error:
            log.warning("vectors of custom queries cannot be kept in %s: %s", self.path, error)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self.path, timeout=BUSY_S)) as db, db:
            db.execute(
                "CREATE TABLE IF NOT EXISTS vectors"
                " (encoder TEXT, hash BLOB, vector BLOB, used_at REAL, PRIMARY KEY (encoder, hash)) WITHOUT ROWID"
            )
            yield db


def _hash(text: str) -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()


def _is_unit(vector: np.ndarray) -> bool:
    """As an encoder promises: what a fault of one moment made must not outlive it. False for NaN too."""
    return abs(float(np.linalg.norm(vector.astype(np.float64))) - 1.0) < UNIT_WITHIN


def _parts(hashes: Mapping[bytes, str]) -> Iterator[list[bytes]]:
    left = iter(hashes)
    while some := list(islice(left, AT_ONCE)):
        yield some
