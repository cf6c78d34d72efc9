"""The vault: it keeps links for a while, drops what is gone, and says who opened what."""

import asyncio
import time

import pytest
from redis.asyncio import Redis

from models.errors import ConfigError
from models.pseudonyms import Link, Pseudonyms
from streams.config import load_settings
from streams.view.pseudonyms import check_key, load_pseudonyms
from streams.view.vault import Vault

A, B, C = (Link(f"~a/{n}", f"bsky:did:plc:a/{n}", f"https://bsky.app/profile/a/post/{n}") for n in range(3))


@pytest.fixture
async def vault(redis_url):
    url = redis_url.removesuffix("/0") + "/1"
    opened = Vault.of(load_settings(privacy={"vault_url": url, "link_h": 1.0}))
    yield opened
    await opened.aclose()


async def test_a_link_is_kept_for_a_while_and_as_long_as_its_alert_once_it_gave_one(vault):
    await vault.keep([A, B])
    await vault.prolong([A.post_id, "~a/never-kept"])
    await vault.keep([A, B])  # a frame that came again
    left = {one.post_id: await vault._redis.ttl(f"vault:link:{one.post_id}") for one in (A, B)}
    assert left[A.post_id] > 71 * 3600 and 0 < left[B.post_id] <= 3600
    assert await vault._redis.ttl("vault:of:~a") > 71 * 3600
    assert not [k async for k in vault._redis.scan_iter() if await vault._redis.ttl(k) < 0]


async def test_what_is_gone_leaves_no_link_and_what_is_under_way_makes_none(vault):
    other = Link("~b/1", "bsky:did:plc:b/1")
    await vault.keep([A, B, other])
    await vault.drop([A.post_id])
    assert await vault.held([A.post_id, B.post_id, other.post_id]) == 2
    await vault.drop(["~a"])  # the account
    await vault.keep([A, B, C])
    assert await vault.held([A.post_id, B.post_id, C.post_id, other.post_id]) == 1


@pytest.mark.parametrize("first_h, then_h", [(0, 7), (-7, 0), (0, 80), (7, 0)])
async def test_a_closed_account_takes_all_its_links_along_however_wrong_the_clocks_of_workers_are(
    vault, monkeypatch, first_h, then_h
):
    for off_h, link in ((first_h, A), (then_h, B)):
        monkeypatch.setattr("time.time", lambda off_h=off_h, right=time.time: right() + 3600 * off_h)
        await vault.keep([link])
        monkeypatch.undo()
    await vault.drop(["~a"])
    assert await vault.held([A.post_id, B.post_id]) == 0


async def test_nobody_opens_a_link_without_being_written_down(vault):
    await vault.keep([A])
    assert await vault.open(A.post_id, "ada") == A and await vault.open("~x/1", "bob") is None
    told = await vault.openings()
    assert [(o.who, o.post, o.found) for o in told] == [("bob", "~x/1", False), ("ada", A.post_id, True)]


async def test_workers_with_two_secrets_or_two_rules_are_told_apart(redis_url):
    settings = load_settings()
    async with Redis.from_url(redis_url) as redis:
        mine = Pseudonyms(b"k" * 40)
        await asyncio.gather(*(check_key(redis, settings, mine) for _ in range(3)))
        with pytest.raises(ConfigError, match="the secret in privacy.key_file is not what"):
            await check_key(redis, settings, Pseudonyms(b"l" * 40))
        with pytest.raises(ConfigError, match="keep_ids is not what"):
            await check_key(redis, settings, Pseudonyms(b"k" * 40, keep=True))
        assert b"k" * 40 not in b"".join([await redis.get(key) async for key in redis.scan_iter()])


def test_a_worker_needs_a_secret_that_cannot_be_guessed(tmp_path):
    with pytest.raises(ConfigError, match="crisis key FILE"):
        load_pseudonyms(load_settings())
    (tmp_path / "key").write_text("secret\n")
    with pytest.raises(ConfigError, match="32 or more"):
        load_pseudonyms(load_settings(privacy={"key_file": tmp_path / "key"}))
