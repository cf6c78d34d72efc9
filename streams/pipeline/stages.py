"""The pipeline's steps as plain functions over frames. Agents and replay call the same ones.

    raw record ─parse─► Parsed ─fold─► Frame ─embed─► EmbeddedFrame ─match─► MatchedFrame ─► alerts, clusterer

No clock, no network, no Faust: who folds into whom is asked between `parse` and `fold` (Redis or a dict).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from msgspec import Struct

from models.alerts import make_alerts, withdraw
from models.bars import Bars
from models.cutting import count_items
from models.encoders.protocol import Encoder
from models.encoders.ready import Ready
from models.errors import Rejected
from models.matching import Matcher
from models.moments import rfc3339
from models.posts import parse_post, split_lines, words_of
from models.pseudonyms import Link, Pseudonyms
from models.records import (
    Alert,
    Deletion,
    EmbeddedFrame,
    Frame,
    Match,
    MatchedFrame,
    Origin,
    Post,
    Reject,
    Repeat,
    account_of,
)
from models.text import READ_CHARS
from streams.pipeline.frames import pack_vectors, unpack_vectors
from streams.pipeline.outcomes import MATCHED
from streams.pipeline.ports import Alerts, Claim, Gone, Verdict

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
    "settle_alerts",
    "sum_up",
    "tally",
    "tally_unmatched",
]

KEPT_OF_REJECT = 65_536  # bytes of a refused record that are kept; the rest of a 10 MB line says nothing more

REJECTS_EACH = 20  # of a reason in one raw record that are told one by one; a record may hold 300,000 empty objects
REJECTS_SUMMED = 1_000  # the rest, so many lines to one reject

MATCH_POSTS = 256  # compared with all queries at once: bounds the memory where there are a hundred thousand

_pack = msgspec.msgpack.Encoder().encode
_post = msgspec.msgpack.Decoder(Post).decode

CALL_CHARS = (
    200_000  # read in one encoder call: 1,500 ordinary posts, and a call that ends in a second whatever they say
)


class Parsed(Struct, frozen=True):
    """One raw record, read: every line is a post, a deletion or a reject."""

    origin: Origin
    posts: list[Post]
    claims: list[Claim | Gone]  # of the posts and deletions, in the order of their lines
    deletions: list[Deletion]
    rejects: list[Reject]
    links: list[Link]  # what the posts' pseudonyms stand for

    @property
    def read(self) -> int:
        """Lines read."""
        return len(self.posts) + len(self.deletions) + len(self.rejects)


def parse(value: bytes, origin: Origin, seen_at: float, pseudonyms: Pseudonyms) -> Parsed:
    """Read one NDJSON record. Never raises: what cannot be read becomes a Reject with its reason and bytes.

    Ids, links and mentions are pseudonyms from here on (models/pseudonyms.py), unless these keep them.
    """
    parsed = Parsed(origin, [], [], [], [], [])
    for line_number, line in enumerate(split_lines(value)):
        try:
            sent = parse_post(line, seen_at=seen_at, author_key=pseudonyms.key)
        except Rejected as why:
            parsed.rejects.append(
                Reject(
                    why.reason, why.detail, "normalise", origin, line_number, rfc3339(seen_at), line[:KEPT_OF_REJECT]
                )
            )
            continue
        record, place = pseudonyms.hide(sent), f"{origin.partition}:{origin.offset}:{line_number}"
        if isinstance(record, Deletion):
            parsed.deletions.append(record)
            parsed.claims.append(Gone(record.id, place))
        elif isinstance(sent, Post):
            parsed.posts.append(record)
            if (link := pseudonyms.link(sent, record)) is not None:
                parsed.links.append(link)
            words = words_of(record, pseudonyms.key)
            edit = record.kind == "update"
            parsed.claims.append(Claim(record.id, place, words, record.repost_of, edit, _pack(record)))
    return parsed


def sum_up(rejects: Sequence[Reject]) -> list[Reject]:
    """The rejects of one raw record as they are sent: of many of one reason, the later ones a thousand to one.

    Nothing is lost: `also` names their lines, and `crisis rejected retry` reads them from posts.raw.
    """
    found: dict[str, list[Reject]] = {}
    for reject in rejects:
        same = found.setdefault(reject.reason, [])
        if len(same) <= REJECTS_EACH or len(same[-1].also) == REJECTS_SUMMED - 1:
            same.append(msgspec.structs.replace(reject, also=[]))
        else:
            same[-1].also.append(reject.line)
    return [reject for same in found.values() for reject in same]


def fold(parsed: Parsed, verdicts: Sequence[Verdict]) -> Frame:
    """Fold repeats into their originals. Explicit edits are never folded: the newest text of a post counts.

    Repeats that take the place of an original which is edited or deleted here are posts, seen now. verdicts: one for
    each of `parsed.claims`.
    """
    posts: list[Post] = []
    repeats, sent, gone = [], iter(parsed.posts), iter(parsed.deletions)
    for claim, verdict in zip(parsed.claims, verdicts, strict=True):
        cause: Post | Deletion = next(gone) if isinstance(claim, Gone) else next(sent)
        if isinstance(cause, Post):
            if verdict.repeats is not None and cause.kind == "create":
                repeats.append(Repeat(cause.id, verdict.repeats, cause.seen_at))
            elif verdict.edits and cause.kind == "create":
                posts.append(msgspec.structs.replace(cause, kind="update"))
            else:
                posts.append(cause)
        posts += [msgspec.structs.replace(_post(raised), seen_at=cause.seen_at) for raised in verdict.raised]
    return Frame(parsed.origin, posts, repeats, parsed.deletions)


def embed(frame: Frame, encoder: Encoder) -> EmbeddedFrame:
    """Add one vector per post. Blocking: call it in the encoder's thread."""
    return embed_many([frame], encoder)[0]


def embed_many(frames: Sequence[Frame], encoder: Encoder) -> list[EmbeddedFrame]:
    """The same for several frames in one encoder call, or few: batches are what makes an encoder fast."""
    calls = _calls([post.text for frame in frames for post in frame.posts])
    vectors = np.concatenate([encoder.encode(texts) for texts in calls])
    embedded, at = [], 0
    for frame in frames:
        rows = vectors[at : at + len(frame.posts)]
        at += len(frame.posts)
        embedded.append(
            EmbeddedFrame(
                origin=frame.origin,
                posts=frame.posts,
                repeats=frame.repeats,
                deletions=frame.deletions,
                elsewhere=frame.elsewhere,
                encoder_version=encoder.version,
                dim=encoder.dim,
                vectors=pack_vectors(rows),
            )
        )
    return embedded


def _calls(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """The texts in runs of at most CALL_CHARS characters that are read; at least one run."""
    begins = chars = 0
    for at, text in enumerate(texts):
        read = min(len(text), READ_CHARS)
        if chars + read > CALL_CHARS:
            yield texts[begins:at]
            begins, chars = at, 0
        chars += read
    yield texts[begins:]


def match(frame: EmbeddedFrame, matcher: Matcher, bars: Bars | None = None, learn: bool = True) -> MatchedFrame:
    """Add the matches. Of a post that occurs twice in the frame (an edit right behind it) only the last text counts.

    bars: those that follow the stream; learn: let this frame move them.
    Raises VersionMismatch if frame and matcher are of two encoder versions.
    """
    return match_many([frame], matcher, bars, learn)[0]


def match_many(
    frames: Sequence[EmbeddedFrame], matcher: Matcher, bars: Bars | None = None, learn: bool = True
) -> list[MatchedFrame]:
    """The same for several frames in order, some MATCH_POSTS posts at a time.

    A call costs some 2 ms whatever it holds: frames of six posts by themselves 505 µs a post, of a hundred 115.
    """
    made: list[MatchedFrame] = []
    some: list[EmbeddedFrame] = []
    for n, frame in enumerate(frames, 1):
        some.append(frame)
        if n == len(frames) or sum(len(one.posts) for one in some) + len(frames[n].posts) > MATCH_POSTS:
            found = _matches(some, matcher)
            made += [_matched(*one, matcher, bars, learn) for one in zip(some, found, strict=True)]
            some = []
    return made


def _matches(frames: Sequence[EmbeddedFrame], matcher: Matcher) -> list[tuple[list[Post], list[Match]]]:
    """Of each frame the posts that count, and their matches."""
    posts: list[list[Post]] = []
    vectors: list[np.ndarray] = []
    owner: list[int] = []  # of each row
    for n, frame in enumerate(frames):
        rows = list({post.id: i for i, post in enumerate(frame.posts)}.values())
        posts.append([frame.posts[i] for i in rows])
        vectors.append(unpack_vectors(frame)[rows])
        owner += [n] * len(rows)
    every = [post for mine in posts for post in mine]
    other = next((f.encoder_version for f in frames if f.encoder_version != matcher.encoder_version), None)
    version = other or matcher.encoder_version
    matches: list[list[Match]] = [[] for _ in frames]
    for row, found in matcher.match_rows([p.id for p in every], _stacked(vectors), version, every):
        matches[owner[row]].append(found)
    return list(zip(posts, matches, strict=True))


def _stacked(vectors: Sequence[np.ndarray]) -> np.ndarray:
    """(n, d); blocks without a row may be of any dimension."""
    return np.concatenate([block for block in vectors if len(block)] or vectors[:1])


def _matched(
    frame: EmbeddedFrame,
    read: tuple[list[Post], list[Match]],
    matcher: Matcher,
    bars: Bars | None,
    learn: bool,
) -> MatchedFrame:
    posts, found = read
    if bars is not None:
        found = bars.settle(found, posts, matcher, frame.origin.partition, learn)
    return MatchedFrame(
        origin=frame.origin,
        posts=frame.posts,
        repeats=frame.repeats,
        deletions=frame.deletions,
        elsewhere=frame.elsewhere + len(frame.waiting),
        encoder_version=frame.encoder_version,
        dim=frame.dim,
        vectors=frame.vectors,
        matches=found,
    )


def alerts(frame: MatchedFrame, ready: Ready) -> list[Alert]:
    """The alerts of a frame's matches, with the release that scored them."""
    made = make_alerts(frame.posts, frame.matches, ready.queries, frame.encoder_version)
    return [msgspec.structs.replace(alert, registry_version=ready.name) for alert in made]


def by_turn(frame: EmbeddedFrame) -> list[Frame]:
    """What of the frame was put by, a frame for each turn. Each ends where the frame ends: delivered twice, and divided
    otherwise the second time, it still counts once."""
    items = count_items(frame)
    turns = sorted({post.put_by.turn for post in frame.waiting if post.put_by})
    of = {turn: [post for post in frame.waiting if post.put_by and post.put_by.turn == turn] for turn in turns}
    return [
        Frame(msgspec.structs.replace(frame.origin, turn=turn), posts, elsewhere=items - len(posts))
        for turn, posts in of.items()
    ]


def tally_unmatched(parsed: Parsed, frame: Frame, verdicts: Sequence[Verdict]) -> dict[str, int]:
    """`read`, and the outcomes of what of it goes no further than `fold`. `tally` has the others.

    What was folded once and takes the place of another post now has one outcome all the same.
    """
    return {
        "read": parsed.read,
        "folded": len(frame.repeats) - sum(len(verdict.raised) for verdict in verdicts),
        "rejected": len(parsed.rejects),
        "deleted": len(frame.deletions),
    }


def tally(frame: MatchedFrame) -> dict[str, int]:
    """Posts of the frame by their best outcome: alert, suggestion or no_match. Sums to the number of posts."""
    best = dict.fromkeys((p.id for p in frame.posts), "no_match")
    for found in frame.matches:
        if found.level == "alert" or best[found.post_id] == "no_match":
            best[found.post_id] = found.level
    outcome = dict.fromkeys(MATCHED, 0)
    for post in frame.posts:
        outcome[best[post.id]] += 1
    return outcome


def blank(alert: Alert) -> Alert:
    """The alert without its post's text, link and places, and what was read in it: a withdrawal tells none of it."""
    post = msgspec.structs.replace(alert.post, text="", url=None, geo=None, places=[], author=None)
    return msgspec.structs.replace(alert, post=post, evidence=msgspec.structs.replace(alert.evidence, signs=[]))


async def settle_alerts(frame: MatchedFrame, alerts: list[Alert], known: Alerts) -> list[Alert]:
    """The frame's alerts, and those to withdraw: of deleted posts, and of edited ones that no longer match.

    A post deleted while it was still under way gets no alert at all. Withdrawn alerts say which they were, not what.
    """
    if frame.deletions:
        await known.mark_gone([d.id for d in frame.deletions])
    gone = await known.gone({a.post.id for a in alerts}) if alerts else set()
    kept = [a for a in alerts if a.post.id not in gone]
    causes = {p.id: p for p in frame.posts if p.kind == "update"} | {d.id: d for d in frame.deletions}
    ids = {a.alert_id for a in kept}
    earlier = await known.alerts_of(causes) if causes else []
    return kept + [
        blank(withdraw(a, causes.get(a.post.id) or causes[account_of(a.post.id)]))
        for a in earlier
        if a.status == "active" and a.alert_id not in ids
    ]
