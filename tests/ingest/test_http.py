"""POST /posts: what is answered 202 is on the broker; everything else says why not."""

import asyncio
import base64
import contextlib
import gzip
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading

import httpx
import pytest
import uvicorn
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import KafkaTimeoutError

from models.errors import ConfigError, ServiceError
from models.pseudonyms import Pseudonyms
from models.records import Origin
from streams.commands.ingest import ingest
from streams.config import load_settings
from streams.config.sources import SOURCES
from streams.ingest.http import HttpConfig, PostServer, _listening, _serve
from streams.ingest.lines import refused_line
from streams.ingest.tokens import Sources, owned
from streams.pipeline import stages
from streams.view.connect import connect
from streams.view.live import LiveView
from tests.waiting import PATIENCE_S, until

TOKEN = "a token of more than sixteen letters"
OTHER = "the token of another source, as long"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
BOM = b"\xef\xbb\xbf"
NAMES = [name for key, source in SOURCES.items() for name in (key, source.prefix) if name]
VICTIMS = b'{"id":"bsky:did:plc:victim42","kind":"delete"}'
KEPT = Pseudonyms(b"k" * 32, keep=True)


@contextlib.asynccontextmanager
async def serving(raw, config=None, **writer_config):
    with raw.writer(linger_s=0.01, **writer_config) as writer:
        server = PostServer(writer, Sources({TOKEN: "gov", OTHER: "web"}), config or HttpConfig())
        transport = httpx.ASGITransport(server.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=BEARER) as client:
            yield client, writer, server


def ndjson(count, **fields):
    return "".join(json.dumps({"id": f"p{i}", "text": f"water {i}"} | fields) + "\n" for i in range(count)).encode()


async def test_ndjson_is_on_the_broker_when_the_answer_comes(raw):
    async with serving(raw) as (client, writer, _):
        answer = await client.post("/posts", content=ndjson(250))
        assert (answer.status_code, answer.json()) == (202, {"posts": 250})
        assert writer.counts.sent == 250
    assert raw.ids() == sorted(f"gov:p{i}" for i in range(250))


async def test_a_json_array_may_be_pretty_printed_and_what_will_be_refused_keeps_every_byte(raw):
    body = '[\n  {"id": "1",\n "text": "a\\nb", "id": "2"},\r\n {"id": 3, "text": "水"}\n]'
    async with serving(raw) as (client, _, _):
        answer = await client.post("/posts", content=body.encode())
    assert (answer.status_code, answer.json()) == (202, {"posts": 2})
    assert sorted(raw.lines()) == [
        json.dumps('{"id": "1",  "text": "a\\nb", "id": "2"}').encode(),
        '{"id":"gov:3","text":"水","source":"gov"}'.encode(),
    ]


@pytest.mark.parametrize("body", [b'{\n "id": "1",\n "text": "a"\n}\n', b'\xef\xbb\xbf{"id": "1", "text": "a"}'])
async def test_one_post_may_stand_on_several_lines_or_behind_a_byte_order_mark(raw, body):
    async with serving(raw) as (client, _, _):
        answer = await client.post("/posts", content=body, headers={"Content-Encoding": "Identity"})
    assert (answer.status_code, answer.json()) == (202, {"posts": 1})
    assert [json.loads(line) for line in raw.lines()] == [{"id": "gov:1", "text": "a", "source": "gov"}]


async def test_bad_posts_are_taken_so_that_they_are_counted_as_rejects(raw):
    async with serving(raw) as (client, _, _):
        assert (await client.post("/posts", content=b'{"id": 1\n{"text": 5}\n')).json() == {"posts": 2}
    assert len(raw.lines()) == 2


@pytest.mark.parametrize(
    "headers", [{"Authorization": ""}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}]
)
async def test_without_the_token_nothing_is_taken(raw, headers):
    async with serving(raw) as (client, writer, _):
        answer = await client.post("/posts", content=ndjson(1), headers=headers)
        assert answer.status_code == 401 and "Bearer" in answer.json()["reason"]
        assert answer.headers["www-authenticate"] == "Bearer" and writer.counts.read == 0


@pytest.mark.parametrize("body", [b"", b"\n \n", b"[]", b"hello", b'[{"id": 1', b"[1, 2", b"\xff"])
async def test_a_body_without_posts_is_told_apart(raw, body):
    async with serving(raw) as (client, writer, _):
        answer = await client.post("/posts", content=body)
        assert answer.status_code == 400 and answer.json()["reason"] and writer.counts.read == 0


async def test_a_body_too_large_is_refused_whether_announced_or_not(raw):
    async def chunks():
        for _ in range(40):
            yield b"x" * 100

    async with serving(raw, HttpConfig(body_bytes=1000)) as (client, writer, server):
        assert (await client.post("/posts", content=b"{" * 1001)).status_code == 413
        answer = await client.post("/posts", content=chunks())
        assert answer.status_code == 413 and "1000 bytes" in answer.json()["reason"]
        assert writer.counts.read == 0 and server._held_bytes == 0


@pytest.mark.parametrize("body", [b"{\n" + b"x\n" * 20, b"\n" * 21 + b"{}", ndjson(21), b"[" + b"0," * 20 + b"0]"])
async def test_more_lines_than_a_request_may_hold_are_refused_before_any_is_read(raw, monkeypatch, body):
    monkeypatch.setattr("streams.ingest.http.owned", None)
    async with serving(raw, HttpConfig(lines=20)) as (client, writer, server):
        answer = await client.post("/posts", content=body)
        assert answer.status_code == 413 and "20 posts a request" in answer.json()["reason"]
        assert writer.counts.read == 0 and server._held_bytes == 0


async def test_an_array_of_as_many_posts_may_be_written_over_many_more_lines(raw):
    posts = [json.loads(line) for line in ndjson(20).splitlines()]
    async with serving(raw, HttpConfig(lines=20)) as (client, _, _):
        for body in (json.dumps(posts, indent=1).encode(), ndjson(20)):
            assert (await client.post("/posts", content=body)).json() == {"posts": 20}


async def test_others_are_answered_while_a_body_is_read_and_handed_over(raw, monkeypatch):
    reading, ends = threading.Event(), threading.Event()

    def slowly(line, source):
        reading.set()
        ends.wait(PATIENCE_S)
        return owned(line, source)

    monkeypatch.setattr("streams.ingest.http.YIELD_LINES", 10)
    monkeypatch.setattr("streams.ingest.http.SMALL_BYTES", 1000)
    monkeypatch.setattr("streams.ingest.http.owned", slowly)
    async with serving(raw) as (client, writer, _):
        sending = asyncio.create_task(client.post("/posts", content=ndjson(200)))
        await until(reading.is_set)
        assert (await client.get("/livez")).status_code == 200 and not sending.done()
        ends.set()
        between = set()
        while not sending.done():
            await asyncio.sleep(0)
            between.add(writer.counts.read)
        assert (await sending).status_code == 202 and {10, 50, 190} <= between


async def test_a_line_that_no_broker_takes_is_cut_unread_and_the_posts_beside_it_arrive(raw, monkeypatch):
    read = []
    monkeypatch.setattr("streams.ingest.http.owned", lambda line, source: read.append(line) or owned(line, source))
    long = json.dumps({"id": "long", "text": "x" * 5000}).encode()
    async with serving(raw, line_bytes=4000) as (client, writer, _):
        assert (await client.post("/posts", content=ndjson(1) + long + b"\n" + ndjson(2))).json() == {"posts": 4}
        assert (len(read), writer.counts.oversized) == (3, 1)
    (cut,) = (json.loads(line) for line in raw.lines() if b"oversize" in line)
    assert cut["oversize"] == len(long) and long.startswith(base64.b64decode(cut["head"]))


async def test_compressed_bodies_are_refused_rather_than_unpacked_without_limit(raw):
    async with serving(raw) as (client, _, _):
        headers = {"Content-Encoding": "gzip"}
        assert (await client.post("/posts", content=gzip.compress(ndjson(2)), headers=headers)).status_code == 415


async def test_a_busy_server_answers_429_and_recovers(raw):
    async with serving(raw, HttpConfig(held_bytes=2000)) as (client, _, server):
        server._held_bytes += 1990  # of a request that is still waiting
        answer = await client.post("/posts", content=ndjson(3))
        assert answer.status_code == 429 and answer.headers["retry-after"] == "1"
        server._held_bytes -= 1990
        assert (await client.post("/posts", content=ndjson(3))).status_code == 202
        assert server._held_bytes == 0


async def test_many_requests_at_once_all_arrive(raw):
    async with serving(raw, frame_posts=7) as (client, _, _):
        bodies = [f'{{"id": "r{i}", "text": "water"}}\n'.encode() for i in range(200)]
        answers = await asyncio.gather(*(client.post("/posts", content=body) for body in bodies))
        assert {answer.status_code for answer in answers} == {202}
    assert raw.ids() == sorted(f"gov:r{i}" for i in range(200))


async def test_a_slow_sender_is_cut_off(raw):
    async def slowly():
        yield b'{"id": 1'
        await asyncio.Event().wait()

    async with serving(raw, HttpConfig(read_s=0.1)) as (client, writer, _):
        assert (await client.post("/posts", content=slowly())).status_code == 503
        assert writer.counts.read == 0


def refuse(*_, **__):
    raise KafkaTimeoutError("gone")


async def test_when_the_broker_fails_the_answer_is_503_and_health_says_so(raw, monkeypatch):
    async with serving(raw) as (client, writer, _):
        assert (await client.get("/healthz")).status_code == 200
        monkeypatch.setattr(writer._producer, "send", refuse)
        answer = await client.post("/posts", content=ndjson(1))
        assert answer.status_code == 503 and "did not take" in answer.json()["reason"]
        assert (await client.get("/healthz")).status_code == 503


async def test_a_broker_that_failed_ends_the_server_which_tells_of_it_while_it_answers_who_came_before(
    raw, embedded_redis_url, monkeypatch
):
    settings, told = load_settings(redis={"url": embedded_redis_url}), asyncio.Event()

    async def slowly():
        yield b'{"id": 1,'
        await told.wait()
        yield b'"text": "water"}'

    async with connect(settings.redis) as redis:
        view = LiveView(redis, settings)

        async def trouble() -> bool:
            said = (await view.sources()).get("http")
            return said is not None and said.message.startswith("the broker did not take a frame")

        with raw.writer(linger_s=0.01) as writer:
            server, (listening,) = PostServer(writer, Sources({TOKEN: "gov"})), _listening("127.0.0.1", 0)
            config = uvicorn.Config(server.app, log_level="warning", lifespan="off")
            ends = asyncio.create_task(_serve(config, [listening], settings, writer))
            address = f"http://127.0.0.1:{listening.getsockname()[1]}"
            async with httpx.AsyncClient(base_url=address, headers=BEARER, timeout=PATIENCE_S) as client:
                before = asyncio.create_task(client.post("/posts", content=slowly()))
                await until(lambda: server._held_bytes)
                monkeypatch.setattr(writer._producer, "send", refuse)
                assert (await client.post("/posts", content=ndjson(1))).status_code == 503
                await until(trouble)
                told.set()
                assert (await before).status_code == 503
                with pytest.raises(ServiceError, match="did not take a frame"):
                    await ends
        assert "http" in await view.sources()  # it took no leave, and is missed until it is started again


def test_where_the_broker_failed_the_command_ends_with_the_reason(raw, monkeypatch):
    writer = raw.writer()
    writer._fail(KafkaTimeoutError("gone"))
    monkeypatch.setattr("streams.ingest.http.open_writer", lambda _: writer)
    monkeypatch.setenv("CRISIS_HTTP_TOKEN", TOKEN)
    away = raw.settings.model_copy(update={"redis": load_settings(redis={"url": "redis://127.0.0.1:1/0"}).redis})
    done = CliRunner().invoke(ingest, ["http", "--port", "0"], obj=away)
    assert done.exit_code == 1 and isinstance(done.exception, ServiceError) and "gone" in str(done.exception)


async def test_no_answer_shows_a_secret_of_an_address(raw):
    async with serving(raw) as (client, writer, _):
        writer.error = ServiceError("no Redis at redis://:it's-hunter2@127.0.0.1:1/0")
        for answer in (await client.get("/healthz"), await client.post("/posts", content=ndjson(1))):
            assert answer.status_code == 503 and "redis://127.0.0.1:1/0" in answer.text
            assert "hunter2" not in answer.text
        writer.error = None


@pytest.mark.parametrize("host", ["attacker.example", "attacker.example:8090", "localhost.attacker.example", ""])
async def test_a_page_of_somebody_else_reaches_nothing_by_giving_its_name_our_address(raw, host):
    async with serving(raw) as (client, writer, _):
        assert (await client.post("/posts", content=ndjson(1), headers={"Host": host})).status_code == 400
        assert (await client.get("/healthz", headers={"Host": host})).status_code == 400
        assert writer.counts.read == 0
        assert (await client.post("/posts", content=ndjson(1), headers={"Host": "127.0.0.1:8090"})).status_code == 202


async def test_partners_ask_by_the_names_that_the_settings_say(raw):
    with raw.writer(linger_s=0.01) as writer:
        server = PostServer(writer, Sources({TOKEN: "gov"}), allowed_hosts="posts.example.org, 127.0.0.1")
        transport = httpx.ASGITransport(server.app)
        async with httpx.AsyncClient(
            transport=transport, base_url="https://posts.example.org", headers=BEARER
        ) as client:
            assert (await client.post("/posts", content=ndjson(1))).status_code == 202
            assert (await client.get("/livez", headers={"Host": "localhost"})).status_code == 400


async def test_nobody_deletes_edits_or_forges_a_post_of_another_source(raw):
    stolen = [
        {"id": "gov:1", "kind": "delete"},
        {"id": "gov", "kind": "delete"},
        {"id": "bsky:did:plc:victim/1", "kind": "delete"},
        {"id": "gov:1", "text": "all is well", "kind": "update", "source": "gov"},
    ]
    body = "\n".join(map(json.dumps, stolen)).encode()
    async with serving(raw) as (client, _, _):
        answer = await client.post("/posts", content=body, headers={"Authorization": f"Bearer {OTHER}"})
        assert answer.status_code == 202
        assert (await client.post("/posts", content=b'{"id": "1", "text": "water"}')).status_code == 202
    sent = [json.loads(line) for line in raw.lines()]
    assert {post["id"] for post in sent if post["source"] == "web"} == {
        "web:gov:1",
        "web:gov",
        "web:bsky:did:plc:victim/1",
    }
    assert [post["id"] for post in sent if post["source"] == "gov"] == ["gov:1"]


@pytest.mark.parametrize(
    "line",
    [
        b'{"id": "bsky:x/1", "id": "y", "kind": "delete"}',
        b'\xef\xbb\xbf{"id": "bsky:x/1", "kind": "delete"}',
        b'{"\\u0069d": "bsky:x/1", "kind": "delete"}',
        b'{"id": "bsky:x/1", "kind": "delete", "a": NaN}',
        b'{"id": "bsky:x/1", "kind": "delete", "a": "\\ud800"}',
        b'{"id": " bsky:x/1", "kind": "delete"}',
        b'{"id": ["bsky:x/1"], "kind": "delete"}',
        b'{"id": "bsky:x/1", "kind": "delete"} {}',
        b"\xff" + b'{"id": "bsky:x/1"}',
        b'{"a":' + b"[" * 2000 + b"]" * 2000 + b', "id": "bsky:x/1", "kind": "delete"}',
        BOM * 2 + VICTIMS,
        BOM * 3 + VICTIMS,
        b" " + BOM + VICTIMS,
        b"\x0c" + VICTIMS,
        VICTIMS + b"\x0b",
        b"\x0b\x0c" + BOM + b" " + BOM + VICTIMS + b"\x0c ",
        b"\x85" + VICTIMS,
        VICTIMS + b"\0",
        b"\n" + VICTIMS,
    ],
)
@pytest.mark.parametrize("beside", [b"", b'{"id": "1", "text": "water"}\n'])
async def test_whatever_the_line_it_is_ours_or_it_is_refused(raw, line, beside):
    """Through every hand between a token and the stages: body, lines, `owned`, writer, broker, frame, reader."""
    async with serving(raw) as (client, writer, _):
        answer = await client.post("/posts", content=beside + line, headers={"Authorization": f"Bearer {OTHER}"})
        assert answer.status_code in (202, 400)
    parsed = [stages.parse(value, Origin(0, 0), 1.7e9, KEPT) for values in raw.records().values() for value in values]
    assert sum(one.read for one in parsed) == writer.counts.read
    ids = [read.id for one in parsed for read in (*one.posts, *one.deletions)]
    assert all(post_id.startswith("web:") for post_id in ids), ids


@given(st.binary(max_size=40), st.sampled_from([b"", BOM, BOM * 2]), st.sampled_from([b"", VICTIMS]))
def test_a_line_that_could_not_be_read_is_never_read_and_keeps_its_bytes(begin, mark, end):
    line = refused_line(begin + mark + end)
    assert b"\n" not in line and b"\r" not in line and line == line.strip()
    parsed = stages.parse(line, Origin(0, 0), 1.7e9, KEPT)
    assert [one.reason for one in parsed.rejects] in (["not_an_object"], ["bad_utf8"]) and parsed.read == 1
    assert json.loads(line.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape") == begin + mark + end


def test_a_repost_may_name_a_post_of_a_live_source_and_its_own():
    line = b'{"id": 7, "text": "a", "repost_of": "masto:m/1", "reply_to": 6}'
    assert json.loads(owned(line, "web")) == {
        "id": "web:7",
        "text": "a",
        "repost_of": "masto:m/1",
        "reply_to": "web:6",
        "source": "web",
    }
    assert owned(owned(line, "web"), "web") == owned(line, "web")


async def test_guessing_tokens_is_logged_and_slowed_and_does_not_shut_out_who_has_one(raw, caplog):
    async with serving(raw, HttpConfig(wrong_tokens=3)) as (client, _, _):
        wrong = {"Authorization": "Bearer guess"}
        told = [(await client.post("/posts", content=ndjson(1), headers=wrong)).status_code for _ in range(5)]
        assert told == [401, 401, 401, 429, 429]
        assert (await client.post("/posts", content=ndjson(1))).status_code == 202
    assert len([r for r in caplog.records if "without a token" in r.message]) == 3


def test_a_token_must_be_given_and_be_long_enough(tmp_path, monkeypatch):
    monkeypatch.delenv("CRISIS_HTTP_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="--token-file"):
        Sources.read(None)
    monkeypatch.setenv("CRISIS_HTTP_TOKEN", TOKEN)
    assert Sources.read(None).of(TOKEN) == "http" and Sources.read(None).of("") is None
    assert isinstance(CliRunner().invoke(ingest, ["http", "--token-file", "absent"]).exception, ConfigError)


@pytest.mark.parametrize(
    "content, why",
    [
        ("\n \n", "needs a token"),
        ("short", "16 or more"),
        ("gov short", "16 or more"),
        ("Gov " + "x" * 20, "no name"),
        ("bluesky " + "x" * 20, "no name"),
        ("a " + "x" * 20 + "\nb " + "x" * 20, "its own"),
    ],
)
def test_a_token_file_that_would_let_anybody_in_is_refused(tmp_path, content, why):
    (tmp_path / "tokens").write_text(content)
    with pytest.raises(ConfigError, match=why):
        Sources.read(str(tmp_path / "tokens"))


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"http"}))
def test_no_token_takes_the_name_or_the_prefix_of_a_source(tmp_path, name):
    (tmp_path / "tokens").write_text(f"{name} {'x' * 20}")
    with pytest.raises(ConfigError, match="no name"):
        Sources.read(str(tmp_path / "tokens"))


def test_a_file_may_hold_hashes_in_place_of_tokens(tmp_path):
    hashed = hashlib.sha256(TOKEN.encode()).hexdigest()
    (tmp_path / "tokens").write_text(f"# partners\n\ngov sha256:{hashed}\nsms {'x' * 20}\n")
    sources = Sources.read(str(tmp_path / "tokens"))
    assert (sources.of(TOKEN), sources.of("x" * 20), sources.of(hashed)) == ("gov", "sms", None)


def test_a_port_that_is_taken_is_told_in_one_line_with_the_way_out_before_anything_is_promised(raw, monkeypatch):
    monkeypatch.setenv("CRISIS_HTTP_TOKEN", TOKEN)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = CliRunner().invoke(ingest, ["http", "--port", str(port)], obj=raw.settings)
    assert isinstance(done.exception, ConfigError) and "POST posts to" not in done.output
    assert str(done.exception) == (
        f"cannot listen on 127.0.0.1:{port} (Address already in use): choose another with --port, or "
        "CRISIS_INGEST__HTTP_PORT"
    )


def test_where_posts_are_sent_is_told_when_it_listens(raw, tmp_path):
    env = os.environ | {
        "CRISIS_HTTP_TOKEN": TOKEN,
        "CRISIS_BROKER__BOOTSTRAP": raw.bootstrap,
        "CRISIS_TOPICS__PREFIX": raw.settings.topics.prefix,
        "CRISIS_REDIS__URL": "redis://127.0.0.1:1/0",
    }
    command = [sys.executable, "-m", "streams.cli", "ingest", "http", "--host", "localhost", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=env) as server:
        try:
            url = server.stderr.readline().removeprefix("POST posts to ").strip()
            answer = httpx.post(url, content=ndjson(3), headers=BEARER, timeout=PATIENCE_S)
            server.send_signal(signal.SIGTERM)
            told = server.communicate(timeout=PATIENCE_S)[1]
        finally:
            server.kill()
    assert (answer.status_code, raw.ids()) == (202, ["http:p0", "http:p1", "http:p2"])
    assert "3 posts acknowledged by the broker; `crisis rejected list` counts those that workers refuse" in told
