"""The speed measurements measure what they say."""

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, BertModel

from models.errors import ConfigError
from training.evaluate import gpu
from training.evaluate.backends import timed, useful_flops


def test_useful_flops_are_what_torch_counts():
    shape = BertConfig(
        vocab_size=50,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=80,
        attn_implementation="eager",
    )
    model = BertModel(shape, add_pooling_layer=False).eval()
    with FlopCounterMode(display=False) as counter, torch.inference_mode():
        for length in (7, 19):
            model(input_ids=torch.ones(1, length, dtype=torch.long))
    assert useful_flops(32, 3, 80, np.array([7, 19])) == counter.get_total_flops()


def test_every_back_end_is_timed_on_the_same_texts():
    seen = {"a": [], "b": []}

    def encoder(name):
        def encode(texts):
            seen[name].append(texts)
            return np.ones((len(texts), 2), np.float32)

        return encode

    figures, vectors = timed({name: encoder(name) for name in seen}, ["x"] * 40, rounds=3)
    assert seen["a"] == seen["b"] == [["x"] * 32, *[["x"] * 40] * 3]
    assert figures["a"]["posts_per_core_s"] > 0 and vectors["b"].shape == (40, 2)


def test_the_drawn_lengths_are_those_of_public_crisis_sets():
    lengths = gpu.lengths_of_posts(20_000, 1)
    assert lengths.mean() == pytest.approx(35, abs=0.5) and np.percentile(lengths, 95) == pytest.approx(70, abs=3)


def test_the_gpu_measurement_runs_small(tmp_path):
    metrics = gpu.main(gpu.PRESETS["smoke"])
    assert len(metrics["variants"]) == 5 and all(row["posts_per_s"] > 0 for row in metrics["variants"].values())
    assert metrics["packed_to_padded_cosine_least"] > 0.9999 or torch.cuda.is_available()


@pytest.mark.gpu
def test_packed_beats_what_pads_on_a_gpu():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    rows = gpu.main(gpu.PRESETS["xlmr-base"])["variants"]
    shares = {name.partition(",")[0]: row["share_of_ceiling"] for name, row in rows.items()}
    assert (
        shares["packed"] > shares["padded torch"]
        and rows["packed, ids on the host to vectors on the host"]["share_of_ceiling"] >= 0.30
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_without_a_gpu_the_measurement_says_so():
    with pytest.raises(ConfigError, match="no CUDA device"):
        gpu.main(gpu.PRESETS["xlmr-base"])
