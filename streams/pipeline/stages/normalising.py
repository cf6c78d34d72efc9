"""A raw record, read: its posts, deletions and rejects, and which of the posts repeat others."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from models.errors import Rejected
from models.language import identify_all
from models.moments import rfc3339
from models.posts import read_post, split_lines, words_of
from models.pseudonyms import Link, Pseudonyms
from models.records import (
    Deletion,
    Frame,
    Origin,
    Post,
    Reject,
    Repeat,
)
from streams.pipeline.ports import Claim, Gone, Verdict

__all__ = ["KEPT_OF_REJECT", "Parsed", "fold", "parse", "parse_many", "sum_up", "tally_unmatched"]

KEPT_OF_REJECT = 65_536  # bytes of a refused record that are kept; the rest of a 10 MB line says nothing more

REJECTS_EACH = 20  # of a reason in one raw record that are told one by one; a record may hold 300,000 empty objects
REJECTS_SUMMED = 1_000  # the rest, so many lines to one reject

_pack = msgspec.msgpack.Encoder().encode
_post = msgspec.msgpack.Decoder(Post).decode


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


Raw = tuple[bytes, Origin, float]  # a record's value, where it is from, and when it came (epoch seconds)
Line = tuple[int, Post | Deletion, str | None]  # its number, what it is, and the post's own language tag


def parse(value: bytes, origin: Origin, seen_at: float, pseudonyms: Pseudonyms) -> Parsed:
    """Read one NDJSON record. Never raises: what cannot be read becomes a Reject with its reason and bytes.

    Ids, links and mentions are pseudonyms from here on (models/pseudonyms.py), unless these keep them.
    """
    return parse_many([(value, origin, seen_at)], pseudonyms)[0]


def parse_many(records: Sequence[Raw], pseudonyms: Pseudonyms) -> list[Parsed]:
    """The same for several records: the languages of all their posts are told together."""
    read = [_lines(*one, pseudonyms.key) for one in records]
    posts = [(one.text, tag) for _, lines in read for _, one, tag in lines if isinstance(one, Post)]
    languages = iter(identify_all([text for text, _ in posts], [tag for _, tag in posts]))
    for parsed, lines in read:
        for number, sent, _ in lines:
            place = f"{parsed.origin.partition}:{parsed.origin.offset}:{number}"
            if isinstance(sent, Deletion):
                gone = pseudonyms.hide(sent)
                parsed.deletions.append(gone)
                parsed.claims.append(Gone(gone.id, place))
                continue
            post = pseudonyms.hide(sent, lang=next(languages))
            parsed.posts.append(post)
            if (link := pseudonyms.link(sent, post)) is not None:
                parsed.links.append(link)
            edit, words = post.kind == "update", words_of(post, pseudonyms.key)
            claim = Claim(post.id, place, words, post.repost_of, edit, _pack(post), post.fingerprint)
            parsed.claims.append(claim)
    return [parsed for parsed, _ in read]


def _lines(value: bytes, origin: Origin, seen_at: float, key: bytes) -> tuple[Parsed, list[Line]]:
    """A record with its rejects, and its other lines."""
    parsed = Parsed(origin, [], [], [], [], [])
    read: list[Line] = []
    for number, line in enumerate(split_lines(value)):
        try:
            read.append((number, *read_post(line, seen_at=seen_at, author_key=key)))
        except Rejected as why:
            kept, at = line[:KEPT_OF_REJECT], rfc3339(seen_at)
            parsed.rejects.append(Reject(why.reason, why.detail, "normalise", origin, number, at, kept))
    return parsed, read


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
