"""The English words one knows, for `models.encoders.normalise`: those of the training pairs, and short forms.

The short forms are our noise lists read the other way round. Noise that was made with them is undone too well by them:
figures of abr2, slng and spel say little; those of slips and spaces (fing, spac) and of real posts are the ones to read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from models.encoders.normalise import Normaliser
from training.data import training_pairs
from training.files import data_dir
from training.noise.mix import own_lists

__all__ = ["english_normaliser"]

SOURCES = ("tatoeba-train", "indic-wiki-4ref", "tico19-dev", "disaster-messages", "afriqa")  # whole sentences, no UI
SEEN = 3  # times a word must be seen: half of those seen once are slips themselves
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_LISTS = ("abr2", "slng", "spel")


def known_words(texts: Iterable[str], seen: int = SEEN) -> dict[str, int]:
    """Words of the texts, lower case, and how often each occurs; those that occur `seen` times or more."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(word.lower().replace("’", "'") for word in _WORD.findall(text))
    return {word: count for word, count in counts.items() if count >= seen}


def short_forms() -> dict[str, str]:
    """What each form of the lists stands for; of several the first."""
    found: dict[str, str] = {}
    for name in _LISTS:
        for form, meant in own_lists()[name].meanings():
            found.setdefault(form.lower(), meant)
    return found


def english_normaliser() -> Normaliser:
    """Of the English sides of the training pairs (CRISIS_DATA): nothing of what encoders are measured on."""
    pairs = training_pairs(data_dir(), SOURCES)
    return Normaliser(known_words(dict.fromkeys(pairs.english)), short_forms())
