"""Vectors of custom queries kept on the machine: read back to the bit, by version, and never in anybody's way."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from models.encoders.kept_vectors import KEPT_S, KeptVectors

TEXTS = [f"sentence {n}" for n in range(1_203)]
DRAWN = np.random.default_rng(0).standard_normal((len(TEXTS), 8)).astype(np.float32)
VECTORS = dict(zip(TEXTS, DRAWN / np.linalg.norm(DRAWN, axis=1, keepdims=True), strict=True))


def test_what_was_kept_is_read_back_to_the_bit_by_another_process_of_that_version_alone(tmp_path):
    KeptVectors(tmp_path / "v.sqlite").write("one", VECTORS)
    found = KeptVectors(tmp_path / "v.sqlite").read("one", 8, [*TEXTS, "new"])
    assert found.keys() == set(TEXTS) and all(np.array_equal(found[text], VECTORS[text]) for text in TEXTS)
    assert KeptVectors(tmp_path / "v.sqlite").read("two", 8, TEXTS) == {}
    assert KeptVectors(tmp_path / "v.sqlite").read("one", 16, TEXTS) == {}


def test_the_file_holds_no_text(tmp_path):
    KeptVectors(tmp_path / "v.sqlite").write("one", VECTORS)
    assert b"sentence" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


def test_what_no_start_asked_for_in_a_month_is_dropped(tmp_path):
    now = [0.0]
    kept = KeptVectors(tmp_path / "v.sqlite", clock=lambda: now[0])
    kept.write("one", VECTORS)
    now[0] = KEPT_S - 1
    assert kept.read("one", 8, TEXTS[:1])
    now[0] = KEPT_S + 1
    kept.write("one", {"other": VECTORS[TEXTS[1]]})
    assert kept.read("one", 8, [*TEXTS, "other"]).keys() == {TEXTS[0], "other"}


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 0.0, 2.0])
def test_what_is_no_unit_vector_is_neither_kept_nor_read_where_it_was_kept_before(tmp_path, monkeypatch, wrong):
    kept, right = KeptVectors(tmp_path / "v.sqlite"), {"right": VECTORS[TEXTS[0]]}
    given = right | {"wrong": VECTORS[TEXTS[1]] * np.float32(wrong)}
    kept.write("one", given)
    with closing(sqlite3.connect(kept.path)) as db:
        assert db.execute("SELECT count(*) FROM vectors").fetchone() == (1,)
    with monkeypatch.context() as before:
        before.setattr("models.encoders.kept_vectors._is_unit", lambda _: True)
        kept.write("one", given)
    assert kept.read("one", 8, ["right", "wrong"]).keys() == {"right"}


def test_a_file_that_cannot_be_used_costs_nothing_but_time(tmp_path, caplog):
    (tmp_path / "v.sqlite").write_bytes(b"no database at all" * 100)
    kept = KeptVectors(tmp_path / "v.sqlite")
    kept.write("one", VECTORS)
    assert kept.read("one", 8, TEXTS) == {}
    (tmp_path / "file").write_text("")
    assert KeptVectors(tmp_path / "file" / "v.sqlite").read("one", 8, TEXTS) == {}
    assert "cannot be kept" in caplog.text and "cannot be read" in caplog.text
