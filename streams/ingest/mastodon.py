"""`crisis ingest mastodon`: a server's public, local or hashtag stream (server-sent events).

https://docs.joinmastodon.org/methods/streaming/. Since Mastodon 4.2 every stream needs a token. The stream makes no
effort to catch up after a break, so each new connection first reads what it missed from the timeline (REST), oldest
first; a post seen twice is folded further on. Then it looks again at the posts it sent last, as it knows them, for what
was deleted or edited meanwhile. It never learns what became, during a break, of older posts, or of those it sent before
it was started anew; nor from servers before Mastodon 4.3, which show several posts by their ids to nobody.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from html import unescape
from html.parser import HTMLParser
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import click
import httpx
import msgspec
from httpx_sse import EventSource, SSEError, aconnect_sse
from msgspec import Struct

from models.errors import ConfigError, ServiceError
from models.undecodable import UNDECODABLE
from streams.config import Settings
from streams.config.secrets import in_brief, secret
from streams.ingest.cursor import Cursor
from streams.ingest.lines import refused_line
from streams.ingest.live import Disconnected, ReconnectConfig, keep_connected, run_live
from streams.ingest.writer import FrameWriter

__all__ = ["mastodon"]

log = logging.getLogger(__name__)
PAGE = 40  # the most a timeline page holds
PAGES = 25  # of missed posts that are read after a break; 1,000 posts
RECENT = 200  # posts sent last that are looked at again: 10 requests of the 300 that Mastodon allows in 5 minutes
TOGETHER = 20  # the most posts that it shows by their ids
SPARED = 100  # requests that are left for posts that were missed
BODY_BYTES = 16 << 20  # of an answer: a page of posts has some 150 kB
EVENT_CHARS = 1 << 20  # of an event: a post has some 4,000


@dataclass(frozen=True)
class MastodonConfig:
    """Which stream, from where."""

    server: str  # https://mastodon.example
    token: str
    stream: Literal["public", "local"] = "public"
    hashtag: str | None = None  # instead of the whole stream
    reconnect: ReconnectConfig = field(default_factory=ReconnectConfig)

    @property
    def streaming(self) -> tuple[str, dict[str, str]]:
        """Path and parameters of the stream."""
        local = "/local" if self.stream == "local" else ""
        if self.hashtag:
            return f"/api/v1/streaming/hashtag{local}", {"tag": self.hashtag}
        return f"/api/v1/streaming/public{local}", {}

    @property
    def timeline(self) -> tuple[str, dict[str, str]]:
        """Path and parameters of the same posts over REST."""
        path = f"/api/v1/timelines/tag/{self.hashtag}" if self.hashtag else "/api/v1/timelines/public"
        return path, {"local": "true"} if self.stream == "local" else {}


class _Account(Struct):
    acct: str = ""


class _Reblog(Struct):
    id: str = ""


class _Status(Struct):
    id: str
    content: str = ""
    spoiler_text: str = ""
    created_at: str | None = None
    edited_at: str | None = None
    language: str | None = None
    visibility: str = "public"
    url: str | None = None
    account: _Account = msgspec.field(default_factory=_Account)
    in_reply_to_id: str | None = None
    reblog: _Reblog | None = None


class _Known(Struct):
    id: str = ""
    edited_at: str | None = None


_decode = msgspec.json.Decoder(_Status).decode
_decode_known = msgspec.json.Decoder(_Known).decode
_decode_page = msgspec.json.Decoder(list[msgspec.Raw]).decode


def _age(status_id: str) -> tuple[int, str]:
    """Ids are numbers that grow: what orders them, oldest first."""
    return len(status_id), status_id


def _known(status: msgspec.Raw) -> _Known:
    """Without an id where it has none that can be read."""
    try:
        return _decode_known(status)
    except UNDECODABLE:
        return _Known()


class _Text(HTMLParser):
    """Paragraphs and <br> become line ends. Links keep their whole address: Mastodon only hides parts of it by CSS."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("br", "li"):
            self.parts.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in ("p", "blockquote", "ul", "ol", "pre"):
            self.parts.append("\n")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)


_TAG = re.compile(r"<[^<>]{0,2000}>")
UNCLOSED = 100  # tags that are opened and not closed; beyond, the parser would need the square of their number


def html_to_text(html: str) -> str:
    """What a reader of the status sees. Never raises: a hostile server must not end the source."""
    if html.count("<") - html.count(">") <= UNCLOSED:
        parser = _Text()
        with contextlib.suppress(AssertionError):  # what html.parser says to `<![`
            parser.feed(html)
            parser.close()
            return "".join(parser.parts).strip()
    return unescape(_TAG.sub(" ", html)).strip()


def to_post(status: _Status, host: str, kind: Literal["create", "update"]) -> dict[str, Any] | str:
    """The raw post of a status, or the reason why there is none."""
    if status.visibility not in ("public", "unlisted"):
        return "not public"
    text = "\n".join(part for part in (status.spoiler_text.strip(), html_to_text(status.content)) if part)
    if not text:
        return "no text"
    author = status.account.acct
    post = {
        "id": f"masto:{host}/{status.id}",
        "text": text,
        "created_at": status.created_at,
        "lang": status.language,
        "source": "mastodon",
        "author": author if "@" in author or not author else f"{author}@{host}",
        "url": status.url,
        "reply_to": f"masto:{host}/{status.in_reply_to_id}" if status.in_reply_to_id else None,
        "repost_of": f"masto:{host}/{status.reblog.id}" if status.reblog else None,
        "kind": kind,
    }
    return {name: value for name, value in post.items() if value is not None}


class MastodonSource:
    """Reads one stream into a writer until cancelled."""

    def __init__(self, writer: FrameWriter, config: MastodonConfig, cursor: Cursor) -> None:
        self._writer, self._config, self._cursor = writer, config, cursor
        self._host = urlsplit(config.server).hostname or ""
        if not self._host or urlsplit(config.server).scheme not in ("http", "https"):
            raise ConfigError(f"--server {config.server!r} is not an address like https://mastodon.example")
        self._newest = cursor.value or ""
        self._recent: dict[str, str | None] = {}  # ids of what was sent last, and when each was edited
        self.skipped: Counter[str] = Counter()
        self.trouble = ""

    async def run(self) -> None:
        """For ever. Raises ServiceError where the server refuses us or the broker fails."""
        timeout = httpx.Timeout(20.0, read=self._config.reconnect.stall_s)  # heartbeats come every 15 s
        headers = {"Authorization": f"Bearer {self._config.token}", "Accept-Encoding": "identity"}
        async with httpx.AsyncClient(base_url=self._config.server, headers=headers, timeout=timeout) as client:
            await keep_connected(
                lambda: self._session(client), self._config.reconnect, partial(setattr, self, "trouble")
            )

    async def _session(self, client: httpx.AsyncClient) -> None:
        received = 0
        path, params = self._config.streaming
        try:
            async with aconnect_sse(client, "GET", path, params=params) as stream:
                self._check(stream.response)
                sent = self._recent.copy()
                async for status in self._missed(client):
                    await self._receive(status, "create")
                self.trouble = ""
                await self._look_again(client, sent)
                async for event, data in self._events(stream.response):
                    received += 1
                    await self._event(event, data)
            reason = f"{self._host} ended the stream"
        except (httpx.HTTPError, SSEError) as error:
            reason = f"{self._host}: {type(error).__name__} {error}".rstrip()
        if not received:
            raise Disconnected(reason)
        log.warning("%s", reason)

    def _check(self, response: httpx.Response) -> None:
        if response.status_code in (401, 403):
            raise ServiceError(f"{self._host} refuses the token ({response.status_code}): make one with scope 'read'")
        if response.status_code == 404:
            raise ServiceError(f"{self._host} has no stream {self._config.streaming[0]}: is it a Mastodon server?")
        response.raise_for_status()
        self._refuse_packed(response)

    def _refuse_packed(self, response: httpx.Response) -> None:
        """A MB may unpack to a thousand."""
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise Disconnected(f"{self._host} sends packed what was asked for as it is")

    async def _get(self, client: httpx.AsyncClient, path: str, params: dict[str, Any]) -> tuple[httpx.Response, bytes]:
        """The answer, and its body where it is a good one. Raises Disconnected where that is packed or too long."""
        body = bytearray()
        async with client.stream("GET", path, params=params) as response:
            if response.is_success:
                self._refuse_packed(response)
                async for piece in response.aiter_raw():
                    body += piece
                    if len(body) > BODY_BYTES:
                        raise Disconnected(f"{self._host} answers with more than {BODY_BYTES} bytes at once")
        return response, bytes(body)

    async def _events(self, response: httpx.Response) -> AsyncIterator[tuple[str, bytes]]:
        """Raises Disconnected where an event does not end."""
        counted = _Counted(response)
        async for event in EventSource(cast("httpx.Response", counted)).aiter_sse():
            counted.chars = 0
            yield event.event, event.data.encode()

    async def _missed(self, client: httpx.AsyncClient) -> AsyncIterator[bytes]:
        """Statuses newer than the newest we have, oldest first. Raises Disconnected where the answer is no list."""
        newest = self._newest
        for _ in range(PAGES if newest else 0):
            statuses = await self._page(client, newest)
            for status in reversed(statuses):
                yield bytes(status)
            before, newest = newest, max([newest, *(_known(x).id for x in statuses)], key=_age)  # of no post too
            if len(statuses) < PAGE:
                return
            if newest == before:  # a server that gives the same page for ever
                break
        if newest:
            log.warning("%s: not all posts that were missed are read: those after %s are not", self._host, newest)

    async def _page(self, client: httpx.AsyncClient, after: str) -> list[msgspec.Raw]:
        """The statuses that follow this id, newest first."""
        path, params = self._config.timeline
        response, body = await self._get(client, path, params | {"min_id": after, "limit": str(PAGE)})
        self._check(response)
        try:
            return _decode_page(body)
        except UNDECODABLE as error:
            raise Disconnected(f"{self._host}: its timeline is no list of posts ({error})") from error

    async def _look_again(self, client: httpx.AsyncClient, sent: dict[str, str | None]) -> None:
        """Send what was deleted or edited during a break. sent: `_recent` as it was before what was missed came."""
        asked, shown = await self._shown(client, list(sent))
        if asked and not shown:  # a server that answers so whatever it is asked for would take back all we sent
            log.warning("%s shows none of %d posts by their ids: not believed", self._host, len(asked))
            return
        for status_id in asked:
            if status_id not in shown:
                await self._delete(status_id)
            elif shown[status_id][0] != sent[status_id]:
                await self._receive(shown[status_id][1], "update")

    async def _shown(
        self, client: httpx.AsyncClient, ids: list[str]
    ) -> tuple[list[str], dict[str, tuple[str | None, bytes]]]:
        """The ids that the server was asked for, and what it shows of them: when each was edited, and the status.

        Where it does not answer, that is told and ends nothing: new posts matter more.
        """
        asked, why, shown = 0, "", dict[str, tuple[str | None, bytes]]()
        try:
            while asked < len(ids) and not why:
                some = ids[asked : asked + TOGETHER]
                response, body = await self._get(client, "/api/v1/statuses", {"id[]": some})
                response.raise_for_status()
                for status in _decode_page(body):
                    known = _known(status)
                    shown[known.id] = known.edited_at, bytes(status)
                asked += len(some)
                if int(response.headers.get("x-ratelimit-remaining", SPARED)) < SPARED:
                    why = "few requests are left"
        except (httpx.HTTPError, Disconnected, ValueError, *UNDECODABLE) as error:
            why = in_brief(error)
        if asked < len(ids):
            told = "%s: what was deleted or edited during a break is not learnt of %d of the %d posts sent last: %s"
            log.warning(told, self._host, len(ids) - asked, len(ids), why)
        return ids[:asked], shown

    async def _event(self, event: str, data: bytes) -> None:
        if event in ("update", "status.update"):
            await self._receive(data, "create" if event == "update" else "update")
        elif event == "delete":
            await self._delete(data.decode(errors="replace").strip())
        else:
            self.skipped[event] += 1

    async def _delete(self, status_id: str) -> None:
        self._recent.pop(status_id, None)
        post_id = f"masto:{self._host}/{status_id}"
        deletion = {"id": post_id, "kind": "delete", "source": "mastodon"}
        await self._writer.put(msgspec.json.encode(deletion), key=post_id)

    async def _receive(self, data: bytes, kind: Literal["create", "update"]) -> None:
        try:
            status = _decode(data)
        except UNDECODABLE:
            await self._writer.put(refused_line(data))
            return
        post = to_post(status, self._host, kind)
        if isinstance(post, str):
            self.skipped[post] += 1
            return
        newer = kind == "create" and _age(status.id) > _age(self._newest)
        if newer:
            self._newest = status.id
        then = self._cursor.advance(status.id) if newer else None
        await self._writer.put(msgspec.json.encode(post), key=post["id"], then=then)
        self._recent[status.id] = status.edited_at
        if len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]


class _Counted:
    """What EventSource reads of a response, which it would wait for without end: an event that has no end is kept."""

    def __init__(self, response: httpx.Response) -> None:
        self._response, self.headers = response, response.headers
        self.chars = 0  # since an event was last whole

    async def aiter_text(self) -> AsyncIterator[str]:
        self._response.encoding = "utf-8"  # events have no other, and some encodings of Python unpack
        async for text in self._response.aiter_text():
            self.chars += len(text)
            if self.chars > EVENT_CHARS:
                raise Disconnected(f"{self._response.url.host} sends an event that does not end")
            yield text


def read_token(token_file: str | None) -> str:
    """From a file, else from CRISIS_MASTODON_TOKEN. Raises ConfigError if there is none."""
    if token := secret(token_file, "CRISIS_MASTODON_TOKEN"):
        return token
    raise ConfigError(
        "Mastodon streams need a token: Preferences → Development → New application (scope 'read'), then give "
        "--token-file or set CRISIS_MASTODON_TOKEN"
    )


@click.command()
@click.option("--server", required=True, help="https://mastodon.example")
@click.option(
    "--stream",
    type=click.Choice(["public", "local"]),
    default="public",
    show_default=True,
    help="public: everything the server sees; local: its own people's posts.",
)
@click.option("--hashtag", help="Only posts with this hashtag (without #).")
@click.option("--token-file", type=click.Path(dir_okay=False), help="Holds the token; else CRISIS_MASTODON_TOKEN.")
@click.option("--cursor", type=click.Path(dir_okay=False), help="Keep the position in this file and go on from it.")
@click.pass_obj
def mastodon(
    settings: Settings,
    server: str,
    stream: Literal["public", "local"],
    hashtag: str | None,
    token_file: str | None,
    cursor: str | None,
) -> None:
    """Public posts that SERVER sees, their edits and deletions."""
    tag = hashtag.removeprefix("#") if hashtag else None
    config = MastodonConfig(server.rstrip("/"), read_token(token_file), stream, tag)
    name = f"mastodon {urlsplit(server).hostname}{f' #{tag}' if tag else ''}"
    run_live(settings, name, cursor, lambda writer, kept: MastodonSource(writer, config, kept))
