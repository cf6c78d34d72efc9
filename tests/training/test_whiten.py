"""The whitening job: whom it filters, when it refuses, what it leaves behind."""

from __future__ import annotations

import json

import numpy as np
import pytest

from models.encoders.whitening import WhitenedEncoder, Whitening
from models.text import Cleaning
from training import whiten
from training.jobs import read_config
from training.whiten import Labelled, WhiteningRefused, filter_languages, fit_on, spearman


class Letters:
    """Letter counts as vectors; `cone` adds the same large direction to all, as a raw masked LM does."""

    version, dim, cleaning = "letters", 26, Cleaning()

    def __init__(self, cone: float) -> None:
        self.cone = cone

    def encode(self, texts):
        counts = np.array([[t.lower().count(chr(97 + i)) for i in range(26)] for t in texts], np.float32)
        if self.cone:
            # The widest axes say nothing: length and the commonest letters, blown up.
            counts = counts + self.cone * np.linspace(1, 2, 26, dtype=np.float32) * (
                1 + counts.sum(1, keepdims=True) / 200
            )
        return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1e-9)


def smoke(tmp_path, *words: str) -> whiten.Config:
    return read_config(whiten.PRESETS, ["smoke", "dim=20", f"out={tmp_path / 'w'}", *words])


def labelled(seed: int, cone: np.ndarray, n: int = 300, informative: int = 4) -> Labelled:
    """Pairs whose relatedness is in the first axes; the vectors carry the cone besides."""
    rng = np.random.default_rng(seed)
    first = rng.normal(size=(n, 12))
    share = rng.random(n)[:, None]
    second = share * first + (1 - share) * rng.normal(size=(n, 12))
    cut = np.r_[np.ones(informative), 0.3 * np.ones(12 - informative)]
    sides = [(side * cut + rng.normal(1, 0.5, (n, 1)) * cone).astype(np.float32) for side in (first, second)]
    return Labelled(*[s / np.linalg.norm(s, axis=1, keepdims=True) for s in sides], share[:, 0])


def test_whitening_lifts_an_encoder_whose_vectors_lie_in_a_cone(tmp_path):
    out = whiten.main(smoke(tmp_path), Letters(cone=30))
    metrics = json.loads((out / "run.json").read_text())["metrics"]
    assert metrics["helps"] and metrics["spearman_after"] > metrics["spearman_before"]
    assert metrics["anisotropy_before"]["mean_cosine"] > 0.95 > metrics["anisotropy_after"]["mean_cosine"] + 0.5
    # Figure 2: before, every pair lies at the right end; after, they are spread.
    assert metrics["cosines_before"][-1] > 0.9 * sum(metrics["cosines_before"])
    assert metrics["cosines_after"][-1] < 0.3 * sum(metrics["cosines_after"])
    encoder = WhitenedEncoder(Letters(30), Whitening.from_bytes((out / "whitening.safetensors").read_bytes()))
    np.testing.assert_allclose(np.linalg.norm(encoder.encode(["we need water", ""]), axis=1), 1, atol=1e-5)


class Good(Letters):
    """An encoder whose widest axes hold the meaning: whitening can only blow up the rest."""

    def encode(self, texts):
        rng = np.random.default_rng(0)
        counts = super().encode(texts)
        return counts * np.r_[np.ones(6), np.full(20, 1e-2)].astype(np.float32)[rng.permutation(26)]


def test_a_whitening_that_harms_is_refused_with_the_figures_unless_forced(tmp_path, monkeypatch):
    rows = whiten.bundled_pairs(1)
    encoder = Good(0)
    for split in rows.values():  # people agree with the encoder: it cannot get better
        for lang, pairs in split.items():
            first, second = encoder.encode([p[0] for p in pairs]), encoder.encode([p[1] for p in pairs])
            score = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
            split[lang] = [(a, b, float(s)) for (a, b, _), s in zip(pairs, score, strict=True)]
    monkeypatch.setattr(whiten, "bundled_pairs", lambda seed: rows)
    with pytest.raises(WhiteningRefused, match=r"makes letters worse: mean dev Spearman 1\.0000 → 0\..*force=true"):
        whiten.main(smoke(tmp_path, "force=false"), encoder)
    assert not (tmp_path / "w" / "whitening.safetensors").exists()
    record = json.loads((tmp_path / "w" / "run.json").read_text())
    assert record["metrics"]["helps"] is False  # the measurement is kept, the whitening is not
    out = whiten.main(smoke(tmp_path, "force=true"), encoder)
    assert (out / "whitening.safetensors").exists()


def test_languages_that_the_targets_whitening_harms_are_left_out():
    cone = np.zeros(12)
    cone[11] = 6.0
    other = np.zeros(12)
    other[0] = -6.0  # this language hides its meaning elsewhere
    sets = {"es": labelled(1, cone), "pt": labelled(2, cone), "xx": labelled(3, other, informative=1)}
    found = filter_languages(sets, "es", 12, 200, seed=1)
    assert set(found) == {"pt", "xx"}
    assert found["pt"][1] > found["pt"][0]
    for lang, (before, after) in found.items():
        own = sets[lang]
        assert before == pytest.approx(spearman(own))
        assert after == pytest.approx(spearman(own, fit_on(sets, ["es"], 12, 200, seed=1)))


def test_a_target_is_whitened_with_the_languages_that_remain(tmp_path):
    out = whiten.main(smoke(tmp_path, "target=es", "force=true"), Letters(cone=30))
    metrics = json.loads((out / "run.json").read_text())["metrics"]
    assert "es" not in metrics["fitted_on"] and list(metrics["by_language"]) == ["es"]
    assert set(metrics["fitted_on"]) | set(metrics["left_out"]) == set(whiten.bundled_pairs(1)["train"]) - {"es"}
    assert all(after < before for before, after in metrics["left_out"].values())
    harmed = {lang for lang, (before, after) in metrics["by_source"].items() if after < before}
    assert harmed == set(metrics["left_out"]) and set(metrics["fitted_on"]) == set(metrics["by_source"]) - harmed
    with pytest.raises(whiten.CrisisError, match="target=qq: no dev pairs"):
        whiten.main(smoke(tmp_path, "target=qq"), Letters(30))


def test_the_pairs_of_the_research_sets_are_read(data_dir, monkeypatch):
    monkeypatch.setenv("CRISIS_DATA", str(data_dir))
    config = read_config(whiten.PRESETS, ["laptop", "pairs=stsb", "langs=en,de"])
    found = whiten.read_pairs(config)
    assert {split: {lang: len(rows) for lang, rows in own.items()} for split, own in found.items()} == {
        "train": {"en": 5749, "de": 5749},
        "dev": {"en": 1379, "de": 1379},
    }
    assert len(whiten.read_pairs(whiten.PRESETS["laptop"])["dev"]) == 14


def test_unknown_pairs_and_languages_are_refused(tmp_path):
    with pytest.raises(whiten.ConfigError, match="pairs=sts: choose from semrel, stsb, posts"):
        whiten.main(smoke(tmp_path, "pairs=sts"), Letters(1))
    with pytest.raises(whiten.ConfigError, match="no pairs in qq; there are de, en"):
        whiten.main(smoke(tmp_path, "langs=en,qq"), Letters(1))


def test_a_target_without_others_and_languages_without_pairs_to_fit_on_are_refused(tmp_path, monkeypatch):
    with pytest.raises(whiten.ConfigError, match="target=es: it is fitted on other languages, and langs= names none"):
        whiten.main(smoke(tmp_path, "target=es", "langs=es"), Letters(1))
    pairs = [("a", "b", 0.1), ("a", "a", 1.0)]
    monkeypatch.setattr(whiten, "bundled_pairs", lambda _: {"train": {"en": pairs}, "dev": {"en": pairs, "pa": pairs}})
    with pytest.raises(whiten.ConfigError, match="langs=pa: no pairs to fit on; there are en"):
        whiten.main(smoke(tmp_path, "langs=pa"), Letters(1))


def test_the_figures_are_kept_where_the_result_is_asked_for(tmp_path):
    out = whiten.main(
        smoke(tmp_path, "langs=en,es", f"result={tmp_path / 'result.json'}", "force=true"), Letters(cone=30)
    )
    kept = json.loads((tmp_path / "result.json").read_text())["metrics"]
    assert kept == json.loads((out / "run.json").read_text())["metrics"] and kept["encoder"] == "letters"
    assert set(kept["by_language"]) == {"en", "es"}


def test_spearman_is_of_ranks_and_nan_where_nothing_varies():
    pairs = labelled(1, np.zeros(12))
    squared = Labelled(pairs.first, pairs.second, pairs.gold**3)
    assert spearman(pairs) == pytest.approx(spearman(squared))
    assert np.isnan(spearman(Labelled(pairs.first, pairs.second, np.ones(300))))
    exact = Labelled(pairs.first, pairs.second, (pairs.first * pairs.second).sum(1))
    assert spearman(exact) == pytest.approx(1.0)


def test_a_language_with_few_pairs_is_drawn_again_up_to_the_number_wanted():
    pairs = labelled(1, np.zeros(12), n=30)
    texts = pairs.texts(100, np.random.default_rng(1))
    assert texts.shape == (200, 12)
    assert {row.tobytes() for row in texts[:100]} == {row.tobytes() for row in pairs.first}  # every one at least once
    assert len({row.tobytes() for row in pairs.texts(10, np.random.default_rng(1))}) == 20
