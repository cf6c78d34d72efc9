"""Versions that are worse, or cannot be loaded: seen in the shadow, rolled back, told."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from pathlib import Path

import pytest

from models.encoders.bundle import read_bundle
from models.encoders.load import FLOOD
from models.encoders.registry import Registry
from streams.broker.queries import publish_queries
from streams.releases.release import Release
from streams.releases.topic import change_release, read_release
from tests.e2e.harness import DEMO, lines_of
from tests.e2e.takeovers import (
    QUERIES,
    Load,
    all_on,
    check_every_post_once_and_every_frame_by_one_version,
    first_frame_of,
    frames,
    post,
    use,
)
from tests.releases.tiny import shuffled_rows

pytestmark = pytest.mark.redis


def english_texts() -> list[str]:
    found = []
    for line in lines_of(DEMO):
        with contextlib.suppress(ValueError):  # the demo holds lines that must be rejected
            said = json.loads(line)
            found += [said["text"]] if said.get("lang") == "en" else []
    return found


ENGLISH = english_texts()


def english(number: int) -> bytes:
    """An English post of the demo stream, again and again with another ending."""
    said = f"{ENGLISH[number % len(ENGLISH)]} {number}"
    return json.dumps({"id": f"e-{number}", "text": said, "lang": "en", "source": "test"}).encode()


async def test_a_bad_version_is_seen_in_the_shadow_and_as_canary_rolled_back_by_itself(
    start, tmp_path, monkeypatch, capsys
):
    """The bundled encoder with its rows shuffled, through the shadow to the canary and out."""
    good = read_bundle(FLOOD).id
    registry = Registry(tmp_path / "registry")
    monkeypatch.setenv("CRISIS_ENCODER__REGISTRY", registry.url)
    monkeypatch.setenv("CRISIS_CACHE", str(tmp_path / "cache"))
    shuffled_rows(tmp_path / "bad", FLOOD)
    bad = registry.publish(tmp_path / "bad")  # as if forced: test_publish.py shows that the gates refuse it
    async with start(partitions=4) as live:
        await live.start_worker()
        await all_on(live, good, 1)
        async with Load(live, per_s=150, make=english) as load:
            await live.until(lambda c: c.get("alert", 0) > 50)

            def stage(shadow: float, canary: float) -> int:
                changed = change_release(
                    live.settings, lambda r: r.stage(bad, time.time(), shadow=shadow, canary=canary)
                )
                return changed.revision

            revision = await asyncio.to_thread(stage, 1.0, 0.0)

            async def seen_enough() -> dict[str, int]:
                found = await live.view.counts(f"trial-{revision}")
                return found if found.get("shadow:posts", 0) >= 300 else {}

            seen = await live.become(seen_enough)
            assert seen["shadow:lost"] > 10 * seen.get("shadow:gained", 0)
            assert seen["beside:alerts:en"] > 10 * seen.get("shadow:alerts:en", 0)
            assert {f.encoder_version for f in frames(live)} == {good}  # the shadow publishes nothing
            revision = await asyncio.to_thread(stage, 0.0, 0.5)

            async def rolled_back() -> Release | None:
                found = await asyncio.to_thread(read_release, live.settings)
                return found if found.staged is None else None

            release = await live.become(rolled_back)
            assert (release.refused.version, release.revision) == (bad, revision + 1)
            assert "alerts on" in release.refused.reason
            await first_frame_of(live, bad)
        counts = await live.until_through(load.sent)
        check_every_post_once_and_every_frame_by_one_version(live, load.sent, counts)
        await all_on(live, good, 1)
    with capsys.disabled():
        print(f"\n{release.change}")


async def test_a_worker_that_cannot_load_a_version_keeps_the_old_one_and_says_so(start, versions, tmp_path):
    model = Path(tmp_path / "registry" / versions["v2"] / "model.safetensors")
    whole = model.read_bytes()
    model.write_bytes(whole[:-1])
    async with start(partitions=4) as live:
        await asyncio.to_thread(publish_queries, live.settings, {q.id: q for q in QUERIES})
        await live.start_worker()
        await all_on(live, versions["v1"], 1)
        await asyncio.to_thread(use, live, versions["v2"])

        async def messages() -> list[str]:
            return [w.message for w in (await live.view.workers()).values() if w.message]

        said = await live.become(messages)
        assert said[0].startswith(f"keeps own: cannot load {versions['v2']}: ")
        assert "model.safetensors of " in said[0] and " was changed: " in said[0]
        sent = await live.send([post(n) for n in range(100)])
        assert (await live.until_through(sent))["alert"] > 20
        model.write_bytes(whole)
        await all_on(live, versions["v2"], 1)
        assert [w.message for w in (await live.view.workers()).values()] == [""]
