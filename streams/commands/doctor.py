"""`crisis doctor`: is everything there that the pipeline needs, and if not, what to do."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import click
from kafka.errors import KafkaError
from msgspec import Struct
from redis.exceptions import RedisError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from models.encoder import load_encoder
from models.errors import CrisisError, ServiceError
from streams.config import Settings
from streams.control import read_queries
from streams.kafka import admin, topic_configs, wrong_configs
from streams.releases import OWN, read_release
from streams.runtime import calibration_of
from streams.state import connect
from streams.versions import load_version

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
    return Finding("broker", True, f"{settings.broker.bootstrap}, {brokers} broker(s)")


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
        return Finding("topics", False, told, "set CRISIS_TOPICS__PARTITIONS to what is there, or delete these topics and run `crisis topics`")
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
    except (RedisError, OSError) as error:
        return Finding("redis", False, f"{settings.redis.url}: {error}",
                       "start redis-server, or set CRISIS_REDIS__URL")  # fmt: skip
    off_s = seconds + micros / 1e6 - time.time()
    if abs(off_s) > CLOCK_OFF_S:
        return Finding("clock", False, f"this machine and Redis differ by {off_s:.1f} s", "synchronise with NTP")
    if info.get("maxmemory_policy", "noeviction") != "noeviction":
        return Finding("redis", False, f"evicts keys ({info['maxmemory_policy']}): repeats would alert again",
                       "set maxmemory-policy noeviction")  # fmt: skip
    return Finding("redis", True, f"version {info['redis_version']}, {info['used_memory_human']}, clock within "
                                  f"{abs(off_s):.1f} s")  # fmt: skip


def check_encoder(settings: Settings) -> Finding:
    """Does the encoder load and encode, and are there thresholds for it?"""
    started = time.perf_counter()
    encoder = load_encoder(settings.encoder.ref)
    encoder.encode(["we are trapped on the roof"])
    took = time.perf_counter() - started
    told = f"{encoder.version}, dim {encoder.dim}, ready in {took:.1f} s"
    if calibration_of(encoder, settings.encoder.ref) is None:
        return Finding("encoder", False, f"{told}, no calibrated thresholds", "run `python -m training.calibrate`")
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
        return Finding("release", False, f"cannot load {release.current}: {error}",
                       "set CRISIS_ENCODER__REGISTRY to where it is, or `crisis encoder rollback`")  # fmt: skip
    return Finding("release", True, f"{release.current} is current")


CHECKS: dict[str, Callable[[Settings], Finding]] = {
    "encoder": check_encoder, "redis": check_redis, "broker": check_broker, "topics": check_topics,
    "queries": check_queries, "release": check_release,
}  # fmt: skip
NEED_BROKER = {"topics", "queries", "release"}


def examine(settings: Settings, checks: Mapping[str, Callable[[Settings], Finding]] = CHECKS) -> list[Finding]:
    """Every check; those that need a broker, or topics, are left out once those are not there."""
    findings: list[Finding] = []
    for name, check in checks.items():
        if name in NEED_BROKER and any(f.check in ("broker", "topics") and not f.ok for f in findings):
            continue
        try:
            findings.append(check(settings))
        except (KafkaError, ServiceError) as error:
            findings.append(Finding(name, False, str(error), "see CRISIS_BROKER__BOOTSTRAP in deploy/crisis.toml"))
        except CrisisError as error:
            findings.append(Finding(name, False, str(error), ""))
    return findings


@click.command()
@click.pass_obj
def doctor(settings: Settings) -> None:
    """Check broker, topics, Redis, encoder, queries and clock, and say how to fix what is wrong.

    Ends with status 1 if anything is not right, so scripts can ask too.
    """
    findings = examine(settings)
    table = Table("check", "", "found", "to fix it")
    for f in findings:
        table.add_row(f.check, "[green]ok" if f.ok else "[red]no", escape(f.found), escape(f.fix))
    Console().print(table)
    if not Path("crisis.toml").is_file():
        click.echo("(no crisis.toml here: defaults and CRISIS_* variables are in use; see deploy/crisis.toml)")
    sys.exit(0 if all(f.ok for f in findings) else 1)
