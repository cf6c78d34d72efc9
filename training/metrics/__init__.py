"""Measures of vectors as pure functions: arrays in, figures out. What is run on which data is for
`training.evaluate`.
"""

from training.metrics.classes import ClassSimilarity, class_similarity
from training.metrics.hard_negatives import HardNegative, collect_entities, hard_negatives
from training.metrics.intervals import Interval, bootstrap, mean_interval, welch_p
from training.metrics.ranks import spearman
from training.metrics.spread import Anisotropy, anisotropy, cosine_histogram, pairwise_cosine_distance
from training.metrics.xsim import XsimResult, xsim

__all__ = [
    "Anisotropy",
    "ClassSimilarity",
    "HardNegative",
    "Interval",
    "XsimResult",
    "anisotropy",
    "bootstrap",
    "class_similarity",
    "collect_entities",
    "cosine_histogram",
    "hard_negatives",
    "mean_interval",
    "pairwise_cosine_distance",
    "spearman",
    "welch_p",
    "xsim",
]
