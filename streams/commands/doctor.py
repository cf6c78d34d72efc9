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
from streams.broker.topics import kept_otherwise, topic_configs, wrong_configs, wrong_partitions
from streams.commands.status import COLOURS, ask
from streams.config import Settings
from streams.config.secrets import redacted
from streams.releases.topic import read_release
from streams.releases.versions import load_version
from streams.view.connect import connect
from streams.view.pseudonyms import KEY_ID, check_key, load_pseudonyms

__all__ = ["doctor"]

CLOCK_OFF_S = 5.0
VAULT_ANSWERS_S = 5.0


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
    off = wrong_partitions(settings, have)
    if off:
        told = ", ".join(f"{name} has {there} partitions, settings say {said}" for name, (there, said) in off.items())
        return Finding("topics", False, told, _other_partitions(settings, have[settings.topics.name("posts.raw")], off))
    told = f"{len(wanted)} topics, {settings.topics.partitions} partitions"
    if kept := kept_otherwise(settings):
        told += f"; {kept}"
    return Finding("topics", True, told)


def _other_partitions(settings: Settings, of_raw: int, off: dict[str, tuple[int, int]]) -> str:
    """How to get the partitions that the settings say, or settings that say what is there."""
    raw, said = settings.topics.name("posts.raw"), settings.topics.partitions
    if of_raw < said:
        return (
            f"`kafka-topics.sh --alter --topic {raw} --partitions {said}` while no source sends, then `crisis topics`; "
            f"or set CRISIS_TOPICS__PARTITIONS to {of_raw}"
        )
    if of_raw > said:
        return f"set CRISIS_TOPICS__PARTITIONS to {of_raw}, which {raw} has: no topic gets fewer"
    if all(there < said for there, said in off.values()):
        return "run `crisis topics`: it adds them"
    return "stop the workers, delete these topics and run `crisis topics`"


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


def check_secret(settings: Settings) -> Finding:
    """Is the secret of the pseudonyms there, and the one that workers use?"""
    names = load_pseudonyms(settings)  # as a worker does, which does not start without

    async def ask() -> bool:
        redis = connect(settings.redis)
        try:
            used = bool(await redis.exists(f"{settings.key_prefix}{KEY_ID}"))
            if used:  # else asking would say that this is the one: that is for a worker to do
                await check_key(redis, settings, names)
            return used
        finally:
            await redis.aclose()

    try:
        used = asyncio.run(ask())
    except (RedisError, OSError):
        return Finding("secret", True, f"{settings.privacy.key_file}; Redis does not say whether it is the workers'")
    told = "the one that workers use" if used else "none is in use yet"
    return Finding("secret", True, f"{settings.privacy.key_file}, {told}")


def check_vault(settings: Settings) -> Finding:
    """Does the vault answer, where there is one? Workers wait for it with every post."""
    where = settings.privacy.vault
    if where is None or settings.privacy.keep_ids:
        return Finding("vault", True, "none: no link to a post is kept apart")
    url = redacted(where.url)

    async def ask() -> None:
        redis = connect(where)
        try:
            await asyncio.wait_for(redis.ping(), VAULT_ANSWERS_S)
        finally:
            await redis.aclose()

    try:
        asyncio.run(ask())
    except (RedisError, OSError) as error:
        return Finding(
            "vault",
            False,
            redacted(f"{url}: {str(error) or f'no answer for {VAULT_ANSWERS_S:g} s'}"),
            "start it, or set CRISIS_PRIVACY__VAULT_URL and CRISIS_PRIVACY__VAULT_PASSWORD_FILE",
        )
    return Finding("vault", True, f"{url} answers")


def check_encoder(settings: Settings) -> Finding:
    """Does the encoder load and encode, and are there thresholds for it?"""
    started = time.perf_counter()
    loaded = load(settings.encoder.ref)
    loaded.encoder.encode(["we are trapped on the roof"])
    took = time.perf_counter() - started
    told = f"{loaded.encoder.version}, dim {loaded.encoder.dim}, ready in {took:.1f} s"
    if loaded.calibration is None:
        cure = "run `python -m training.calibrate laptop encoder=DIR`"
        return Finding("encoder", False, f"{told}, no calibrated thresholds", cure)
    if wrong := stale(loaded.calibration):
        job = "head" if loaded.calibration.head else "calibrate"
        return Finding("encoder", False, f"{told}, {wrong}", f"run `python -m training.{job} laptop encoder=DIR`")
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
    "secret": check_secret,
    "vault": check_vault,
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
    """Check broker, topics, Redis, secret, vault, encoder, queries and clock, and say how to fix what is wrong.

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
