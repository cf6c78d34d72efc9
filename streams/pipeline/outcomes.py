"""What becomes of a post. Every post that was read has exactly one outcome; the sum is checked wherever posts are
counted: in a replay, in the demo, on the page and in the end-to-end tests.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["OUTCOMES"]

MATCHED = ("alert", "suggestion", "no_match")  # by its best match
OUTCOMES = (*MATCHED, "folded", "rejected", "deleted")


@dataclass
class Totals:
    """read = the sum of the outcomes, by post."""

    counts: Counter[str] = field(default_factory=Counter)

    def check(self) -> bool:
        """Every post accounted for."""
        return self.counts["read"] == sum(self.counts[outcome] for outcome in OUTCOMES)
