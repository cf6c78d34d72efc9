"""Folding repeats: the Redis script and the dict must give the same answers."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis

from models.posts import words_of
from models.pseudonyms import keyed_hash
from models.records import Post, account_of
from streams.pipeline.memory import MemoryFolder
from streams.pipeline.ports import KEPT_REPEATS, Claim, Gone, Verdict
from streams.view.folder import RedisFolder

ids = st.sampled_from(["a", "b", "x/1", "x/2", "y/1"])
places = st.integers(0, 30).map(lambda n: f"0:{n}:0")
claims = st.builds(
    lambda words, **more: Claim(fingerprint=words, says=words, **more),
    words=st.sampled_from(["t1", "t2", "t3"]),
    post_id=ids,
    place=places,
    repost_of=st.none() | ids,
    edit=st.booleans(),
    post=st.binary(max_size=2),
)
limits = st.sampled_from([1, 2, KEPT_REPEATS])  # repeats kept of one post
deletions = st.builds(Gone, post_id=ids | st.sampled_from(["x", "y"]), place=places)
frames = st.lists(claims | claims | claims | deletions, max_size=8)  # what one raw record brings


async def test_the_first_to_say_it_is_the_original_and_later_ones_repeat_it():
    folder = MemoryFolder()
    first = Claim("p1", "0:1:0", "same", None)
    later = Claim("p2", "0:2:0", "same", None)
    assert await folder.claim([first, later]) == [Verdict(), Verdict(repeats="p1")]


async def test_a_redelivered_frame_gets_the_same_answers_again():
    folder = MemoryFolder()
    frame = [Claim("p1", "0:1:0", "x", None), Claim("p2", "0:1:1", "x", None), Claim("p3", "0:1:2", "y", None)]
    assert await folder.claim(frame) == await folder.claim(frame)


async def test_where_a_frame_edits_what_another_post_of_it_repeats_both_are_posts_however_often_it_comes():
    folder = MemoryFolder()
    frame = [
        Claim("p1", "0:1:0", "x", None),
        Claim("p2", "0:1:1", "x", None, post=b"p2"),
        Claim("p1", "0:1:2", "y", None),
    ]
    first, again = await folder.claim(frame), await folder.claim(frame)
    assert first[2] == again[2] == Verdict(edits=True, raised=(b"p2",))
    assert (first[1].repeats, again[1].repeats) == ("p1", None)


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
    await folder.claim([Claim("p1", "0:1:0", "help", None), Gone("p1", "0:1:1")])
    assert await folder.claim([Claim("p2", "0:3:0", "help", None)]) == [Verdict()]


async def test_a_deletion_and_the_same_words_by_somebody_else_may_come_in_one_frame():
    folder = MemoryFolder()
    frame = [Claim("p1", "0:1:0", "help", None), Gone("p1", "0:1:1"), Claim("p2", "0:1:2", "help", None)]
    assert await folder.claim(frame) == [Verdict(), Verdict(), Verdict()]


@pytest.mark.parametrize("edit", [True, False], ids=["told as an edit", "the same id with another text"])
async def test_nobody_is_folded_into_a_post_that_was_edited_to_say_something_else(edit):
    folder = MemoryFolder()
    await folder.claim([Claim("a", "0:1:0", "trapped", None), Claim("a", "0:2:0", "safe now", None, edit)])
    assert await folder.claim([Claim("b", "0:3:0", "trapped", None)]) == [Verdict()]
    assert await folder.claim([Claim("c", "0:4:0", "safe now", None)]) == [Verdict(repeats="a")]
    gone = [Gone("a", "0:5:0"), Claim("d", "0:5:1", "safe now", None)]
    assert await folder.claim(gone) == [Verdict(raised=(b"",)), Verdict(repeats="c")]


async def test_an_edit_to_what_another_post_says_is_not_folded_and_gives_its_old_text_up():
    folder = MemoryFolder()
    await folder.claim([Claim("a", "0:1:0", "trapped", None), Claim("b", "0:2:0", "safe", None)])
    edit = Claim("a", "0:3:0", "safe", None)
    assert await folder.claim([edit]) == await folder.claim([edit]) == [Verdict(edits=True)]
    assert await folder.claim([Claim("c", "0:4:0", "trapped", None)]) == [Verdict()]


async def test_a_closed_accounts_posts_are_originals_no_more():
    folder = MemoryFolder()
    await folder.claim([Claim("x/1", "0:1:0", "help", None), Claim("y/1", "0:1:1", "water", None), Gone("x", "0:1:2")])
    after = [
        Claim("z/1", "0:2:0", "help", None),
        Claim("z/2", "0:2:1", "boost", "x/1"),
        Claim("z/3", "0:2:2", "water", None),
    ]
    assert await folder.claim(after) == [Verdict(), Verdict(), Verdict(repeats="y/1")]
    assert await folder.claim([Claim("z/4", "0:3:0", "help", None)]) == [Verdict(repeats="z/1")]


@given(st.lists(frames, max_size=6), limits)
async def test_no_text_is_folded_into_a_post_that_does_not_say_it_and_no_repeat_is_lost_with_its_original(
    batches, limit
):
    folder, says, place = MemoryFolder(limit), {}, 0
    closed: set[str] = set()
    bounded: set[str] = set()
    folded: dict[str, tuple[str, str]] = {}  # repeat → the post that speaks for it, its own words
    for batch in batches:
        for one in batch:
            place += 1  # each at a place of its own: nothing here is a redelivery
            told = {} if isinstance(one, Gone) else {"post": one.post_id.encode()}
            claim = msgspec.structs.replace(one, place=f"0:{place}:0", **told)
            (verdict,) = await folder.claim([claim])
            if isinstance(claim, Gone):
                closed.add(claim.post_id)
                ended = {p for p in (*says, *folded) if claim.post_id in (p, account_of(p))}
                says = {p: text for p, text in says.items() if p not in ended}
                folded = {p: by for p, by in folded.items() if p not in ended}
            elif verdict.repeats is None:
                says[claim.post_id] = claim.fingerprint
                if folded.get(claim.post_id, ("", claim.fingerprint))[1] != claim.fingerprint:
                    del folded[claim.post_id]
            else:
                of = verdict.repeats
                assert of in says if of == claim.repost_of else says[of] == claim.fingerprint
                # The post itself said nothing else before: that would be an edit.
                assert not claim.edit and says.get(claim.post_id, claim.fingerprint) == claim.fingerprint
                if of != claim.post_id and account_of(claim.post_id) not in closed:
                    folded[claim.post_id] = (of, claim.fingerprint)
                    if limit < KEPT_REPEATS and account_of(claim.post_id) == account_of(of):
                        bounded.add(claim.post_id)  # those of its own are not all kept
            for heir in (post.decode() for post in verdict.raised):
                spoken_by, says[heir] = folded[heir]
                folded = {p: (heir if by == spoken_by else by, text) for p, (by, text) in folded.items()}
            lost = {p for p, (by, _) in folded.items() if by not in says and p not in says} - bounded
            assert not lost, (claim, folded, says)


async def test_a_repeat_takes_the_place_of_its_original_once_and_again_if_the_frame_comes_again():
    folder = MemoryFolder()
    said = [Claim(f"x/{n}", f"0:1:{n}", "help", None, post=b"%d" % n) for n in range(4)]
    assert [v.repeats for v in await folder.claim(said)] == [None, "x/0", "x/0", "x/0"]
    edit = [Claim("x/0", "0:2:0", "safe now", None, True)]
    assert await folder.claim(edit) == await folder.claim(edit) == [Verdict(edits=True, raised=(b"1",))]
    gone = [Gone("x/1", "0:3:0")]
    assert await folder.claim(gone) == await folder.claim(gone) == [Verdict(raised=(b"2",))]
    assert await folder.claim([Claim("x/9", "0:4:0", "help", None)]) == [Verdict(repeats="x/2")]
    assert await folder.claim(edit) == [Verdict(edits=True)]  # what it raised is gone since: it stays so


async def test_who_is_folded_into_a_closed_account_lives_on_and_its_own_repeats_do_not():
    folder = MemoryFolder()
    await folder.claim([Claim("x/1", "0:1:0", "RT help", None), Claim("x/2", "0:1:1", "RT help", None, post=b"x2")])
    await folder.claim([Claim("y/1", "0:2:0", "RT help", None, post=b"y1")])
    assert await folder.claim([Gone("x", "0:3:0")]) == [Verdict(raised=(b"y1",))]


@pytest.mark.parametrize("named", [False, True], ids=["in words", "by what it reposts"])
@pytest.mark.parametrize("real_first", [False, True], ids=["the others first", "the real first"])
async def test_no_number_of_accounts_that_repeat_a_post_and_take_it_back_leaves_a_real_repeat_untold(named, real_first):
    folder, told = MemoryFolder(), {"o/0"}

    async def say(post_id, place):
        words = f"words of {post_id}" if named else "RT help"
        claim = Claim(post_id, place, words, "o/0" if named else None, post=post_id.encode(), says="help")
        (verdict,) = await folder.claim([claim])
        told.update([post_id] if verdict.repeats is None else [])
        return verdict.repeats

    async def take_back(gone, place):
        (verdict,) = await folder.claim([Gone(gone, place)])
        told.difference_update({p for p in told if gone in (p, account_of(p))})
        told.update(post.decode() for post in verdict.raised)

    await folder.claim([Claim("o/0", "0:0:0", "RT help", None, says="help")])
    real, others = [f"r{n}/1" for n in range(3)], [f"{who}{n}/1" for n in range(30) for who in "as"]
    came = [*real, *others] if real_first else [*others, *real]
    repeats = {post_id: await say(post_id, f"0:1:{n}") for n, post_id in enumerate(came)}
    assert len(told) == 2, "of 63 reposts one is read by itself"
    assert {p: await say(p, f"0:1:{n}") for n, p in enumerate(came)} == repeats, "delivered again"
    for n, gone in enumerate(["o/0", *map(account_of, others)]):
        await take_back(gone, f"0:2:{n}")
    for n, gone in enumerate(real):
        assert told and told <= set(real[n:])
        await take_back(gone, f"0:3:{n}")
    assert not told


async def test_what_an_account_repeats_of_itself_is_folded_however_often_and_takes_others_no_room():
    folder = MemoryFolder()
    spam = [Claim(f"x/{n:03}", f"0:0:{n}", "buy", None, post=b"%d" % n) for n in range(4 * KEPT_REPEATS)]
    verdicts = await folder.claim(spam)
    assert [v.repeats for v in verdicts] == [None] + ["x/000"] * (len(spam) - 1)
    assert (await folder.claim([Claim("y/1", "0:1:0", "buy", "x/000", post=b"y")]))[0].repeats == "x/000"
    gone = [Gone(f"x/{n:03}", f"0:2:{n}") for n in range(KEPT_REPEATS + 1)]
    raised = [post for verdict in await folder.claim(gone) for post in verdict.raised]
    assert raised == [b"%d" % n for n in range(1, KEPT_REPEATS + 1)] + [b"y"]


@pytest.fixture
async def kept_in(redis_url):
    """A folder in an empty Redis, and what its keys of these names hold."""
    async with Redis.from_url(redis_url) as redis:

        async def keys(name):
            return sorted([key.decode() async for key in redis.scan_iter(match=f"t:fold:{name}")])

        yield RedisFolder(redis, "t:", 60), keys


@pytest.mark.redis
async def test_a_closed_account_leaves_nothing_of_what_it_repeated_itself_or_of_others(kept_in):
    folder, keys = kept_in
    said = [Claim(f"x/{n}", f"0:0:{n}", "help", None, post=b"x") for n in range(3)]
    reposts = [Claim(f"{who}/9", f"0:1:{n}", f"words of {who}", "y/1") for n, who in enumerate("xz")]
    await folder.claim([*said, Claim("y/1", "0:0:9", "water", None), *reposts])
    assert await keys("kept:*") == [f"t:fold:kept:{i}" for i in ("x/1", "x/2", "x/9", "z/9")]
    await folder.claim([Gone("x/0", "0:2:0")])  # x/1 takes its place
    await folder.claim([Gone("x", "0:3:0")])
    await folder.claim([Claim("x/5", "0:4:0", "words", "y/1", post=b"late")])  # under way when the account went
    assert await keys("kept:*") == ["t:fold:kept:z/9"] and not await keys("mine:x")


@pytest.mark.redis
async def test_what_is_kept_of_an_account_is_bounded_by_the_fold_window_though_it_goes_on_for_ever(kept_in):
    folder, keys = kept_in
    redis = folder._redis
    for n in range(3):
        await folder.claim([Claim(f"x/{n}", f"0:{n}:0", "help", None), Claim(f"x/{n}9", f"0:{n}:1", f"r{n}", f"x/{n}")])
    for key in ("mine:x", "heads:x"):
        noted = await redis.zrange(f"t:fold:{key}", 0, -1, withscores=True)
        assert noted
        await redis.zadd(f"t:fold:{key}", {post_id: at - 61e6 for post_id, at in noted})  # a window ago
    await folder.claim([Claim("x/7", "0:7:0", "again", "x/0")])
    assert await redis.zrange("t:fold:mine:x", 0, -1) == [b"x/7"]
    assert await redis.zrange("t:fold:heads:x", 0, -1) == [b"x/0"]
    assert not [key for key in await keys("*") if await redis.ttl(key) < 0]


@given(st.lists(frames, max_size=3), st.lists(claims, max_size=8, unique_by=lambda c: c.place), limits)
async def test_a_frame_delivered_twice_loses_no_post_that_was_an_original_or_an_edit(before, frame, limit):
    folder = MemoryFolder(limit)
    for batch in before:
        await folder.claim(batch)
    frame = [msgspec.structs.replace(c, place="1" + c.place) for c in frame]
    first, again = await folder.claim(frame), await folder.claim(frame)
    given = [{c.post_id for c, v in zip(frame, told, strict=True) if v.repeats is None} for told in (first, again)]
    assert given[0] <= given[1]


@pytest.fixture(scope="module")
def examples_prefix():
    return iter(f"hyp{n}:" for n in range(1_000_000))


@pytest.mark.redis
def test_redis_and_memory_agree_on_any_sequence_of_posts_edits_and_deletions(redis_url, examples_prefix):
    import asyncio

    @given(st.lists(frames, max_size=6), limits)
    def agree(batches, limit):
        async def run():
            redis = Redis.from_url(redis_url)
            real, plain = RedisFolder(redis, next(examples_prefix), 60, limit), MemoryFolder(limit)
            try:
                for batch in batches:
                    assert await real.claim(batch) == await plain.claim(batch)
            finally:
                await redis.aclose()

        asyncio.run(run())

    agree()


async def test_of_posts_that_waited_those_that_were_edited_since_are_said_no_more(redis_url, examples_prefix):
    async with Redis.from_url(redis_url) as client:
        folder, key = RedisFolder(client, next(examples_prefix), 60), b"key"
        first = Post("p/1", "old", 0.0, 0.0, fingerprint="old")
        edited = msgspec.structs.replace(first, text="new", fingerprint="new", kind="update")
        other, unknown = (Post(f"p/{n}", "other", 0.0, 0.0, fingerprint="other") for n in (2, 3))
        for n, post in enumerate((first, other)):
            await folder.claim([Claim(post.id, f"0:{n}:0", words_of(post, key), None)])
        assert await folder.still_said([first, other, unknown], key) == [first, other, unknown]
        await folder.claim([Claim("p/1", "0:2:0", words_of(edited, key), None, True)])
        assert await folder.still_said([first, edited, other], key) == [edited, other]
        assert await folder.still_said([], key) == []


@pytest.mark.parametrize("post_id, account", [("sms/11", "sms"), ("/b", ""), ("alone", "alone")])
async def test_what_waits_while_workers_are_brought_up_to_date_is_not_taken_for_edited(
    redis_url, examples_prefix, post_id, account
):
    """Claims from before a post without an author was its own author hold what stands before the slash for one."""
    async with Redis.from_url(redis_url) as client:
        folder, key = RedisFolder(client, next(examples_prefix), 60), b"key"
        post = Post(post_id, "help", 0.0, 0.0, source="sms", fingerprint="help")
        before = keyed_hash(f"sms\x1f{account}\x1f\x1fhelp", key, b"words")
        await folder.claim([Claim(post.id, "0:1:0", before, None)])
        edited = msgspec.structs.replace(post, text="fine", fingerprint="fine")
        assert await folder.still_said([post, edited], key) == [post]
