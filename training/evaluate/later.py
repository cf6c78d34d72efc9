"""What labels of alerts do to later alerts of the bundled queries: a part of `training.evaluate feedback`.

The messages that people sent or that ask for something (disaster-messages-multilingual, most of them in Haitian
Creole) in their order. Of the first half, somebody labels the first reading of each alert as it comes; the second half
is measured at the bar. Messages that ask without saying for what are left out: nobody knows which query is right.

One-sided: three right alerts of a query and a language are said to be wrong; how many of the others still alert.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.encoders.ready import Ready
from models.feedback.records import Label
from models.feedback.teach import teach
from models.records import AID, Match, Post
from training.files import data_dir
from training.labels import disaster_messages

__all__ = ["Stream", "later_alerts", "read_stream"]

ONE_SIDED = 3  # wrong labels of a query and a language
LEAST = 3  # right alerts beside those, for a query and language to be measured


@dataclass(frozen=True)
class Stream:
    """Posts in their order, and the queries that each answers."""

    posts: list[Post]
    right: list[frozenset[str]]
    vectors: np.ndarray  # (n, d)

    def part(self, rows: Sequence[int]) -> Stream:
        """These posts alone."""
        return Stream([self.posts[i] for i in rows], [self.right[i] for i in rows], self.vectors[list(rows)])


def read_stream(version: Ready, most: int) -> Stream:
    """The first messages as sent, of the half that is held out and was not learnt, at most so many."""
    told = disaster_messages(data_dir(), train_half=False)
    posts: list[Post] = []
    right: list[frozenset[str]] = []
    for i, (text, lang) in enumerate(zip(told.texts, told.langs.tolist(), strict=True)):
        named = frozenset(name for name, about in told.labels.items() if about[i] and told.requests[i])
        if told.asks[i] and not lang.endswith("*") and (named or not told.requests[i]) and len(posts) < most:
            posts.append(Post(f"dm:{i}", text, 0.0, 0.0, lang))
            right.append(named)
    return Stream(posts, right, version.encoder.encode([post.text for post in posts]))


def alerts(version: Ready, stream: Stream) -> list[list[str]]:
    """The needs and offers that each post alerts as, the likeliest first."""
    matcher, found = version.matcher, [list[str]() for _ in stream.posts]
    ids = [post.id for post in stream.posts]
    rows: list[tuple[int, Match]] = matcher.match_rows(ids, stream.vectors, matcher.encoder_version, stream.posts)
    for row, match in rows:
        if match.level == "alert" and match.query_id.startswith(AID):
            found[row].append(match.query_id)
    return found


def label(post: Post, query_id: str, right: frozenset[str], at: float) -> Label:
    """What somebody who knows says of a reading."""
    verdict, instead = ("right", "") if query_id in right else ("other", min(right)) if right else ("none", "")
    return Label(post.id, query_id, verdict, "measure", at, post.text, post.lang, instead=instead)  # type: ignore[arg-type]


def later_alerts(version: Ready, stream: Stream, counts: Sequence[int]) -> dict:
    """By so many labels of the first half, 0 as shipped: alerts of the second, the share that was right and that was
    found, and of the posts that alerted rightly as shipped the share that no longer alert."""
    half = len(stream.posts) // 2
    before, after = stream.part(range(half)), stream.part(range(half, len(stream.posts)))
    labels = [
        label(post, named[0], right, float(i))
        for i, (post, right, named) in enumerate(zip(before.posts, before.right, alerts(version, before), strict=True))
        if named
    ]
    shipped, known, told = alerts(version, after), None, {}
    for n in (0, *counts):
        taught, known = teach(version, labels[:n], known)
        told[str(n)] = at_the_bar(after.right, alerts(taught, after), shipped)
    return {"posts": len(stream.posts), "labels": len(labels), **told, "one_sided": one_sided(version, stream)}


def at_the_bar(right: Sequence[frozenset[str]], found: Sequence[list[str]], shipped: Sequence[list[str]]) -> dict:
    """Shares over the posts: `right` of the alerts by their first reading, `found` of the queries, `silenced`."""
    first = [named[0] in wanted for wanted, named in zip(right, found, strict=True) if named]
    hits = sum(len(wanted & {*named}) for wanted, named in zip(right, found, strict=True))
    lost = [not now for wanted, was, now in zip(right, shipped, found, strict=True) if wanted & {*was}]
    return {
        "alerts": len(first),
        "right": round(sum(first) / max(len(first), 1), 4),
        "found": round(hits / max(sum(map(len, right)), 1), 4),
        "silenced": round(sum(lost) / max(len(lost), 1), 4),
    }


def one_sided(version: Ready, stream: Stream) -> dict:
    """Over every query and language with enough right alerts: how many there are beside the mislabelled, and how many
    of those still alert."""
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, (named, right) in enumerate(zip(alerts(version, stream), stream.right, strict=True)):
        for query_id in right.intersection(named):
            groups[query_id, stream.posts[row].lang].append(row)
    posts = kept = 0
    for (query_id, _), rows in sorted(groups.items()):
        if len(rows) < ONE_SIDED + LEAST:
            continue
        wrong = [stream.posts[row] for row in rows[:ONE_SIDED]]
        said = [Label(p.id, query_id, "wrong", "measure", 0.0, p.text, p.lang) for p in wrong]
        found = alerts(teach(version, said)[0], stream.part(rows[ONE_SIDED:]))
        posts, kept = posts + len(found), kept + sum(query_id in named for named in found)
    return {"alerts": posts, "kept": kept}
