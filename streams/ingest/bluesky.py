"""`crisis ingest bluesky`: every public Bluesky post, edit and deletion, from a Jetstream server (wire format v1).

https://github.com/bluesky-social/jetstream. No key is needed. The cursor is the server's `time_us`; a new connection
asks for everything since shortly before the last event (the server may be another instance, whose clock differs), so
events come at least once, and folding takes care of the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlencode

import click
import msgspec
from msgspec import Struct
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI, WebSocketException

from models.errors import ConfigError, Rejected, ServiceError
from models.moments import epoch_s
from models.undecodable import UNDECODABLE
from streams.config import Settings
from streams.ingest.cursor import Cursor
from streams.ingest.lines import refused_line
from streams.ingest.live import Disconnected, ReconnectConfig, keep_connected, run_live
from streams.ingest.writer import FrameWriter

__all__ = ["bluesky"]

log = logging.getLogger(__name__)
POSTS = "app.bsky.feed.post"
ENDPOINT = "wss://jetstream2.us-east.bsky.network/subscribe"
GONE = ("deleted", "takendown")  # account states whose posts must not be shown any more
LONGEST = 16 << 20  # bytes of an event; of a record of 1 MiB, JSON may escape each byte into six


@dataclass(frozen=True)
class BlueskyConfig:
    """Which posts, from where."""

    endpoint: str = ENDPOINT
    langs: frozenset[str] = frozenset()  # only posts tagged with one of these, or not tagged; empty: all
    rewind_s: float = 5.0
    reconnect: ReconnectConfig = field(default_factory=ReconnectConfig)


class _Ref(Struct):
    uri: str = ""


class _Reply(Struct):
    parent: _Ref = msgspec.field(default_factory=_Ref)


class _Record(Struct):
    text: str = ""
    langs: list[str] | None = None
    createdAt: str = ""
    reply: _Reply | None = None


class _Commit(Struct):
    operation: str = ""
    collection: str = ""
    rkey: str = ""
    record: _Record | None = None


class _Account(Struct):
    active: bool = True
    status: str = ""


class _Event(Struct):
    did: str
    time_us: int
    kind: str
    commit: _Commit | None = None
    account: _Account | None = None


_decode = msgspec.json.Decoder(_Event).decode


def to_post(event: _Event, langs: frozenset[str] = frozenset()) -> dict[str, Any] | str:
    """The raw post of an event, or the reason why there is none."""
    if event.kind == "account" and event.account is not None:
        if event.account.active or event.account.status not in GONE:
            return "account change"
        return {"id": f"bsky:{event.did}", "kind": "delete", "source": "bluesky"}
    commit = event.commit
    if event.kind != "commit" or commit is None or commit.collection != POSTS:
        return "not a post"
    post_id = f"bsky:{event.did}/{commit.rkey}"
    if commit.operation == "delete":
        return {"id": post_id, "kind": "delete", "source": "bluesky"}
    record = commit.record
    if record is None or not record.text.strip():
        return "no text"
    tags = [tag.split("-")[0].lower() for tag in record.langs or ()]
    if langs and tags and not langs.intersection(tags):
        return "other language"
    post = {
        "id": post_id,
        "text": record.text,
        "created_at": _created_at(record.createdAt, event.time_us),
        "source": "bluesky",
        "author": event.did,
        "url": f"https://bsky.app/profile/{event.did}/post/{commit.rkey}",
        "kind": "update" if commit.operation == "update" else "create",
    }
    if record.langs:
        post["lang"] = record.langs[0]
    if record.reply is not None and (parent := _post_id(record.reply.parent.uri)):
        post["reply_to"] = parent
    return post


def _created_at(claimed: str, time_us: int) -> float:
    """The author's time where it can be true, else the server's: clients send anything from 1970 to 9999."""
    server_s = time_us / 1e6
    try:
        claimed_s = epoch_s(claimed)
    except Rejected:
        return server_s
    return claimed_s if 1.6e9 <= claimed_s <= server_s + 300 else server_s


def _post_id(uri: str) -> str | None:
    """at://did/app.bsky.feed.post/rkey → our id."""
    parts = uri.removeprefix("at://").split("/")
    return f"bsky:{parts[0]}/{parts[2]}" if len(parts) == 3 and parts[1] == POSTS else None


class BlueskySource:
    """Reads events into a writer until cancelled."""

    def __init__(self, writer: FrameWriter, config: BlueskyConfig, cursor: Cursor) -> None:
        self._writer, self._config, self._cursor = writer, config, cursor
        try:
            self._time_us = int(cursor.value or 0)
        except ValueError:
            raise ConfigError(f"the cursor {cursor.value!r} is not a time in µs: delete its file") from None
        self.skipped: Counter[str] = Counter()
        self.trouble = ""

    async def run(self) -> None:
        """For ever. Raises ServiceError where the server refuses us or the broker fails."""
        await keep_connected(self._session, self._config.reconnect, partial(setattr, self, "trouble"))

    def uri(self) -> str:
        """Where to connect now."""
        asked: dict[str, str | int] = {"wantedCollections": POSTS, "maxMessageSizeBytes": LONGEST}
        if self._time_us:
            asked["cursor"] = max(0, self._time_us - int(self._config.rewind_s * 1e6))
        return f"{self._config.endpoint}?{urlencode(asked)}"

    async def _session(self) -> None:
        before = self._time_us
        try:
            async with connect(self.uri(), max_size=LONGEST, open_timeout=20, close_timeout=2) as socket:
                while True:
                    async with asyncio.timeout(self._config.reconnect.stall_s):
                        message = await socket.recv()
                    await self._receive(message)
                    if self._time_us > before:
                        self.trouble = ""
        except InvalidStatus as error:
            status = error.response.status_code
            if 400 <= status < 500 and status not in (408, 425, 429):
                raise ServiceError(f"{self._config.endpoint} refuses us with {status}: check --endpoint") from error
            reason = f"{self._config.endpoint} answers {status}"
        except InvalidURI as error:
            raise ConfigError(f"--endpoint {self._config.endpoint!r} is not a ws:// or wss:// address") from error
        except TimeoutError:
            reason = f"{self._config.endpoint} is silent"
        except (OSError, WebSocketException, InvalidHandshake) as error:
            reason = f"{self._config.endpoint}: {type(error).__name__}: {error}"
        if self._time_us == before:  # it sent nothing, or what we had: an event that ends each connection holds us up
            raise Disconnected(reason)
        log.warning("%s", reason)

    async def _receive(self, message: str | bytes) -> None:
        try:
            event = _decode(message)
        except UNDECODABLE:
            unread = message.encode(errors="replace") if isinstance(message, str) else message
            await self._writer.put(refused_line(unread))
            return
        post = to_post(event, self._config.langs)
        then = self._cursor.advance(str(event.time_us))
        if isinstance(post, str):
            self.skipped[post] += 1
        else:
            await self._writer.put(msgspec.json.encode(post), key=post["id"], then=then)
        self._time_us = max(self._time_us, event.time_us)


@click.command()
@click.option("--endpoint", default=ENDPOINT, show_default=True, help="A Jetstream server's subscribe address.")
@click.option("--langs", default="", help="Only posts tagged with one of these languages or untagged: en,es,tr.")
@click.option("--cursor", type=click.Path(dir_okay=False), help="Keep the position in this file and go on from it.")
@click.pass_obj
def bluesky(settings: Settings, endpoint: str, langs: str, cursor: str | None) -> None:
    """Every public Bluesky post (about 50 a second), its edits and deletions. No key needed."""
    config = BlueskyConfig(endpoint, frozenset(x.strip().lower() for x in langs.split(",") if x.strip()))
    run_live(settings, "bluesky", cursor, lambda writer, kept: BlueskySource(writer, config, kept))
