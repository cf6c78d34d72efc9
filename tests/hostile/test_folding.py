"""Nobody is silenced by somebody else's post: equal words of different people stay posts of their own."""

import json

import pytest

from models.pseudonyms import OFFLINE, Pseudonyms
from models.records import Origin
from streams.pipeline import stages
from streams.pipeline.memory import MemoryFolder

CRY = "please help we are trapped"


def line(post_id, text=CRY, **fields):
    return json.dumps({"id": post_id, "text": text, **fields}).encode()


class Stream:
    """Raw records through parse and fold, one after another."""

    def __init__(self, pseudonyms=OFFLINE):
        self.folder, self.offset, self.pseudonyms = MemoryFolder(), 0, pseudonyms

    async def send(self, *lines):
        self.offset += 1
        return await self.read(b"\n".join(lines), self.offset)

    async def read(self, value, offset):
        parsed = stages.parse(value, Origin(0, offset), 1e9 + offset, self.pseudonyms)
        return stages.fold(parsed, await self.folder.claim(parsed.claims))


def kept(frame):
    return [post.id for post in frame.posts]


@pytest.mark.parametrize(
    "end", [{"kind": "delete"}, {"kind": "update", "text": "buy my t-shirts"}], ids=["delete", "edit"]
)
async def test_an_attacker_who_says_it_first_and_takes_it_back_silences_nobody(end):
    stream = Stream()
    await stream.send(line("bsky:did:plc:attacker/1", author="a", source="bluesky"))
    cries = [line(f"bsky:did:plc:p{n}/1", author=f"p{n}", source="bluesky") for n in range(20)]
    assert len(kept(await stream.send(*cries))) == 20
    await stream.send(json.dumps({"id": "bsky:did:plc:attacker/1", "text": CRY} | end).encode())
    assert kept(await stream.send(line("bsky:did:plc:late/1", author="late", source="bluesky"))) == [
        "bsky:did:plc:late/1"
    ]


async def test_one_who_names_himself_like_another_takes_no_words_from_another_source_or_account():
    stream = Stream()
    await stream.send(
        line("web/1", author="ayse", source="web"), line("bsky:did:plc:x/1", author="ayse", source="bluesky")
    )
    frame = await stream.send(
        line("sms/1", author="ayse", source="sms"), line("bsky:did:plc:y/1", author="ayse", source="bluesky")
    )
    assert kept(frame) == ["sms/1", "bsky:did:plc:y/1"]


CHANNELS = ["{}", "sms/{}", "https://www.facebook.com/groups/{}/posts/1", "export.csv/{}", "/{}", "bsky:did:plc:x/{}"]


@pytest.mark.parametrize("form", CHANNELS)
@pytest.mark.parametrize("pseudonyms", [OFFLINE, Pseudonyms(b"k" * 32)], ids=["ids kept", "ids hidden"])
async def test_posts_that_name_no_author_repeat_nobody_whatever_stands_before_the_slash_of_their_ids(form, pseudonyms):
    stream, ids = Stream(pseudonyms), [form.format(n) for n in (11, 22, 33)]
    frame = await stream.send(*(line(post_id, source="sms") for post_id in ids))
    assert kept(frame) == [pseudonyms.id(post_id) for post_id in ids] and not frame.repeats
    assert kept(await stream.send(line(form.format(44), source="sms"))) == [pseudonyms.id(form.format(44))]


async def test_an_author_who_is_named_is_folded_in_a_channel_too():
    ayse = (line(f"sms/{n}", author="ayse", source="sms") for n in range(3))
    frame = await Stream().send(*ayse, line("sms/9", author="mehmet", source="sms"), line("sms/10", source="sms"))
    assert kept(frame) == ["sms/0", "sms/9", "sms/10"] and [r.of for r in frame.repeats] == ["sms/0", "sms/0"]


async def test_an_authors_own_repeats_are_folded_and_a_redelivered_record_is_read_the_same():
    stream = Stream()
    record = b"\n".join(line(f"bsky:did:plc:x/{n}", author="x", source="bluesky") for n in range(5))
    first, again = await stream.read(record, 7), await stream.read(record, 7)
    assert kept(first) == kept(again) == ["bsky:did:plc:x/0"]
    assert first.repeats == again.repeats and len(first.repeats) == 4


async def test_reposts_in_words_fold_among_themselves_and_never_take_the_authors_own_post():
    stream = Stream()
    first = await stream.send(
        line("1", f"RT @ayse: {CRY}", author="a"), line("2", f"RT @b: RT @ayse: {CRY}", author="b")
    )
    assert kept(first) == ["1"] and [(r.id, r.of) for r in first.repeats] == [("2", "1")]
    assert kept(await stream.send(line("3", author="ayse"), line("4", f"RT @zeynep: {CRY}", author="c"))) == ["3", "4"]


async def test_a_repost_that_names_its_original_is_folded_into_it():
    stream = Stream()
    await stream.send(line("masto:m.example/1", author="x", source="mastodon"))
    frame = await stream.send(line("masto:n.example/2", author="y", source="mastodon", repost_of="masto:m.example/1"))
    assert kept(frame) == [] and [r.of for r in frame.repeats] == ["masto:m.example/1"]


@pytest.mark.parametrize(
    "end", [{"kind": "delete"}, {"kind": "update", "text": "buy my t-shirts"}], ids=["delete", "edit"]
)
async def test_who_was_folded_into_a_post_lives_on_when_that_one_is_taken_back(end):
    stream, cry = Stream(), f"RT @ayse: {CRY}"
    attacker = {"id": "bsky:did:plc:attacker/1", "text": cry, "author": "attacker", "source": "bluesky"}
    await stream.send(json.dumps(attacker).encode())
    real = [line(f"bsky:did:plc:p{n}/1", cry, author=f"p{n}", source="bluesky", lang="en") for n in range(3)]
    assert kept(await stream.send(*real)) == []
    stream.offset += 1
    record = json.dumps(attacker | end).encode()
    for _ in range(2):  # the record comes again
        frame = await stream.read(record, stream.offset)
        (heir,) = (post for post in frame.posts if post.id != attacker["id"])
        assert (heir.id, heir.text, heir.kind) == ("bsky:did:plc:p0/1", cry, "create")
        assert heir.seen_at == 1e9 + stream.offset and heir.author
    assert kept(await stream.send(line("bsky:did:plc:p9/1", cry, author="p9", source="bluesky"))) == []
    await stream.send(json.dumps({"id": "bsky:did:plc:p0/1", "kind": "delete"}).encode())
    assert kept(await stream.read(record, stream.offset - 2)) == [attacker["id"]] * (end["kind"] == "update")


async def test_what_its_author_deletes_does_not_come_back_by_a_deletion_of_something_else():
    stream = Stream()
    await stream.send(*(line(f"bsky:did:plc:x/{n}", author="x", source="bluesky") for n in range(3)))
    gone = [json.dumps({"id": f"bsky:did:plc:x/{n}", "kind": "delete"}).encode() for n in (1, 0)]
    assert kept(await stream.send(*gone)) == ["bsky:did:plc:x/2"]
    assert kept(await stream.send(json.dumps({"id": "bsky:did:plc:x", "kind": "delete"}).encode())) == []
