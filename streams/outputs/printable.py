"""Untrusted text made safe to print: no escape sequences, no hidden direction changes, no towers of accents."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["printable", "safe_json", "shorten", "web_link"]

# C0 and C1 controls (tab and newline are dealt with as white space before), direction overrides, embeddings and
# isolates, invisible operators and tags, the byte order mark, lone surrogates and code points no XML may hold.
# Joiners (U+200C, U+200D) stay: many scripts and emoji are written with them.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ufffe\uffff"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
MARKS = 6  # combining marks kept on one letter; Tibetan and Burmese syllables need at most that many


def printable(text: str) -> str:
    """The text on one line with nothing in it that moves a cursor, changes colours or turns the reading direction."""
    text = _UNSAFE.sub("", re.sub(r"\s+", " ", text)).strip()
    kept, marks = [], 0
    for char in text:
        marks = marks + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        if marks <= MARKS:
            kept.append(char)
    return "".join(kept)


def shorten(text: str, most: int) -> str:
    """At most `most` characters, an ellipsis where something was cut."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def safe_json(encoded: bytes) -> str:
    r"""The same JSON with C1 controls and direction marks written as \uXXXX, so that a terminal does not obey them."""
    return _IN_JSON.sub(lambda m: f"\\u{ord(m[0]):04x}", encoded.decode())


def web_link(url: str | None) -> str | None:
    """The address if it is plain http(s) without white space, quotes or a user name (`https://bank.example@evil.example`
    looks like another host), else None."""
    ok = url is not None and len(url) <= 2000 and re.fullmatch(r"https?://[^\s<>\"'`\\\x00-\x1f\x7f-\x9f]+", url)
    return url if ok and "@" not in re.split("[/?#]", url, maxsplit=3)[2] else None
