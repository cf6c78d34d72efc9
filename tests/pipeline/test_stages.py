"""The stages: what becomes of a line, an edit, a deletion."""

import json
from unittest import mock

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.alerts import make_alerts, place_in_cluster
from models.bars import Bars
from models.encoders.load import load_encoder
from models.errors import VersionMismatch
from models.matching import MatchConfig, Matcher
from models.pseudonyms import OFFLINE, Pseudonyms
from models.queries import Query
from models.records import Deletion, Frame, Geo, Origin, Post
from streams.pipeline import stages
from streams.pipeline.frames import unpack_vectors
from streams.pipeline.memory import MemoryAlerts
from streams.pipeline.outcomes import OUTCOMES
from streams.pipeline.ports import Claim, Verdict

WATER = Query("need.water", "need", "water", "Drinking water", {"en": ["We need drinking water"]}, "WASH", "", 0.3)
HELP = "we need drinking water please"


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("flood")


@pytest.fixture(scope="module")
def matcher(encoder):
    return Matcher(MatchConfig(contrast=0.0), [WATER], encoder, [])


def line(post_id, text, **fields):
    return json.dumps({"id": post_id, "text": text, **fields}).encode()


def run(frame, encoder, matcher):
    return stages.match(stages.embed(frame, encoder), matcher)


def posts(*texts, kind="create", seen_at=10.0):
    return [Post(f"p{n}", text, 1.0, seen_at, "en", kind=kind) for n, text in enumerate(texts)]


@settings(deadline=None)  # the first call loads the language models
@given(st.lists(st.binary(max_size=40) | st.just(line("a", "hello world")), max_size=6))
def test_every_line_becomes_a_post_a_deletion_or_a_reject(lines):
    value = b"\n".join(lines)
    parsed = stages.parse(value, Origin(1, 2), 1e9, OFFLINE)
    assert parsed.read == len([x for x in value.split(b"\n") if x.strip(b" \t\r")])
    claimed = [c.post_id if isinstance(c, Claim) else c for c in parsed.claims]
    assert [c for c in claimed if isinstance(c, str)] == [p.id for p in parsed.posts]
    assert [c.post_id for c in claimed if not isinstance(c, str)] == [d.id for d in parsed.deletions]


def test_a_reject_keeps_its_reason_its_place_and_its_bytes():
    parsed = stages.parse(line("a", "fine text") + b'\n{"id": "b", "te', Origin(3, 7), 1e9, OFFLINE)
    (reject,) = parsed.rejects
    assert (reject.origin, reject.line, reject.raw) == (Origin(3, 7), 1, b'{"id": "b", "te')
    assert reject.reason
    assert reject.detail


def test_folding_keeps_the_original_and_counts_the_repeat():
    parsed = stages.parse(
        line("a", "same words here") + b"\n" + line("b", "same words here"), Origin(0, 0), 1e9, OFFLINE
    )
    frame = stages.fold(parsed, [Verdict(), Verdict(repeats="a")])
    assert [p.id for p in frame.posts] == ["a"]
    assert [(r.id, r.of) for r in frame.repeats] == [("b", "a")]


def test_an_explicit_edit_is_never_folded_and_a_new_text_under_an_old_id_is_an_edit():
    parsed = stages.parse(
        line("a", "one text", kind="update") + b"\n" + line("b", "another text"), Origin(0, 0), 1e9, OFFLINE
    )
    frame = stages.fold(parsed, [Verdict(repeats="x"), Verdict(edits=True)])
    assert [(p.id, p.kind) for p in frame.posts] == [("a", "update"), ("b", "update")]
    assert not frame.repeats


def test_embedding_several_frames_at_once_equals_embedding_each(encoder):
    frames = [Frame(Origin(0, n), posts(*texts)) for n, texts in enumerate([["a b", "c"], [], ["d e f"]])]
    together = stages.embed_many(frames, encoder)
    for frame, one in zip(frames, together, strict=True):
        alone = stages.embed(frame, encoder)
        assert one.origin == frame.origin
        assert np.allclose(unpack_vectors(one), unpack_vectors(alone), atol=1e-3)


def test_matching_several_frames_at_once_equals_matching_each_and_takes_one_comparison(encoder):
    budgeted = msgspec.structs.replace(WATER, alerts_per_hour=2.0)
    matcher, texts = Matcher(MatchConfig(contrast=0.0), [budgeted], encoder, []), [HELP, "nice weather", f"{HELP} now"]
    frames = [Frame(Origin(n % 2, n), posts(*texts[: n % 4], seen_at=10.0 + n)) for n in range(9)]
    frames.append(Frame(Origin(0, 9), [*posts("nice weather"), *posts(HELP, kind="update")]))
    embedded = [stages.embed(frame, encoder) for frame in frames]
    bars, others = Bars(matcher.config), Bars(matcher.config)
    each = [stages.match(frame, matcher, bars) for frame in embedded]
    with mock.patch.object(Matcher, "match_rows", autospec=True, side_effect=Matcher.match_rows) as asked:
        assert stages.match_many(embedded, matcher, others) == each
    assert asked.call_count == 1 and sum(len(frame.matches) for frame in each) > 5 and bars.now == others.now


def test_no_more_posts_are_compared_at_once_than_memory_is_set_aside_for(encoder, matcher):
    embedded = [stages.embed(Frame(Origin(0, n), posts(*[HELP] * 100)), encoder) for n in range(5)]
    with mock.patch.object(Matcher, "match_rows", autospec=True, side_effect=Matcher.match_rows) as asked:
        assert len(stages.match_many(embedded, matcher)) == 5 and stages.match_many([], matcher) == []
    assert [len(call.args[1]) for call in asked.call_args_list] == [200, 200, 100]


def test_a_frame_of_another_encoder_version_is_refused(encoder, matcher):
    import msgspec

    embedded = stages.embed(Frame(Origin(0, 0), posts(HELP)), encoder)
    with pytest.raises(VersionMismatch, match="other"):
        stages.match(msgspec.structs.replace(embedded, encoder_version="other"), matcher)


def test_of_a_post_that_is_edited_in_the_same_frame_only_the_last_text_counts(encoder, matcher):
    first, second = posts(HELP)[0], Post("p0", "all is well now, thanks", 1.0, 10.0, kind="update")
    matched = run(Frame(Origin(0, 0), [first, second]), encoder, matcher)
    assert matched.matches == []
    assert stages.tally(matched) == {"alert": 0, "suggestion": 0, "no_match": 2}


def test_the_stages_tell_every_outcome_there_is_and_no_other(encoder, matcher):
    parsed = stages.parse(b"[]", Origin(0, 0), 1.0, OFFLINE)
    frame = stages.fold(parsed, [])
    told = {**stages.tally_unmatched(parsed, frame, []), **stages.tally(run(frame, encoder, matcher))}
    assert set(told) == {"read", *OUTCOMES}


def test_the_tally_sums_to_the_posts(encoder, matcher):
    matched = run(Frame(Origin(0, 0), posts(HELP, "football tonight", HELP + " now")), encoder, matcher)
    assert sum(stages.tally(matched).values()) == 3
    assert stages.tally(matched)["alert"] == 2


async def settled(frame, encoder, matcher, known):
    matched = run(frame, encoder, matcher)
    made = make_alerts(matched.posts, matched.matches, {WATER.id: WATER}, matched.encoder_version)
    return await known.put_alerts(await stages.with_withdrawals(matched, made, known))


async def test_a_deletion_withdraws_the_posts_alerts(encoder, matcher):
    known = MemoryAlerts()
    (alert,) = await settled(Frame(Origin(0, 0), posts(HELP)), encoder, matcher, known)
    gone = Frame(Origin(0, 1), [], deletions=[Deletion("p0", 20.0)])
    (withdrawn,) = await settled(gone, encoder, matcher, known)
    assert (withdrawn.alert_id, withdrawn.status, withdrawn.withdrawn_because) == (
        alert.alert_id,
        "withdrawn",
        "deleted",
    )


async def test_an_edit_withdraws_nothing_of_posts_whose_ids_begin_with_its_own(encoder, matcher):
    known = MemoryAlerts()
    await settled(
        Frame(Origin(0, 0), [Post(i, HELP, 1.0, 10.0, "en") for i in ("ann", "ann/1")]), encoder, matcher, known
    )
    edit = Post("ann", "fine weather today", 1.0, 20.0, "en", kind="update")
    told = await settled(Frame(Origin(0, 1), [edit]), encoder, matcher, known)
    assert [(alert.post.id, alert.status) for alert in told] == [("ann", "withdrawn")]


@pytest.mark.parametrize("cause", ["deleted", "edited"])
async def test_a_withdrawal_says_nothing_of_what_the_post_said_or_where(encoder, matcher, cause):
    known = MemoryAlerts()
    post = Post("p0", HELP, 1.0, 10.0, "en", url="https://a.example/1", geo=Geo(36.2, 36.1))
    await settled(Frame(Origin(0, 0), [post]), encoder, matcher, known)
    after = Frame(Origin(0, 1), posts("fine weather today", kind="update", seen_at=20.0))
    gone = Frame(Origin(0, 1), [], deletions=[Deletion("p0", 20.0)])
    (alert,) = await settled(gone if cause == "deleted" else after, encoder, matcher, known)
    assert (alert.withdrawn_because, alert.post.text, alert.post.url, alert.post.geo) == (cause, "", None, None)


async def test_an_edit_that_still_matches_keeps_its_alert_and_one_that_does_not_withdraws_it(encoder, matcher):
    known = MemoryAlerts()
    await settled(Frame(Origin(0, 0), posts(HELP)), encoder, matcher, known)
    (kept,) = await settled(
        Frame(Origin(0, 1), posts(HELP + " quickly", kind="update", seen_at=20.0)), encoder, matcher, known
    )
    assert (kept.status, kept.post.text) == ("active", HELP + " quickly")
    (gone,) = await settled(
        Frame(Origin(0, 2), posts("football results tonight", kind="update", seen_at=30.0)), encoder, matcher, known
    )
    assert (gone.status, gone.withdrawn_because) == ("withdrawn", "edited")


SAID = st.tuples(st.sampled_from((HELP, HELP + " quickly", "fine weather today")), st.integers(0, 3), st.integers(0, 3))


@given(edits=st.lists(SAID, min_size=1, max_size=5), again_from=st.integers(0, 5))
async def test_the_last_edit_is_what_is_told_in_whichever_millisecond_and_when_it_is_all_read_again(
    encoder, matcher, edits, again_from
):
    """Milliseconds collide where a backlog is read, and an alert grows by a revision when its cluster is known."""
    known, told, states = MemoryAlerts(), {}, [(HELP, 0, 0), *edits]
    clock = np.cumsum([ms for _, ms, _ in states])

    async def read(at, text, _, placed):
        kind, seen_at = "update" if at else "create", 10 + int(clock[at]) / 1000
        news = await settled(Frame(Origin(0, at), posts(text, kind=kind, seen_at=seen_at)), encoder, matcher, known)
        for cluster in ("likely", None, f"c{at}")[:placed]:
            settled_now = cluster == f"c{at}"
            news += await known.put_alerts([place_in_cluster(a, cluster, settled_now) for a in known.by_id.values()])
        for alert in news:
            assert told.setdefault((alert.alert_id, alert.revision), alert) == alert

    for number, state in enumerate(states):
        await read(number, *state)
    for number in range(again_from, len(states)):
        await read(number, *states[number])
    (alert,) = known.by_id.values()
    text = states[-1][0]
    assert (alert.status, alert.post.text) == (("active", text) if text.startswith(HELP) else ("withdrawn", ""))


@pytest.mark.parametrize("then", [HELP + " quickly", "fine weather today"])
async def test_an_edit_that_is_read_after_a_later_one_tells_nothing(encoder, matcher, then):
    """One that was put by while the reader was behind, or is read again after a crash."""
    known = MemoryAlerts()

    async def read(text, seen_at, kind="update"):
        return await settled(Frame(Origin(0, 0), posts(text, kind=kind, seen_at=seen_at)), encoder, matcher, known)

    await read(HELP, 10.0, "create")
    await read(then, 19.0)
    told = dict(known.by_id)
    for late in (HELP + " now", "football results tonight"):
        assert await read(late, 15.0) == [] and known.by_id == told


async def test_an_edit_comes_after_the_cluster_that_another_worker_is_just_filling_in(encoder, matcher):
    known = MemoryAlerts()
    (first,) = await settled(Frame(Origin(0, 0), posts(HELP)), encoder, matcher, known)
    edit = Frame(Origin(0, 1), posts(HELP + " quickly", kind="update", seen_at=10.0))
    (edited,) = await settled(edit, encoder, matcher, known)
    for cluster in ("likely", None, "c1"):
        first = place_in_cluster(first, cluster, settled=cluster == "c1")
        assert await known.put_alerts([first]) == []
    assert known.by_id[first.alert_id] == edited


async def test_a_post_deleted_while_it_is_under_way_gets_no_alert(encoder, matcher):
    known = MemoryAlerts()
    await settled(Frame(Origin(1, 0), [], deletions=[Deletion("p0", 5.0)]), encoder, matcher, known)
    assert await settled(Frame(Origin(0, 0), posts(HELP)), encoder, matcher, known) == []


async def test_a_closed_accounts_alerts_are_withdrawn(encoder, matcher):
    known = MemoryAlerts()
    mine = Post("bsky:did:plc:x/3k", HELP, 1.0, 10.0, "en")
    await settled(Frame(Origin(0, 0), [mine]), encoder, matcher, known)
    gone = Frame(Origin(0, 1), [], deletions=[Deletion("bsky:did:plc:x", 20.0)])
    (withdrawn,) = await settled(gone, encoder, matcher, known)
    assert (withdrawn.post.id, withdrawn.status) == (mine.id, "withdrawn")


async def test_processing_a_frame_again_changes_nothing(encoder, matcher):
    known = MemoryAlerts()
    frame = Frame(Origin(0, 0), posts(HELP))
    (alert,) = await settled(frame, encoder, matcher, known)
    await known.put_alerts([place_in_cluster(alert, "c1")])
    assert await settled(frame, encoder, matcher, known) == []
    assert known.by_id[alert.alert_id].cluster_id == "c1"


def test_records_read_together_are_read_as_each_alone():
    values = [
        line("a", "Necesitamos agua y comida"),
        b"{",
        line("b", "We need water") + b"\n" + line("c", "水が必要です"),
        b"",
    ]
    records = [(value, Origin(0, n), 1e9 + n) for n, value in enumerate(values)]
    names = Pseudonyms(b"a secret of at least 32 characters")
    assert stages.parse_many(records, names) == [stages.parse(*record, names) for record in records]
