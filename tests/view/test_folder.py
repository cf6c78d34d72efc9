"""Folding repeats: the Redis script and the dict must give the same answers."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis

from models.records import Deletion, account_of
from streams.pipeline.memory import MemoryFolder
from streams.pipeline.ports import Claim, Verdict
from streams.view.folder import RedisFolder

ids = st.sampled_from(["a", "b", "x/1", "x/2", "y/1"])
places = st.integers(0, 30).map(lambda n: f"0:{n}:0")
claims = st.builds(
    Claim,
    post_id=ids,
    place=places,
    fingerprint=st.sampled_from(["t1", "t2", "t3"]),
    repost_of=st.none() | ids,
    edit=st.booleans(),
)
deletions = st.builds(Deletion, id=ids | st.sampled_from(["x", "y"]), seen_at=st.just(0.0))
frames = st.lists(claims | claims | claims | deletions, max_size=8)  # what one raw record brings


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
    await folder.claim([Claim("p1", "0:1:0", "help", None), Deletion("p1", 0.0)])
    assert await folder.claim([Claim("p2", "0:3:0", "help", None)]) == [Verdict()]


async def test_a_deletion_and_the_same_words_by_somebody_else_may_come_in_one_frame():
    folder = MemoryFolder()
    frame = [Claim("p1", "0:1:0", "help", None), Deletion("p1", 0.0), Claim("p2", "0:1:2", "help", None)]
    assert await folder.claim(frame) == [Verdict(), Verdict()]


@pytest.mark.parametrize("edit", [True, False], ids=["told as an edit", "the same id with another text"])
async def test_nobody_is_folded_into_a_post_that_was_edited_to_say_something_else(edit):
    folder = MemoryFolder()
    await folder.claim([Claim("a", "0:1:0", "trapped", None), Claim("a", "0:2:0", "safe now", None, edit)])
    assert await folder.claim([Claim("b", "0:3:0", "trapped", None)]) == [Verdict()]
    assert await folder.claim([Claim("c", "0:4:0", "safe now", None)]) == [Verdict(repeats="a")]
    assert await folder.claim([Deletion("a", 0.0), Claim("d", "0:5:0", "safe now", None)]) == [Verdict()]


async def test_an_edit_to_what_another_post_says_is_not_folded_and_gives_its_old_text_up():
    folder = MemoryFolder()
    await folder.claim([Claim("a", "0:1:0", "trapped", None), Claim("b", "0:2:0", "safe", None)])
    edit = Claim("a", "0:3:0", "safe", None)
    assert await folder.claim([edit]) == await folder.claim([edit]) == [Verdict(edits=True)]
    assert await folder.claim([Claim("c", "0:4:0", "trapped", None)]) == [Verdict()]


async def test_a_closed_accounts_posts_are_originals_no_more():
    folder = MemoryFolder()
    await folder.claim([Claim("x/1", "0:1:0", "help", None), Claim("y/1", "0:1:1", "water", None), Deletion("x", 0.0)])
    after = [
        Claim("z/1", "0:2:0", "help", None),
        Claim("z/2", "0:2:1", "boost", "x/1"),
        Claim("z/3", "0:2:2", "water", None),
    ]
    assert await folder.claim(after) == [Verdict(), Verdict(), Verdict(repeats="y/1")]
    assert await folder.claim([Claim("z/4", "0:3:0", "help", None)]) == [Verdict(repeats="z/1")]


@given(st.lists(frames, max_size=6))
async def test_no_text_is_folded_into_a_post_that_does_not_say_it_any_more(batches):
    folder, says, place = MemoryFolder(), {}, 0
    for batch in batches:
        fresh = []  # each at a place of its own: nothing here is a redelivery
        for claim in batch:
            place += 1
            fresh.append(claim if isinstance(claim, Deletion) else msgspec.structs.replace(claim, place=f"0:{place}:0"))
        verdicts = iter(await folder.claim(fresh))
        for claim in fresh:
            if isinstance(claim, Deletion):
                says = {p: text for p, text in says.items() if claim.id not in (p, account_of(p))}
                continue
            verdict = next(verdicts)
            if verdict.repeats is None:
                says[claim.post_id] = claim.fingerprint
            elif verdict.repeats != claim.repost_of:
                assert says[verdict.repeats] == claim.fingerprint
            else:
                assert verdict.repeats in says
            if verdict.repeats is not None:  # the post itself said nothing else before: that would be an edit
                assert not claim.edit and says.get(claim.post_id, claim.fingerprint) == claim.fingerprint


@given(st.lists(frames, max_size=3), st.lists(claims, max_size=8, unique_by=lambda c: c.place))
async def test_a_frame_delivered_twice_folds_no_post_that_was_an_original_or_an_edit(before, frame):
    folder = MemoryFolder()
    for batch in before:
        await folder.claim(batch)
    frame = [msgspec.structs.replace(c, place="1" + c.place) for c in frame]
    first, again = await folder.claim(frame), await folder.claim(frame)
    for claim, one, two in zip(frame, first, again, strict=True):
        if one.repeats is None:
            assert two == one, claim


@pytest.fixture(scope="module")
def examples_prefix():
    return iter(f"hyp{n}:" for n in range(1_000_000))


@pytest.mark.redis
def test_redis_and_memory_agree_on_any_sequence_of_posts_edits_and_deletions(redis_url, examples_prefix):
    import asyncio

    @given(st.lists(frames, max_size=6))
    def agree(batches):
        async def run():
            redis = Redis.from_url(redis_url)
            real, plain = RedisFolder(redis, next(examples_prefix), 60), MemoryFolder()
            try:
                for batch in batches:
                    assert await real.claim(batch) == await plain.claim(batch)
            finally:
                await redis.aclose()

        asyncio.run(run())

    agree()
