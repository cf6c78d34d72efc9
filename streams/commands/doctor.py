"""`crisis doctor`: is everything there that the pipeline needs, and if not, what to do."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import click
from kafka.errors import KafkaError
from msgspec import Struct
from redis.exceptions import AuthenticationError, RedisError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from models.encoders.ready import load, stale
from models.encoders.registry import OWN
from models.errors import CrisisError, ServiceError
from streams.broker.connect import admin, is_loopback
from streams.broker.queries import read_queries
from streams.broker.topics import topic_configs, wrong_configs
from streams.commands.status import COLOURS, ask
from streams.config import Settings
from streams.config.secrets import redacted
from streams.releases.topic import read_release
from streams.releases.versions import load_version
from streams.view.connect import connect

__all__ = ["doctor"]

CLOCK_OFF_S = 5.0


class Finding(Struct, frozen=True):
    """One check: what was found, and how to fix it where it is not right."""

    check: str
    ok: bool
    found: str
    fix: str = ""


def check_broker(settings: Settings) -> Finding:
    """Does a broker answer?"""
    client = admin(settings)
    try:
        brokers = len(client.describe_cluster()["brokers"])
    finally:
        client.close()
    return Finding("broker", True, f"{settings.broker.bootstrap}, {brokers} broker(s){_in_the_clear(settings)}")


def _in_the_clear(settings: Settings) -> str:
    """What to know of a connection to another machine that anybody on the way can read."""
    hosts = [server.rpartition(":")[0] for server in settings.broker.bootstrap.split(",")]
    if "SSL" in settings.broker.security.split("_")[-1] or all(map(is_loopback, hosts)):
        return ""
    password = ", the password too" if settings.broker.security == "SASL_PLAINTEXT" else ""
    return f"; not encrypted{password}: see deploy/security.md"


def check_topics(settings: Settings) -> Finding:
    """Are all topics there, with the partitions the settings say and, where the broker tells, their settings?"""
    client = admin(settings)
    try:
        wanted = topic_configs(settings)
        have = {t["name"]: len(t["partitions"]) for t in client.describe_topics(list(client.list_topics()))}
        wrong = wrong_configs(client, settings)
    finally:
        client.close()
    if missing := sorted(set(wanted) - set(have)):
        return Finding("topics", False, f"missing: {', '.join(missing)}", "run `crisis topics`")
    if wrong:
        told = "; ".join(f"{name} has {key}={value}" for name, keys in wrong.items() for key, value in keys.items())
        return Finding("topics", False, told, "run `crisis topics`: it mends these settings")
    off = [n for n, o in wanted.items() if have[n] != o["num_partitions"]]
    if off:
        told = ", ".join(f"{n} has {have[n]} partitions, settings say {wanted[n]['num_partitions']}" for n in off)
        return Finding(
            "topics",
            False,
            told,
            "set CRISIS_TOPICS__PARTITIONS to what is there, or delete these topics and run `crisis topics`",
        )
    return Finding("topics", True, f"{len(wanted)} topics, {settings.topics.partitions} partitions")


def check_redis(settings: Settings) -> Finding:
    """Does Redis answer, is it new enough, and is its clock ours?"""

    async def ask() -> tuple[dict, tuple[int, int]]:
        redis = connect(settings.redis)
        try:
            return await redis.info(), await redis.time()
        finally:
            await redis.aclose()

    try:
        info, (seconds, micros) = asyncio.run(ask())
    except AuthenticationError as error:
        return Finding(
            "redis",
            False,
            redacted(f"{settings.redis.url}: {error}"),
            "its password: in the file of CRISIS_REDIS__PASSWORD_FILE, or in CRISIS_REDIS__URL (redis://:PASSWORD@host)",
        )
    except (RedisError, OSError) as error:
        return Finding(
            "redis", False, redacted(f"{settings.redis.url}: {error}"), "start redis-server, or set CRISIS_REDIS__URL"
        )
    off_s = seconds + micros / 1e6 - time.time()
    if abs(off_s) > CLOCK_OFF_S:
        return Finding("clock", False, f"this machine and Redis differ by {off_s:.1f} s", "synchronise with NTP")
    if info.get("maxmemory_policy", "noeviction") != "noeviction":
        return Finding(
            "redis",
            False,
            f"evicts keys ({info['maxmemory_policy']}): repeats would alert again",
            "set maxmemory-policy noeviction",
        )
    told = f"version {info['redis_version']}, {info['used_memory_human']}, clock within {abs(off_s):.1f} s"
    if not info.get("maxmemory"):
        told += "; without maxmemory: see deploy/security.md"
    url = urlsplit(settings.redis.url)
    if url.scheme == "redis" and not is_loopback(url.hostname or ""):
        told += "; not encrypted"
    return Finding("redis", True, told)


def check_encoder(settings: Settings) -> Finding:
    """Does the encoder load and encode, and are there thresholds for it?"""
    started = time.perf_counter()
    loaded = load(settings.encoder.ref)
    loaded.encoder.encode(["we are trapped on the roof"])
    took = time.perf_counter() - started
    told = f"{loaded.encoder.version}, dim {loaded.encoder.dim}, ready in {took:.1f} s"
    if loaded.calibration is None:
        return Finding("encoder", False, f"{told}, no calibrated thresholds", "run `python -m training.calibrate`")
    if wrong := stale(loaded.calibration):
        return Finding("encoder", False, f"{told}, {wrong}", "run `python -m training.calibrate`")
    if loaded.clusters is None:
        clusters = settings.cluster
        told += (
            f"; no cluster thresholds of its own: those of the settings, {clusters.t_attach:g}, {clusters.t_merge:g}"
        )
    return Finding("encoder", True, told)


def check_queries(settings: Settings) -> Finding:
    """Are there queries?"""
    found = read_queries(settings)
    if not found:
        return Finding("queries", False, "none: nothing can match", "run `crisis topics` or `crisis query add`")
    languages = {lang for q in found.values() for lang in q.sentences}
    return Finding("queries", True, f"{len(found)} queries in {len(languages)} languages")


def check_release(settings: Settings) -> Finding:
    """Can the encoder version that is current be had here?"""
    release = read_release(settings)
    if release.current == OWN:
        return Finding("release", True, "no version was released: the settings' own encoder serves")
    try:
        load_version(settings, release.current)
    except CrisisError as error:
        return Finding(
            "release",
            False,
            f"cannot load {release.current}: {redacted(error)}",
            "set CRISIS_ENCODER__REGISTRY to where it is, or `crisis encoder rollback`",
        )
    return Finding("release", True, f"{release.current} is current")


CHECKS: dict[str, Callable[[Settings], Finding]] = {
    "encoder": check_encoder,
    "redis": check_redis,
    "broker": check_broker,
    "topics": check_topics,
    "queries": check_queries,
    "release": check_release,
}
NEED_BROKER = {"topics", "queries", "release"}


def examine(settings: Settings, checks: Mapping[str, Callable[[Settings], Finding]] | None = None) -> list[Finding]:
    """Every check; those that need a broker, or topics, are left out once those are not there."""
    findings: list[Finding] = []
    for name, check in (CHECKS if checks is None else checks).items():
        if name in NEED_BROKER and any(f.check in ("broker", "topics") and not f.ok for f in findings):
            continue
        try:
            findings.append(check(settings))
        except (KafkaError, ServiceError) as error:
            findings.append(Finding(name, False, redacted(error), "see CRISIS_BROKER__BOOTSTRAP in deploy/crisis.toml"))
        except CrisisError as error:
            findings.append(Finding(name, False, redacted(error), ""))
    return findings


@click.command()
@click.option("--set-up", is_flag=True, help="Only what must be there before workers start: not whether they run.")
@click.pass_obj
def doctor(settings: Settings, set_up: bool) -> None:
    """Check broker, topics, Redis, encoder, queries and clock, and say how to fix what is wrong.

    Last comes the sentence that the page, /readyz and `crisis status` say of the whole. Ends with status 1 if anything
    is not right or alerts do not come as they should, so scripts can ask too.
    """
    findings = examine(settings)
    table = Table("check", "", "found", "to fix it")
    for f in findings:
        table.add_row(f.check, "[green]ok" if f.ok else "[red]no", escape(f.found), escape(f.fix))
    Console().print(table)
    if not Path("crisis.toml").is_file():
        click.echo("(no crisis.toml here: defaults and CRISIS_* variables are in use; see deploy/crisis.toml)")
    well = all(f.ok for f in findings)
    if not set_up:
        health = asyncio.run(ask(settings))
        click.secho(health.sentence, fg=COLOURS[health.level])
        well = well and health.level == "live"
    sys.exit(0 if well else 1)
