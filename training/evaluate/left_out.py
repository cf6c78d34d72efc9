"""How urgency ranks the posts of an event that it learnt nothing of.

Some events of the TREC-IS streams are also in CrisisLexT26, which teaches (training/posts/read.tsv). For each of them
the line of urgency is fitted anew without the event; the encoder has read its posts all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from models.encoders.protocol import Encoder
from models.reading import logistic
from training.class_material import MAY_LEARN
from training.evaluate.alert_material import Timed
from training.head import Config, fit_urgency, plain_of
from training.posts import LabelledPost

__all__ = ["urgency_left_out"]


def urgency_left_out(encoder: Encoder, timed: Sequence[Timed], posts: Sequence[LabelledPost]) -> np.ndarray:
    """(n,) how urgent each post is by a line that saw no post of its event. posts: all that are labelled."""
    plain = plain_of(encoder)
    learning = [p for p in posts if not p.judges and (p.use != "read" or p.origin in MAY_LEARN)]
    vectors, asked = plain.encode([p.text for p in learning]), plain.encode([post.text for post in timed])
    named = np.array([f"{p.origin} {p.event}" for p in learning])
    texts = {p.text: name for p, name in zip(learning, named, strict=True)}
    events = np.array([post.event for post in timed])
    out = np.zeros(len(timed), np.float32)
    for event in dict.fromkeys(events.tolist()):
        own = events == event
        same = {texts[post.text] for post in timed if post.event == event and post.text in texts}
        kept = ~np.isin(named, list(same))
        line = np.array(
            fit_urgency(Config(), vectors[kept], [p for p, keep in zip(learning, kept, strict=True) if keep])
        )
        out[own] = logistic(asked[own] @ line[:-1] + line[-1])
    return out
