"""Post ids, links, handles and mentions → keyed pseudonyms, before a post goes on to anybody.

An id like `bsky:did:plc:x/3k`, a link or a mention names somebody's account. `Pseudonyms.hide` takes them out of a
post: ids become keyed hashes that keep their shape (`~ACCOUNT/POST`: what stands before the slash is still one account,
so deletions of an account, folding and quotas go on working), mentions and links to accounts in the text a short one.
The short one hangs on the words of the text too: copies and reposts of it stay alike, and nobody learns by a post of
his own how somebody is called in another, or as the author of one.
The original id and link are returned beside it, for whoever keeps them apart (streams/view/vault.py).

Keyed hashing (RFC 7693, section 2.9), not plain hashing: ids are public, so a plain hash is undone by hashing them all.
What this does not hide: the words themselves, which anybody can look for on the platform.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TypeVar

import msgspec
from msgspec import Struct

from models.records import Deletion, Post
from models.text import replace_links, replace_mentions

__all__ = ["LEAST_KEY_CHARS", "OFFLINE", "Link", "Pseudonyms", "keyed_hash", "pseudonym"]

LEAST_KEY_CHARS = 32  # of the secret: whoever guesses it can undo every pseudonym
MARK = "~"  # an id that begins with it is a pseudonym already: what people copy from a page can be typed again
_ID_BYTES = 12  # 96 bits: among 10⁹ posts two are alike with a chance of 10⁻¹¹
_SHORT_BYTES = 4  # of a mention
_KEYED = re.compile(r"~[0-9a-f]{24}(?:/[0-9a-f]{24})?")
_REPOSTED = re.compile(r"(?:RT @\w{1,30}:? )+")  # as models/posts.py leaves it out of fingerprints
_ACCOUNT = re.compile(r"(@?\bdid:[a-z]{1,10}:[A-Za-z0-9._:%-]{8,})")
# What leads to an account or to a post of one: everything on these hosts, and a path with an @ in it (Mastodon).
_OF_ACCOUNTS = re.compile(
    r"(?:https?://)?(?:[\w-]+\.)?(?:(?:x|twitter|facebook|fb|instagram|threads|tiktok|youtube|vk|linkedin|reddit|telegram|"
    r"snapchat|weibo)\.(?:com|net|me)|(?:fb|ig|line|m|paypal|signal|t|wa|zalo)\.me|chat\.whatsapp\.com|bsky\.(?:app|social))"
    r"(?:/|$)"
    r"|[^?#]*/(?:@|users/|profile/|u/)",
    re.IGNORECASE,
)
# Links that an encoder does not read as such: without a scheme whatever their ending, and those of Bluesky's protocol.
_ENDS = r"[^\s<>\"]*[^\s<>\".,!?;:)'\]…]"
_BARE_LINK = re.compile(rf"(?<![\w@./-])(?:[a-z0-9-]{{1,63}}\.){{1,4}}[a-z]{{2,24}}/{_ENDS}", re.IGNORECASE)
_AT_LINK = re.compile(rf"\bat://{_ENDS}", re.IGNORECASE)
_HANDLE = re.compile(r"(?<![\w@.-])(?:[a-z0-9-]{1,63}\.){1,3}bsky\.social(?![\w-])", re.IGNORECASE)  # without its @
_WIDE_AT = re.compile(
    r"([A-Za-z0-9_.+-]?)(?<!\d(?=[＠﹫]\d))[＠﹫](?=\w)"
)  # as it is typed beside Chinese and Japanese
_HOST = re.compile(r"(?:https?://)?[^/?#]{1,253}", re.IGNORECASE)
# What names the account is masked already (models/privacy.py). A link's end leaves out a last bracket.
_MASKED = re.compile(rf"{_HOST.pattern}/(?:#p/)?(?:\+|%2B)?\[phone\]?", re.IGNORECASE)


R = TypeVar("R", Post, Deletion)


class Link(Struct, frozen=True):
    """Where a post can be read: `id` and `url` as its source gave them. `post_id` is its pseudonym."""

    post_id: str
    id: str
    url: str | None = None


class Pseudonyms:
    """What one secret makes of ids, handles and mentions. keep: leave them as they are (`privacy.keep_ids`)."""

    def __init__(self, key: bytes, keep: bool = False) -> None:
        self.key, self.keep = key, keep

    def id(self, post_id: str) -> str:
        """The pseudonym of a post's or account's id; one that is a pseudonym already stays.

        Nobody gains by sending such an id: a source's token puts the source's name before it, and what files and
        brokers hold is trusted with ids anyway.
        """
        if self.keep or _KEYED.fullmatch(post_id):
            return post_id
        account, slash, _ = post_id.partition("/")
        # An id that begins with a slash is its own account (models.records.account_of).
        owner = _owner(account or post_id, self.key)
        return f"{owner}/{keyed_hash(post_id, self.key, b'post', _ID_BYTES)}" if slash and account else owner

    def text(self, text: str, said: str = "") -> str:
        """The text without names of accounts: mentions, ids of accounts, links to accounts and their posts.

        said: a keyed hash of the text as it was sent.
        """
        if self.keep:
            return text

        def short(name: str) -> str:
            plain = name.removeprefix("@").lower()
            return keyed_hash(f"{said} {plain}", self.key, b"mention", _SHORT_BYTES)

        def link(found: re.Match[str]) -> str:
            return _link(found.group(), short)

        def mention(found: re.Match[str]) -> str:
            return "@" + short(found.group())

        if "/" in text:  # by words, as `replace_links` does; first those that it does not know
            at_link = partial(_AT_LINK.sub, lambda found: f"at://{short(found.group())}")
            text = " ".join([_BARE_LINK.sub(link, at_link(word)) if "/" in word else word for word in text.split(" ")])
        if "/" in text or "www." in text.lower():
            text = replace_links(text, link)
        if "＠" in text or "﹫" in text:  # no address of mail is left here: what stands before it is a word
            text = _WIDE_AT.sub(lambda found: f"{found[1]} @" if found[1] else "@", text)
        if "did:" in text:  # no mention is looked for in what was just written
            parts = enumerate(_ACCOUNT.split(text))
            text = "".join(["@" + short(part) if n % 2 else replace_mentions(part, mention) for n, part in parts])
        elif "@" in text:
            text = replace_mentions(text, mention)
        if "bsky" in text.lower():
            text = _HANDLE.sub(mention, text)
        return text

    def _reposted(self, text: str, said: str) -> str:
        """The same of a whole post. Its fingerprint leaves out who is reposted: one post could try many names."""
        head = _REPOSTED.match(text)
        if head is None:
            return self.text(text, said)
        names = " ".join(re.findall(r"@(\w+)", head[0].lower()))
        return self.text(head[0], f"{said} {names}") + self.text(text[head.end() :], said)

    def hide(self, record: R, lang: str | None = None) -> R:
        """The same record under pseudonyms: no id, link or handle of its platform is left in it. lang: of a post, where
        it is known by now."""
        told = {} if lang is None else {"lang": lang}
        if self.keep:
            return msgspec.structs.replace(record, **told)
        if isinstance(record, Deletion):
            return msgspec.structs.replace(record, id=self.id(record.id))
        return msgspec.structs.replace(
            record,
            id=self.id(record.id),
            text=self._reposted(record.text, record.fingerprint),
            url=None,
            reply_to=record.reply_to and self.id(record.reply_to),
            repost_of=record.repost_of and self.id(record.repost_of),
            **told,
        )

    def link(self, post: Post, hidden: Post | None = None) -> Link | None:
        """What `hide` takes away of a post; None where it stays. hidden: what it made of the post, where known."""
        return None if self.keep else Link(hidden.id if hidden else self.id(post.id), post.id, post.url)


OFFLINE = Pseudonyms(b"file", keep=True)  # for files that one has anyway: their ids stay, and may be compared


@lru_cache(maxsize=16_384)  # who posts, posts again
def _owner(account: str, key: bytes) -> str:
    return MARK + keyed_hash(account, key, b"account", _ID_BYTES)


def _link(url: str, short: Callable[[str], str]) -> str:
    if not _OF_ACCOUNTS.match(url):
        return url
    if masked := _MASKED.match(url):
        return masked.group()
    host = _HOST.match(_HANDLE.sub("bsky.social", url))
    number = "/[phone" if url.endswith("[phone") else ""  # what shuts it stands behind the link
    return f"{host.group() if host else ''}/{short(url)}{number}"


@lru_cache(maxsize=16_384)
def pseudonym(handle: str, key: bytes) -> str:
    """A keyed hash of an author's name: the same author under the same key, unreadable without it."""
    return keyed_hash(handle.strip().removeprefix("@").lower(), key, b"author")


def keyed_hash(text: str, key: bytes, purpose: bytes, size: int = 16) -> str:
    """BLAKE2b of the text under the key, as hex digits. purpose: at most 16 bytes; other purpose, other hash."""
    made = _keyed(key, purpose, size).copy()
    made.update(text.encode(errors="replace"))
    return made.hexdigest()


@lru_cache(maxsize=64)  # a copy of one that has taken its key is made in half the time
def _keyed(key: bytes, purpose: bytes, size: int) -> hashlib.blake2b:
    key = key if len(key) <= 64 else hashlib.blake2b(key).digest()
    return hashlib.blake2b(digest_size=size, key=key, person=purpose)
