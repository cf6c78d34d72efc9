"""From a list of posts to their vectors: windows prepared in a thread while the window before is computed.

Posts of a window are sorted by length and cut by a budget of tokens, so that little is computed for padding. Nothing
waits for a clock: a batch starts as soon as the one before has ended. What is in a batch depends on the list alone,
never on timing, so that the same list gives the same vectors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from models.text import Cleaning, clean

__all__ = ["encode_in_windows", "micro_batches", "packed_batches", "pad"]

WINDOW = 1024  # posts sorted together: at a budget of 256 tokens, under 3 % of what is computed is padding

B = TypeVar("B")
Prepared = Iterable[tuple[np.ndarray, B]]  # the places in the window that a batch is for, and the batch


def micro_batches(lengths: Sequence[int], budget: int) -> list[np.ndarray]:
    """Places of posts, longest first, in batches whose longest times their number is at most `budget` tokens.

    A post longer than the budget has a batch of its own; a post of no tokens is in none.
    """
    order = [int(i) for i in np.argsort(-np.asarray(lengths), kind="stable") if lengths[i]]
    batches, start = [], 0
    while start < len(order):
        rows = max(1, budget // lengths[order[start]])
        batches.append(np.array(order[start : start + rows]))
        start += rows
    return batches


def packed_batches(lengths: Sequence[int], budget: int) -> list[np.ndarray]:
    """Places of posts, in batches whose tokens together are at most `budget`, for a forward that pads nothing."""
    batches: list[np.ndarray] = []
    now: list[int] = []
    tokens = 0
    for i, length in enumerate(lengths):
        if now and tokens + length > budget:
            batches.append(np.array(now))
            now, tokens = [], 0
        if length:
            now.append(i)
            tokens += length
    return [*batches, np.array(now)] if now else batches


def pad(ids: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """(posts, longest) int64 filled up with 0, and the same shape in float32: 1 where there is a token."""
    longest = max(map(len, ids))
    padded = np.zeros((len(ids), longest), np.int64)
    mask = np.zeros((len(ids), longest), np.float32)
    for row, seen, post in zip(padded, mask, ids, strict=True):
        row[: len(post)], seen[: len(post)] = post, 1
    return padded, mask


def encode_in_windows(
    texts: Sequence[str],
    dim: int,
    cleaning: Cleaning,
    prepare: Callable[[list[str]], Prepared[B]],
    run: Callable[[B], Callable[[], np.ndarray]],
    window: int = WINDOW,
) -> np.ndarray:
    """(n, dim) float32, row i for texts[i].

    prepare: cleaned texts → batches; runs in a thread, one window ahead. run: starts a batch and returns how to get its
    unit rows, which is asked only after the next batch was started, so that a GPU always has work.
    A text that is in no batch gets the last axis: "nothing said".
    """
    out = np.zeros((len(texts), dim), np.float32)
    out[:, -1] = 1.0

    def window_from(start: int) -> list[tuple[np.ndarray, B]]:
        cleaned = [clean(text, cleaning) for text in texts[start : start + window]]
        return [(places + start, batch) for places, batch in prepare(cleaned)]

    running: deque[tuple[np.ndarray, Callable[[], np.ndarray]]] = deque()
    with ThreadPoolExecutor(1, thread_name_prefix="tokenise") as thread:
        ahead = thread.submit(window_from, 0)
        for start in range(0, len(texts), window):
            batches = ahead.result()
            if start + window < len(texts):
                ahead = thread.submit(window_from, start + window)
            for places, batch in batches:
                running.append((places, run(batch)))
                if len(running) > 1:
                    places, vectors = running.popleft()
                    out[places] = vectors()
        for places, vectors in running:
            out[places] = vectors()
    return out
