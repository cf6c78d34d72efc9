"""One way to an encoder version that serves: verified once, with all that was measured for it, told when it is off."""

from __future__ import annotations

import logging

import msgspec
import numpy as np
import pytest

from models.calibration import read_calibration
from models.clustering import ClusterConfig
from models.clusters.vectors import vectors_of, widened
from models.encoders import bundle as bundles
from models.encoders.bundle import CALIBRATION, CLUSTERS, QUERY_VECTORS, add_file, contents, read_bundle, write_bundle
from models.encoders.cluster_thresholds import TunedClusters
from models.encoders.load import FLOOD
from models.encoders.ready import load, ready, stale
from models.encoders.registry import OWN, Registry
from models.errors import BundleError
from models.queries import load_queries
from models.reading import Head, Terms
from models.records import MatchedFrame, Origin, Post
from tests.releases.tiny import tiny_bundle


def in_bundle(path, **fields) -> bytes:
    known = {"encoder_version": read_bundle(path).id, "t_attach": 0.5, "t_merge": 0.4, "lexical": 0.6}
    return msgspec.json.encode(known | fields)


def test_a_version_from_the_registry_is_hashed_once_on_its_way_into_service(tmp_path, monkeypatch):
    tiny_bundle(tmp_path / "v1")
    registry = Registry(tmp_path / "registry")
    version = registry.publish(tmp_path / "v1")
    registry.fetch(version, tmp_path / "cache")
    hashed = []
    plain = bundles._sha256
    monkeypatch.setattr(bundles, "_sha256", lambda path: hashed.append(path.name) or plain(path))
    loaded = load(registry.fetch(version, tmp_path / "cache"), version)
    assert (loaded.name, loaded.encoder.version) == (version, version)
    assert sorted(hashed) == ["model.safetensors", "tokenizer.json"]


def test_what_is_ready_scores_as_its_matcher_does_and_knows_its_queries():
    queries = load_queries()[:4]
    made = ready(load("flood"), queries)
    assert made.name == OWN and list(made.queries) == [q.id for q in queries]
    assert made.matcher.scores(made.encoder.encode(["we need water"])).shape == (1, 4)


def test_cluster_thresholds_come_with_the_bundle_and_make_a_version_of_their_own(tmp_path):
    tiny_bundle(tmp_path / "v")
    registry = Registry(tmp_path / "registry")
    before = registry.publish(tmp_path / "v")
    add_file(tmp_path / "v", CLUSTERS, in_bundle(tmp_path / "v"))
    after = registry.publish(tmp_path / "v")
    assert after != before and after.startswith(before)
    loaded = load(registry.fetch(after, tmp_path / "cache"), after)
    assert (loaded.clusters.t_attach, loaded.clusters.t_merge) == (0.5, 0.4)
    assert load(registry.fetch(before, tmp_path / "cache"), before).clusters is None


@pytest.mark.parametrize("name", [CALIBRATION, CLUSTERS, QUERY_VECTORS])
def test_a_file_that_is_gone_since_it_was_verified_is_told_and_not_taken_for_none(tmp_path, name):
    tiny_bundle(tmp_path / "v")
    add_file(tmp_path / "v", name, in_bundle(tmp_path / "v"))
    verified = read_bundle(tmp_path / "v")
    (tmp_path / "v" / name).unlink()
    with pytest.raises(BundleError, match=f"{name}.*is not there"):
        load(verified)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"encoder_version": "f" * 12}, "measure anew"),
        ({"t_merge": 0.6}, "must not be"),
        ({"t_attach": 7.0}, "between 0 and 1"),
        ({"t_atach": 0.5}, "t_atach"),
        ({"beside": -1.0}, "beside"),
        ({"beside": 0.5, "beside_version": "f" * 12}, "static encoder"),
    ],
)
def test_thresholds_of_another_encoder_or_out_of_range_are_refused(tmp_path, fields, told):
    tiny_bundle(tmp_path / "v")
    add_file(tmp_path / "v", CLUSTERS, in_bundle(tmp_path / "v", **fields))
    with pytest.raises(BundleError, match=told):
        load(tmp_path / "v")


def test_where_thresholds_were_measured_so_clusters_compare_posts_by_the_static_encoder_beside_the_own(tmp_path):
    tiny_bundle(tmp_path / "v")
    assert (alone := load(tmp_path / "v")).clustered_by is alone.encoder
    add_file(tmp_path / "v", CLUSTERS, in_bundle(tmp_path / "v", beside=0.5, beside_version=read_bundle(FLOOD).id))
    loaded, static, texts = load(tmp_path / "v"), load("flood").encoder, ["we need water", "football tonight"]
    both = loaded.clustered_by.encode(texts)
    cosine = [float(rows[0] @ rows[1]) for rows in (both, loaded.encoder.encode(texts), static.encode(texts))]
    assert cosine[0] == pytest.approx((cosine[1] + 0.25 * cosine[2]) / 1.25, abs=1e-6)


def test_a_frame_is_widened_to_what_the_mixture_reads_and_others_stay_as_they_are(tmp_path):
    tiny_bundle(tmp_path / "v")
    add_file(tmp_path / "v", CLUSTERS, in_bundle(tmp_path / "v", beside=0.5, beside_version=read_bundle(FLOOD).id))
    loaded = load(tmp_path / "v")
    posts = [Post(str(n), text, 1.0, 1.0) for n, text in enumerate(("we need water", "football tonight"))]
    frame = embedded(posts, loaded.encoder)
    others = embedded(posts, load("flood").encoder), embedded([], loaded.encoder)
    wide, first, second, last = widened([frame, *others, embedded(posts[1:], loaded.encoder)], loaded.clustered_by)
    assert (first, second) == others
    rows = vectors_of(wide, wide.encoder_version, wide.dim)
    np.testing.assert_allclose(vectors_of(last, wide.encoder_version, wide.dim), rows[1:], atol=2e-3)
    assert (wide.encoder_version, wide.dim) == (loaded.clustered_by.version, loaded.clustered_by.dim)
    np.testing.assert_allclose(
        rows,
        loaded.clustered_by.encode([post.text for post in posts]),
        atol=2e-3,
    )
    assert widened([frame], loaded.encoder) == [frame]


def embedded(posts, encoder) -> MatchedFrame:
    rows = encoder.encode([post.text for post in posts]).astype("<f2").tobytes()
    return MatchedFrame(Origin(0, 1), posts, encoder_version=encoder.version, dim=encoder.dim, vectors=rows)


def test_what_was_given_by_hand_holds_against_the_bundle_and_another_share_of_words_against_all():
    tuned = TunedClusters("e", 0.5, 0.4, 0.6)
    plain = ClusterConfig()
    assert tuned.fit(plain) == ClusterConfig(t_attach=0.5, t_merge=0.4)
    assert tuned.fit(ClusterConfig(t_attach=0.9), {"t_attach"}) == ClusterConfig(t_attach=0.9, t_merge=0.4)
    alone = ClusterConfig(lexical=0.0, t_attach=0.7, t_merge=0.6)
    assert tuned.fit(alone) == alone


def test_the_clusterers_defaults_are_the_bundled_encoders():
    """Who changes one without the other would see no effect: thresholds of a bundle hold over the defaults."""
    tuned = load("flood").clusters
    again = "python -m training.evaluate_clusters tweets-t t_attach=… t_merge=… keep=true"
    assert tuned is not None and tuned.fit(ClusterConfig()) == ClusterConfig(), again


def test_a_calibration_measured_against_other_material_is_told_with_the_way_out(tmp_path, caplog):
    encoder = load("flood").encoder
    shipped = read_calibration(FLOOD / CALIBRATION, encoder.version)
    other = msgspec.structs.replace(shipped, material="0" * 8)
    assert "`python -m training.calibrate laptop encoder=DIR`" in stale(other) and "00000000" in stale(other)
    head = Head([], [], [], Terms(1.0), Terms(1.0))
    assert "`python -m training.head laptop encoder=DIR`" in stale(msgspec.structs.replace(other, head=head))
    read = read_bundle(FLOOD)
    write_bundle(tmp_path / "b", read.manifest, contents(read) | {CALIBRATION: msgspec.json.encode(other)})
    with caplog.at_level(logging.WARNING):
        assert load(tmp_path / "b", "b").calibration == other  # it is used: better than none
    assert "other query packs" in caplog.text and "version b" in caplog.text
