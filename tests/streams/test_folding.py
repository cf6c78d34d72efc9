"""Folding repeats: the Redis script and the dict must give the same answers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis

from streams.folding import MemoryFolder, RedisFolder
from streams.stages import Claim, Verdict

ids = st.sampled_from(["a", "b", "c", "d"])
claims = st.lists(
    st.builds(
        Claim, post_id=ids, place=st.integers(0, 30).map(lambda n: f"0:{n}:0"),
        fingerprint=st.sampled_from(["t1", "t2", "t3"]), repost_of=st.none() | ids,
    ),
    max_size=12,
)  # fmt: skip


async def test_the_first_to_say_it_is_the_original_and_later_ones_repeat_it():
    folder = MemoryFolder()
    first = Claim("p1", "0:1:0", "same", None)
    later = Claim("p2", "0:2:0", "same", None)
    assert await folder.claim([first, later]) == [Verdict(), Verdict(repeats="p1")]


async def test_a_redelivered_frame_gets_the_same_answers_again():
    folder = MemoryFolder()
    frame = [Claim("p1", "0:1:0", "x", None), Claim("p2", "0:1:1", "x", None), Claim("p1", "0:1:2", "y", None)]
    assert await folder.claim(frame) == await folder.claim(frame)


async def test_the_same_id_with_another_text_is_an_edit():
    folder = MemoryFolder()
    await folder.claim([Claim("p1", "0:1:0", "old", None)])
    assert await folder.claim([Claim("p1", "0:2:0", "new", None)]) == [Verdict(edits=True)]


async def test_a_repost_folds_into_the_post_it_names_whatever_its_text():
    folder = MemoryFolder()
    await folder.claim([Claim("p1", "0:1:0", "long text", None)])
    assert await folder.claim([Claim("r1", "0:2:0", "RT cut off", "p1")]) == [Verdict(repeats="p1")]


async def test_after_a_deletion_the_same_text_is_a_post_of_its_own():
    folder = MemoryFolder()
    await folder.claim([Claim("p1", "0:1:0", "help", None)])
    await folder.release(["p1"])
    assert await folder.claim([Claim("p2", "0:3:0", "help", None)]) == [Verdict()]


@pytest.fixture(scope="module")
def examples_prefix():
    return iter(f"hyp{n}:" for n in range(1_000_000))


@pytest.mark.redis
def test_redis_and_memory_agree_on_any_sequence_of_claims_and_deletions(redis_url, examples_prefix):
    import asyncio

    @given(st.lists(st.tuples(claims, st.lists(ids, max_size=2)), max_size=4))
    def agree(batches):
        async def run():
            redis = Redis.from_url(redis_url)
            real, plain = RedisFolder(redis, next(examples_prefix), 60), MemoryFolder()
            try:
                for batch, deleted in batches:
                    assert await real.claim(batch) == await plain.claim(batch)
                    await real.release(deleted)
                    await plain.release(deleted)
            finally:
                await redis.aclose()

        asyncio.run(run())

    agree()
