"""The classification job: its measure by hand, its splits, and the smoke preset on both kinds of base."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save
from tokenizers import Tokenizer
from transformers import AutoModel

from models.encoders.bundle import Manifest, write_bundle
from models.encoders.load import load_encoder
from models.encoders.stored_cleaning import stored_cleaning
from models.errors import ConfigError
from models.text import Cleaning
from training import classify, loop, mlm
from training.bundled_posts import bundled_posts
from training.classify import macro_f1, read_dataset
from training.files import DataError
from training.jobs import read_config
from training.tokenizer import Config as TokenizerConfig
from training.tokenizer import train

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory) -> Path:
    """A static encoder of random vectors: enough to tell words apart."""
    tokenizer: Tokenizer = train(iter([p.text for p in bundled_posts()]), TokenizerConfig(pieces=1500))
    rows = np.random.default_rng(0).integers(-127, 128, (tokenizer.get_vocab_size(), 32)).astype(np.int8)
    path = tmp_path_factory.mktemp("bundle") / "tiny"
    tensors = {"rows": rows, "scales": np.full(len(rows), 0.01, np.float32), "empty": np.eye(32, dtype=np.float32)[0]}
    manifest = Manifest(backend="static", dim=32, max_length=128, cleaning=Cleaning(), pooling="sum", licence="test")
    write_bundle(path, manifest, {"model.safetensors": save(tensors), "tokenizer.json": tokenizer.to_str().encode()})
    return path


def smoke(tmp_path, *words: str) -> classify.Config:
    return read_config(classify.PRESETS, ["smoke", f"out={tmp_path / 'run'}", *words])


def test_macro_f1_by_hand():
    # Class 0: precision 2/3, recall 1, F1 .8; class 1: 1, 1/2, 2/3; class 2 never found: 0.
    assert macro_f1([0, 0, 1, 1, 2], [0, 0, 1, 0, 1], 3) == pytest.approx((0.8 + 0.5 + 0.0) / 3)
    assert macro_f1([0, 1], [0, 1], 2) == 1 and macro_f1([0, 0], [0, 0], 2) == 0.5


def test_a_file_without_splits_is_split_70_10_20_by_class(tmp_path):
    path = tmp_path / "posts.jsonl"
    rows = [{"text": f"post {i}", "label": "need" if i % 4 == 0 else "none"} for i in range(200)]
    path.write_text("\n".join(map(json.dumps, rows)))
    data = read_dataset(smoke(tmp_path, f"file={path}"))
    assert {part: len(index) for part, index in data.rows.items()} == {"train": 140, "dev": 20, "test": 40}
    assert all((data.labels[index] == 0).mean() == pytest.approx(0.25) for index in data.rows.values())
    assert sorted(np.concatenate(list(data.rows.values())).tolist()) == list(range(200))


def test_a_files_own_splits_are_kept_and_unusable_data_is_refused(tmp_path):
    path = tmp_path / "posts.tsv"
    body = "".join(f"post {i}\t{'ab'[i % 2]}\t{('train', 'validation', 'test')[i % 3]}\n" for i in range(12))
    path.write_text("text\tlabel\tsplit\n" + body)
    data = read_dataset(smoke(tmp_path, f"file={path}"))
    assert data.rows["dev"].tolist() == [1, 4, 7, 10] and data.names == ["a", "b"]
    for text, message in {
        "text\tlabel\tsplit\nx\ta\ttrain\ny\tb\tdevel\n": "unknown split devel",
        "text\tlabel\nx\ta\ny\ta\n": "one class only, 'a'",
        "text\tlabel\nx\ta\ny\tb\n": "fewer than 10 rows of a, b",
        "text\tlabel\tsplit\nx\ta\ttrain\ny\tb\ttrain\n": "no row in split dev, test",
    }.items():
        path.write_text(text)
        with pytest.raises(DataError, match=message):
            read_dataset(smoke(tmp_path, f"file={path}"))


def test_the_smoke_run_learns_saves_resumes_and_gives_an_interval(tmp_path, bundle, monkeypatch):
    config = smoke(tmp_path, f"base={bundle}")
    out = classify.main(config)
    metrics = json.loads((out / "run.json").read_text())["metrics"]
    assert metrics["macro_f1"] > metrics["before"] + 0.1
    assert len(metrics["repeats"]) == 2 and metrics["half_width_95"] >= 0
    assert metrics["repeats"][0]["before"] != metrics["repeats"][1]["before"]  # each repeat has its own seed
    more = json.loads((classify.main(smoke(tmp_path, f"base={bundle}", "repeats=3")) / "run.json").read_text())
    assert len(more["metrics"]["repeats"]) == 3 and more["metrics"]["repeats"][:2] == metrics["repeats"]  # goes on

    real, saved = loop.save_checkpoint, []

    def killed(*args):
        real(*args)
        saved.append(1)
        if len(saved) == 10:  # in the second repeat
            raise KeyboardInterrupt

    broken = smoke(tmp_path / "b", f"base={bundle}")
    monkeypatch.setattr(loop, "save_checkpoint", killed)
    with pytest.raises(KeyboardInterrupt):
        classify.main(broken)
    monkeypatch.setattr(loop, "save_checkpoint", real)
    again = json.loads((classify.main(broken) / "run.json").read_text())["metrics"]
    assert again == metrics
    assert (out / "repeat-1" / "best" / "head.safetensors").exists()


def test_a_probe_of_an_encoder_is_the_job_on_its_bundle(tmp_path, bundle):
    config = smoke(tmp_path, f"base={bundle}", "epochs=2")
    probed = classify.probe(load_encoder(bundle), config)
    whole = json.loads((classify.main(config) / "run.json").read_text())
    assert probed.pop("data_hash") == whole["data_hash"] and probed == whole["metrics"]


def test_a_sample_of_the_rows_is_always_the_same(tmp_path):
    path = tmp_path / "posts.tsv"
    path.write_text("text\tlabel\n" + "".join(f"post {i}\t{'ab'[i % 2]}\n" for i in range(200)))
    first, again = (read_dataset(smoke(tmp_path, f"file={path}", "most=60")) for _ in range(2))
    assert (
        len(first.texts) == 60 and first.texts == again.texts and set(first.texts) < {f"post {i}" for i in range(200)}
    )


def test_a_set_of_a_file_that_holds_several_is_read_alone(tmp_path):
    path = tmp_path / "stance.tsv"
    rows = [(f"{origin} {i}", "ab"[i % 2], origin) for origin in ("poddar", "cotfas") for i in range(40)]
    path.write_text("text\tlabel\torigin\n" + "".join("\t".join(row) + "\n" for row in rows))
    read = read_dataset(smoke(tmp_path, f"file={path}", "only=origin=cotfas"))
    assert sorted(read.texts) == sorted(f"cotfas {i}" for i in range(40))
    with pytest.raises(DataError, match="no row where origin is klein"):
        read_dataset(smoke(tmp_path, f"file={path}", "only=origin=klein"))
    with pytest.raises(ConfigError, match="write COLUMN=VALUE"):
        read_dataset(smoke(tmp_path, f"file={path}", "only=cotfas"))


def test_a_transformer_is_trained_whole_with_mean_pooling(tmp_path):
    tokenizer, model = mlm.load_start(
        mlm.Config(pieces=400, layers=1, hidden=32, heads=2, block=64), [p.text for p in bundled_posts()[:200]]
    )
    base = tmp_path / "base"
    model.base_model.save_pretrained(base)
    tokenizer.save_pretrained(base)
    path = tmp_path / "posts.tsv"
    rows = [
        ("flood" if i % 2 else "music", f"{'river rising fast' if i % 2 else 'album out tonight'} {i}")
        for i in range(60)
    ]
    path.write_text("label\ttext\n" + "".join(f"{label}\t{text}\n" for label, text in rows))
    config = smoke(tmp_path, f"base={base}", f"file={path}", "repeats=1", "lr=0.01", "epochs=4", "mention_token=@X")
    out = classify.main(config)
    metrics = json.loads((out / "run.json").read_text())["metrics"]
    assert metrics["macro_f1"] > 0.9 and metrics["half_width_95"] is None
    assert stored_cleaning(out / "repeat-1" / "best").mention_token == "@X"  # as it learnt
    reloaded = AutoModel.from_pretrained(out / "repeat-1" / "best")
    assert not torch.equal(
        reloaded.embeddings.word_embeddings.weight, model.base_model.embeddings.word_embeddings.weight
    )


def test_the_paper_preset_is_the_papers():
    paper = classify.PRESETS["paper"]
    assert (paper.epochs, paper.batch, paper.lr, paper.patience, paper.threshold, paper.repeats) == (
        30,
        32,
        1e-5,
        5,
        1e-4,
        5,
    )
    assert paper.split_seed == 42


def test_a_file_that_leaves_a_row_without_its_split_is_refused(tmp_path):
    path = tmp_path / "posts.jsonl"
    rows = [
        {"text": f"post {i}", "label": "need" if i % 2 else "none", "split": "train" if i < 30 else "test"}
        for i in range(40)
    ]
    del rows[12]["split"]
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(DataError, match="1 rows without a split, the first is row 13"):
        read_dataset(classify.Config(file=str(path)))
