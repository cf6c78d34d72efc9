"""Mastodon streaming: against a local server that speaks the recorded format, with invented statuses."""

import asyncio
import contextlib
import gzip
import json
import tracemalloc

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from models.errors import ConfigError, ServiceError
from models.posts import parse_post
from models.pseudonyms import Pseudonyms
from models.records import Origin
from streams.ingest.cursor import Cursor
from streams.ingest.live import ReconnectConfig
from streams.ingest.mastodon import (
    PAGE,
    RECENT,
    SPARED,
    TOGETHER,
    MastodonConfig,
    MastodonSource,
    _decode,
    html_to_text,
    read_token,
    to_post,
)
from streams.pipeline import stages
from tests.hostile.test_cost import assert_in_proportion
from tests.waiting import until

TOKEN = "token of the test"
BEAT_S = 0.05


def status(number, content="<p>We need water</p>", **fields):
    return {
        "id": str(110_000_000_000_000_000 + number),
        "created_at": "2026-02-01T08:00:00.000Z",
        "in_reply_to_id": None,
        "sensitive": False,
        "spoiler_text": "",
        "visibility": "public",
        "language": "en",
        "uri": f"https://social.example/users/ana/statuses/{number}",
        "url": f"https://social.example/@ana/{number}",
        "content": content,
        "reblog": None,
        "edited_at": None,
        "media_attachments": [],
        "mentions": [],
        "tags": [],
        "account": {"id": "7", "username": "ana", "acct": "ana", "url": "https://social.example/@ana", "bot": False},
    } | fields


def read(fields, kind="create"):
    return to_post(_decode(json.dumps(fields)), "social.example", kind)


@pytest.mark.parametrize(
    "html, text",
    [
        ("<p>one<br>two<br />three</p><p>four &amp; &lt;five&gt;</p>", "one\ntwo\nthree\nfour & <five>"),
        (
            '<p><span class="h-card"><a href="https://b.example/@bob" class="mention">@<span>bob</span></a></span> see '
            '<a href="https://a.example/long/path" rel="nofollow"><span class="invisible">https://</span>'
            '<span class="ellipsis">a.example/long</span><span class="invisible">/path</span></a></p>',
            "@bob see https://a.example/long/path",
        ),
        ('<p>help <a href="https://social.example/tags/flood">#<span>flood</span></a></p>', "help #flood"),
        ("<ul><li>water</li><li>food</li></ul>", "water\nfood"),
        ("", ""),
    ],
)
def test_content_becomes_the_text_a_reader_sees(html, text):
    assert html_to_text(html) == text


def test_no_html_of_a_hostile_server_ends_the_source_or_takes_its_time():
    assert "water" in html_to_text("<p>we need water<![</p>")
    assert_in_proportion(html_to_text, lambda length: "<a " * (length // 3), 90_000)  # squared: 5 s for a third


def test_a_status_becomes_a_raw_post_that_parses():
    post = read(status(1, in_reply_to_id="5", spoiler_text="Flood"))
    assert post == {
        "id": "masto:social.example/110000000000000001",
        "text": "Flood\nWe need water",
        "created_at": "2026-02-01T08:00:00.000Z",
        "lang": "en",
        "source": "mastodon",
        "author": "ana@social.example",
        "url": "https://social.example/@ana/1",
        "reply_to": "masto:social.example/5",
        "kind": "create",
    }
    assert parse_post(json.dumps(post).encode(), seen_at=1.77e9, author_key=b"k" * 32).source == "mastodon"


def test_boosts_name_what_they_repeat_and_what_is_not_public_or_has_no_text_is_left_out():
    assert read(status(2, reblog=status(1)))["repost_of"] == "masto:social.example/110000000000000001"
    assert read(status(3, visibility="private")) == "not public"
    assert read(status(4, content="<p></p>")) == "no text"


class Mastodon:
    """A server that plays one script per stream connection, with a timeline for what was missed."""

    def __init__(self, *scripts, timeline=(), token=TOKEN, shown=None, left=300):
        self.scripts, self.timeline, self.token = list(scripts), list(timeline), token
        self.shown, self.left = shown, left  # statuses that it shows by their ids, as often; None: as before 4.3
        self.asked: list[str] = []
        self.page: bytes | None = None  # what the timeline answers whatever it is asked
        self.packed, self.charset, self.encodings = False, "", set()  # the last: those it was asked for
        self.most_beats = 0  # on one connection
        routes = [
            Route("/api/v1/streaming/{rest:path}", self.stream),
            Route("/api/v1/timelines/{rest:path}", self.missed),
            Route("/api/v1/statuses", self.by_ids),
        ]
        self.app = Starlette(routes=routes)
        self.ended = asyncio.Event()

    async def stream(self, request):
        self.asked.append(str(request.url).split("/api/v1/")[1])
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return JSONResponse({"error": "The access token is invalid"}, 401)
        self.encodings.add(request.headers.get("accept-encoding"))
        return StreamingResponse(self.play(), headers={"Content-Type": f"text/event-stream{self.charset}"})

    async def play(self):
        *events, end = self.scripts.pop(0) if self.scripts else ["hold"]
        yield ":)\n"
        for event in events:
            yield event
        beats = 0
        while end == "beat" and not self.ended.is_set():  # nothing but heartbeats
            yield ":thump\n"
            await asyncio.sleep(BEAT_S)
            beats += 1
            self.most_beats = max(self.most_beats, beats)
        if end != "drop":
            await self.ended.wait()

    async def missed(self, request):
        self.asked.append(str(request.url).split("/api/v1/")[1])
        if self.page is not None:
            self.encodings.add(request.headers.get("accept-encoding"))
            return Response(self.page, headers={"Content-Encoding": "gzip"} if self.packed else None)
        newer = [s for s in self.timeline if int(s["id"]) > int(request.query_params["min_id"])]
        return JSONResponse(newer[: int(request.query_params["limit"])][::-1])  # newest first, as the server does

    async def by_ids(self, request):
        ids = request.query_params.getlist("id[]")
        self.asked.append(f"statuses of {len(ids)}")
        if self.shown is None:
            return JSONResponse({"error": "Not Found"}, 404)
        self.left -= 1
        left = {"X-RateLimit-Remaining": str(self.left)}
        if isinstance(self.shown, bytes):
            return Response(self.shown, headers=left)
        return JSONResponse([s for s in self.shown if s["id"] in ids], 422 if len(ids) > TOGETHER else 200, left)


def sse(event, data):
    return f"event: {event}\ndata: {data if isinstance(data, str) else json.dumps(data)}\n\n"


@contextlib.asynccontextmanager
async def running(app):
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off", ws="none"))
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        await task


@contextlib.asynccontextmanager
async def ingesting(raw, mastodon, cursor=None, stall_s=30.0, **config):
    reconnect = ReconnectConfig(stall_s=stall_s, first_wait_s=0.01, longest_wait_s=0.05)
    kept = Cursor(cursor)
    async with running(mastodon.app) as address:
        with raw.writer(linger_s=0.005) as writer:
            source = MastodonSource(writer, MastodonConfig(address, TOKEN, reconnect=reconnect, **config), kept)
            task = asyncio.create_task(source.run())
            try:
                yield source, writer
            finally:
                task.cancel()
                mastodon.ended.set()
                await asyncio.gather(task, return_exceptions=True)
            await asyncio.to_thread(writer.flush)
        kept.save()


async def test_new_edited_and_deleted_statuses_arrive_in_order(raw):
    edited = status(1, "<p>We need water and food</p>", edited_at="2026-02-01T08:05:00.000Z")
    script = [
        sse("update", status(1)),
        sse("status.update", edited),
        sse("delete", status(1)["id"]),
        sse("filters_changed", "{}"),
        sse("update", "{broken"),
        "hold",
    ]
    async with ingesting(raw, Mastodon(script)) as (source, writer):
        await until(lambda: writer.counts.sent == 4)
    posts = [json.loads(x) for x in raw.lines() if x.startswith(b"{")]
    assert [p["kind"] for p in posts] == ["create", "update", "delete"]
    assert len({p["id"] for p in posts}) == 1 and posts[1]["text"] == "We need water and food"
    assert source.skipped == {"filters_changed": 1} and b'"{broken"' in raw.lines()


async def test_no_server_deletes_or_edits_a_post_of_another_source(raw):
    """What Mastodon's statuses are not, the reader of posts would take: it asks for less."""
    forged = [
        '{"id":"bsky:did:plc:victim42","kind":"delete","content":5}',
        '{"id":"sms:gov/1","kind":"update","text":"all is well","content":5}',
        '{"id":"bsky:did:plc:victim42","kind":"delete","content":5,"a":' + "[" * 5_000 + "]" * 5_000 + "}",
    ]
    events = [sse(event, status) for event in ("update", "status.update") for status in forged]
    async with ingesting(raw, Mastodon([*events, "hold"])) as (_, writer):
        await until(lambda: writer.counts.sent == len(events))
    frames = [frame for values in raw.records().values() for frame in values]
    parsed = [stages.parse(frame, Origin(0, 0), 1.77e9, Pseudonyms(b"k" * 32)) for frame in frames]
    assert not [sent for one in parsed for sent in (*one.posts, *one.deletions)]
    assert sum(len(one.rejects) for one in parsed) == len(events)


@pytest.mark.parametrize(
    "config, path",
    [
        ({}, "streaming/public"),
        ({"stream": "local"}, "streaming/public/local"),
        ({"hashtag": "flood"}, "streaming/hashtag?tag=flood"),
        ({"hashtag": "flood", "stream": "local"}, "streaming/hashtag/local?tag=flood"),
    ],
)
async def test_each_stream_is_asked_for_by_its_path(raw, config, path):
    mastodon = Mastodon([sse("update", status(1)), "hold"])
    async with ingesting(raw, mastodon, **config) as (_, writer):
        await until(lambda: writer.counts.sent == 1)
    assert mastodon.asked == [path]


async def test_after_a_drop_what_was_missed_is_read_from_the_timeline_oldest_first(raw):
    missed = [status(n) for n in range(2, 90)]
    mastodon = Mastodon([sse("update", status(1)), "drop"], [sse("update", status(100)), "hold"], timeline=missed)
    async with ingesting(raw, mastodon) as (_, writer):
        await until(lambda: writer.counts.sent == 90)
    assert set(raw.ids()) == {f"masto:127.0.0.1/{status(n)['id']}" for n in (1, *range(2, 90), 100)}
    rest = ["timelines/public"] * 3 + ["statuses of 1"]
    assert [asked.split("?")[0] for asked in mastodon.asked] == ["streaming/public", "streaming/public", *rest]


@pytest.fixture
def cursor(tmp_path):
    """Of a source that has status 0."""
    path = tmp_path / "cursor"
    path.write_text(status(0)["id"])
    return str(path)


async def test_pages_of_pictures_without_a_word_hide_no_post_that_was_missed(raw, cursor):
    pictures = [status(n, content="") for n in range(1, 2 * PAGE + 1)]
    mastodon = Mastodon(["hold"], timeline=[*pictures, status(500)])
    async with ingesting(raw, mastodon, cursor) as (source, writer):
        await until(lambda: writer.counts.sent == 1)
        assert source.skipped == {"no text": len(pictures)}
    assert raw.ids() == [f"masto:127.0.0.1/{status(500)['id']}"]


async def test_more_missed_than_is_read_after_a_break_is_logged(raw, cursor, caplog, monkeypatch):
    monkeypatch.setattr("streams.ingest.mastodon.PAGES", 2)
    mastodon = Mastodon([sse("update", status(900)), "hold"], timeline=[status(n) for n in range(1, 3 * PAGE)])
    async with ingesting(raw, mastodon, cursor) as (_, writer):
        await until(lambda: writer.counts.sent == 2 * PAGE + 1)
    assert f"not all posts that were missed are read: those after {status(2 * PAGE)['id']} are not" in caplog.text


async def test_a_server_that_gives_the_same_page_for_ever_is_asked_for_it_twice_at_most(raw, cursor, caplog):
    mastodon = Mastodon([sse("update", status(900)), "hold"])
    mastodon.page = json.dumps([status(n) for n in range(PAGE, 0, -1)]).encode()
    async with ingesting(raw, mastodon, cursor) as (_, writer):
        await until(lambda: writer.counts.sent == 2 * PAGE + 1)
    assert len(mastodon.asked) == 1 + 2 and "not all posts that were missed are read" in caplog.text


@pytest.mark.parametrize("page", [b"<html>maintenance</html>", b"", b'{"error": "\xff"}', b"[" * 100_000])
async def test_a_timeline_that_is_no_list_of_posts_is_told_and_asked_for_again(raw, cursor, page):
    mastodon = Mastodon(timeline=[status(1)])
    mastodon.page = page
    async with ingesting(raw, mastodon, cursor) as (source, writer):
        await until(lambda: "its timeline is no list of posts" in source.trouble)
        mastodon.page = None
        await until(lambda: writer.counts.sent == 1 and not source.trouble)


async def test_what_comes_packed_is_told_and_never_unpacked(raw, cursor):
    mastodon = Mastodon(timeline=[status(1)])
    mastodon.page, mastodon.packed = gzip.compress(b"[" + b" " * (200 << 20) + b"]", 1), True  # less than 1 MB
    tracemalloc.start()
    async with ingesting(raw, mastodon, cursor) as (source, writer):
        await until(lambda: "sends packed" in source.trouble)
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
        tracemalloc.stop()
        mastodon.page, mastodon.packed = None, False
        await until(lambda: writer.counts.sent == 1 and not source.trouble)
    assert mastodon.encodings == {"identity"}


async def test_a_page_without_end_is_told_and_asked_for_again(raw, cursor, monkeypatch):
    monkeypatch.setattr("streams.ingest.mastodon.BODY_BYTES", 100_000)
    mastodon = Mastodon(timeline=[status(1)])
    mastodon.page = b"[" + b" " * 100_000 + b"]"
    async with ingesting(raw, mastodon, cursor) as (source, writer):
        await until(lambda: "more than 100000 bytes" in source.trouble)
        mastodon.page = None
        await until(lambda: writer.counts.sent == 1 and not source.trouble)


async def test_posts_shown_by_their_ids_that_are_packed_or_without_end_lose_none_and_the_stream_is_read_on(
    raw, caplog, monkeypatch
):
    monkeypatch.setattr("streams.ingest.mastodon.BODY_BYTES", 100_000)
    first = [sse("update", status(1)), sse("update", status(2)), "drop"]
    mastodon = Mastodon(first, [sse("update", status(3)), "hold"], shown=b"[" + b" " * 100_000 + b"]")
    async with ingesting(raw, mastodon) as (_, writer):
        await until(lambda: writer.counts.sent == 3)
    assert gone_and_edited(raw) == (set(), {}) and "more than 100000 bytes" in caplog.text


@pytest.mark.parametrize("endless", ["data: " + "x" * 5000, "data: x\n" * 700, ": x\n" * 1300])
async def test_an_event_that_does_not_end_ends_the_session_which_is_told(raw, caplog, monkeypatch, endless):
    monkeypatch.setattr("streams.ingest.mastodon.EVENT_CHARS", 4000)
    mastodon = Mastodon([sse("update", status(1)), endless, "hold"], [sse("update", status(2)), "hold"])
    async with ingesting(raw, mastodon) as (_, writer):
        await until(lambda: writer.counts.sent == 2)
    assert "an event that does not end" in caplog.text


async def test_any_number_of_events_that_end_comes_through_one_connection(raw, monkeypatch):
    monkeypatch.setattr("streams.ingest.mastodon.EVENT_CHARS", 4000)
    mastodon = Mastodon([*(sse("update", status(n)) for n in range(100)), "hold"])
    async with ingesting(raw, mastodon) as (_, writer):
        await until(lambda: writer.counts.sent == 100)
    assert len(mastodon.asked) == 1


async def test_events_are_utf_8_whatever_the_server_says(raw):
    mastodon = Mastodon([sse("update", status(1, "<p>Нужна вода</p>")), "hold"])
    mastodon.charset = "; charset=zip"
    async with ingesting(raw, mastodon) as (_, writer):
        await until(lambda: writer.counts.sent == 1)
    assert json.loads(raw.lines()[0])["text"] == "Нужна вода"


def gone_and_edited(raw):
    """The numbers of what was deleted, and what was edited to which text."""
    posts = [json.loads(line) for line in raw.lines()]
    gone = {int(p["id"][-4:]) for p in posts if p["kind"] == "delete"}
    return gone, {int(p["id"][-4:]): p["text"] for p in posts if p["kind"] == "update"}


async def test_after_a_break_what_was_deleted_or_edited_meanwhile_is_learnt_of_what_was_sent_last(raw):
    at = "2026-02-01T08:05:00.000Z"
    posts = {n: status(n) for n in range(RECENT + 30)} | {28: status(28, edited_at=at), 29: status(29)}
    after = posts | {100: status(100, "<p>Nothing needed</p>", edited_at=at), 300: status(300)}
    shown = [post for n, post in after.items() if n not in (5, 50, 229)]  # 5 was sent too long ago
    first = [sse("update", post) for post in posts.values()]
    mastodon = Mastodon([*first, "drop"], [sse("update", status(301)), "hold"], timeline=[status(300)], shown=shown)
    async with ingesting(raw, mastodon) as (_, writer):
        await until(lambda: writer.counts.sent == len(posts) + 2 + 3)
    assert gone_and_edited(raw) == ({50, 229}, {100: "Nothing needed"})
    assert mastodon.asked[3:] == [f"statuses of {TOGETHER}"] * (RECENT // TOGETHER)


async def test_what_the_stream_told_before_a_break_is_not_told_again(raw):
    edited = status(2, "<p>We need food</p>", edited_at="2026-02-01T08:05:00.000Z")
    script = [sse("update", status(1)), sse("update", status(2)), sse("update", status(3))]
    script += [sse("status.update", edited), sse("delete", status(3)["id"]), "drop"]
    mastodon = Mastodon(script, [sse("update", status(4)), "hold"], shown=[status(1), edited])
    async with ingesting(raw, mastodon) as (_, writer):
        await until(lambda: writer.counts.sent == 6)
    assert gone_and_edited(raw) == ({3}, {2: "We need food"}) and mastodon.asked[-1] == "statuses of 2"


@pytest.mark.parametrize(
    "shown, told", [(None, "404 Not Found"), (b"<html>", "is not learnt of 2"), (b"[]", "none of 2"), ([], "none of 2")]
)
async def test_a_server_that_does_not_show_posts_by_their_ids_loses_none_and_is_read_on(raw, caplog, shown, told):
    first = [sse("update", status(1)), sse("update", status(2)), "drop"]
    mastodon = Mastodon(first, [sse("update", status(3)), "hold"], shown=shown)
    async with ingesting(raw, mastodon) as (_, writer):
        await until(lambda: writer.counts.sent == 3)
    assert gone_and_edited(raw) == (set(), {}) and told in caplog.text
    assert status(1)["id"] not in caplog.text


async def test_requests_are_left_for_the_posts_that_a_next_break_will_miss(raw, caplog):
    posts = [status(n) for n in range(3 * TOGETHER)]
    script = [*(sse("update", post) for post in posts), "drop"]
    mastodon = Mastodon(script, [sse("update", status(900)), "hold"], shown=posts[1:], left=SPARED + 1)
    async with ingesting(raw, mastodon) as (_, writer):
        await until(lambda: writer.counts.sent == len(posts) + 2)
    assert [asked for asked in mastodon.asked if asked.startswith("statuses")] == [f"statuses of {TOGETHER}"] * 2
    assert gone_and_edited(raw) == ({0}, {}) and f"is not learnt of {TOGETHER} of the" in caplog.text


async def test_heartbeats_hold_the_connection_and_silence_ends_it(raw):
    stall_s, beating = 6 * BEAT_S, [sse("update", status(1)), "beat"]
    mastodon = Mastodon(*[beating] * 1000)  # a busy machine may miss beats, and one connection outlives the silence
    async with ingesting(raw, mastodon, stall_s=stall_s):
        await until(lambda: mastodon.most_beats > 2 * stall_s / BEAT_S)
    mastodon = Mastodon([sse("update", status(1)), "stall"], [sse("update", status(2)), "hold"])
    async with ingesting(raw, mastodon, stall_s=stall_s) as (_, writer):
        await until(lambda: writer.counts.sent == 2)


async def test_a_restart_goes_on_from_the_newest_status_the_broker_has(raw, tmp_path):
    cursor = str(tmp_path / "cursor")
    async with ingesting(raw, Mastodon([sse("update", status(1)), "hold"]), cursor) as (_, writer):
        await until(lambda: writer.counts.sent == 1)
    assert Cursor(cursor).value == status(1)["id"]
    async with ingesting(raw, Mastodon(["hold"], timeline=[status(1), status(2)]), cursor) as (_, writer):
        await until(lambda: writer.counts.sent == 1)
    assert set(raw.ids()) == {f"masto:127.0.0.1/{status(n)['id']}" for n in (1, 2)}


async def test_a_refused_token_and_a_wrong_server_end_it_with_the_way_out(raw):
    async with running(Mastodon(token="another").app) as address:
        with raw.writer() as writer, pytest.raises(ServiceError, match="refuses the token"):
            await MastodonSource(writer, MastodonConfig(address, TOKEN), Cursor(None)).run()
    app = Starlette(routes=[Route("/", lambda request: PlainTextResponse("no"))])
    async with running(app) as address:
        with raw.writer() as writer, pytest.raises(ServiceError, match="is it a Mastodon server"):
            await MastodonSource(writer, MastodonConfig(address, TOKEN), Cursor(None)).run()
    with raw.writer() as writer, pytest.raises(ConfigError, match="--server"):
        MastodonSource(writer, MastodonConfig("social.example", TOKEN), Cursor(None))


def test_a_token_must_be_given(monkeypatch):
    monkeypatch.delenv("CRISIS_MASTODON_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="--token-file"):
        read_token(None)
