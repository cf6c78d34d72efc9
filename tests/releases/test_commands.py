"""`crisis encoder`, as an operator uses it."""

import json
import shutil
import time

import msgspec
import pytest
from click.testing import CliRunner
from kafka import KafkaProducer
from rich.console import Console

from models.encoders.bundle import CLUSTERS, add_file, read_bundle
from models.encoders.cluster_thresholds import TunedClusters
from models.encoders.registry import OWN, Registry, encoder_of
from models.queries import Query
from models.records import Deletion, Frame, Origin, Post
from streams.broker.queries import publish_queries
from streams.broker.reading import kafka_ms
from streams.broker.topics import make_topics
from streams.commands import encoder as encoder_commands
from streams.commands.encoder import encoder
from streams.config import load_settings
from streams.pipeline import stages
from streams.pipeline.frames import encode_frame, join_frames
from streams.releases.compared_posts import posts_of_file
from streams.releases.diff import at_the_end, diff_versions
from streams.releases.release import Release
from streams.releases.topic import read_release
from streams.releases.versions import load_version, make_ready
from streams.view.status import WorkerStatus
from tests.dashboard.seeding import SPEAKS_S
from tests.releases.tiny import in_ek, rotated_bundle, shuffled_bundle, tiny_bundle, words_of

NEED = "we have no drinking water, please send water"
TEXTS = [in_ek(NEED), "lovely weather for football today", f"{in_ek(NEED)} schoolek", "the cat sat on the wall"]
QUERY = Query(id="need.tkwater", kind="need", category="tkwater", label="w", sentences={"en": [NEED]}, threshold=0.35)


@pytest.fixture
def registry(tmp_path, monkeypatch) -> dict[str, str]:
    words = words_of([NEED, *TEXTS])
    tiny_bundle(tmp_path / "v1", words=words, licence="CC0-1.0")
    rotated_bundle(tmp_path / "v2", tmp_path / "v1")
    shuffled_bundle(tmp_path / "bad", tmp_path / "v1")
    monkeypatch.setenv("CRISIS_CACHE", str(tmp_path / "cache"))
    made = Registry(tmp_path / "registry")
    return {name: made.publish(tmp_path / name) for name in ("v1", "v2", "bad")}


@pytest.fixture
def settings(registry, tmp_path):
    return load_settings(
        encoder={"ref": str(tmp_path / "v1"), "registry": str(tmp_path / "registry")},
        topics={"prefix": f"{tmp_path.name}.", "partitions": 2},
        redis={"url": "redis://127.0.0.1:1/0"},
    )


def post(number: int, text: str, lang: str = "en") -> Post:
    return Post(id=f"p{number}", text=text, created_at=1.0, seen_at=1.0, lang=lang)


def run(settings, *words: str):
    return CliRunner().invoke(encoder, words, obj=settings)


def test_a_diff_is_the_brute_force_difference_of_two_sets_of_alerts(settings, registry):
    a, b = (make_ready(settings, load_version(settings, registry[n]), [QUERY]) for n in ("v1", "bad"))
    posts = [post(n, t, "ek" if "ek" in t else "en") for n, t in enumerate(TEXTS)]
    found = diff_versions(posts, a, b)

    def alerts(ready):
        matches = ready.matcher.match([p.id for p in posts], ready.encoder.encode(TEXTS), ready.encoder.version)
        return {(m.post_id, m.query_id) for m in matches if m.level == "alert"}

    assert {(c.post_id, c.query_id) for c in found.gained} == alerts(b) - alerts(a)
    assert (
        {(c.post_id, c.query_id) for c in found.lost}
        == alerts(a) - alerts(b)
        == {("p0", "need.tkwater"), ("p2", "need.tkwater")}
    )
    assert (found.total.posts, found.total.alerts_a, found.total.kept, found.total.lost) == (4, 2, 0, 2)
    assert found.by_language["ek"].lost == 2
    assert found.lost[0].text in TEXTS
    assert found.lost[0].score_a >= found.lost[0].threshold_a
    assert found.lost[0].score_b < found.lost[0].threshold_b


def test_a_version_against_its_equal_changes_nothing(settings, registry):
    a, b = (make_ready(settings, load_version(settings, registry[n]), [QUERY]) for n in ("v1", "v2"))
    found = diff_versions([post(n, t) for n, t in enumerate(TEXTS)], a, b)
    assert (found.gained, found.lost, found.total.kept) == ([], [], 2)


def test_a_post_of_two_readings_is_one_alert_and_one_under_another_query_has_moved(settings, registry):
    thirst = msgspec.structs.replace(QUERY, id="need.tkthirst", category="tkthirst")
    posts, loaded = [post(n, t) for n, t in enumerate(TEXTS)], load_version(settings, registry["v1"])
    a, b = (
        make_ready(
            settings,
            loaded,
            [msgspec.structs.replace(q, threshold=t) for q, t in zip((QUERY, thirst), bars, strict=True)],
        )
        for bars in ((-0.5, -0.9), (-0.9, -0.5))
    )
    found = diff_versions(posts, a, b)
    assert (found.total.alerts_a, found.total.alerts_b, found.total.moved) == (4, 4, 4)  # each of two readings
    assert {(c.instead_of, c.query_id) for c in found.moved} == {("need.tkthirst", "need.tkwater")}
    assert (found.gained, found.lost) == ([], [])


def test_the_last_text_of_an_edited_post_counts_and_a_deleted_one_not():
    frames = [
        Frame(Origin(0, 0), [post(1, "one"), post(2, "two")]),
        Frame(Origin(0, 1), [post(1, "other")]),
        Frame(Origin(0, 2), [], deletions=[Deletion("p2", 3.0)]),
    ]
    assert [p.text for p in at_the_end(frames)] == ["other"]


def test_of_an_account_that_was_deleted_no_post_is_compared():
    posts = [Post(i, i, 1.0, 1.0) for i in ("ann/1", "ann/2", "ann", "bob/1", "ann2")]
    frames = [
        Frame(Origin(0, 0), posts),
        Frame(Origin(0, 1), [], deletions=[Deletion("ann", 3.0), Deletion("bob/1", 3.0)]),
    ]
    assert [p.id for p in at_the_end(frames)] == ["ann2"]


async def test_a_file_is_read_as_the_pipeline_would(tmp_path):
    lines = [
        {"id": "a", "text": "we need water at the school", "author": "ann"},
        {"id": "b", "text": "we need water at the school", "author": "ann"},
        {"id": "c", "text": "all is well here today"},
        {"id": "c", "kind": "delete"},
    ]
    path = tmp_path / "posts.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\nnot json\n")
    assert [p.id for p in await posts_of_file(path)] == ["a"]


def test_diff_shows_what_would_change_with_texts(settings, registry, tmp_path, monkeypatch):
    monkeypatch.setattr("streams.commands.encoder.load_queries", lambda: [QUERY])
    path = tmp_path / "posts.jsonl"
    path.write_text("\n".join(json.dumps({"id": f"p{n}", "text": t}) for n, t in enumerate(TEXTS)))
    done = run(settings, "diff", registry["v1"][:6], registry["bad"], "--file", str(path), "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["a"], found["b"]) == (registry["v1"], registry["bad"])
    assert [c["post_id"] for c in found["lost"]] and not found["gained"]
    shown = run(settings, "diff", OWN, registry["bad"], "--file", str(path))
    assert "Lost: only A alerts (2)" in shown.stdout
    assert "drinkingek" in shown.stdout


def test_info_verifies_and_shows_the_manifest(settings, registry):
    done = run(settings, "info", registry["v1"][:6])
    assert f"{registry['v1']}, verified: 2 files" in done.stdout
    assert "CC0-1.0" in done.stdout
    assert "sha256" in done.stdout
    assert json.loads(run(settings, "info", registry["v2"], "--json").stdout)["parent"] == registry["v1"]


def test_info_shows_what_was_forced_and_why(settings, tmp_path):
    gates = {
        "compared": 3,
        "against": None,
        "regressions": ["en: matching 0.9 → 0.1, allowed 0.87"],
        "at": "2026-01-01",
    }
    tiny_bundle(
        tmp_path / "forced", seed=4, evaluation={"gates": gates, "forced": "a drill"}, data_hashes={"pairs": "ab" * 32}
    )
    shown = " ".join(run(settings, "info", Registry(tmp_path / "registry").publish(tmp_path / "forced")).stdout.split())
    for told in ("a drill", "en: matching 0.9", "3 figures against nothing, 1 worse", "abababababababab"):
        assert told in shown


def test_two_versions_that_differ_only_in_what_was_measured_are_told_apart(settings, registry, tmp_path, monkeypatch):
    """Same vectors, other thresholds: alerts, metrics and the list name the release, not the encoder alone."""
    again = tmp_path / "again"
    shutil.copytree(tmp_path / "v1", again)
    tuned = TunedClusters(read_bundle(again).id, 0.5, 0.4, 0.6)
    add_file(again, CLUSTERS, msgspec.json.encode(tuned))
    other = Registry(tmp_path / "registry").publish(again)
    assert other != registry["v1"] and encoder_of(other) == encoder_of(registry["v1"])

    made = []
    for name in (registry["v1"], other):
        ready = make_ready(settings, load_version(settings, name), [QUERY])
        frame = Frame(Origin(0, 1), [Post("a", NEED, 1.0, 1.0)])
        made += stages.alerts(stages.match(stages.embed(frame, ready.encoder), ready.matcher), ready)
    assert [a.registry_version for a in made] == [registry["v1"], other]
    assert len({a.encoder_version for a in made}) == 1 and len({a.alert_id for a in made}) == 1

    at = time.time() + SPEAKS_S
    workers = {n: WorkerStatus(at, encoder_version=encoder_of(other), registry_version=other) for n in ("a", "b")}

    async def live(*_):
        return {}, workers

    monkeypatch.setattr(encoder_commands, "read_release", lambda settings: Release(current=other))
    monkeypatch.setattr(encoder_commands, "_live", live)
    monkeypatch.setattr(encoder_commands, "out", Console(width=200))
    lines = [line.split("│") for line in run(settings, "list").output.splitlines() if "│" in line]
    rows = {cells[1].strip(): cells for cells in lines}
    assert (rows[other][3].strip(), rows[registry["v1"]][3].strip()) == ("2", "")


def test_a_release_from_stage_to_rollback(settings, registry, broker, tmp_path):
    settings = settings.model_copy(update={"broker": settings.broker.model_copy(update={"bootstrap": broker})})
    make_topics(settings)
    v1, v2 = registry["v1"], registry["v2"]
    assert "revision 1: use" in run(settings, "use", v1[:8]).output
    assert Registry(tmp_path / "registry").chosen() == v1
    assert run(settings, "stage", v2, "--canary", "0.5").output.strip() == (
        f"revision 2: stage {v2} (shadow 0.1, canary 0.5)"
    )
    listed = json.loads(run(settings, "list", "--json").stdout)
    assert listed["release"]["staged"]["version"] == v2
    assert {e["version"] for e in listed["versions"]} == set(registry.values())
    shown = run(settings, "list").stdout
    assert "current" in shown and "canary" in shown and v1 in shown
    assert f"canary {v2} ended" in run(settings, "rollback").output
    assert f"rollback from {v1} to own" in run(settings, "rollback").output
    assert read_release(settings).current == Registry(tmp_path / "registry").chosen() == OWN
    refused = run(settings, "rollback")
    assert "no version before own" in str(refused.exception)

    model = tmp_path / "registry" / v2 / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-1])
    (tmp_path / "cache" / "encoders" / v2 / "model.safetensors").unlink()
    broken = run(settings, "use", v2)
    assert broken.exit_code == 1
    assert "is not announced" in broken.output and "was changed" in broken.output
    assert read_release(settings).current == OWN


def test_diff_reads_the_last_hours_of_the_stream(settings, registry, broker):
    settings = settings.model_copy(update={"broker": settings.broker.model_copy(update={"bootstrap": broker})})
    make_topics(settings)
    publish_queries(settings, {QUERY.id: QUERY})
    producer = KafkaProducer(bootstrap_servers=broker)
    topic = settings.topics.name("posts.clean")
    old = kafka_ms(time.time() - 7200)
    for partition, (number, at) in enumerate([(0, old), (2, None)]):
        frame = Frame(Origin(partition, 1), [msgspec.structs.replace(post(number, TEXTS[number]))])
        value = join_frames([encode_frame(one) for one in (Frame(Origin(partition, 0), []), frame)])
        producer.send(topic, value=value, partition=partition, timestamp_ms=at)
    producer.send(topic, value=b"nonsense", partition=0)
    producer.flush()
    producer.close()
    for last, lost in (("1h", ["p2"]), ("3h", ["p0", "p2"])):
        done = run(settings, "diff", registry["v1"], registry["bad"], "--last", last, "--json")
        assert sorted(c["post_id"] for c in json.loads(done.stdout)["lost"]) == lost, done.output
    empty = run(settings, "diff", registry["v1"], registry["bad"], "--last", "0s")
    assert "no posts on the stream in the last 0 s" in empty.output
