"""The measurement of robustness: blind and seeing encoders come out as they must, and the real sets are read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from models.text import Cleaning
from training.files import DataError
from training.jobs import read_config
from training.noise import measure
from training.noise.measure import (
    PRESETS,
    Config,
    neutral_figures,
    noise_figures,
    normalisation_figures,
    normalisation_pairs,
    show,
)

SENTENCES = [
    "The flood in Nepal killed 25 people on Monday, because the river rose quickly.",
    "Two dams near Lake Geneva were not closed before the storm, said Mr Weber.",
    "Aid from the United Nations reached Port Town after 3 days.",
]


class Trigrams:
    """Hashed letter trigrams; `fold` reads leet as letters, so that noise of that kind is not seen."""

    dim, cleaning = 512, Cleaning()

    def __init__(self, fold: bool) -> None:
        self.version = "folding" if fold else "plain"
        self._fold = str.maketrans("4@8361!|0975$+2", "aabegiilogtssts"[:15]) if fold else {}

    def encode(self, texts):
        out = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(out, texts, strict=True):
            text = f"  {text.lower().translate(self._fold)} "
            for i in range(len(text) - 2):
                row[sum(ord(c) * k for c, k in zip(text[i : i + 3], (1, 31, 77), strict=True)) % self.dim] += 1
        return out / np.linalg.norm(out, axis=1, keepdims=True)


def test_an_encoder_that_does_not_see_the_noise_has_less_of_every_error():
    config = PRESETS["smoke"]
    metrics = {
        encoder.version: {
            "noise": noise_figures(encoder, SENTENCES, config),
            "normalisation": normalisation_figures(encoder, {"toy en": [("w4ter", "water"), ("f00d", "food")]}),
        }
        for encoder in (Trigrams(False), Trigrams(True))
    }
    plain, folding = metrics["plain"]["noise"]["leet"], metrics["folding"]["noise"]["leet"]
    assert len(plain["cosine_distance"]) == config.seeds and np.mean(folding["cosine_distance"]) < np.mean(
        plain["cosine_distance"]
    )
    assert np.mean(folding["xsim++"]) <= np.mean(plain["xsim++"])
    assert all(np.array(plain["xsim++"]) >= plain["xsim"])  # hard negatives only add errors
    assert metrics["folding"]["normalisation"]["toy en"]["matching"] == 1
    table = show(metrics)
    assert "mix_all" in table and "toy en" in table and "folding" in table and " p " in table


class Letters:
    """Which letters a text has: a digit is nothing to it."""

    version, dim, cleaning = "letters", 26, Cleaning()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        counts = np.array([[text.lower().count(chr(97 + i)) for i in range(26)] for text in texts], np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_the_errors_of_xsimpp_are_told_by_what_was_found_instead():
    found = noise_figures(Letters(), SENTENCES, Config(kinds=("week", "spac"), seeds=2))
    for figures in found.values():
        parts = [figures[f"xsim++ {what}"] for what in ("misaligned", "causality", "number", "entity")]
        np.testing.assert_allclose(np.sum(parts, axis=0), figures["xsim++"])
        assert min(figures["xsim++ number"]) > 0  # "25 people" and "26 people" are one to it


def test_other_languages_are_noised_by_what_changes_them_alone():
    texts = {"de": ["Über dem Fluß", "Wir brauchen Wasser"], "es": ["aqui hay agua", "no hay pan"]}
    found = neutral_figures(Trigrams(False), texts, seeds=2, kinds=("accs", "leet"))
    assert len(found["de"]["accs"]["xsim"]) == 2 and "accs" not in found["es"]  # there is no accent to drop
    leet = [
        np.mean(neutral_figures(Trigrams(fold), texts, 5, ("leet",))["es"]["leet"]["cosine_distance"])
        for fold in (False, True)
    ]
    assert leet[1] < leet[0]


def test_the_real_sets_are_read_and_only_pairs_that_differ_count(data_dir):
    pairs = normalisation_pairs(data_dir, 20, seed=1)
    assert {"lexnorm2015 en", "vilexnorm vi", "hinglishnorm hi-Latn", "multilexnorm2 id"} <= set(pairs)
    assert all(0 < len(rows) <= 20 and all(a.lower() != b.lower() for a, b in rows) for rows in pairs.values())
    assert pairs == normalisation_pairs(data_dir, 20, seed=1)
    assert not any(" " in a for a, _ in pairs["multilexnorm2 ja"])


def test_the_smoke_preset_runs_on_the_real_sets(data_dir, tmp_path, monkeypatch):
    monkeypatch.setenv("CRISIS_DATA", str(data_dir))
    monkeypatch.setattr(measure, "load_encoder", lambda ref: Trigrams(False))
    config = read_config(PRESETS, ["smoke", f"out={tmp_path / 'x.json'}", "kinds=leet", "sentences=30"])
    found = measure.main(config)
    assert found["plain"]["noise"]["leet"]["xsim++"] and (tmp_path / "x.json").exists()
    with pytest.raises(DataError, match="no data folder"):
        monkeypatch.setenv("CRISIS_DATA", str(tmp_path / "none"))
        measure.main(config)
