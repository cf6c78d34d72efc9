"""Vectors of different versions are never compared; canary, shadow and probes."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.clustering import ClusterConfig, Clusterer
from models.encoders.bundle import read_bundle, write_bundle
from models.encoders.load import load_encoder
from models.encoders.probes import PROBES, check_probes, probe_vectors
from models.encoders.registry import OWN
from models.errors import ConfigError, EncoderError, VersionMismatch
from models.records import MatchedFrame, Origin
from models.search import SearchIndex
from streams.config import load_settings
from streams.pipeline import stages
from streams.releases.serving import restate
from streams.releases.trial import alert_pairs, embed_canary, in_share, score_unseen
from streams.releases.versions import load_version
from tests.releases.shop import TEXTS, frame
from tests.releases.tiny import tiny_bundle, words_of

pytestmark = pytest.mark.usefixtures("cache")


@given(data=st.data(), texts=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_vectors_of_different_versions_are_never_compared(shop, readies, data, texts):
    """Whatever meets: the same version works, any other raises where it happens and changes nothing."""
    made, against = data.draw(st.sampled_from(readies)), data.draw(st.sampled_from(readies))
    embedded = stages.embed(frame(1, texts=texts), made.encoder)
    clusterer = Clusterer(ClusterConfig(), against.encoder.dim, against.encoder.version)
    index = SearchIndex(against.encoder.dim, against.encoder.version)
    before = clusterer.snapshot()
    matched = stages.match(embedded, made.matcher)
    if made.encoder.version == against.encoder.version:
        stages.match(embedded, against.matcher)
        clusterer.add(matched)
        index.add_frame(matched)
        assert index.search(made.encoder.encode([texts[0]])[0], encoder_version=made.encoder.version)
        return
    with pytest.raises(VersionMismatch, match=made.encoder.version):
        stages.match(embedded, against.matcher)
    with pytest.raises(VersionMismatch):
        clusterer.add(matched)
    assert clusterer.snapshot() == before
    index.add_frame(restate(matched, against.encoder))
    with pytest.raises(VersionMismatch):
        index.add_frame(matched)
    with pytest.raises(VersionMismatch):
        index.search(made.encoder.encode([texts[0]])[0], encoder_version=made.encoder.version)
    assert len(index) == len(texts)
    if made.encoder.dim != against.encoder.dim:
        forged = msgspec.structs.replace(embedded, encoder_version=against.encoder.version)
        with pytest.raises(VersionMismatch, match="dim|shape"):
            stages.match(forged, against.matcher)
    anew = restate(embedded, against.encoder)
    assert stages.match(anew, against.matcher).encoder_version == against.encoder.version
    clusterer.add(restate(matched, against.encoder))


def test_a_restated_frame_is_what_the_other_version_would_have_made_and_keeps_its_matches(readies):
    _, v1, _, v3 = readies
    matched = stages.match(stages.embed(frame(1), v1.encoder), v1.matcher)
    anew = restate(matched, v3.encoder)
    assert anew.vectors == stages.embed(frame(1), v3.encoder).vectors
    assert (anew.matches, anew.posts, anew.origin, anew.dim) == (matched.matches, matched.posts, matched.origin, 32)
    assert isinstance(anew, MatchedFrame)


def test_a_rotated_version_gives_the_same_alerts(readies):
    _, v1, v2, _ = readies
    one = stages.match(stages.embed(frame(1), v1.encoder), v1.matcher)
    two = stages.match(stages.embed(frame(1), v2.encoder), v2.matcher)
    assert alert_pairs(one) == alert_pairs(two) != set()


class Broken:
    """An encoder that fails on some texts, one way or the other."""

    def __init__(self, encoder, how):
        self.version, self.dim, self._encoder, self._how = "b" * 12, encoder.dim, encoder, how

    def encode(self, texts):
        vectors = self._encoder.encode(texts)
        if any("roof" in t for t in texts):
            if self._how == "raises":
                raise RuntimeError("CUDA error: an illegal memory access was encountered")
            vectors = np.full_like(vectors, np.nan)
        return vectors


@pytest.mark.parametrize("how", ["raises", "nan"])
def test_a_canary_that_fails_costs_no_post(readies, how):
    current = readies[1]
    staged = readies[2]
    staged = replace(staged, encoder=Broken(staged.encoder, how))
    frames = [frame(1), frame(2, texts=TEXTS[2:])]
    embedded, errors = embed_canary(frames, staged, current)
    assert errors == [4, 0]
    assert [f.encoder_version for f in embedded] == [current.encoder.version, staged.encoder.version]
    assert [f.posts for f in embedded] == [f.posts for f in frames]


def test_the_shadow_counts_what_it_would_alert_beside_the_current_version(readies, shop):
    _, v1, v2, _ = readies
    matched = stages.match(stages.embed(frame(1), v1.encoder), v1.matcher)
    counts = score_unseen(matched, v2)
    assert counts["shadow:posts"] == counts["shadow:posts:en"] == counts["beside:posts:en"] == 4
    assert counts["shadow:alerts:en"] == counts["beside:alerts:en"] > 0
    assert (counts["shadow:gained"], counts["shadow:lost"]) == (0, 0)
    assert counts["shadow:both"] == len(alert_pairs(matched))
    assert counts["shadow:encode_us"] > 0
    broken = replace(v2, encoder=Broken(v2.encoder, "raises"))
    assert score_unseen(matched, broken)["shadow:errors"] == 4


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_the_shadows_share_is_the_share_asked_for(share):
    taken = sum(in_share(Origin(p, n), share) for p in range(4) for n in range(2500))
    assert taken == pytest.approx(10_000 * share, abs=200 * (0 < share < 1))


def test_probes_hold_an_encoder_to_what_it_promised(shop, tmp_path):
    _, _, folder = shop
    v1, v2, v3 = (load_encoder(folder / n) for n in ("v1", "v2", "v3"))
    stored = probe_vectors(v1)
    check_probes(v1, stored)
    with pytest.raises(EncoderError, match="does not compute here what it did"):
        check_probes(v2, stored)
    with pytest.raises(EncoderError, match="probe values"):
        check_probes(v3, stored)
    with pytest.raises(EncoderError, match="not unit rows"):
        check_probes(Broken(v1, "nan"))
    assert len(PROBES) >= 5


def test_a_version_whose_probes_do_not_fit_is_not_loaded(shop, tmp_path):
    _, _, folder = shop
    stored = probe_vectors(load_encoder(folder / "v2"))
    tiny_bundle(tmp_path / "wrong", seed=1, words=words_of(TEXTS), evaluation={"probes": stored})
    with pytest.raises(EncoderError, match="does not compute here"):
        load_version(load_settings(encoder={"ref": str(tmp_path / "wrong")}), OWN)


def test_a_bundle_that_breaks_its_library_is_told_as_one_that_cannot_be_used(tmp_path):
    tiny_bundle(tmp_path / "odd")
    manifest = read_bundle(tmp_path / "odd").manifest
    write_bundle(tmp_path / "odd", manifest, {"model.safetensors": b"not safetensors", "tokenizer.json": b"{}"})
    with pytest.raises(EncoderError, match="version own cannot be used: SafetensorError"):
        load_version(load_settings(encoder={"ref": str(tmp_path / "odd")}), OWN)


def test_a_version_without_a_registry_to_fetch_it_from_says_what_to_set(shop):
    with pytest.raises(ConfigError, match="CRISIS_ENCODER__REGISTRY"):
        load_version(load_settings(), "f" * 12)
