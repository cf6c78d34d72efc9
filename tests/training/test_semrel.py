"""SemRel's trained baselines: whom a language learns from, and that training raises the correlation with people."""

from __future__ import annotations

import json

import numpy as np
import pytest

from models.errors import ConfigError
from models.text import Cleaning
from training import semrel
from training.jobs import read_config

pytestmark = pytest.mark.usefixtures("one_thread")


class Toy:
    """Half of each vector says what people scored by, half is noise."""

    version, dim, cleaning = "toy", 8, Cleaning()

    def encode(self, texts):
        found = np.array([self._one(text) for text in texts], np.float32)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def _one(self, text: str) -> np.ndarray:
        topic, number = text.split()
        meant = np.random.default_rng(list(topic.encode())).standard_normal(4)
        return np.concatenate([meant, 2 * np.random.default_rng(int(number)).standard_normal(4)])


def pairs(count: int, seed: int) -> list[tuple[str, str, float]]:
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(count):
        first, second = rng.choice(["flood", "fire", "food", "road"], 2)
        rows.append((f"{first} {2 * i + 9999 * seed}", f"{second} {2 * i + 1 + 9999 * seed}", float(first == second)))
    return rows


@pytest.fixture
def splits(monkeypatch):
    found = {
        "train": {"en": pairs(200, 1), "es": pairs(200, 2), "ha": pairs(200, 3)},
        "dev": {"en": pairs(100, 4), "es": pairs(100, 5), "ht": pairs(100, 6)},
    }
    monkeypatch.setattr(semrel, "stored_pairs", lambda *_: found)
    monkeypatch.setattr(semrel, "load_encoder", lambda ref: Toy())
    return found


def figures(tmp_path, *words: str) -> dict:
    out = tmp_path / "-".join(words)[:40]
    semrel.main(read_config(semrel.PRESETS, ["laptop", f"out={out}", "epochs=15", "lr=0.03", *words]))
    return json.loads((out / "run.json").read_text())["metrics"]


def test_a_language_learns_from_its_own_scores_and_those_without_a_train_split_are_left_out(tmp_path, splits):
    found = figures(tmp_path, "setting=supervised")
    assert {lang: f["trained_on"] for lang, f in found["by_language"].items()} == {"en": "en", "es": "es"}
    assert all(f["after"] > f["before"] + 0.1 for f in found["by_language"].values())


def test_across_languages_all_learn_from_english_and_english_from_spanish(tmp_path, splits):
    found = figures(tmp_path, "setting=crosslingual")
    assert {lang: f["trained_on"] for lang, f in found["by_language"].items()} == {"en": "es", "es": "en", "ht": "en"}
    assert found["mean_after"] > found["mean_before"] + 0.1 and found["languages"] == 3


def test_without_training_the_map_is_the_encoder_itself(splits):
    model = semrel.LinearMap(Toy(), [text for row in splits["dev"]["ht"] for text in row[:2]]).fresh()
    texts = [row[0] for row in splits["dev"]["ht"]]
    np.testing.assert_allclose(model.embed(texts).detach().numpy(), Toy().encode(texts), atol=1e-6)


def test_no_train_split_at_all_is_said(splits, tmp_path):
    with pytest.raises(ConfigError, match="langs=xx: no pairs; there are .*en"):
        figures(tmp_path, "langs=en,xx")
    with pytest.raises(ConfigError, match="no train split for ht; there are en, es, ha"):
        figures(tmp_path, "langs=ht")
