"""The one encoder version all clusters are of, and how they move to another without a pause.

Frames of another version (canaries, stragglers around a switch) are embedded again by the clusters' encoder before they
are clustered. When another version becomes current, the clusters' sample texts are read by it beside the stream; when
all are read, the clusters move between two frames and every one keeps its id. That is simpler than two sets of clusters
with a map between them, always compares like with like, and costs one more encoding of the posts around a switch.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

from models.clustering import ClusterConfig, Clusterer
from models.clusters.vectors import widened
from models.encoders.mixture import Mixture
from models.encoders.protocol import Encoder
from models.encoders.query_vectors import CachedEncoder, Known
from models.records import MatchedFrame
from streams import metrics
from streams.pipeline.clusters import ClusterStage
from streams.releases.serving import restate

__all__ = ["ClusterVersion"]

log = logging.getLogger(__name__)

AGAIN_S = 30.0
AT_ONCE = 256  # texts read between two turns of the stream in the encoder's thread: about 10 ms


class ClusterVersion:
    """Which encoder the clusters are of. `compute(thread, work, *args)` runs blocking work in a thread."""

    def __init__(self, compute: Callable[..., Awaitable[Any]]) -> None:
        self._compute = compute
        self._encoder: Encoder
        self._reading: tuple[Encoder, asyncio.Task[Known]] | None = None

    def begin(self, encoder: Encoder) -> None:
        """The clusters were just made or restored with this encoder."""
        self._encoder, self._reading = encoder, None

    async def bring(self, frames: Sequence[MatchedFrame]) -> list[MatchedFrame]:
        """The frames with vectors the clusters can be compared with."""
        if isinstance(self._encoder, Mixture):
            frames = await self._compute("cluster", widened, frames, self._encoder)
        return [await self._restated(frame) for frame in frames]

    async def _restated(self, frame: MatchedFrame) -> MatchedFrame:
        if not frame.posts or frame.encoder_version == self._encoder.version:
            return frame
        metrics.restated.labels("cluster").inc(len(frame.posts))
        restated: MatchedFrame = await self._compute("encode", restate, frame, self._encoder)
        return restated

    async def follow(self, stage: ClusterStage, current: Encoder, config: ClusterConfig) -> None:
        """Move to the current version, its thresholds included, once all sample texts are read by it; until then
        leave things as they are.
        """
        clusterer = stage.clusterer
        if current.version == self._encoder.version:
            self.begin(current)
            if clusterer.config != config:  # the same vectors, other thresholds
                await self._compute("cluster", stage.retune, config)
            return
        if self._reading is None or self._reading[0].version != current.version:
            texts = await self._compute("cluster", sample_texts, clusterer)
            self._reading = current, asyncio.create_task(self._read(texts, current))
        if not self._reading[1].done():
            return
        try:
            known = self._reading[1].result()
        except Exception:  # the stream goes on with the clusters as they are
            log.exception("the clusters' texts cannot be read by %s: again in %.0f s", current.version, AGAIN_S)
            texts = await self._compute("cluster", sample_texts, clusterer)
            self._reading = current, asyncio.create_task(self._read(texts, current, AGAIN_S))
            return
        await self._compute("cluster", rebase, clusterer, current, known, config)
        log.info(
            "clusters moved from encoder %s to %s (join at %g, merge at %g)",
            self._encoder.version,
            current.version,
            config.t_attach,
            config.t_merge,
        )
        self.begin(current)

    async def _read(self, texts: list[str], encoder: Encoder, after_s: float = 0.0) -> Known:
        await asyncio.sleep(after_s)
        known: dict[str, np.ndarray] = {}
        for start in range(0, len(texts), AT_ONCE):
            some = texts[start : start + AT_ONCE]
            known.update(zip(some, await self._compute("encode", encoder.encode, some), strict=True))
        return known


def sample_texts(clusterer: Clusterer) -> list[str]:
    """The texts a rebase reads, each once."""
    return list({member.text: None for cluster in clusterer.live() for member in cluster.examples})


def rebase(clusterer: Clusterer, encoder: Encoder, known: Known, config: ClusterConfig | None = None) -> None:
    """Move the clusters to another encoder and its thresholds; only texts not read before are encoded. Blocking."""
    clusterer.rebase(encoder.version, encoder.dim, CachedEncoder(encoder, known).encode, config)
