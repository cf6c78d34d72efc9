"""Distillation: the hand-made gradient, the presets, resuming after a kill, and publishing what came out."""

import copy
import gzip
import json
import random

import msgspec
import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from models.encoders.bundle import read_bundle
from models.encoders.load import load_encoder
from models.errors import ConfigError
from training import bundle as bundling
from training import distill, students, tokenizer
from training.jobs import read_config, run

WORDS = "water food doctor tent blanket road bridge flood fire house child mother school river night help".split()
# What publish would measure, were there data: the shape only.
MEASURES = {
    "matching": {
        "set": "x",
        "languages_all": 2,
        "mean_all": 1.0,
        "languages_paper": 2,
        "mean_paper": 1.0,
        "mean_best_15": 1.0,
        "lowest_paper": 1.0,
        "by_language": {"fr": 0.9},
    },
    "relatedness": {
        "set": "x",
        "languages": 0,
        "mean": 0.5,
        "mean_overlap": 0.4,
        "below_overlap": [],
        "by_language": {},
    },
    "needs": {"set": "x", "originals": 0.3, "translations": 0.3, "chance": 0.1},
}


def invented(word: str, lang: str) -> str:
    """A word of an invented language: the English one spelt another way, so that there is something to learn."""
    return "".join(chr(ord(c) + 0x430 - 0x61) if lang == "ru" else c for c in reversed(word))


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A data folder with one invented set in two invented languages."""
    rng = random.Random(1)
    folder = tmp_path / "data" / "tatoeba-train"
    folder.mkdir(parents=True)
    for lang in ("ru", "fr"):
        with gzip.open(folder / f"{lang}.tsv.gz", "wt", encoding="utf-8") as file:
            file.write("en\txx\tvariant\n")
            for _ in range(300):
                words = rng.choices(WORDS, k=rng.randint(2, 6))
                file.write(f"{' '.join(words)}\t{' '.join(invented(w, lang) for w in words)}\tx\n")
    monkeypatch.setenv("CRISIS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("CRISIS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(distill, "SOURCES", {"tatoeba-train": ""})
    return tmp_path


@pytest.fixture
def teacher(monkeypatch):
    """A teacher that needs no weights: a random vector a word, summed."""
    table = {word: np.random.default_rng(i).standard_normal(384) for i, word in enumerate(WORDS)}

    def encode(texts):
        vectors = np.array([sum(table[w] for w in text.split()) for text in texts], np.float32)
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16)

    monkeypatch.setattr(distill, "encode_with_teacher", encode)


@pytest.fixture
def small_tokenizer(data):
    rng = random.Random(2)
    texts = [" ".join([*WORDS, *(invented(w, lang) for w in WORDS for lang in ("ru", "fr"))]) for _ in range(20)]
    rng.shuffle(texts)
    made = tokenizer.train(iter(texts), tokenizer.Config(pieces=300))
    path = data / "tokenizer.json"
    path.write_text(made.to_str())
    return str(path)


def small(small_tokenizer, data, **changes) -> distill.Config:
    base = msgspec.structs.replace(
        distill.PRESETS["smoke"],
        sources=("tatoeba-train",),
        tokenizer=small_tokenizer,
        dim=32,
        batch=128,
        contrast_batch=64,
        max_pairs=0,
        out=str(data / "run"),
    )
    return msgspec.structs.replace(base, **changes)


def test_the_smoke_preset_learns_its_translations_and_publishes_them(data, teacher, small_tokenizer, monkeypatch):
    run = distill.main(small(small_tokenizer, data))
    monkeypatch.setattr(bundling, "measure", lambda encoder: copy.deepcopy(MEASURES))
    monkeypatch.setattr(bundling, "show", lambda metrics: "")
    bundle = bundling.main(bundling.Config(run=str(run), out=str(data / "bundle")))
    card = (bundle / "README.md").read_text()
    assert "| fr | 0.90 |" in card
    assert "- tatoeba-train: CC BY 2.0 FR" in card and "- debian-games" not in card  # what it learnt from, no more
    assert found(load_encoder(bundle)) > 0.9


class Written(Exception):
    """Where a bundle would be written, were it."""


@pytest.mark.parametrize("preset", bundling.PRESETS)
def test_without_a_place_a_bundle_goes_into_the_cache_and_not_over_the_one_that_ships(
    preset, data, teacher, small_tokenizer, monkeypatch
):
    run = distill.main(small(small_tokenizer, data, steps=1, out=str(data / "cache" / "distill-static")))

    def refuse(folder, *_):
        raise Written(folder)

    monkeypatch.setattr(bundling, "write_bundle", refuse)
    for config in (bundling.PRESETS[preset], msgspec.structs.replace(bundling.PRESETS[preset], run=str(run))):
        with pytest.raises(Written) as asked:
            bundling.main(config)
        assert asked.value.args[0].parent == data / "cache"


def test_a_bundle_tells_the_teacher_and_the_file_it_learnt_from_and_asks_for_its_licence(
    data, small_tokenizer, monkeypatch
):
    (data / "own.tsv").write_text("".join(["lang\ttext\n", *(f"en\t{one} {two}\n" for one in WORDS for two in WORDS)]))
    knobs = dict(teacher="flood", targets="own", file=str(data / "own.tsv"), steps=2)
    run = distill.main(small(small_tokenizer, data, **knobs))
    monkeypatch.setattr(bundling, "measure", lambda encoder: copy.deepcopy(MEASURES))
    monkeypatch.setattr(bundling, "show", lambda metrics: "")
    config = bundling.Config(run=str(run), out=str(data / "bundle"))
    with pytest.raises(ConfigError, match="learnt from teacher=flood, file=own.tsv: say licence="):
        bundling.main(config)
    bundle = bundling.main(msgspec.structs.replace(config, licence="MIT"))
    manifest, card = read_bundle(bundle).manifest, (bundle / "README.md").read_text()
    assert (manifest.licence, manifest.training["teacher"], manifest.training["sources"]) == ("MIT", "flood", {})
    assert "from the teacher flood" in card and "- texts of the file own.tsv" in card and "MiniLM" not in card


def test_every_teacher_of_a_chain_is_told_and_a_mixture_without_its_folders():
    first = {"config": {"sources": ["nusax"]}}  # of before there was a knob
    robust = {"config": {"teacher": "", "file": "posts", "sources": ["afriqa"]}, "teacher": "base"}
    knobs = bundling._without_folders({"teacher": "flood+1.4*/x/e5", "file": "/y/own.tsv", "sources": ["tico19-dev"]})
    told = {"config": knobs, "robust": robust, "went_on_from": first}
    assert bundling.teachers_of(told) == {"minilm", "flood+1.4*e5"}
    assert bundling.sources_of(told) == {"nusax"} and bundling.named(told, "file") == {"own.tsv", "posts"}


def found(encoder) -> float:
    """Share of two-word texts that find their translation; a pair and its reverse are the same bag of words."""
    english = [" ".join(pair) for pair in zip(WORDS, reversed(WORDS), strict=True)]
    hits = []
    for lang in ("ru", "fr"):
        other = [" ".join(invented(w, lang) for w in text.split()) for text in english]
        best = (encoder.encode(english) @ encoder.encode(other).T).argmax(1)
        hits += [j in (i, len(WORDS) - 1 - i) for i, j in enumerate(best.tolist())]
    return float(np.mean(hits))


def test_letter_groups_weigh_what_they_did_on_average_while_they_were_left_out(data, teacher, small_tokenizer):
    whole = distill.main(small(small_tokenizer, data, steps=1, lr=0.0, drop_letters=0.0))
    halved = distill.main(small(small_tokenizer, data, steps=1, lr=0.0, drop_letters=0.5, out=str(data / "halved")))
    first, second = (load_file(run / "model.safetensors")["table"] for run in (whole, halved))
    groups_from = len(first) - distill.PRESETS["smoke"].letters
    np.testing.assert_array_equal(second[:groups_from], first[:groups_from])
    np.testing.assert_array_equal(second[groups_from:], first[groups_from:] / 2)


def test_a_run_goes_on_from_a_bundle_that_read_no_letter_groups(data, teacher, small_tokenizer, monkeypatch):
    run = distill.main(small(small_tokenizer, data, letters=0, dim=12))  # fewer axes than words: each is seen
    monkeypatch.setattr(bundling, "measure", lambda encoder: copy.deepcopy(MEASURES))
    monkeypatch.setattr(bundling, "show", lambda metrics: "")
    bundle = bundling.main(bundling.Config(run=str(run), out=str(data / "bundle")))
    more = small(small_tokenizer, data, out=str(data / "more"), init=str(bundle), steps=1, lr=0.0, dim=12)
    again = bundling.main(bundling.Config(run=str(distill.main(more)), out=str(data / "again"), even_out=0.0))
    assert found(load_encoder(again)) > 0.9
    manifest = read_bundle(again).manifest
    assert manifest.settings["letters"] == more.letters and manifest.training["went_on_from"]["config"]["letters"] == 0


def test_a_killed_run_resumes_to_the_same_table(data, teacher, small_tokenizer, monkeypatch):
    whole = distill.main(small(small_tokenizer, data, out=str(data / "whole")))
    broken = small(small_tokenizer, data, out=str(data / "broken"))
    steps = iter(range(35))

    def killed(*args):
        if next(steps, None) is None:
            raise KeyboardInterrupt
        return honest(*args)

    honest = distill.step_loss
    monkeypatch.setattr(distill, "step_loss", killed)
    with pytest.raises(KeyboardInterrupt):
        distill.main(broken)
    monkeypatch.setattr(distill, "step_loss", honest)
    resumed = distill.main(broken)
    for name in ("model.safetensors", "tokenizer.json"):
        assert (whole / name).read_bytes() == (resumed / name).read_bytes()
    assert msgspec.json.decode((resumed / "run.json").read_bytes())["data_hashes"]["training_pairs"]


def test_a_run_with_other_knobs_does_not_take_the_place_of_another(data, teacher, small_tokenizer):
    out = distill.main(small(small_tokenizer, data, steps=20))
    before = (out / "model.safetensors").read_bytes()
    with pytest.raises(ConfigError, match="holds another run"):
        distill.main(small(small_tokenizer, data, steps=20, seed=2))
    assert (out / "model.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    "words, complaint",
    [
        (["laptop", "stepz=5"], "stepz"),
        (["laptop", "steps=many"], "steps=many"),
        (["desk"], "smoke"),
        ([], "name a preset"),
    ],
)
def test_unknown_knobs_values_and_presets_stop_the_job(words, complaint):
    with pytest.raises(ConfigError, match=complaint):
        read_config(distill.PRESETS, words)


def test_a_job_tells_its_presets_and_knobs_and_what_is_wrong_in_one_sentence(capsys):
    with pytest.raises(SystemExit) as asked:
        run(distill.main, distill.PRESETS, ["--help"])
    told = capsys.readouterr().out
    assert asked.value.code == 0 and "presets: smoke, laptop, paper" in told
    assert "batch=4096  – pairs a step" in told and all(
        f"  {name}" in told for name in distill.Config.__struct_fields__
    )
    with pytest.raises(SystemExit) as nothing:
        run(distill.main, distill.PRESETS, [])
    assert nothing.value.code == 2
    with pytest.raises(SystemExit, match="^error: unknown knob 'stepz=5'"):
        run(distill.main, distill.PRESETS, ["laptop", "stepz=5"])


def test_the_paper_preset_is_the_papers_with_all_of_the_teachers_axes(data, teacher, small_tokenizer):
    paper = distill.PRESETS["paper"]  # Lamsal, Read, Karunasekera 2024, "Sentence encoders"
    assert (paper.batch, paper.lr, paper.warmup, paper.cap, paper.contrast) == (64, 2e-5, 20_000, 500_000, 0)
    assert paper.steps * paper.batch / 2_748_240 == pytest.approx(20, abs=0.01) and paper.dim == 0
    assert distill.load_corpus(small(small_tokenizer, data, dim=0)).target.shape[1] == 384


def test_knobs_are_read_as_their_type():
    config = read_config(distill.PRESETS, ["smoke", "steps=7", "lr=0.5", "skeleton=false", "sources=nusax,afriqa"])
    assert (config.steps, config.lr, config.skeleton, config.sources) == (7, 0.5, False, ("nusax", "afriqa"))


def test_a_run_may_be_of_some_languages_alone(data, teacher, small_tokenizer):
    few = distill.load_corpus(small(small_tokenizer, data, langs=("ru",), max_pairs=250))
    assert few.pairs_by_language == {"ru": 250} and all(ord(text[0]) > 0x400 for text in few.texts)
    more = distill.load_corpus(small(small_tokenizer, data, langs=("ru",), max_pairs=10_000))
    assert more.pairs_by_language == {"ru": 300}  # as many as there are
    with pytest.raises(ConfigError, match="no pair in sw"):
        distill.load_corpus(small(small_tokenizer, data, langs=("ru", "sw")))


def test_a_transformer_student_learns_saves_and_loads_as_an_encoder(data, teacher, monkeypatch):
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    words = ["[UNK]", "[PAD]", *WORDS, *(invented(w, lang) for w in WORDS for lang in ("ru", "fr"))]
    vocabulary = {word: i for i, word in enumerate(dict.fromkeys(words))}
    splitter = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    splitter.pre_tokenizer = WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=splitter, unk_token="[UNK]", pad_token="[PAD]").save_pretrained(data / "m")
    torch.manual_seed(0)
    BertModel(
        BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=48,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=64,
            hidden_dropout_prob=0.0,
        )
    ).save_pretrained(data / "m")
    config = distill.Config(
        student=str(data / "m"),
        sources=("tatoeba-train",),
        dim=32,
        batch=64,
        steps=150,
        lr=3e-3,
        warmup=10,
        contrast=0,
        validation=40,
        validate_every=50,
        out=str(data / "student"),
    )
    real = students.fit

    def forgets_at_the_end(module, *rest, **knobs):
        trace = real(module, *rest, **knobs)
        torch.nn.init.zeros_(module[0].auto_model.embeddings.word_embeddings.weight)
        return trace

    monkeypatch.setattr(students, "fit", forgets_at_the_end)  # what is kept are the weights that validated best
    encoder = load_encoder(distill.main(config))
    assert encoder.cleaning.mention_token == "@MENTION"  # as it learnt, wherever it lies
    measured = json.loads((data / "student" / "run.json").read_text())["metrics"]
    assert measured["loss_best"] == min(value for _, value in measured["history"]) < 0.6 * measured["loss_before"]
    english = [f"{a} {b}" for a, b in zip(WORDS, WORDS[1:], strict=False)]
    french = [" ".join(invented(w, "fr") for w in text.split()) for text in english]
    left, right = encoder.encode(english), encoder.encode(french)
    assert left.shape == (len(english), 48)
    np.testing.assert_allclose(np.linalg.norm(left, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(encoder.encode(english[::-1])[::-1], left, atol=1e-5)
    assert np.isfinite(encoder.encode([""])).all()
    assert ((left @ right.T).argmax(1) == np.arange(len(english))).mean() > 0.7


def test_evening_out_the_axes_flattens_the_variance_by_its_share():
    rng = np.random.default_rng(0)
    sentences = rng.standard_normal((4000, 6)) * np.array([4, 2, 1, 1, 0.5, 0.25])
    identity, narrowest = bundling.even_out(np.eye(6, dtype=np.float32), sentences, 1.0)
    mapped = sentences @ identity
    covariance = mapped.T @ mapped / len(mapped)
    np.testing.assert_allclose(covariance, np.eye(6) * covariance[0, 0], atol=1e-3 * covariance[0, 0])
    assert abs(narrowest[5]) > 0.99
    half = sentences @ bundling.even_out(np.eye(6, dtype=np.float32), sentences, 0.5)[0]
    spread = np.linalg.eigvalsh(half.T @ half)
    before = np.linalg.eigvalsh(sentences.T @ sentences)
    assert spread[-1] / spread[0] == pytest.approx((before[-1] / before[0]) ** 0.5, rel=1e-3)
    same, _ = bundling.even_out(np.eye(6, dtype=np.float32), sentences, 0.0)
    np.testing.assert_allclose(same, np.eye(6), atol=1e-5)


def test_quantised_rows_keep_their_direction():
    table = np.random.default_rng(0).standard_normal((50, 64)).astype(np.float32)
    stored = bundling.quantise(table)
    back = stored["rows"] * stored["scales"][:, None]
    cosine = (back * table).sum(1) / np.linalg.norm(back, axis=1) / np.linalg.norm(table, axis=1)
    assert cosine.min() > 0.9995
