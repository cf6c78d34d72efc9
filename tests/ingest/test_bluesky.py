"""Bluesky Jetstream, wire format v1: against a local server that sends invented events, stalls, drops and resumes."""

import asyncio
import contextlib
import json
from collections import Counter
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from websockets.asyncio.server import serve

from models.errors import ConfigError, ServiceError
from models.posts import parse_post
from models.pseudonyms import Pseudonyms
from models.records import Origin
from streams.ingest.bluesky import LONGEST, BlueskyConfig, BlueskySource, _Event, to_post
from streams.ingest.cursor import Cursor
from streams.ingest.live import ReconnectConfig
from streams.pipeline import stages
from tests.waiting import until

DID, T0 = "did:plc:abcdefghijklmnopqrstuvwx", 1_769_932_800_000_000


def commit(number, operation="create", text="We need water at the old bridge", did=DID, **record):
    event = {
        "did": did,
        "time_us": T0 + number * 1_000_000,
        "kind": "commit",
        "commit": {
            "rev": f"3krev{number}",
            "operation": operation,
            "collection": "app.bsky.feed.post",
            "rkey": f"3k{number}",
            "cid": f"bafyrei{number}",
            "record": {
                "$type": "app.bsky.feed.post",
                "createdAt": "2026-02-01T08:00:00.123Z",
                "langs": ["en"],
                "text": text,
            }
            | record,
        },
    }
    if operation == "delete":
        del event["commit"]["record"], event["commit"]["cid"]
    return event


def account(number, status):
    state = {"active": status is None, "did": DID, "seq": number, "time": "2026-02-01T08:00:00Z"}
    if status:
        state["status"] = status
    return {"did": DID, "time_us": T0 + number * 1_000_000, "kind": "account", "account": state}


def identity(number):
    inner = {"did": DID, "handle": "ana.example", "seq": number, "time": "2026-02-01T08:00:00Z"}
    return {"did": DID, "time_us": T0 + number * 1_000_000, "kind": "identity", "identity": inner}


def read(event, **options):
    return to_post(msgspec.convert(event, _Event), **options)


def test_a_new_post_becomes_a_raw_post_that_parses():
    parent = {"cid": "x", "uri": "at://did:plc:bob/app.bsky.feed.post/3kb"}
    reply = {"parent": parent, "root": parent}
    post = read(commit(1, langs=["pt-BR", "en"], reply=reply))
    assert post == {
        "id": f"bsky:{DID}/3k1",
        "text": "We need water at the old bridge",
        "created_at": 1_769_932_800.123,
        "source": "bluesky",
        "author": DID,
        "url": f"https://bsky.app/profile/{DID}/post/3k1",
        "kind": "create",
        "lang": "pt-BR",
        "reply_to": "bsky:did:plc:bob/3kb",
    }
    parsed = parse_post(json.dumps(post).encode(), seen_at=1.77e9, author_key=b"k" * 32)
    assert parsed.source == "bluesky" and parsed.url == post["url"] and DID not in parsed.author


def test_edits_deletions_and_closed_accounts_are_carried_through():
    assert read(commit(2, "update"))["kind"] == "update"
    assert read(commit(1, "delete")) == {"id": f"bsky:{DID}/3k1", "kind": "delete", "source": "bluesky"}
    assert read(account(3, "deleted")) == {"id": f"bsky:{DID}", "kind": "delete", "source": "bluesky"}
    assert read(account(3, "takendown"))["kind"] == "delete"


def test_what_is_no_post_is_left_out_with_a_reason():
    assert read(account(3, None)) == read(account(3, "deactivated")) == "account change"
    assert read(identity(4)) == "not a post"
    assert read(commit(5, text=" ")) == "no text"
    like = commit(6)
    like["commit"]["collection"] = "app.bsky.feed.like"
    assert read(like) == "not a post"


def test_languages_filter_by_the_tag_and_keep_posts_without_one():
    turkish = frozenset({"tr"})
    assert read(commit(1), langs=turkish) == "other language"
    assert isinstance(read(commit(1, langs=["tr-TR"]), langs=turkish), dict)
    assert isinstance(read(commit(1, langs=None), langs=turkish), dict)


@pytest.mark.parametrize(
    "claimed", ["9999-12-31T00:00:00Z", "1970-01-01T00:00:00Z", "soon", "", "0001-01-01T00:00+14:00"]
)
def test_a_time_that_cannot_be_is_replaced_by_the_servers(claimed):
    assert read(commit(0, createdAt=claimed))["created_at"] == T0 / 1e6


class Jetstream:
    """A server that plays one script per connection: events to send, then "drop", "stall" or "hold"."""

    def __init__(self, *scripts):
        self.scripts, self.asked = list(scripts), []
        self.connected = asyncio.Event()

    async def __call__(self, socket):
        self.asked.append(parse_qs(urlsplit(socket.request.path).query))
        self.connected.set()
        *events, end = self.scripts.pop(0) if self.scripts else ["hold"]
        for event in events:
            await socket.send(event if isinstance(event, (str, bytes)) else json.dumps(event))
        if end != "drop":
            await socket.wait_closed()


@contextlib.asynccontextmanager
async def ingesting(raw, jetstream, cursor=None, **reconnect):
    """The source running against the server."""
    reconnect = ReconnectConfig(**({"stall_s": 0.3, "first_wait_s": 0.01, "longest_wait_s": 0.05} | reconnect))
    async with serve(jetstream, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        config = BlueskyConfig(f"ws://127.0.0.1:{port}/subscribe", reconnect=reconnect)
        kept = Cursor(cursor)
        with raw.writer(linger_s=0.005) as writer:
            source = BlueskySource(writer, config, kept)
            task = asyncio.create_task(source.run())
            try:
                yield source, writer
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await asyncio.to_thread(writer.flush)
        kept.save()


async def test_posts_edits_and_deletions_arrive_in_order_whatever_else_is_sent(raw):
    edit, delete = commit(1, "update", "Edited"), commit(1, "delete")
    jetstream = Jetstream([commit(1), identity(2), commit(2), b"\xff\xfe", '{"did": 5}', edit, delete, "hold"])
    async with ingesting(raw, jetstream, stall_s=30) as (source, writer):
        await until(lambda: writer.counts.sent == 6)
    assert jetstream.asked == [{"wantedCollections": ["app.bsky.feed.post"], "maxMessageSizeBytes": [str(LONGEST)]}]
    posts = [json.loads(x) for x in raw.lines() if x.startswith(b'{"id"')]
    assert [p["kind"] for p in posts if p["id"].endswith("3k1")] == ["create", "update", "delete"]
    assert source.skipped == Counter({"not a post": 1})
    unread = {b'"\xff\xfe"', json.dumps('{"did": 5}').encode()}  # sent on, to be counted as rejects
    assert unread < set(raw.lines())


async def test_no_server_deletes_or_edits_a_post_of_another_source(raw):
    """What is no event of Jetstream, the reader of posts would take: it asks for less."""
    forged = [
        '{"id":"sms:gov/1","kind":"update","text":"all is well"}',
        b'{"id":"sms:gov","kind":"delete"}',
        '\ufeff{"id":"sms:gov","kind":"delete"}',
        '{"id":"sms:gov","kind":"delete","a":' + "[" * 5_000 + "]" * 5_000 + "}",
    ]
    async with ingesting(raw, Jetstream([*forged, commit(1), "hold"]), stall_s=30) as (_, writer):
        await until(lambda: writer.counts.sent == len(forged) + 1)
    frames = [frame for values in raw.records().values() for frame in values]
    parsed = [stages.parse(frame, Origin(0, 0), T0 / 1e6, Pseudonyms(b"k" * 32, keep=True)) for frame in frames]
    assert [sent.id for one in parsed for sent in (*one.posts, *one.deletions)] == [f"bsky:{DID}/3k1"]
    assert sum(len(one.rejects) for one in parsed) == len(forged)


async def test_after_a_drop_it_asks_for_everything_since_shortly_before_the_last_event(raw):
    jetstream = Jetstream([commit(10), commit(20), "drop"], [commit(20), commit(30), "hold"])
    async with ingesting(raw, jetstream, stall_s=30) as (_, writer):
        await until(lambda: writer.counts.sent == 4)
    assert jetstream.asked[1]["cursor"] == [str(T0 + 20_000_000 - 5_000_000)]
    assert set(raw.ids()) == {f"bsky:{DID}/3k{n}" for n in (10, 20, 30)}


async def test_a_record_of_any_length_holds_up_nothing_and_is_counted_where_no_broker_takes_it(raw):
    noted, long = commit(3, note="\u0001" * 200_000), commit(4, text="\u0001" * 1_000_000)
    jetstream = Jetstream([commit(1), noted, long, commit(5), "hold"])
    async with ingesting(raw, jetstream, stall_s=30) as (source, writer):
        await until(lambda: writer.counts.sent == 4)
    posts = [json.loads(line) for line in raw.lines()]
    assert {post["id"] for post in posts if "id" in post} == {f"bsky:{DID}/3k{n}" for n in (1, 3, 5)}
    assert len(jetstream.asked) == 1 and writer.counts.oversized == 1 and not source.trouble


async def test_an_event_that_ends_each_connection_is_told_until_it_is_passed(raw, monkeypatch):
    monkeypatch.setattr("streams.ingest.bluesky.LONGEST", 5_000)
    stuck = [commit(1), commit(2), commit(3, note="x" * 5_000), commit(4), "hold"]
    jetstream = Jetstream(*[stuck] * 1_000)
    async with ingesting(raw, jetstream, stall_s=30) as (source, writer):
        await until(lambda: "message too big" in source.trouble, lambda: source.trouble)
        tried = len(jetstream.asked)
        await until(lambda: len(jetstream.asked) > tried + 1)
        assert "message too big" in source.trouble
        jetstream.scripts[:] = [[commit(2), commit(5), "hold"]]
        await until(lambda: not source.trouble)
    assert f"bsky:{DID}/3k5" in raw.ids() and f"bsky:{DID}/3k4" not in raw.ids()


async def test_a_silent_server_is_left_and_asked_again(raw):
    jetstream = Jetstream([commit(1), "stall"], [commit(2), "hold"])
    async with ingesting(raw, jetstream, stall_s=0.2) as (_, writer):
        await until(lambda: writer.counts.sent == 2)
    assert len(jetstream.asked) >= 2


async def test_a_restart_goes_on_from_the_cursor_which_only_covers_what_the_broker_has(raw, tmp_path):
    cursor = str(tmp_path / "cursor")
    async with ingesting(raw, Jetstream([commit(1), commit(2), "hold"]), cursor, stall_s=30) as (_, writer):
        await until(lambda: writer.counts.sent == 2)
    assert Cursor(cursor).value == str(T0 + 2_000_000)
    second = Jetstream([commit(2), commit(3), "hold"])
    async with ingesting(raw, second, cursor, stall_s=30) as (_, writer):
        await until(lambda: writer.counts.sent == 2)
    assert second.asked[0]["cursor"] == [str(T0 + 2_000_000 - 5_000_000)]
    assert set(raw.ids()) == {f"bsky:{DID}/3k{n}" for n in (1, 2, 3)}


async def test_a_server_that_is_away_is_tried_again_until_it_is_back(raw, unused_tcp_port):
    reconnect = ReconnectConfig(stall_s=30, first_wait_s=0.01, longest_wait_s=0.05)
    config = BlueskyConfig(f"ws://127.0.0.1:{unused_tcp_port}/", reconnect=reconnect)
    with raw.writer(linger_s=0.005) as writer:
        source = BlueskySource(writer, config, Cursor(None))
        task = asyncio.create_task(source.run())
        await until(lambda: "Connect" in source.trouble)
        async with serve(Jetstream([commit(1), "hold"]), "127.0.0.1", unused_tcp_port):
            await until(lambda: writer.counts.sent == 1)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_a_wrong_address_ends_it_with_the_way_out(raw):
    def refuse(connection, request):
        return connection.respond(404, "no\n")

    async with serve(lambda socket: None, "127.0.0.1", 0, process_request=refuse) as server:
        port = server.sockets[0].getsockname()[1]
        with raw.writer() as writer:
            with pytest.raises(ServiceError, match="404: check --endpoint"):
                await BlueskySource(writer, BlueskyConfig(f"ws://127.0.0.1:{port}/"), Cursor(None)).run()
            with pytest.raises(ConfigError, match="ws://"):
                await BlueskySource(writer, BlueskyConfig("https://a.example/"), Cursor(None)).run()
