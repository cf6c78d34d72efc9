"""`crisis demo`: the whole pipeline on one machine, through Kafka's protocol and the Faust agents."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path

import click
import httpx
from rich.console import Console

from streams.commands.key import make_key
from streams.commands.topics import prepare
from streams.config import Settings, load_settings
from streams.config.secrets import redacted
from streams.embedded.children import Children
from streams.embedded.redis import EmbeddedRedis
from streams.ingest.file import ReplayConfig, ingest_file
from streams.pipeline.outcomes import through
from streams.view.connect import connect
from streams.view.live import LiveView
from streams.worker.watchdog import STALLED

__all__ = ["demo"]

out = Console(highlight=False)

START_S = 60.0  # a worker needs 3 to 5 s; a slow laptop on battery may need ten times that
SENT_S = 10.0  # for the broker beside us to take what is sent; where it died, what waits for it gives up so soon
CLUSTERS_S = 20.0  # what the last clusters may take: a save every five seconds, and slow machines


@contextlib.contextmanager
def posts_file(given: Path | None) -> Iterator[Path]:
    """The user's file, or the bundled stream."""
    if given is not None:
        yield given
        return
    with as_file(files("streams") / "data" / "demo.jsonl") as bundled:
        yield bundled


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@click.command()
@click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Your own posts (JSONL, .gz or CSV) instead of the bundled invented ones.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0),
    default=8.0,
    show_default=True,
    help="Posts per second; 0 = as fast as it goes.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    show_default=True,
    help="Port of the dashboard (another one if it is taken).",
)
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, help="Worker processes.")
@click.option("--exit-at-end", is_flag=True, help="Stop when the last post is through, instead of staying up.")
@click.option("--logs", type=click.Path(file_okay=False, path_type=Path), help="Keep the processes' logs here.")
@click.pass_context
def demo(
    context: click.Context,
    file: Path | None,
    rate: float,
    port: int,
    workers: int,
    exit_at_end: bool,
    logs: Path | None,
) -> None:
    """Try everything on this machine: an embedded broker and Redis, real Faust workers, and the dashboard.

    Nothing is kept: Ctrl-C stops every process and forgets everything. The embedded broker is for trying out only.
    """
    with contextlib.ExitStack() as stack:
        scratch = logs or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="crisis-demo-")))
        redis = stack.enter_context(EmbeddedRedis(password=secrets.token_urlsafe(24)))
        posts = stack.enter_context(posts_file(file))
        config = context.find_root().params.get("config")
        secret = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="crisis-key-"))) / "key"
        make_key(secret)
        settings = _settings(config, redis.url, secret, free_port(), _usable(port))
        env = environment(settings) | ({"CRISIS_CONFIG": str(Path(config).resolve())} if config else {})
        asyncio.run(_run(settings, posts, rate, workers, exit_at_end, scratch, env))


def _usable(port: int) -> int:
    if port == 0:
        return free_port()
    with socket.socket() as s:
        return port if s.connect_ex(("127.0.0.1", port)) != 0 else free_port()


def _settings(config: str | None, redis_url: str, key: Path, broker_port: int, dashboard_port: int) -> Settings:
    return load_settings(
        config,
        broker={"bootstrap": f"127.0.0.1:{broker_port}", "security": "PLAINTEXT"},
        redis={"url": redis_url},
        privacy={"key_file": key, "vault_url": redis_url.removesuffix("/0") + "/1"},
        topics={"partitions": 4},
        dashboard={"port": dashboard_port},
        worker={"web_port": 0},
        ingest={"writer": {"delivery_timeout_s": SENT_S}},
    )


def environment(settings: Settings) -> dict[str, str]:
    """The settings a child process needs to find the same broker, Redis and ports."""
    return {
        "CRISIS_BROKER__BOOTSTRAP": settings.broker.bootstrap,
        "CRISIS_BROKER__SECURITY": settings.broker.security,
        "CRISIS_REDIS__URL": settings.redis.url,
        "CRISIS_PRIVACY__KEY_FILE": str(settings.privacy.key_file),
        "CRISIS_PRIVACY__VAULT_URL": settings.privacy.vault_url or "",
        "CRISIS_TOPICS__PARTITIONS": str(settings.topics.partitions),
        "CRISIS_DASHBOARD__PORT": str(settings.dashboard.port),
        "CRISIS_WORKER__WEB_PORT": "0",
    }


async def _run(
    settings: Settings, posts: Path, rate: float, workers: int, exit_at_end: bool, scratch: Path, env: dict[str, str]
) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    stops = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # a terminal that closes, but for one who asked `nohup`
        stops.append(signal.SIGHUP)
    for sig in stops:
        loop.add_signal_handler(sig, stopped.set)
    redis = connect(settings.redis)
    view = LiveView(redis, settings)
    feeding = threading.Event()  # set: stop sending posts
    async with Children(scratch) as children:
        out.print("starting an embedded broker and Redis …")
        await children.start("broker", ["streams.embedded", "--port", settings.broker.bootstrap.split(":")[1]], env)
        work = asyncio.create_task(_show(settings, view, children, posts, rate, workers, exit_at_end, env, feeding))
        ends = [work, asyncio.create_task(children.any_death()), asyncio.create_task(stopped.wait())]
        done, pending = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        feeding.set()
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        why = [redacted(task.exception()).partition("\n")[0] for task in done if task.exception()]
        out.print("\n" + " ".join([*why, "stopping …"]), markup=False)
    await redis.aclose()
    for task in done:
        task.result()  # a child's last words are told here, once everything is stopped
    out.print("stopped; nothing is left running")


async def _show(
    settings: Settings,
    view: LiveView,
    children: Children,
    posts: Path,
    rate: float,
    workers: int,
    exit_at_end: bool,
    env: dict[str, str],
    feeding: threading.Event,
) -> None:
    await _until_open(settings.broker.bootstrap)
    _, queries = await asyncio.to_thread(prepare, settings)
    out.print(f"{queries} queries loaded; starting {workers} worker(s) and the dashboard …")
    for number in range(workers):
        await children.start(f"worker-{number + 1}", ["streams.cli", "worker"], env, restart_on=STALLED)
    await children.start("dashboard", ["streams.cli", "dashboard"], env)
    address = f"http://127.0.0.1:{settings.dashboard.port}"
    await _until_ready(view, address, workers)
    out.print(f"\n  [bold]dashboard: {address}[/bold]      (Ctrl-C stops everything)")
    out.print(
        f"  for `crisis` in another terminal: export CRISIS_BROKER__BOOTSTRAP={settings.broker.bootstrap} "
        f"CRISIS_REDIS__URL={settings.redis.url} CRISIS_PRIVACY__KEY_FILE={settings.privacy.key_file}\n",
        soft_wrap=True,
    )
    started = time.monotonic()
    pace = ReplayConfig(rate=rate or None)
    feed = asyncio.create_task(asyncio.to_thread(ingest_file, settings, posts, pace, stop=feeding))
    told, through_at = "", 0.0
    while True:
        counts = await view.counts()
        clusters = await view.redis.zcard(view.key("clusters"))
        now = (
            f"posts {counts.get('read', 0):6,}   matches {counts.get('alert', 0) + counts.get('suggestion', 0):5,}   "
            f"alerts {counts.get('alert', 0):5,}   clusters {clusters:4,}"
        )
        if out.is_terminal or now != told:  # a log gets a line where something changed, not one of all
            out.print(f"  {time.monotonic() - started:5.0f} s   {now}", end="\r" if out.is_terminal else "\n")
        told = now
        if feed.done() and (done := through(counts)) >= feed.result():
            through_at = through_at or await view.now()
            if await _in_clusters(view, through_at):
                break
        await asyncio.sleep(0.5)
    out.print(f"\n  all {done:,} posts are through")
    if refused := counts.get("rejected", 0):
        out.print(
            f"  {refused:,} of them are no posts and were refused: `crisis replay {posts} --rejects FILE` says why",
            soft_wrap=True,
        )
    if not exit_at_end:
        out.print("  the dashboard stays up until Ctrl-C")
        await asyncio.Event().wait()


async def _in_clusters(view: LiveView, since: float) -> bool:
    """Is what had its outcome by then (epoch seconds) in clusters too? Outcomes do not wait for them.

    By the workers' word; one that comes within a second and a half may tell of figures taken before.
    """
    said = (await view.workers()).values()
    return await view.now() > since + CLUSTERS_S or all(
        word.at > since + 1.5 and not word.lag.get("posts.matched") for word in said
    )


async def _until_open(bootstrap: str) -> None:
    host, port = bootstrap.split(":")
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        try:
            _, writer = await asyncio.open_connection(host, int(port))
        except OSError:
            await asyncio.sleep(0.1)
            continue
        writer.close()
        await writer.wait_closed()
        return


async def _until_ready(view: LiveView, address: str, workers: int) -> None:
    """Workers say so in Redis, the dashboard by answering."""
    deadline = time.monotonic() + START_S
    async with httpx.AsyncClient() as client:
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.HTTPError):
                healthy = (await client.get(f"{address}/livez")).status_code == 200
                ready = sum(w.state == "ready" for w in (await view.workers()).values())
                if healthy and ready >= workers:
                    return
            await asyncio.sleep(0.2)
    raise click.ClickException(f"no worker or dashboard was ready after {START_S:.0f} s; --logs DIR keeps their logs")
