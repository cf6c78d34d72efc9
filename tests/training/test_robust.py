"""The robust job: its loss and its sample by their definitions, and the smoke preset on all three students."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

from models.encoders.characters import (
    BYTES,
    CharacterEncoder,
    Shape,
    load_character_encoder,
    words_of,
)
from models.encoders.load import load_encoder
from models.errors import ConfigError, EncoderError
from models.text import Cleaning
from training import loop, robust
from training.bundled_posts import bundled_posts
from training.jobs import read_config
from training.noise import transform
from training.robust_students import Frozen, StaticStudent, in_groups
from training.robust_texts import HardNegatives, Text, noised, sample_texts
from training.tokenizer import Config as TokenizerConfig
from training.tokenizer import train

WORDS = "open closed safe full empty high low wet dry strong weak".split()
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    """A static run as training.distill leaves one, with random vectors."""
    folder = tmp_path_factory.mktemp("distill")
    tokenizer: Tokenizer = train(iter([p.text for p in bundled_posts()]), TokenizerConfig(pieces=1500))
    table = np.random.default_rng(0).normal(0, 0.05, (tokenizer.get_vocab_size(), 32)).astype(np.float32)
    save_file({"table": table, "empty": np.eye(32, dtype=np.float32)[0]}, folder / "model.safetensors")
    (folder / "tokenizer.json").write_text(tokenizer.to_str())
    record = {"reading": {"max_length": 128}, "training": {"job": "test"}, "data_hashes": {}, "pairs_by_language": {}}
    (folder / "run.json").write_bytes(msgspec.json.encode(record))
    return folder


def smoke(tmp_path, *words: str) -> robust.Config:
    return read_config(robust.PRESETS, ["smoke", f"out={tmp_path / 'run'}", *words])


def metrics_of(out: Path) -> dict:
    return json.loads((out.parent / "result.json").read_text())["metrics"]


def test_thin_languages_get_more_than_their_share_of_the_sample():
    texts = [Text(f"{i}", "en") for i in range(9000)] + [Text(f"t{i}", "ht") for i in range(900)]
    equal = Counter(t.lang for t in sample_texts(texts, 1000, 0.0, seed=1))
    rooted = Counter(t.lang for t in sample_texts(texts, 1000, 0.5, seed=1))
    as_is = Counter(t.lang for t in sample_texts(texts, 1000, 1.0, seed=1))
    assert as_is["ht"] == pytest.approx(91, abs=35) and rooted["ht"] == pytest.approx(240, abs=50)
    assert rooted["ht"] < equal["ht"]
    chosen = sample_texts(texts, 1000, 0.5, seed=1)
    assert len(set(chosen)) == 1000 and chosen == sample_texts(texts, 1000, 0.5, seed=1)
    assert sample_texts(texts, 0, 0.5, 1) == texts


def test_english_has_the_share_of_the_sample_that_is_asked_for():
    texts = [
        Text(f"{lang} {i}", lang) for lang, count in (("en", 4_000), ("fr", 9_000), ("ht", 1_000)) for i in range(count)
    ]
    counts = Counter(t.lang for t in sample_texts(texts, 3_000, 0.5, seed=1, english=0.4))
    assert abs(counts["en"] - 1_200) < 100 and counts["ht"] > 300


def test_each_text_is_noised_in_the_manner_of_its_language_and_by_itself_alone():
    texts = [Text("Помогите пожалуйста, нужна вода", "ru"), Text("Please send water to the people here", "en")]
    both = noised(texts, 0.9, 1)
    assert both == [noised(texts[:1], 0.9, 1)[0], noised(texts[1:], 0.9, 1)[0]]
    assert noised(texts, 0.0, 1) == [t.text for t in texts] != both != noised(texts, 0.9, 2)


def test_the_static_student_learns_saves_resumes_and_can_be_published(tmp_path, base, monkeypatch):
    out = robust.main(smoke(tmp_path, f"base={base}", "lr=0.003"))
    metrics = metrics_of(out)
    assert metrics["loss_best"] < 0.93 * metrics["loss_before"]
    assert metrics["standard"] + metrics["ugc"] == pytest.approx(metrics["loss_best"], abs=1e-5)
    assert metrics["loss_best"] == min(value for _, value in metrics["history"])
    # It begins as its teacher's copy: at first only noise costs anything.
    student, before = StaticStudent(base, 0.1), metrics["history"][0][1]
    assert torch.equal(student.module.table, StaticStudent(base, 0.1).module.table) and before > 0

    real = loop.save_checkpoint

    def killed(*args):
        real(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "save_checkpoint", killed)
    with pytest.raises(KeyboardInterrupt):
        robust.main(smoke(tmp_path / "b", f"base={base}", "lr=0.003"))
    monkeypatch.setattr(loop, "save_checkpoint", real)
    again = robust.main(smoke(tmp_path / "b", f"base={base}", "lr=0.003"))
    np.testing.assert_array_equal(*(load_file(run / "model.safetensors")["table"] for run in (out, again)))

    # The run can be a base again, and holds what training.bundle reads.
    record = json.loads((out / "run.json").read_text())
    assert record["reading"]["max_length"] == 128 and record["training"]["job"] == "test"
    assert record["training"]["robust"]["config"]["steps"] == 60 and "pairs_by_language" in record
    assert StaticStudent(out, 0.0).module.table.shape == student.module.table.shape


class Bag:
    """A teacher that can be learnt in seconds: a vector a word, summed."""

    version, dim, cleaning = "bag", 16, Cleaning()
    words = {word: i for i, word in enumerate("water food doctor tent road bridge flood fire house child".split())}
    vectors = np.random.default_rng(0).standard_normal((10, 16)).astype(np.float32)

    def encode(self, texts):
        found = np.array([sum(self.vectors[self.words[word]] for word in text.split()) for text in texts])
        return found / np.linalg.norm(found, axis=1, keepdims=True)


class WideBag(Bag):
    """The same, wider than the static run's table of 32."""

    dim, vectors = 48, np.random.default_rng(1).standard_normal((10, 48)).astype(np.float32)


def test_a_static_student_follows_a_teacher_that_is_wider_than_its_table(tmp_path, base, monkeypatch):
    monkeypatch.setattr(robust, "find_teacher", lambda named: {"wide": WideBag(), "narrow": Bag()}[named])
    lines = [f"{a} {b}" for a in Bag.words for b in Bag.words if a != b]
    (tmp_path / "lines.txt").write_text("\n".join(lines))
    words = [f"base={base}", f"file={tmp_path / 'lines.txt'}", "validation=30", "lr=0.005", "noise_rate=0.1"]
    config = smoke(tmp_path, *words, "teacher=wide")
    out = robust.main(config)
    metrics = metrics_of(out)
    assert metrics["loss_best"] < 0.7 * metrics["loss_before"] < 0.7 * 2  # two vectors at a right angle cost 2
    held = [lines[i] for i in np.random.default_rng(config.seed).permutation(len(lines))[: config.validation]]
    found, told = Frozen(StaticStudent(out, 0.0)).encode(held), WideBag().encode(held)
    assert found.shape == (30, 32)
    above = np.triu_indices(30, 1)
    assert np.corrcoef((found @ found.T)[above], (told @ told.T)[above])[0, 1] > 0.95
    empty = load_file(out / "model.safetensors")["empty"]  # what no text lies along
    assert np.abs(found @ empty).max() < 0.2 and np.linalg.norm(empty) == 1
    with pytest.raises(ConfigError, match="dim 32 cannot follow a teacher of dim 16: name a wider teacher="):
        robust.main(smoke(tmp_path / "narrow", *words, "teacher=narrow"))


@pytest.mark.parametrize("kind", ["token", "char"])
def test_a_torch_student_beats_every_constant_vector_tells_texts_apart_and_reloads(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(robust, "load_teacher", lambda config: Bag())
    lines = [f"{a} {b}" for a in Bag.words for b in Bag.words if a != b]
    (tmp_path / "lines.txt").write_text("\n".join(lines))
    words = [f"student={kind}", f"file={tmp_path / 'lines.txt'}", "lr=0.005", "steps=300", "batch=32", "max_length=8"]
    config = smoke(tmp_path, *words, "validation=30", "validate_every=75", "noise_rate=0.1", "hidden=32")
    out = robust.main(config)
    metrics = metrics_of(out)
    order = np.random.default_rng(config.seed).permutation(len(lines))
    held = [lines[i] for i in order[: config.validation]]
    target = Bag().encode(held)
    best_constant = 2 * np.square(target - target.mean(0)).sum(1).mean()  # what both terms cost at their mean
    assert metrics["loss_best"] < 0.5 * best_constant < metrics["loss_before"]
    encoder = load_encoder(out)
    found = encoder.encode(held)
    same = np.array([[set(a.split()) == set(b.split()) for b in held] for a in held])  # word order is not to be told
    assert same[np.arange(len(held)), (found @ target.T).argmax(1)].mean() > 0.8
    texts = ["We need water!", "", "нужна вода", "x" * 500]
    vectors = encoder.encode(texts)
    assert vectors.shape == (4, 16) and encoder.dim == 16
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    for i, text in enumerate(texts):  # each row depends on its own text alone
        np.testing.assert_allclose(encoder.encode([text])[0], vectors[i], atol=1e-4)
    if kind == "token":
        model = SentenceTransformer(str(out), device="cpu")
        assert [type(module).__name__ for module in model] == ["Transformer", "Dense", "Pooling"]
        assert model[2].pooling_mode == "max"


def test_hard_negatives_are_drawn_of_the_english_texts_that_have_any():
    texts = [
        Text("Il y a 30 tentes à Lyon", "fr"),
        Text("The hospital is open in London", "en"),
        Text("ok", "en"),
        Text("They need 300 tents now", "en"),
    ]
    turned = HardNegatives(texts, per_kind=2, seed=1)
    rows, chosen = turned.draw(np.array([3, 2, 1, 0, 1]), np.random.default_rng(0))
    assert rows.tolist() == [0, 2, 4]
    assert [turned.texts[i].startswith(("They", "The h", "The h")[k]) for k, i in enumerate(chosen)] == [True] * 3
    drawn = {turned.texts[turned.draw(np.array([3]), np.random.default_rng(s))[1][0]] for s in range(50)}
    assert drawn == {text for text in turned.texts if text.startswith("They")}
    assert not set(turned.texts) & {text.text for text in texts} and not HardNegatives(texts, 0, 1).texts


def test_a_static_student_learns_to_tell_what_says_something_else(tmp_path, base):
    lines = [f"The {a} is not {b} near the bridge" for a in WORDS for b in WORDS if a != b]
    (tmp_path / "lines.txt").write_text("\n".join(lines))
    words = [f"base={base}", f"file={tmp_path / 'lines.txt'}", "validation=30", "steps=40", "batch=64", "hard=1"]
    out = robust.main(smoke(tmp_path, *words, "lr=0.01"))
    told = [line.replace(" not", "") for line in lines]

    def likeness(run: Path) -> float:
        encoder = Frozen(StaticStudent(run, 0.0))
        return float((encoder.encode(lines) * encoder.encode(told)).sum(1).mean())

    assert likeness(out) < likeness(base) - 0.1


def test_words_are_read_byte_by_byte_up_to_a_limit():
    words = words_of("Wáter, now", 10)
    assert len(words) == 3  # wáter · , · now
    assert words[0] == [1, *(b + 3 for b in "wáter".encode()), 2]
    assert len(words_of("x" * 500, 10)[0]) == BYTES and len(words_of("a b c d", 2)) == 2 and words_of("", 5) == [[1, 2]]


@pytest.mark.parametrize("pooling", ["max", "mean"])
def test_padding_changes_no_vector(pooling):
    torch.manual_seed(0)
    shape = Shape(hidden=16, layers=1, heads=2, dim=8, filters=((1, 4), (3, 4)), pooling=pooling)
    encoder = CharacterEncoder(shape).eval()
    texts = [words_of(t, 20) for t in ("help", "we need water and food for the whole street", "")]
    with torch.no_grad():
        together = encoder(texts)
        for i, text in enumerate(texts):
            torch.testing.assert_close(encoder([text])[0], together[i], atol=1e-5, rtol=1e-4)


def test_a_word_that_a_batch_repeats_is_read_once_and_learnt_from_at_every_place():
    torch.manual_seed(0)
    encoder = CharacterEncoder(Shape(hidden=16, layers=1, heads=2, dim=8, filters=((1, 4), (3, 4)))).eval()
    texts = [words_of(t, 20) for t in ("water water", "we need water", "need")]
    read: list[int] = []
    hook = encoder.symbols.register_forward_hook(lambda module, given, found: read.append(len(given[0])))
    encoder(texts).square().sum().backward()
    assert read == [3]  # water, we, need
    hook.remove()
    together = encoder.symbols.weight.grad.clone()
    encoder.zero_grad()
    for text in texts:
        encoder([text]).square().sum().backward()
    torch.testing.assert_close(encoder.symbols.weight.grad, together, atol=1e-4, rtol=1e-3)


def test_texts_are_read_in_groups_of_like_length_and_given_back_in_their_order():
    lengths, read = [9, 1, 5, 5, 2, 30, 1], []

    def embed(rows: np.ndarray) -> torch.Tensor:
        read.append([lengths[i] for i in rows])
        return torch.from_numpy(rows).float()[:, None]

    found = in_groups(lengths, embed, size=3)
    assert found[:, 0].tolist() == [*range(7)]
    assert max(map(len, read)) <= 3 and sum(read, []) == sorted(lengths)


def test_what_does_not_fit_together_is_refused(tmp_path, base):
    with pytest.raises(ConfigError, match="neither a bundle .* nor a run"):
        robust.main(smoke(tmp_path, f"base={tmp_path}"))
    with pytest.raises(ConfigError, match="none is left to train on"):
        robust.main(smoke(tmp_path, f"base={base}", "validation=100000"))
    with pytest.raises(EncoderError, match="no character-aware encoder"):
        load_character_encoder(tmp_path)
    assert transform("leet", "", Random(0)) == ""


def test_flores_dev_validates_where_it_is_asked_for_and_none_of_it_is_learnt(tmp_path, monkeypatch):
    monkeypatch.setenv("CRISIS_DATA", str(tmp_path))
    (tmp_path / "flores200").mkdir()
    for name, lines in {
        "en.txt.gz": ["the river rose", "a test line", "roads are closed", "no power"],
        "meta.tsv.gz": ["split", "dev(sib)", "devtest", "dev(sib)", "dev(sib)"],
    }.items():
        with gzip.open(tmp_path / "flores200" / name, "wt") as file:
            file.write("\n".join(lines) + "\n")
    corpus = [Text(text, "en") for text in ("we need water", "no power", "the river rose", "come by boat")]
    train, held = robust.parted(robust.Config(held_out="flores"), corpus)
    assert [t.text for t in held] == ["the river rose", "roads are closed", "no power"]
    assert {t.text for t in train} == {"we need water", "come by boat"}
    train, held = robust.parted(robust.Config(validation=1), corpus)
    assert len(held) == 1 and {*train, *held} == {*corpus} and not {*train} & {*held}
    assert robust.PRESETS["paper"].held_out == "flores" and robust.PRESETS["laptop"].held_out == "texts"


def test_the_paper_preset_is_the_papers():
    paper = robust.PRESETS["paper"]
    assert (paper.betas, paper.eps) == ((0.9, 0.98), 1e-6)  # section 5; torch's own are .999 and 1e-8
    assert (paper.noise_rate, paper.lr, paper.warmup, paper.clip, paper.pooling, paper.max_texts) == (
        0.1,
        1e-4,
        1000,
        5.0,
        "max",
        2_000_000,
    )
    assert paper.checkpoint_every == paper.validate_every == 30_000


def test_the_run_takes_adam_as_its_knobs_say(tmp_path, base, monkeypatch):
    taken = []

    def stopped(module, losses, pace, *rest, **knobs):
        taken.append(pace)
        raise KeyboardInterrupt

    monkeypatch.setattr(robust, "fit", stopped)
    with pytest.raises(KeyboardInterrupt):
        robust.main(smoke(tmp_path, f"base={base}", "betas=0.8,0.6", "eps=0.5", "clip=3"))
    assert (taken[0].betas, taken[0].eps, taken[0].clip, taken[0].weight_decay) == ((0.8, 0.6), 0.5, 3, 0)


def test_a_line_that_a_file_repeats_is_read_once_so_that_none_is_both_held_out_and_learnt(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("water please\nfood please\nwater please\n" * 3)
    assert [t.text for t in robust.read_corpus(robust.Config(file=str(path)))] == ["water please", "food please"]
