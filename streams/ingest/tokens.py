"""Who may send posts over HTTP, and as whom: a token belongs to one source, and what comes with it is that source's.

Ids get the source's name in front and the field `source` is overwritten, so no client can delete, edit, forge or be
first with a post of another source, live ones included.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from models.errors import ConfigError, Rejected
from models.posts import decode_unique
from streams.config.secrets import secret
from streams.config.sources import SOURCES
from streams.ingest.lines import refused_line

__all__ = ["Sources", "owned"]

LEAST_CHARS = 16
UNNAMED = "http"  # the source of a token that stands alone
PREFIXES = frozenset(source.prefix for source in SOURCES.values() if source.prefix)
RESERVED = SOURCES.keys() - {UNNAMED} | PREFIXES | {"unknown"}
LIVE = tuple(f"{prefix}:" for prefix in PREFIXES)  # ids of live sources, which a client may refer to
IDS = ("id", "repost_of", "reply_to")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,30}")
_HASH = re.compile(r"sha256:([0-9a-f]{64})")
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_id = msgspec.json.Decoder(str | int | None).decode
_encode = msgspec.json.Encoder().encode


class Sources:
    """The sources and the hashes of their tokens; the tokens themselves are not kept."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._by_hash = {_hash(token): name for token, name in tokens.items()}

    @classmethod
    def read(cls, token_file: str | None) -> Sources:
        """From a file of `name token` (or `name sha256:…`) lines, or CRISIS_HTTP_TOKEN; a token may stand alone.

        Raises ConfigError for a file that is blank, short tokens, bad or reserved names, and a token given twice.
        """
        if token_file:
            try:
                text = Path(token_file).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise ConfigError(f"cannot read the token file {token_file}: {error}") from error
        else:
            text = secret(None, "CRISIS_HTTP_TOKEN") or ""
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        if not lines:
            raise ConfigError(
                "POST /posts needs a token: give --token-file, one 'source token' a line, or set CRISIS_HTTP_TOKEN "
                "(python -c 'import secrets; print(secrets.token_urlsafe(32))' makes one)"
            )
        self = cls({})
        for number, line in enumerate(lines, 1):
            alone = len(lines) == 1 and len(line.split()) != 2
            name, _, token = (UNNAMED, "", line) if alone else line.partition(" ")
            self._add(number, name, token.strip())
        return self

    def _add(self, number: int, name: str, token: str) -> None:
        if not _NAME.fullmatch(name) or name in RESERVED:
            raise ConfigError(f"token {number}: {name[:40]!r} is no name for a source; use a-z, 0-9, - and _")
        hashed = known.group(1) if (known := _HASH.fullmatch(token)) else _hash(token)
        if not known and len(token) < LEAST_CHARS:
            raise ConfigError(f"token {number} ({name}) has {len(token)} characters: {LEAST_CHARS} or more are needed")
        if hashed in self._by_hash:
            raise ConfigError(f"token {number} ({name}) is the token of {self._by_hash[hashed]} too: give each its own")
        self._by_hash[hashed] = name

    def of(self, token: str) -> str | None:
        """The source that sends this token; None for no token of ours. Takes the same time for any wrong one."""
        hashed, found = _hash(token), None
        for known, name in self._by_hash.items():
            if hmac.compare_digest(known, hashed):
                found = name
        return found


def owned(line: bytes, source: str) -> bytes:
    """The line as a post of that source. What cannot be read here is read nowhere: `refused_line`, to be counted."""
    line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        decode_unique(line.decode())
        fields = _fields(line)
        ids = {name: _own(_id(fields[name]), source, name) for name in IDS if name in fields}
        return _encode({**fields, **ids, "source": source})
    except (Rejected, ValueError, RecursionError, msgspec.MsgspecError):
        return refused_line(line)


def _own(given: str | int | None, source: str, field: str) -> str | None:
    post_id = "" if given is None else str(given).strip()
    if not post_id or post_id.startswith(f"{source}:"):
        return post_id or None
    if field != "id" and post_id.startswith(LIVE):  # to refer to a post takes nothing from it
        return post_id
    return f"{source}:{post_id}"


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
