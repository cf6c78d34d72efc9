"""Posts as a worker at its default settings reads them: what the alert benchmark counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct

from models.encoders.protocol import Encoder
from models.matching import Matcher
from models.reading import moved
from models.records import PRIORITIES, Post, is_notice
from training.metrics.alerting import Told
from training.posts import LabelledPost

__all__ = ["Judged", "Reader", "judge"]


class Read(Struct, frozen=True):
    """What the matcher made of texts, a row a text. Notices are apart: figures of needs and offers count none."""

    scores: np.ndarray  # (n, q); of notices too
    alert: list[str]  # query id of the alert, "" = none
    also: list[tuple[str, ...]]  # its other readings that are alerts
    shown: list[tuple[str, ...]]  # every reading, suggestions too
    first: list[str]  # query of the highest score
    likeliest: list[str]  # query of the primary reading, "" = none has a probability
    probability: np.ndarray  # (n,), that it is right, as alerts tell it; nan where there is none
    standing: np.ndarray  # (n,), what bars are held against (models/bars.py): its score, without a head its probability
    urgent: np.ndarray | None  # (n,), where the encoder has a learnt head
    notices: list[tuple[str, ...]]  # its readings that are alerts and notices
    priorities: np.ndarray  # (n, 3) as PRIORITIES; (n, 0) without a learnt head
    kinds: list[str]  # what each reads as by the classes alone, a query id or "news", "met" …; empty without a head
    worth: np.ndarray  # (n,): how likely a post is a need, an offer or a notice of any kind; 0 without a learnt head

    @property
    def ranked(self) -> np.ndarray | None:
        """(n,): the order in which posts should be seen, one worth an alert by its priority; None without one."""
        if not self.priorities.shape[1]:
            return None
        score: np.ndarray = self.worth * (self.priorities[:, 0] + 0.5 * self.priorities[:, 1])
        return score


class Reader:
    """Reads posts as a worker at its default settings does."""

    def __init__(self, matcher: Matcher, encoder: Encoder) -> None:
        self.matcher, self.encoder = matcher, encoder
        self.ids = [query.id for query in matcher.queries]
        self.needs, self.offers = (np.array([q.kind == kind for q in matcher.queries]) for kind in ("need", "offer"))
        self.aid = np.flatnonzero(self.needs | self.offers)

    def read(self, texts: Sequence[str], langs: Sequence[str] = ()) -> Read:
        """langs: of the texts, which move probabilities; empty = not known."""
        vectors = self.encoder.encode(texts)
        matcher, scores = self.matcher, self.matcher.scores(vectors)
        told = list(zip(texts, langs, strict=True)) if langs else []
        posts = [Post(str(i), text, 0.0, 0.0, lang=lang) for i, (text, lang) in enumerate(told)]
        readings: list[list] = [[] for _ in texts]
        notices: list[list] = [[] for _ in texts]
        ids = [str(i) for i in range(len(texts))]
        for match in matcher.match(ids, vectors, matcher.encoder_version, posts or None):
            (notices if is_notice(match.query_id) else readings)[int(match.post_id)].append(match)
        alerted = [found if found and found[0].level == "alert" else [] for found in readings]
        sure = matcher.probabilities(vectors)
        if sure is not None and matcher.head and langs:
            sure = moved(sure, matcher.head.spoken(langs)[:, None] * matcher.taught_aid)
            scores = np.maximum(scores, sure * matcher.taught_aid)
        aid = scores[:, self.aid]
        first = [self.ids[self.aid[i]] for i in aid.argmax(axis=1)] if len(texts) else []
        if sure is not None and matcher.head:
            likeliest, standing = first, aid.max(axis=1, initial=0.0).astype(float)
            probability = sure[np.arange(len(texts)), [self.ids.index(query) for query in first]].astype(float)
        else:
            likeliest = [found[0].query_id if found else "" for found in readings]
            standing = probability = np.array([f[0].probability if f else np.nan for f in readings], float)
        return Read(
            scores,
            [found[0].query_id if found else "" for found in alerted],
            [tuple(m.query_id for m in found[1:] if m.level == "alert") for found in alerted],
            [tuple(m.query_id for m in found) for found in readings],
            first,
            likeliest,
            probability,
            standing,
            matcher.head.urgent(vectors) if matcher.head else None,
            [tuple(m.query_id for m in found if m.level == "alert") for found in notices],
            matcher.head.priorities(vectors) if matcher.head else np.zeros((len(texts), 0), np.float32),
            matcher.head.kinds(vectors) if matcher.head else [],
            matcher.head.worth(vectors) if matcher.head else np.zeros(len(texts), np.float32),
        )

    def column(self, scores: np.ndarray, query_id: str) -> np.ndarray:
        return scores[:, self.ids.index(query_id)]


class Judged(Struct, frozen=True):
    """Labelled posts with what was made of them."""

    posts: list[LabelledPost]
    told: list[Told]
    best: np.ndarray  # (n,): highest score of any query
    right: np.ndarray  # (n,) bool: the primary reading is right
    probability: np.ndarray  # (n,), that it is; nan where there is none
    standing: np.ndarray  # (n,), what bars are held against
    shown: np.ndarray  # (n,) bool: as an alert or a suggestion
    notices: list[tuple[str, ...]]  # what each post alerts as a notice
    priority: list[str]  # "" without a learnt head

    def part(self, wanted: Callable[[LabelledPost], bool]) -> Judged:
        """Those of some posts."""
        at = [i for i, post in enumerate(self.posts) if wanted(post)]
        columns = (column[at] for column in (self.best, self.right, self.probability, self.standing, self.shown))
        told, notices, priority = ([of[i] for i in at] for of in (self.told, self.notices, self.priority))
        return Judged([self.posts[i] for i in at], told, *columns, notices, priority)

    @property
    def weights(self) -> np.ndarray:
        return np.array([post.weight for post in self.posts])


def judge(reader: Reader, posts: Sequence[LabelledPost]) -> Judged:
    """The posts as they are read."""
    read = reader.read([post.text for post in posts], [post.lang for post in posts])
    told = [
        Told(
            p.gold, p.second or "", p.urgency == "urgent", p.weight, read.alert[i], read.also[i], read.first[i], p.also
        )
        for i, p in enumerate(posts)
    ]
    right = np.array([query in t.labels for query, t in zip(read.likeliest, told, strict=True)], bool)
    shown = np.array([bool(found) for found in read.shown], bool)
    best = read.scores[:, reader.aid].max(axis=1, initial=-1.0)
    first = read.priorities.argmax(axis=1) if read.priorities.shape[1] else None
    priority = [""] * len(posts) if first is None else [PRIORITIES[i] for i in first]
    return Judged(list(posts), told, best, right, read.probability, read.standing, shown, read.notices, priority)
