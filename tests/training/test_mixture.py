"""Teachers by name: a mixture's cosine by its definition, each text read once, what a text is taught, and the chain of
the papers – masked LM, ranking, teacher, student – from end to end.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import numpy as np
import pytest

from models.encoders.load import load_encoder
from models.encoders.mixture import Mixture
from models.errors import ConfigError
from models.text import Cleaning
from training import contrastive, distill, mixture, mlm, robust
from training.corpus import Corpus
from training.jobs import read_config
from training.mixture import find_teacher
from training.robust_students import Frozen, StaticStudent
from training.robust_texts import Text, targets_of

pytestmark = pytest.mark.usefixtures("one_thread")


class Toy:
    """Each word has a random vector, drawn from the word and `seed`."""

    cleaning = Cleaning()

    def __init__(self, dim: int, seed: int) -> None:
        self.version, self.dim, self.read = f"toy{seed}", dim, []
        self._seed = seed

    def encode(self, texts):
        self.read += texts
        found = np.array([sum(self._word(word) for word in text.split()) for text in texts], np.float32)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def _word(self, word: str) -> np.ndarray:
        return np.random.default_rng([self._seed, *word.encode()]).standard_normal(self.dim)


TEXTS = ["water please", "the bridge fell", "no food", "water here", "a tent"]


def cosines(encoder) -> np.ndarray:
    vectors = encoder.encode(TEXTS)
    return vectors @ vectors.T


def test_a_mixtures_cosine_is_its_parts_weighted_by_the_squares_of_their_weights():
    first, second = Toy(8, 1), Toy(5, 2)
    both = Mixture([(1.0, first), (1.4, second)])
    assert both.dim == 13 and both.version == "1*toy1+1.4*toy2"
    np.testing.assert_allclose(cosines(both), (cosines(first) + 1.96 * cosines(second)) / 2.96, atol=1e-6)


def test_a_teacher_is_found_by_name_and_each_text_is_read_once_whatever_its_weight(monkeypatch):
    toys = {"one": Toy(8, 1), "two": Toy(5, 2)}
    monkeypatch.setattr(mixture, "load_encoder", toys.__getitem__)
    mixed = find_teacher("one+1.4*two")
    np.testing.assert_allclose(cosines(mixed), (cosines(toys["one"]) + 1.96 * cosines(toys["two"])) / 2.96, atol=1e-6)
    for toy in toys.values():
        toy.read.clear()
    np.testing.assert_array_equal(find_teacher(".5*one+two").encode(TEXTS)[:, :8].shape, (5, 8))
    assert find_teacher("one").dim == 8 and not toys["one"].read and not toys["two"].read
    for wrong in ("one+", "0*two", "one+/nowhere"):
        with pytest.raises(ConfigError, match="teacher="):
            find_teacher(wrong)


def test_following_both_vectors_asks_for_as_much_of_each():
    rng = np.random.default_rng(0)

    def unit(*shape: int) -> np.ndarray:
        found = rng.standard_normal(shape).astype(np.float32)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    english, own = unit(3, 6), unit(4, 6)
    english_id, text_id = np.array([0, 1, 2, 2]), np.array([3, 0, 1, 2])
    corpus = Corpus([], [], english_id, text_id, np.ones(4) / 4, english, "", {})
    student, pairs = unit(2, 6), np.array([0, 3])
    np.testing.assert_array_equal(corpus.goals(pairs), english[[0, 2]])
    corpus = msgspec.structs.replace(corpus, own=own)
    np.testing.assert_array_equal(corpus.goals(pairs), own[[3, 2]])
    goal = msgspec.structs.replace(corpus, both=True).goals(pairs)
    apart = ((1 - (student * own[[3, 2]]).sum(1)) + (1 - (student * english[[0, 2]]).sum(1))) / 2
    np.testing.assert_allclose(1 - (student * goal).sum(1), apart, atol=1e-6)


def test_the_robust_job_teaches_a_text_its_own_vector_its_pairs_or_their_mean():
    toy = Toy(8, 1)
    texts = [Text("dlo silvouple", "ht", "water please"), Text("no food", "en")]
    own, english = toy.encode(["dlo silvouple", "no food"]), toy.encode(["water please", "no food"])
    np.testing.assert_array_equal(targets_of(toy, texts, "own"), own)
    np.testing.assert_array_equal(targets_of(toy, texts, "english"), english)
    np.testing.assert_allclose(targets_of(toy, texts, "both"), (own + english) / 2)
    assert robust.Config().targets == "own"


def test_a_student_follows_a_teacher_in_a_language_without_pairs(tmp_path, monkeypatch):
    words = "dlo manje doktè kay wout pon dife timoun manman lekòl".split()
    lines = [f"{a} {b}" for a in words for b in words if a != b]
    with gzip.open(tmp_path / "ht.tsv.gz", "wt") as file:
        file.write("lang\ttext\n" + "".join(f"ht\t{line}\n" for line in lines[::2]))
    toy = Toy(16, 1)
    monkeypatch.setattr(distill, "find_teacher", lambda named: toy)
    knobs = ["smoke", "teacher=toy", "targets=own", f"file={tmp_path / 'ht.tsv.gz'}", "max_pairs=0", "steps=40"]
    more = ["batch=64", "contrast_batch=64", "dim=16", "letters=0", f"out={tmp_path / 'run'}"]
    run = distill.main(read_config(distill.PRESETS, [*knobs, *more]))
    student = Frozen(StaticStudent(run, 0.0))
    assert (student.encode(lines[1::2]) * toy.encode(lines[1::2])).sum(1).mean() > 0.9
    for wrong in (["smoke", "targets=own"], ["smoke", "teacher=toy", f"file={tmp_path / 'ht.tsv.gz'}"]):
        with pytest.raises(ConfigError, match="targets=own|targets=english|MiniLM"):
            distill.load_corpus(read_config(distill.PRESETS, wrong))


def test_the_chain_of_the_papers_runs_masked_lm_ranking_teacher_student(tmp_path, monkeypatch):
    """A transformer student of the encoder that ranking made of a masked LM, over pairs of an invented language."""
    words = "water food doctor tent blanket road bridge flood fire house".split()
    pairs = [f"{a} {b}\t{a[::-1]} {b[::-1]}\tx\n" for a in words for b in words if a != b]
    (tmp_path / "data" / "tatoeba-train").mkdir(parents=True)
    with gzip.open(tmp_path / "data" / "tatoeba-train" / "fr.tsv.gz", "wt") as file:
        file.write("en\txx\tvariant\n" + "".join(pairs))
    monkeypatch.setenv("CRISIS_DATA", str(tmp_path / "data"))

    masked = mlm.main(read_config(mlm.PRESETS, ["smoke", "epochs=1", f"out={tmp_path / 'mlm'}"]))
    base = f"base={masked / 'best'}"
    ranked = contrastive.main(read_config(contrastive.PRESETS, ["smoke", "epochs=1", base, f"out={tmp_path / 'mnr'}"]))
    teacher = f"teacher={ranked / 'best'}"
    knobs = ["paper", "sources=tatoeba-train", teacher, f"student={masked / 'best'}", "dim=32", "steps=400", "batch=30"]
    more = ["lr=3e-3", "warmup=5", "validate_every=200", "checkpoint_every=200", f"out={tmp_path / 'student'}"]
    student = load_encoder(distill.main(read_config(distill.PRESETS, [*knobs, *more])))
    measured = msgspec.json.decode((tmp_path / "student" / "run.json").read_bytes())["metrics"]
    assert measured["loss_best"] < 0.5 * measured["loss_before"]
    # The student says in the invented language what the teacher says in English: it orders pairs of texts alike.
    english = [line.split("\t")[0] for line in pairs]
    told = find_teacher(str(ranked / "best")).encode(english)
    learnt = student.encode([line.split("\t")[1] for line in pairs])
    above = np.triu_indices(len(pairs), 1)
    assert np.corrcoef((told @ told.T)[above], (learnt @ learnt.T)[above])[0, 1] > 0.3
    assert Path(ranked / "best" / "cleaning.json").exists()
