"""What a platform calls a post, an account or a person is in nothing that goes on; the shape of ids stays."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.posts import parse_post, words_of
from models.pseudonyms import Pseudonyms, keyed_hash
from models.records import Deletion, account_of
from models.text import DEFAULT_CLEANING, clean
from tests.hostile.test_cost import assert_in_proportion

KEY = b"a secret of more than thirty-two characters"
NAMES = Pseudonyms(KEY)


def hidden(text: str, **fields: object):
    line = {"id": "bsky:did:plc:victim42/3k", "text": text} | fields
    import json

    return NAMES.hide(parse_post(json.dumps(line).encode(), seen_at=1.7e9, author_key=KEY))


def test_neither_id_nor_link_nor_handle_of_the_platform_is_left():
    post = hidden(
        "help @mehmet_k and @ayse@m.example, https://bsky.app/profile/did:plc:victim42/post/3k or did:plc:victim42abc",
        author="victim42.bsky.social",
        url="https://bsky.app/profile/did:plc:victim42/post/3k",
        reply_to="bsky:did:plc:other77/1",
        repost_of="bsky:did:plc:other77/2",
    )
    told = repr(post)
    assert not [word for word in ("victim42", "mehmet", "ayse", "other77", "3k", "m.example") if word in told]
    assert post.url is None and post.text.startswith("help @") and "https://bsky.app/" in post.text


def test_posts_of_one_account_stay_posts_of_one_account_and_a_deletion_finds_them():
    one, two = NAMES.id("bsky:did:plc:x/1"), NAMES.id("bsky:did:plc:x/2")
    assert one != two and account_of(one) == account_of(two) == NAMES.id("bsky:did:plc:x") != one
    assert NAMES.hide(Deletion("bsky:did:plc:x/1", 1.0)) == Deletion(one, 1.0)
    assert NAMES.id("sms:gov") == account_of(NAMES.id("sms:gov")) and "/" not in NAMES.id("/odd")


def test_without_the_secret_an_id_that_everybody_knows_cannot_be_found_again():
    assert Pseudonyms(b"another secret").id("bsky:did:plc:x/1") != NAMES.id("bsky:did:plc:x/1")


def test_what_a_page_shows_can_be_typed_again():
    for post_id in ("bsky:did:plc:x/1", "sms:gov"):
        assert NAMES.id(NAMES.id(post_id)) == NAMES.id(post_id)


def test_a_mention_is_one_person_in_a_text_however_it_is_written_and_an_encoder_reads_the_same():
    first, second, third = hidden("@Mehmet_K @mehmet_k @mehmet_l").text.split(" ")
    assert first == second != third
    assert clean(hidden("@mehmet_k needs water").text, DEFAULT_CLEANING) == clean("@a needs water", DEFAULT_CLEANING)


ACCOUNT = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
NAMED = ["@ayse@m.example", ACCOUNT, f"@{ACCOUNT}", "@ayse.bsky.social", "ayse.bsky.social", "https://m.example/@ayse"]


def mentions(text: str) -> list[str]:
    return re.findall(r"(?<=[@/])[0-9a-f]{8}\b", text)


@pytest.mark.parametrize("name", NAMED)
def test_who_names_somebody_in_a_post_of_his_own_learns_no_pseudonym_of_theirs(name):
    hers = hidden("we hide in the cellar", author=name, id=f"bsky:{name}/3k")
    asked, other = hidden(f"help us {name} we need water"), hidden(f"thanks to {name}")
    (told,), (elsewhere,) = mentions(asked.text), mentions(other.text)
    assert told not in repr(hers) and told != elsewhere
    assert not repr(hers).count(elsewhere)


def test_copies_and_reposts_of_a_text_stay_alike_whoever_sends_them():
    texts = {hidden("call @ayse now", author=who, id=f"x:{who}/1").text for who in ("a", "b")}
    assert len(texts) == 1
    sent = [("a", "RT @ayse: we need water"), ("b", "RT @ayse: we need water"), ("c", "RT @zeynep: we need water")]
    one, same, other = (words_of(hidden(text, author=who, id=f"x:{who}/1"), KEY) for who, text in sent)
    assert one == same != other


def test_nobody_learns_who_is_reposted_by_a_post_that_names_many_before_the_same_words():
    reposted, tried = (mentions(hidden(f"{who}the bridge is down").text) for who in ("RT @eve: ", "RT @amy: RT @eve: "))
    assert reposted and tried and not set(reposted) & set(tried)


@pytest.mark.parametrize("name", NAMED[:3])
def test_a_name_is_hashed_once(name):
    plain = name.removeprefix("@").lower()
    assert NAMES.text(f"ask {name} now", "said") == f"ask @{keyed_hash(f'said {plain}', KEY, b'mention', 4)} now"


@pytest.mark.parametrize(
    "url",
    ["https://x.com/a/status/1", "https://m.example/@a/11", "www.facebook.com/a", "https://t.me/a", "HTTPS://X.com/a"],
)
def test_links_to_accounts_lose_what_names_them_and_other_links_stay(url):
    assert "/a" not in hidden(f"see {url} please").text
    assert hidden("see https://donate.example/where/to").text == "see https://donate.example/where/to"


@pytest.mark.parametrize(
    "link, told",
    [
        ("https://wa.me/905321234567", "https://wa.me/[phone]"),
        ("(wa.me/+905321234567)", "(wa.me/+[phone])"),
        ("https://wa.me/905321234567?text=victim42", "https://wa.me/[phone]"),
        ("https://zalo.me/0901234567.", "https://zalo.me/[phone]."),
        ("https://signal.me/#p/+905321234567", "https://signal.me/#p/+[phone]"),
    ],
)
def test_a_link_to_a_number_tells_that_there_is_one(link, told):
    assert hidden(f"write {link} please").text == f"write {told} please"


@pytest.mark.parametrize(
    "text",
    [
        "＠victim42 needs water",
        "﹫victim42",
        "hey＠victim42",
        "助けて＠victim42さん",
        "＠victim42.bsky.social",
        "bsky.app/profile/victim42",
        "(bsky.app/profile/victim42.bsky.social/post/3k)",
        "BSKY.app/profile/victim42.",
        "victim42.bsky.social",
        "ask victim42.bsky.social.",
        "+victim42.bsky.social",
        "(Victim42.bsky.social)",
        "https://victim42.bsky.social",
        "https://victim42.bsky.social/post/3k",
        "victim42.bsky.social/post",
        "social.example.africa/@victim42/3k",
        "social.example.africa/users/victim42",
        "pl.example.zone/profile/victim42",
        "at://victim42.bsky.social/app.bsky.feed.post/3k",
        "at://did:plc:victim42abc/app.bsky.feed.post/3k",
        "https://m.me/victim42",
        "m.me/victim42",
        "https://zalo.me/victim42",
        "https://line.me/ti/p/~victim42",
        "https://ig.me/m/victim42",
        "paypal.me/victim42",
        "https://signal.me/#eu/victim42",
        "https://chat.whatsapp.com/victim42",
    ],
)
def test_a_name_of_an_account_is_hidden_however_it_is_written(text):
    told = hidden(text).text
    assert "victim42" not in told.lower() and "3k" not in told


def test_one_account_has_one_name_with_its_sign_in_wide_and_without_it():
    with_it, wide, bare = hidden(" ".join(f"{sign}victim42.bsky.social" for sign in ("@", "＠", ""))).text.split(" ")
    assert with_it == wide == bare and with_it.startswith("@")


@pytest.mark.parametrize(
    "text",
    [
        "see donate.example.africa/where/to or and/or",
        "bsky.social is down",
        "5＠10 apples cost ＠ 3",
        "24.02/users",
        "we meet at bsky.example",
        "at // noon",
        "https://donate.example/where/to",
        "https://team.me/a",
        "https://online.me/a",
        "https://www.whatsapp.com/download",
    ],
)
def test_what_names_no_account_stays(text):
    assert hidden(text).text == text


@pytest.mark.parametrize(
    "unit",
    [
        "a.",
        "a.bc/",
        "＠a",
        "at://",
        "a.bsky.social ",
        "a-.",
        "a.bsky.",
        "x.com/a ",
        "bsky.",
        "wa.me/[phone]",
        "m.me/a ",
    ],
)
def test_what_is_hidden_costs_in_proportion_to_its_length(unit):
    assert_in_proportion(NAMES.text, lambda length: unit * (length // len(unit)), 10_000)


def test_a_setting_keeps_everything_as_it_is():
    keeping = Pseudonyms(KEY, keep=True)
    line = b'{"id": "bsky:did:plc:x/1", "text": "help @mehmet", "url": "https://bsky.app/profile/x/post/1"}'
    post = parse_post(line, seen_at=1.7e9, author_key=KEY)
    assert keeping.hide(post) == post and keeping.link(post) is None and keeping.id(post.id) == post.id


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_id_and_text_has_a_pseudonym_and_accounts_stay_together(post_id, text):
    assert account_of(NAMES.id(post_id)) == account_of(NAMES.id(NAMES.id(post_id)))
    if not NAMES.id(post_id).startswith(post_id[:1] or "x") and post_id:
        assert post_id not in (NAMES.id(post_id), "~")
    NAMES.text(text).encode(errors="replace")
    if "/" in post_id[1:] and post_id[0] != "/":
        assert account_of(NAMES.id(post_id)) == account_of(NAMES.id(account_of(post_id)))
