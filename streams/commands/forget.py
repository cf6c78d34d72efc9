"""`crisis forget`: a person, or one post, out of every store; with a receipt."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from typing import Any, BinaryIO

import click
import msgspec

from models.errors import CrisisError
from models.moments import rfc3339
from streams.broker.authors import posts_of
from streams.broker.connect import admin
from streams.broker.labels import read_labels
from streams.broker.topics import LAST_STATES, dropped_within_s, wrong_configs
from streams.config import Settings
from streams.ingest.writer import open_writer
from streams.view.connect import connect, reaching_redis
from streams.view.holdings import Holdings
from streams.view.pseudonyms import check_key, load_pseudonyms
from streams.view.vault import Vault

__all__ = ["forget"]

WITHIN_S = 60.0
LOOK_S, LONGEST_LOOK_S = 0.5, 5.0
ON_THE_BROKER = ("posts.raw", "posts.clean", "posts.waiting", "posts.embedded", "posts.matched", "posts.rejected")
COMPACTED_S = 2 * 3600.0  # a segment closes within the hour, what it holds of earlier states goes in the next


class Receipt(msgspec.Struct, frozen=True):
    """What was done, for the file of the person who asked: it names nobody. Times are RFC 3339."""

    at: str
    posts: int
    pseudonyms: list[str]  # of the posts
    before: dict[str, int]  # by store: how many held something of them; labels: on the broker, the others in Redis
    after: dict[str, int]
    clean: bool  # nothing in any of them any more, and so on the page; search follows the same deletions
    # What was written before, by the broker's own settings; None where those keep it longer than anybody can tell
    gone_from_posts_by: str | None
    gone_from_alerts_and_clusters_by: str | None
    topics: list[str]
    took_s: float


def send_deletions(settings: Settings, ids: list[str]) -> None:
    """As a source would: every store follows them, whatever follows the stream."""
    with open_writer(settings) as writer:
        for post_id in ids:
            writer.write(msgspec.json.encode({"id": post_id, "kind": "delete"}), key=post_id)


def on_the_broker_s(settings: Settings) -> tuple[float | None, float | None]:
    """For how long the broker goes on holding what was written before: of posts, and of alerts and clusters. None where
    its settings put no end to it: topics that somebody else made, which `crisis topics` mends."""
    with contextlib.closing(admin(settings)) as client:
        wrong = wrong_configs(client, settings)
    compacted = not {settings.topics.name(topic) for topic in LAST_STATES} & wrong.keys()
    return dropped_within_s(settings, ON_THE_BROKER), COMPACTED_S if compacted else None


async def forget_posts(settings: Settings, ids: list[str], account: str | None, within_s: float) -> Receipt:
    """Delete these posts and wait until nothing of them is held: looked for by name first, in all there is in the end.

    Raises ServiceError without broker or Redis, and ConfigError without the workers' secret: what they hold could not
    be looked for.
    """
    names = load_pseudonyms(settings, must=not settings.privacy.keep_ids)
    posts_s, states_s = await asyncio.to_thread(on_the_broker_s, settings)
    began, redis, vault = time.time(), connect(settings.redis), Vault.of(settings)
    try:
        with reaching_redis(settings.redis):
            if settings.privacy.key_file is not None:
                await check_key(redis, settings, names)
            holdings = Holdings(redis, settings, vault, lambda: [s.post_id for s in read_labels(settings).values()])
            known = [names.id(post_id) for post_id in ids]
            if account is not None:
                known = list(dict.fromkeys(known + await holdings.posts_under([names.id(account)])))
            before = after = await holdings.of(known)
            # The account's own deletion takes along what is still under way, and what posts.raw no longer holds.
            await asyncio.to_thread(send_deletions, settings, [*ids, *([account] if account and known else [])])
            look_s, over = LOOK_S, False
            while not over:
                await asyncio.sleep(look_s)
                await holdings.drop_counts(known)
                over = time.time() - began > within_s
                after = await holdings.by_name(known)
                if over or not any(after.values()):
                    after, look_s = await holdings.of(known), min(2 * look_s, LONGEST_LOOK_S)
                    over |= not any(after.values())
    finally:
        await redis.aclose()
        if vault is not None:
            await vault.aclose()
    return Receipt(
        at=rfc3339(began),
        posts=len(known),
        pseudonyms=[] if names.keep else sorted(known),
        before=before,
        after=after,
        clean=not any(after.values()),
        gone_from_posts_by=None if posts_s is None else rfc3339(began + posts_s),
        gone_from_alerts_and_clusters_by=None if states_s is None else rfc3339(began + states_s),
        topics=[settings.topics.name(topic) for topic in ON_THE_BROKER],
        took_s=round(time.time() - began, 1),
    )


@click.command()
@click.option("--author", help="A handle as the source writes it, or an account's id (bsky:did:plc:…).")
@click.option("--post", help="One post's id.")
@click.option("--receipt", type=click.File("wb"), help="Write the receipt here instead of to standard output.")
@click.option("--within", type=float, default=WITHIN_S, show_default=True, help="Seconds to wait for the workers.")
@click.pass_obj
def forget(settings: Settings, author: str | None, post: str | None, receipt: BinaryIO | None, within: float) -> None:
    """Take a person's posts, or one post, out of alerts, page, search, clusters, snapshots and labels.

    Workers must be running: they do it. The receipt says what was held and is held now, and by when the broker has
    dropped what was written before. Ends with status 1 if something is left.
    """
    if (author is None) == (post is None):
        raise click.UsageError("say which: --author or --post")
    names = load_pseudonyms(settings, must=not settings.privacy.keep_ids)
    ids = [post] if post else posts_of(settings, author or "", names)
    account = author if author and (":" in author or author.startswith("~")) else None
    done = asyncio.run(forget_posts(settings, ids, account, within))
    if not done.posts:
        raise CrisisError("nothing is known of this author: the handle must be as the source writes it")
    told: Any = receipt or sys.stdout.buffer
    told.write(msgspec.json.format(msgspec.json.encode(done), indent=2) + b"\n")
    told.flush()
    if not done.clean:
        left = ", ".join(f"{n} in {store}" for store, n in done.after.items() if n)
        raise CrisisError(f"after {done.took_s:g} s something is left ({left}): do workers run? `crisis status` says")
