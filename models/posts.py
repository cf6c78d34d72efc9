"""One line of a raw frame → a `Post` or a `Deletion`, or `Rejected` with one of `REASONS`. Nothing else comes out.

The raw post is JSON: `id` and `text` are required (only `id` for `"kind": "delete"`); `created_at` (RFC 3339, or
epoch seconds, milliseconds or microseconds), `lang`, `source`, `author`, `url`, `reply_to`, `repost_of`, `geo` {lat,
lon} (or `lat` and `lon` or `lng`, or `latitude` and `longitude`, there or beside the others; or a point, as in
GeoJSON) and `kind` are optional. Unknown fields are ignored, and so is what an optional one holds of another type: no
call for help is lost over it. Only a `created_at` that cannot be a time refuses the post. Phone numbers and e-mail
addresses are masked here and the author becomes a pseudonym; `models.pseudonyms` hides ids, links and mentions.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from typing import Any, Literal

import msgspec
from msgspec import Struct

from models.errors import Rejected
from models.language import identify
from models.moments import epoch_s
from models.privacy import mask
from models.pseudonyms import keyed_hash, pseudonym
from models.records import Deletion, Geo, Post
from models.text import repair

__all__ = ["REASONS", "decode_unique", "parse_post", "read_post", "split_lines", "words_of"]

REASONS = (
    "too_large",  # the line is over MAX_LINE_BYTES, or the ingester cut it because the broker would refuse it
    "bad_utf8",
    "bad_json",  # truncated, or not JSON
    "nul_byte",
    "lone_surrogate",  # half a UTF-16 pair: not text
    "too_deep",
    "duplicate_key",  # two readers would see two posts
    "not_an_object",
    "wrong_type",
    "missing_id",
    "bad_id",  # too long, or holds control characters
    "missing_text",
    "empty_text",
    "text_too_long",
    "bad_time",  # unparsable, before 1990 or more than a day ahead
)
MAX_LINE_BYTES = 1 << 20
MAX_ID_CHARS = 512
# No platform's posts are longer. Longer text is refused before anything reads it, not cut: half a text has another
# fingerprint and another meaning, and a flood of emoji should cost nothing.
MAX_TEXT_CHARS = 10_000
MAX_DEPTH = 32
EARLIEST_S = 631_152_000.0  # 1990-01-01
MAX_AHEAD_S = 86_400.0  # clocks and time zones go wrong by less
MAX_SOURCE_CHARS = 40
_MAX_URL_CHARS = 2048

_REPOSTED = re.compile(r"^(?:RT @(\w{1,30}):? )+")  # a repost in words says the same as what it reposts
_STRING = re.compile(rb'"(?:[^"\\]++|\\.?)*+"?')  # one without an end too, or it is read anew from each of its quotes
_ZONE = re.compile(r"\s[A-Za-z]{2,5}(?=\s\d{4}$|$)")  # behind the clock, before the year at most
_NAMES = (("lat", "lon"), ("lat", "lng"), ("latitude", "longitude"))
_HALF_PAIR = re.compile("[\ud800-\udfff]")


class _Raw(Struct):
    id: str | int | None = None
    text: str | None = None
    created_at: str | int | float | None = None
    lang: Any = None  # from here on every source writes as it likes
    source: Any = None
    author: Any = None
    url: Any = None
    reply_to: Any = None
    repost_of: Any = None
    geo: Any = None
    coordinates: Any = None
    lat: Any = None
    lon: Any = None
    lng: Any = None
    latitude: Any = None
    longitude: Any = None
    kind: Any = None
    oversize: Any = None  # bytes of a line the ingester had to cut: streams/ingest/writer.py


_decode = msgspec.json.Decoder(_Raw).decode


def split_lines(value: bytes) -> list[bytes]:
    """The lines of a raw frame, blank ones left out. Only \\n ends a line: JSON cannot hold one unescaped."""
    return [line for piece in value.split(b"\n") if (line := piece.strip(b" \t\r"))]


def parse_post(line: bytes, *, seen_at: float, author_key: bytes, empty_ok: bool = False) -> Post | Deletion:
    """Read one line. seen_at: epoch seconds when it entered posts.raw; author_key: secret of the pseudonyms.

    empty_ok: a text without a visible character is read as "", not refused. Raises Rejected with a reason out of
    REASONS.
    """
    post, tag = read_post(line, seen_at=seen_at, author_key=author_key, empty_ok=empty_ok)
    return post if isinstance(post, Deletion) else msgspec.structs.replace(post, lang=identify(post.text, tag))


def read_post(
    line: bytes, *, seen_at: float, author_key: bytes, empty_ok: bool = False
) -> tuple[Post | Deletion, str | None]:
    """The same but for the language, and the post's own language tag: languages are told by the frame, see
    `models.language.identify_all`.
    """
    raw = _read(line)
    if type(raw.oversize) is int:
        raise Rejected("too_large", f"the line had {raw.oversize} bytes and was cut on the way in: send shorter lines")
    post_id = _id(raw.id)
    kind = _kind(raw.kind)
    if kind == "delete":
        return Deletion(post_id, seen_at), None
    text, author = _text(raw.text, empty_ok), _said(raw.author)
    post = Post(
        id=post_id,
        text=mask(text),
        created_at=_created_at(raw.created_at, seen_at),
        seen_at=seen_at,
        source=_source(raw.source),
        author=pseudonym(author, author_key) if author and author.strip() else None,
        url=_url(raw.url),
        reply_to=_reference(raw.reply_to),
        repost_of=_reference(raw.repost_of),
        geo=_geo(raw),
        kind=kind,
        fingerprint=keyed_hash(_REPOSTED.sub("", " ".join(text.split())), author_key, b"text"),
    )
    return post, _said(raw.lang)


def words_of(post: Post, author_key: bytes) -> str:
    """Whose words these are, and which: a keyed hash. Equal for an author's own repeats, and for reposts of one author.

    Never for two people who say the same: nobody could then be folded into another's post and vanish with it. An author
    is one within a source and, where ids name accounts, an account. A post that names no author repeats nobody: what
    stands before the slash of its id may as well be a channel (`sms/11`), a file or `https:`.
    """
    account, slash, _ = post.id.partition("/")
    author = post.author or post.id
    if reposted := _REPOSTED.match(post.text):  # what it reposts is another post: reposts fold among themselves
        account, author = "", "RT " + pseudonym(reposted.group(1), author_key)
    elif not slash or not post.author:
        account = ""
    return keyed_hash("\x1f".join((post.source, account, author, post.fingerprint)), author_key, b"words")


def _read(line: bytes) -> _Raw:
    if len(line) > MAX_LINE_BYTES:
        raise Rejected("too_large", f"the line has {len(line)} bytes, at most {MAX_LINE_BYTES} are read")
    if b"\0" in line:
        raise Rejected("nul_byte", f"NUL at byte {line.index(0)}: not a text line")
    line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        decoded = line.decode()
    except UnicodeDecodeError as error:
        raise Rejected("bad_utf8", f"byte {error.start} is not UTF-8 ({error.reason})") from error
    if (depth := _depth(line)) > MAX_DEPTH:
        raise Rejected("too_deep", f"nested {depth} deep, at most {MAX_DEPTH} is read")
    try:
        parsed = decode_unique(decoded)
        return _decode(line)
    except msgspec.ValidationError as error:
        if not isinstance(parsed, dict):
            raise Rejected("not_an_object", f"a post is a JSON object, this is {type(parsed).__name__}") from error
        raise Rejected("wrong_type", str(error)) from error
    except (ValueError, RecursionError) as error:  # msgspec.DecodeError is a ValueError too
        if b"\\u" in line and _HALF_PAIR.search(_lenient(decoded)):
            raise Rejected("lone_surrogate", "a \\ud800–\\udfff escape without its other half") from error
        raise Rejected("bad_json", f"{error} (line of {len(line)} bytes)") from error


def _lenient(decoded: str) -> str:
    """Every string of the line as the standard library reads it: it lets half pairs through."""
    try:
        return json.dumps(json.loads(decoded), ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise Rejected("duplicate_key", f"key {twice[:60]!r} stands there twice")
    return found


# 3 µs a post. Neither msgspec nor orjson reports duplicate keys, and a cheaper look would miss escaped ones.
decode_unique = json.JSONDecoder(object_pairs_hook=_unique).decode


def _depth(line: bytes) -> int:
    """Levels of nesting; exact where it matters, an upper bound (the number of brackets) where that is low."""
    if (most := line.count(b"{") + line.count(b"[")) <= MAX_DEPTH:
        return most
    depth = deepest = 0
    for byte in _STRING.sub(b"", line):
        if byte in b"{[":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"}]":
            depth -= 1
    return deepest


def _id(raw: str | int | None) -> str:
    post_id = "" if raw is None else str(raw).strip()
    if "\0" in post_id:
        raise Rejected("nul_byte", "the id holds a NUL")
    if not post_id:
        raise Rejected("missing_id", "a post needs an id that is unique on its platform")
    if len(post_id) > MAX_ID_CHARS or not post_id.isprintable():
        raise Rejected("bad_id", f"{post_id[:60]!r}: at most {MAX_ID_CHARS} printable characters")
    return post_id


def _text(raw: str | None, empty_ok: bool) -> str:
    if raw is None:
        raise Rejected("missing_text", "a post needs a text")
    if len(raw) > MAX_TEXT_CHARS:
        raise Rejected("text_too_long", f"{len(raw)} characters, at most {MAX_TEXT_CHARS} are read")
    if "\0" in raw:
        raise Rejected("nul_byte", "the text holds a NUL")
    text = repair(raw)
    if not text and not empty_ok:
        raise Rejected("empty_text", "no visible character in the text")
    return text


def _created_at(raw: str | int | float | None, seen_at: float) -> float:
    if raw is None or raw == "":
        return seen_at
    try:
        created_at = epoch_s(raw)
    except Rejected:  # a zone that is not known costs no call for help: as UTC, and not ahead of when it came
        created_at = min(epoch_s(_ZONE.sub("", str(raw))), seen_at)
    if not EARLIEST_S <= created_at <= seen_at + MAX_AHEAD_S:
        raise Rejected("bad_time", f"created_at {str(raw)[:60]!r} is before 1990 or more than a day ahead")
    return created_at


def _said(raw: Any) -> str | None:
    """What an optional field says in words or as a whole number. A fraction is a number that lost its end."""
    if raw is None or isinstance(raw, str):
        return raw
    return str(raw) if type(raw) is int else None


def _kind(raw: Any) -> Literal["create", "update", "delete"]:
    """Of other words (`tweet`, `need`) none takes a post away; `Deleted` does."""
    word = raw.strip().lower().removesuffix("d") if isinstance(raw, str) else ""
    if word == "delete":
        return "delete"
    return "update" if word == "update" else "create"


def _source(raw: Any) -> str:
    source = _said(raw)
    return repair(source[:MAX_SOURCE_CHARS]).replace("\n", " ") or "unknown" if source else "unknown"


def _geo(raw: _Raw) -> Geo | None:
    """Where the post says it is, if that is on Earth."""
    if raw.geo is not None or raw.coordinates is not None:
        if found := _position(raw.coordinates, True) or _position(raw.geo, False):
            return found
    return _on_earth(raw.lat, raw.lon) or _on_earth(raw.lat, raw.lng) or _on_earth(raw.latitude, raw.longitude)


def _position(where: Any, ordered: bool) -> Geo | None:
    """A position by the names of its numbers, or a point of GeoJSON (RFC 7946, section 3.1.1: the longitude first).

    ordered: is it sure to be in that order? The `geo` of a tweet of API 1.1 is such a point too, but has the latitude
    first (https://developer.x.com/en/docs/tweets/post-and-engage/guides/post-tweet-geo-guide), and full tweets have the
    right one beside, in `coordinates`. Where neither order can be ruled out the point says nothing: a boat sent to the
    wrong one of two places helps nobody.
    """
    if not isinstance(where, dict):
        return None
    for lat, lon in _NAMES:
        if found := _on_earth(where.get(lat), where.get(lon)):
            return found
    point = where.get("coordinates")
    if isinstance(point, dict):  # API 2 of Twitter: a GeoJSON point in the geo
        return _position(point, True)
    if where.get("type") != "Point" or not isinstance(point, list) or len(point) < 2:
        return None
    orders = [_on_earth(point[1], point[0]), None if ordered else _on_earth(point[0], point[1])]
    either = set(filter(None, orders))
    return either.pop() if len(either) == 1 else None


def _on_earth(lat: Any, lon: Any) -> Geo | None:
    """What is no number says nothing."""
    if lat is not None and lon is not None:
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            if abs(lat := float(lat)) <= 90 and abs(lon := float(lon)) <= 180:
                return Geo(lat, lon)
    return None


def _url(raw: Any) -> str | None:
    """Only what a page may link to: http and https."""
    if not isinstance(raw, str) or len(raw) > _MAX_URL_CHARS or not raw.isprintable() or " " in raw:
        return None
    return raw if raw.lower().startswith(("http://", "https://")) else None


def _reference(raw: Any) -> str | None:
    post_id = (_said(raw) or "").strip()
    return post_id if post_id and len(post_id) <= MAX_ID_CHARS and post_id.isprintable() else None
