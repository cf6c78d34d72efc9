"""Clusters that were merged, and which of them lives on. Pure: no clock, no I/O."""

from __future__ import annotations

__all__ = ["Merged"]


class Merged:
    """The newest `most` merges. An alert keeps the cluster that it was told with; its post is in the one found here."""

    def __init__(self, most: int) -> None:
        self._into: dict[str, str] = {}
        self._most = most

    def put(self, gone: str, into: str) -> str:
        """Note a merge, told in any order; returns the cluster that lives on."""
        root = self.find(into)
        if root != gone:  # nobody merges in a circle, but a search for its end would have none
            self._into[gone] = root
        if len(self._into) > self._most:
            del self._into[next(iter(self._into))]
        return root

    def find(self, cluster: str) -> str:
        """The cluster that lives on, over any number of merges; an id that was never merged is its own answer."""
        root = cluster
        while root in self._into:
            root = self._into[root]
        if cluster != root:  # the next look-up is one step
            self._into[cluster] = root
        return root
