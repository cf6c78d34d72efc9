"""The contrastive job: the losses against the papers' equations, the batches, and the smoke preset."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import (
    CachedMultipleNegativesRankingLoss,
    MultipleNegativesRankingLoss,
)

from models.encoders.load import load_encoder
from models.errors import ConfigError
from training import contrastive, loop, mlm
from training.contrastive import plan_batches
from training.files import DataError
from training.jobs import read_config
from training.losses import multiple_negatives_ranking

pytestmark = pytest.mark.usefixtures("one_thread")


def smoke(tmp_path, *words: str) -> contrastive.Config:
    return read_config(contrastive.PRESETS, ["smoke", f"out={tmp_path / 'run'}", *words])


@pytest.mark.parametrize("hard", [False, True])
def test_the_librarys_losses_and_their_gradients_are_the_equations_cached_or_not(tmp_path, hard):
    rows = contrastive.bundled_rows(3 if hard else 2, seed=1)[:6]
    model = contrastive.load_base(smoke(tmp_path), [text for row in rows for text in row]).eval()
    columns = list(zip(*rows, strict=True))
    found = []
    for make in (
        lambda: MultipleNegativesRankingLoss(model, scale=20.0),
        lambda: CachedMultipleNegativesRankingLoss(model, scale=20.0, mini_batch_size=2),
        None,
    ):
        model.zero_grad()
        features = [model.preprocess(list(texts)) for texts in columns]
        if make is None:
            vectors = [model(f)["sentence_embedding"] for f in features]
            value = multiple_negatives_ranking(*vectors[:2], 0.05, *vectors[2:])
        else:
            value = make()(features, None)
        value.backward()
        gradient = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        found.append((value.item(), gradient))
    for value, gradient in found[:2]:
        assert value == pytest.approx(found[2][0], rel=1e-4)
        assert torch.allclose(gradient, found[2][1], atol=1e-4)


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("uvwxyz")), min_size=1, max_size=30, unique=True),
    st.integers(1, 4),
    st.integers(0, 99),
)
def test_no_text_stands_twice_in_a_batch_and_no_row_twice_in_an_epoch(rows, size, seed):
    try:
        plan = plan_batches(rows, size, 1, seed)
    except ConfigError:
        return
    assert all(len(batch) == size for batch in plan)
    for batch in plan:
        texts = [text for i in batch for text in rows[i]]
        assert len(set(texts)) == len(texts)
    used = [i for batch in plan for i in batch]
    assert len(set(used)) == len(used)
    assert plan == plan_batches(rows, size, 1, seed)


def test_part_of_an_epoch_is_part_of_its_batches():
    rows = [(f"a{i}", f"b{i}") for i in range(40)]
    assert [len(plan_batches(rows, 4, epochs, 1)) for epochs in (0.5, 1, 2.5)] == [5, 10, 25]
    with pytest.raises(ConfigError, match="batch=3 needs that many rows"):
        plan_batches([("a", "b"), ("a", "c"), ("a", "d")], 3, 1, 1)


def test_the_smoke_run_learns_saves_resumes_and_reloads(tmp_path, monkeypatch):
    config = smoke(tmp_path, "validate_every=8", "checkpoint_every=8")
    out = contrastive.main(config)
    metrics = json.loads((out / "run.json").read_text())["metrics"]
    assert metrics["error_best"] < metrics["error_before"]

    real = loop.save_checkpoint

    def killed(*args):
        real(*args)
        raise KeyboardInterrupt

    broken = smoke(tmp_path / "b", "validate_every=8", "checkpoint_every=8")
    monkeypatch.setattr(loop, "save_checkpoint", killed)
    with pytest.raises(KeyboardInterrupt):
        contrastive.main(broken)
    monkeypatch.setattr(loop, "save_checkpoint", real)
    contrastive.main(broken)
    texts = ["We need water", "Nous avons besoin d'eau"]
    whole, again = (
        SentenceTransformer(str(run / "run" / "best"), device="cpu").encode(texts) for run in (tmp_path, tmp_path / "b")
    )
    np.testing.assert_array_equal(whole, again)
    # The serving side reads the same directory.
    served = load_encoder(out / "best").encode(texts)
    np.testing.assert_allclose((served * whole).sum(1) / np.linalg.norm(whole, axis=1), 1, atol=1e-4)


def test_labelled_pairs_are_joined_by_their_first_text(tmp_path):
    lines = [
        "set\tpremise\thypothesis\tlabel",
        "a\tthe bridge is gone\tthere is no bridge\tyes",
        "a\tthe bridge is gone\tthe bridge stands\tno",
        "a\tthe bridge is gone\tit was a bridge\tmaybe",
        "a\tthe bridge is gone\tone cannot cross\tyes",
        "a\twater is here\tthere is water\tyes",  # without a negative
        "b\tno power\tit is dark\tyes",
        "b\tno power\tthe lights are on\tno",
        "b\tno power\tundecided\t",
    ]
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(lines) + "\n")
    words = [f"file={path}", "columns=premise,hypothesis", "label=label", "positive=yes", "negative=no"]
    read = lambda *more: contrastive.read_rows(smoke(tmp_path, *words, *more))  # noqa: E731
    triplets = [
        ("the bridge is gone", "there is no bridge", "the bridge stands"),
        ("the bridge is gone", "one cannot cross", "the bridge stands"),
        ("no power", "it is dark", "the lights are on"),
    ]
    assert read("hard_negatives=true") == triplets
    assert read() == [row[:2] for row in triplets]
    assert read("only=set=b") == [triplets[2][:2]]
    with pytest.raises(DataError, match="no row is left of 0"):
        read("only=set=c")
    with pytest.raises(ConfigError, match="COLUMN=VALUE"):
        read("only=set")


def test_hard_negatives_train_too_and_come_from_a_file_with_names_of_its_own(tmp_path):
    path = tmp_path / "rows.tsv"
    lines = [
        f"water runs out in street {i}\tno water left in street {i}\twater is back in street {i}" for i in range(30)
    ]
    path.write_text("question\tsame\tother\n" + "\n".join(lines) + "\n")
    config = smoke(
        tmp_path,
        f"file={path}",
        "columns=question,same,other",
        "hard_negatives=true",
        "batch=8",
        "mini_batch=0",
        "epochs=1",
    )
    assert (contrastive.main(config) / "best" / "modules.json").exists()
    assert contrastive.read_rows(config)[0] == tuple(lines[0].split("\t"))
    with pytest.raises(DataError, match="line 2: no anchor"):
        contrastive.main(smoke(tmp_path, f"file={path}"))
    with pytest.raises(ConfigError, match="3 names are needed"):
        contrastive.main(smoke(tmp_path, f"file={path}", "columns=question,same", "hard_negatives=true"))


def test_the_paper_preset_is_the_papers():
    paper = contrastive.PRESETS["paper"]
    assert (paper.batch, paper.lr, paper.epochs, paper.warmup, paper.rows) == (512, 2e-5, 20, 0.01, 10_000)


def test_a_base_drawn_at_random_is_kept_for_these_knobs_alone(tmp_path):
    small = mlm.Config(pieces=300, layers=1, hidden=16, heads=2, block=16, min_words=1)
    texts = ["water is needed here", "we have blankets for you"] * 20
    first = mlm.random_base(small, texts, tmp_path)
    assert mlm.random_base(small, texts, tmp_path) == first
    wider = mlm.random_base(msgspec.structs.replace(small, hidden=32), texts, tmp_path)
    assert [json.loads((Path(base) / "config.json").read_text())["hidden_size"] for base in (first, wider)] == [16, 32]
