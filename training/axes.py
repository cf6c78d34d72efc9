"""A teacher's vectors on the axes that a narrower student has room for: what distillation and the robust job share."""

from __future__ import annotations

import numpy as np

__all__ = ["on_axes", "projection"]


def projection(vectors: np.ndarray, dim: int) -> np.ndarray:
    """(d, dim): the widest axes of the vectors, uncentred, so that cosines stay what they were."""
    if dim >= vectors.shape[1]:
        return np.eye(vectors.shape[1], dtype=np.float32)
    second_moment = np.zeros((vectors.shape[1],) * 2)
    for part in np.array_split(vectors, max(1, len(vectors) // 65536)):
        second_moment += part.astype(np.float32).T @ part.astype(np.float32)
    values, axes = np.linalg.eigh(second_moment)
    return np.ascontiguousarray(axes[:, ::-1][:, :dim], dtype=np.float32)


def on_axes(vectors: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """(n, dim) float32 unit rows: the (n, d) vectors on the (d, dim) axes."""
    found = vectors.astype(np.float32) @ axes
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)
