"""The pipeline's steps as plain functions over frames. Agents and replay call the same ones.

    raw record ─parse─► Parsed ─fold─► Frame ─embed─► EmbeddedFrame ─match─► MatchedFrame ─► alerts, clusterer

No clock, no network, no Faust: who folds into whom is asked between `parse` and `fold` (Redis or a dict).
"""

from __future__ import annotations

from streams.pipeline.stages.alerting import alerts, taken_back, with_withdrawals
from streams.pipeline.stages.embedding import embed, embed_many
from streams.pipeline.stages.matching import by_turn, match, match_many, tally, without
from streams.pipeline.stages.normalising import KEPT_OF_REJECT, Parsed, fold, parse, parse_many, sum_up, tally_unmatched

__all__ = [
    "KEPT_OF_REJECT",
    "Parsed",
    "alerts",
    "by_turn",
    "embed",
    "embed_many",
    "fold",
    "match",
    "match_many",
    "parse",
    "parse_many",
    "sum_up",
    "taken_back",
    "tally",
    "tally_unmatched",
    "with_withdrawals",
    "without",
]
