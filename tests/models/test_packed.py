"""The packed forward is the padded one of transformers without the padding."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertConfig, BertModel

from models.encoders.batching import pad
from models.encoders.packed import PackedEncoder
from models.errors import EncoderError
from tests.models.tiny_transformer import tiny_model

POOLINGS = ("mean", "cls", "max")
KINDS = ("bert", "xlm-roberta")


def padded_vectors(model: torch.nn.Module, ids: list[list[int]], pooling: str) -> torch.Tensor:
    """transformers itself over padded posts, pooled as sentence-transformers does."""
    tokens, mask = (torch.from_numpy(array) for array in pad(ids))
    tokens[mask == 0] = model.config.pad_token_id
    with torch.inference_mode():
        states = model(input_ids=tokens, attention_mask=mask.long()).last_hidden_state
    if pooling == "cls":
        pooled = states[:, 0]
    elif pooling == "max":
        pooled = states.masked_fill(mask[..., None] == 0, -1e9).amax(1)
    else:
        pooled = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    return torch.nn.functional.normalize(pooled, dim=1)


def random_ids(count: int, seed: int = 0) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [rng.integers(4, 260, n).tolist() for n in rng.integers(1, 58, count)]


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_packed_equals_padded(kind, pooling):
    model, ids = tiny_model(kind), random_ids(17)
    packed = PackedEncoder(model, pooling)
    with torch.inference_mode():
        vectors = packed(*packed.pack(ids))
    torch.testing.assert_close(vectors, padded_vectors(model, ids, pooling), atol=2e-6, rtol=1e-4)
    assert ((vectors * padded_vectors(model, ids, pooling)).sum(1) > 0.9999).all()


@pytest.fixture(scope="module")
def xlmr() -> PackedEncoder:
    return PackedEncoder(tiny_model())


@given(lengths=st.lists(st.integers(1, 58), min_size=1, max_size=9), order=st.randoms())
@settings(max_examples=25)
def test_a_post_has_its_vector_in_any_company(xlmr, lengths, order):
    ids = [list(range(4, 4 + n)) for n in lengths]
    places = list(range(len(ids)))
    order.shuffle(places)
    with torch.inference_mode():
        together = xlmr(*xlmr.pack(ids))
        torch.testing.assert_close(xlmr(*xlmr.pack([ids[i] for i in places])), together[places], atol=2e-6, rtol=1e-4)
        torch.testing.assert_close(xlmr(*xlmr.pack(ids[:1])), together[:1], atol=2e-6, rtol=1e-4)


def test_another_shape_is_refused_by_what_is_other():
    model = BertModel(
        BertConfig(vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, hidden_act="relu")
    )
    with pytest.raises(EncoderError, match="hidden_act 'relu'"):
        PackedEncoder(model)
    with pytest.raises(EncoderError, match="weightedmean"):
        PackedEncoder(tiny_model(), "weightedmean")
    model.config.model_type = "modernbert"
    with pytest.raises(EncoderError, match="modernbert"):
        PackedEncoder(model)


@pytest.mark.gpu
@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_on_a_gpu_bf16_packed_is_near_float32_padded(kind, pooling):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    model, ids = tiny_model(kind), random_ids(300)
    packed = PackedEncoder(model, pooling, torch.bfloat16).cuda()
    with torch.inference_mode():
        waits = [
            packed.start(packed.pack(ids[i : i + 50])) for i in range(0, 300, 50)
        ]  # all started before any is waited for
    vectors = torch.from_numpy(np.concatenate([wait() for wait in waits]))
    cosines = (vectors * padded_vectors(model, ids, pooling)).sum(1)
    assert cosines.mean() > 0.999 and cosines.min() > 0.99
