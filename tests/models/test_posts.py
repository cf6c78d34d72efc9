"""Any bytes give a Post, a Deletion or a Rejected with a known reason; bad input of every kind is a clear reject."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.errors import Rejected
from models.moments import epoch_s
from models.posts import MAX_ID_CHARS, MAX_TEXT_CHARS, REASONS, parse_post, split_lines
from models.pseudonyms import pseudonym
from models.records import Deletion, Geo, Post

SEEN_AT = 1_770_000_000.0  # 2026-02-02
KEY = b"a secret of thirty-two bytes....."


def parse(line):
    return parse_post(line, seen_at=SEEN_AT, author_key=KEY)


def post(**fields):
    fields = {"id": "p1", "text": "We need water near the bridge"} | fields
    return parse(json.dumps(fields).encode())


def reason(line):
    with pytest.raises(Rejected) as refused:
        parse(line)
    assert refused.value.detail
    return refused.value.reason


def reason_of(**fields):
    return reason(json.dumps({"id": "p1", "text": "We need water"} | fields).encode())


def test_a_post_needs_only_an_id_and_a_text():
    assert post() == Post(
        id="p1",
        text="We need water near the bridge",
        created_at=SEEN_AT,
        seen_at=SEEN_AT,
        lang="en",
        fingerprint=post().fingerprint,
    )


def test_every_optional_field_is_read():
    found = post(
        id=7,
        created_at="2026-02-01T10:00:00+02:00",
        lang="pt-BR",
        text="Precisamos de água perto da ponte velha",
        source="bluesky",
        author="@Ana.example",
        url="https://a.example/1",
        reply_to=6,
        repost_of="5",
        geo={"lat": 1.5, "lon": -2},
        kind="update",
        unknown=[1, {"a": None}],
    )
    assert found.id == "7" and found.created_at == 1_769_932_800.0 and found.lang == "pt-BR" and found.kind == "update"
    assert found.source == "bluesky" and found.url == "https://a.example/1" and found.geo == Geo(1.5, -2.0)
    assert found.reply_to == "6" and found.repost_of == "5"


def test_a_deletion_needs_only_an_id():
    assert parse(b'{"id": "p1", "kind": "delete"}') == Deletion("p1", SEEN_AT)


@pytest.mark.parametrize(
    "line, why",
    [
        (b'{"id": "1", "text": "water', "bad_json"),
        (b'{"id": "1"', "bad_json"),
        (b"not json", "bad_json"),
        (b"", "bad_json"),
        (b'{"id": "1", "text": NaN}', "bad_json"),
        (b'{"id": "1", "text": "a"} trailing', "bad_json"),
        (b'{"id": 1' + b"0" * 5000 + b', "text": "a"}', "bad_json"),
        (b'["id", "text"]', "not_an_object"),
        (b'"text"', "not_an_object"),
        (b"null", "not_an_object"),
        (b'{"id": "1", "text": "a\xff"}', "bad_utf8"),
        (b'{"id": "1", "text": "\xed\xa0\x80"}', "bad_utf8"),
        (b'{"id": "1", "text": "a\x00b"}', "nul_byte"),
        (b'{"id": "1", "text": "a\\u0000b"}', "nul_byte"),
        (b'{"id": "1\\u0000", "text": "a"}', "nul_byte"),
        (b'{"id": "1", "text": "\\ud83d"}', "lone_surrogate"),
        (b'{"id": "1", "text": "\\ude00 a"}', "lone_surrogate"),
        (b'{"id": "1", "text": "a", "other": "\\uD800"}', "lone_surrogate"),
        (b'{"id": "1", "id": "2", "text": "a"}', "duplicate_key"),
        (b'{"id": "1", "\\u0069d": "2", "text": "a"}', "duplicate_key"),
        (b'{"id": "1", "text": "a", "geo": {"lat": 1, "lon": 2, "lat": 3}}', "duplicate_key"),
        (b'{"id": "1", "text": "a", "x": ' + b"[" * 3000 + b"]" * 3000 + b"}", "too_deep"),
        (b"[" * 100_000, "too_deep"),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "too_deep"),
        (b'{"id": "1", "text": "' + b"a" * 10_000_000 + b'"}', "too_large"),
        (b'{"oversize": 10000000, "source": "file", "head": "e30="}', "too_large"),
        (b"{}", "missing_id"),
        (b'{"id": null, "text": "a"}', "missing_id"),
        (b'{"id": "  ", "text": "a"}', "missing_id"),
        (b'{"kind": "delete"}', "missing_id"),
        (b'{"id": "a\\u001fb", "text": "a"}', "bad_id"),
        (b'{"id": "1"}', "missing_text"),
        (b'{"id": "1", "text": null}', "missing_text"),
        (b'{"id": "1", "text": " \\n\\u200b"}', "empty_text"),
        (b'{"id": true, "text": "a"}', "wrong_type"),
        (b'{"id": 1.5, "text": "a"}', "wrong_type"),
        (b'{"id": "1", "text": ["a"]}', "wrong_type"),
        (b'{"id": "1", "text": 5}', "wrong_type"),
        (b'{"id": "1", "text": "a", "created_at": {"s": 1}}', "wrong_type"),
    ],
    ids=lambda v: v if isinstance(v, str) else ascii(v[:40]),
)
def test_bad_input_is_a_clear_reject(line, why):
    assert reason(line) == why


def test_a_hundred_thousand_emoji_are_refused_before_anything_reads_them():
    assert reason(json.dumps({"id": "1", "text": "🙏" * 100_000}, ensure_ascii=False).encode()) == "text_too_long"
    assert reason_of(text="🙏" * 100_000) == "too_large"  # escaped it is 1.2 MB
    assert post(text="🙏" * MAX_TEXT_CHARS).text == "🙏" * MAX_TEXT_CHARS
    assert reason_of(id="x" * (MAX_ID_CHARS + 1)) == "bad_id"


def test_brackets_inside_a_text_are_not_nesting():
    assert post(text="[" * 500 + '"{' * 100).text.startswith("[[[")


@pytest.mark.parametrize(
    "created_at, epoch_s",
    [
        ("2026-02-01T08:00:00Z", 1_769_932_800.0),
        ("2026-02-01T08:00:00.250Z", 1_769_932_800.25),
        ("2026-02-01 08:00:00", 1_769_932_800.0),  # no zone: UTC
        ("2026-02-01T13:30:00+05:30", 1_769_932_800.0),
        (1_769_932_800, 1_769_932_800.0),
        (1_769_932_800.5, 1_769_932_800.5),
        ("1769932800", 1_769_932_800.0),
        (1_769_932_800_250, 1_769_932_800.25),
        ("1769932800250", 1_769_932_800.25),
        (1_769_932_800_250_000, 1_769_932_800.25),
        ("Sun Feb 01 08:00:00 +0000 2026", 1_769_932_800.0),  # Twitter's
        ("Sun, 01 Feb 2026 09:00:00 +0100", 1_769_932_800.0),  # RFC 2822
        (None, SEEN_AT),
        (SEEN_AT + 80_000, SEEN_AT + 80_000),  # a clock that goes ahead
    ],
)
def test_times_are_read_in_every_usual_form(created_at, epoch_s):
    assert post(created_at=created_at).created_at == pytest.approx(epoch_s, abs=1e-6)


@pytest.mark.parametrize(
    "created_at",
    ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "yesterday", "20/11/2026", "Sun", "2026-02-30T00:00:00Z",
     253_402_300_799, 0, -5, 10**400, "NaN", "inf", SEEN_AT + 90_000, "1989-12-31T23:59:59Z", 1e300],
)  # fmt: skip
def test_times_that_cannot_be_are_refused(created_at):
    assert reason_of(created_at=created_at) == "bad_time"


def test_people_are_taken_out_of_what_is_kept():
    found = post(text="Call me +90 532 123 45 67 or a@b.example", author="@Ana.Example")
    assert found.text == "Call me [phone] or [email]"
    assert found.author == pseudonym("ana.example", KEY) != pseudonym("ana.example", b"another secret")
    assert "ana" not in found.author


def test_equal_texts_have_equal_fingerprints_and_other_numbers_other_ones():
    assert post(text="Call 0532 123 45 67").text == post(text="Call 0532 123 45 68").text
    assert post(text="Call 0532 123 45 67").fingerprint != post(text="Call 0532 123 45 68").fingerprint
    assert post(text="water &amp; food", id="a").fingerprint == post(text="water  & food", id="b").fingerprint


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "ftp://a.example", "//a.example", "https://a.example/ b", "", "x" * 9]
)
def test_only_web_addresses_are_kept(url):
    assert post(url=url).url is None


def test_a_place_that_is_not_on_earth_is_dropped_but_the_post_is_kept():
    assert post(geo={"lat": 91, "lon": 0}).geo is None


@pytest.mark.parametrize("names", [("lat", "lon"), ("lat", "lng"), ("latitude", "longitude")])
def test_a_position_beside_the_text_is_read_by_the_names_that_people_give_it(names):
    lat, lon = names
    assert post(**{lat: 18.2, lon: -73.75}).geo == Geo(18.2, -73.75)
    assert post(**{lat: "18.2", lon: "-73.75"}).geo == Geo(18.2, -73.75)
    for wrong in ({lat: 18.2}, {lat: "north", lon: 1}, {lat: [1], lon: {}}, {lat: 91, lon: 0}, {lat: "nan", lon: 0}):
        assert post(**wrong).geo is None
    assert post(geo={"lat": 1, "lon": 2}, **{lat: 18.2, lon: -73.75}).geo == Geo(1, 2)


HAITI, NEPAL = Geo(18.5, -72.3), Geo(28.2, 84.0)


def point(*numbers):
    return {"type": "Point", "coordinates": list(numbers)}


@pytest.mark.parametrize(
    "fields, found",
    [
        ({"geo": point(18.5, -72.3), "coordinates": point(-72.3, 18.5)}, HAITI),  # a tweet of API 1.1
        ({"geo": point(28.2, 84.0), "coordinates": point(84.0, 28.2)}, NEPAL),
        ({"geo": {"place_id": "01a9", "coordinates": point(-72.3, 18.5)}}, HAITI),  # of API 2
        ({"geo": {"place_id": "01a9"}}, None),
        ({"geo": point(18.5, -72.3)}, None),  # as GeoJSON it lies in the Southern Ocean, as a tweet in Haiti
        ({"geo": point(14.6, 121.0)}, Geo(14.6, 121.0)),  # one order alone is on Earth
        ({"geo": point(121.0, 14.6)}, Geo(14.6, 121.0)),
        ({"geo": point(10, 10)}, Geo(10.0, 10.0)),
        ({"coordinates": point(84.0, 28.2, 1400)}, NEPAL),
        ({"coordinates": point(18.5, 120.0)}, None),
        ({"coordinates": {"longitude": -72.3, "latitude": 18.5}}, HAITI),
        ({"geo": {"lat": "18.5", "lon": "-72.3"}}, HAITI),
        ({"geo": {"latitude": 18.5, "longitude": -72.3}}, HAITI),
        ({"geo": {"lat": 18.5, "lng": -72.3}}, HAITI),
        ({"geo": {}, "lat": 18.5, "lon": -72.3}, HAITI),
        ({"geo": [18.5, -72.3]}, None),
        ({"geo": "18.5,-72.3"}, None),
        ({"geo": {"type": "Polygon", "coordinates": [[[1, 2], [3, 4], [1, 2]]]}}, None),
        ({"geo": point(), "coordinates": point("a", "b")}, None),
        ({"geo": point([1], {})}, None),
    ],
)
def test_a_position_is_read_in_the_order_that_it_surely_has_and_else_the_post_goes_without_one(fields, found):
    assert post(**fields).geo == found


def test_an_optional_field_counts_as_words_or_as_a_whole_number():
    found = post(author=5, source=7, reply_to=1_590_000_000_000_000_001, url=5, lang=["en"])
    assert found.author == pseudonym("5", KEY) and found.source == "7" and found.url is None
    assert found.reply_to == "1590000000000000001" and found.lang == "en"
    assert post(reply_to=1.59e18, repost_of=True, author={"name": "x"}, source=["a"]) == post()


def test_a_kind_that_is_none_of_ours_takes_nothing_away_and_a_deletion_is_one_however_it_is_written():
    assert {post(kind=kind).kind for kind in ("tweet", "need", "", 5, None, ["delete"], {"kind": "delete"})} == {
        "create"
    }
    assert [post(kind=kind) for kind in ("Delete", " DELETE ", "deleted")] == [Deletion("p1", SEEN_AT)] * 3
    assert post(kind="Update").kind == post(kind="updated").kind == "update"


def test_a_frame_is_one_post_per_line_and_blank_lines_are_none():
    assert split_lines(b'{"id":1}\r\n\n  {"id":2}\n\xe2\x80\xa8{"id":3}') == [
        b'{"id":1}',
        b'{"id":2}',
        b'\xe2\x80\xa8{"id":3}',
    ]
    assert split_lines(b"") == split_lines(b"\n \n") == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
BESIDE = ["lang", "source", "author", "url", "reply_to", "repost_of", "geo", "coordinates", "lat", "lon", "kind", "x"]
FIELDS = ["id", "text", "created_at", "oversize", *BESIDE]
LINES = st.dictionaries(st.sampled_from(FIELDS), JSON | st.text(max_size=30)).map(lambda d: json.dumps(d).encode())


@given(st.binary(max_size=200) | LINES | st.tuples(LINES, st.integers(0, 80)).map(lambda t: t[0][: t[1]]))
@example(b'{"id":"1","text":"\\u0000"}')
@settings(max_examples=600, deadline=None)
def test_any_bytes_give_a_post_a_deletion_or_a_reject_with_a_known_reason(line):
    try:
        found = parse(line)
    except Rejected as refused:
        assert refused.reason in REASONS
        return
    assert isinstance(found, (Post, Deletion)) and found.id
    if isinstance(found, Post):
        assert found.text and found == parse(line)
        found.text.encode()


PLACES = st.fixed_dictionaries({}, optional={"lat": JSON, "lon": JSON, "type": st.just("Point"), "coordinates": JSON})


@given(st.dictionaries(st.sampled_from(BESIDE), JSON | PLACES))
@settings(max_examples=300, deadline=None)
def test_nothing_that_a_field_beside_id_and_text_holds_refuses_a_post(fields):
    try:
        sent = {"id": "p1", "text": "We need water"} | fields
        line = json.dumps(sent, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:  # NaN and half a surrogate pair are no JSON
        return
    found = parse(line)
    assert (found.id, found.text) == ("p1", "We need water")


def test_a_repost_in_words_has_the_fingerprint_of_what_it_reposts():
    def fingerprint(text: str) -> str:
        return parse_post(json.dumps({"id": "a", "text": text}).encode(), seen_at=1e9, author_key=b"k").fingerprint

    assert fingerprint("RT @someone: we need  water") == fingerprint("we need water")
    assert fingerprint("we need water") != fingerprint("we need water now")
    assert fingerprint("call 030 1234567") != fingerprint("call 030 7654321")


@pytest.mark.parametrize("created_at", ["Fri, 20 Nov 2026 10:00:00 IST", "Fri Nov 20 10:00:00 IST 2026"])
def test_a_zone_that_is_not_known_costs_no_post_which_is_then_of_utc_and_never_ahead_of_when_it_came(created_at):
    raw = json.dumps({"id": "sms/1", "text": "help", "created_at": created_at}).encode()
    for seen_at, expected in ((epoch_s("2026-11-20T04:31:00Z"),) * 2, (epoch_s("2026-11-21T00:00:00Z"), TEN)):
        assert parse_post(raw, seen_at=seen_at, author_key=KEY).created_at == expected
    with pytest.raises(Rejected):
        parse_post(b'{"id": "sms/1", "text": "help", "created_at": "soon IST"}', seen_at=TEN, author_key=KEY)


TEN = epoch_s("2026-11-20T10:00:00Z")
