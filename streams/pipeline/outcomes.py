"""What becomes of a post. Every post that was read has exactly one outcome; the sum is checked wherever posts are
counted: in a replay, in the demo, on the page and in the end-to-end tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["MATCHED", "OUTCOMES", "Totals", "put_by", "through"]

MATCHED = ("alert", "suggestion", "no_match")  # by its best match
# A post that is put by has no outcome until it is read in context; then it has one as any other.
OUTCOMES = (*MATCHED, "folded", "rejected", "deleted")


def through(counts: Mapping[str, int]) -> int:
    """Posts that have an outcome, by the counters."""
    return sum(counts.get(outcome, 0) for outcome in OUTCOMES)


def put_by(counts: Mapping[str, int]) -> int:
    """Posts that wait to be read in context, by the counters."""
    return max(0, counts.get("put_by", 0) - counts.get("taken_up", 0))


@dataclass
class Totals:
    """read = the sum of the outcomes, by post."""

    counts: Counter[str] = field(default_factory=Counter)

    def check(self) -> bool:
        """Every post accounted for."""
        return self.counts["read"] == through(self.counts)
