"""Directories shaped like crisistransformers/CT-XLMR-SE give what sentence-transformers gives."""

import json
import random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, StaticEmbedding

from models.encoders.load import load_encoder
from models.encoders.probes import check_probes, probe_vectors
from models.encoders.shouting import quieter
from models.encoders.stored_cleaning import store_cleaning
from models.encoders.transformer import TransformerEncoder
from models.errors import EncoderError
from models.text import Cleaning
from tests.models.tiny_transformer import TEXTS, save_tiny, tiny_model, tiny_tokenizer


def reference(folder, texts: list[str]) -> np.ndarray:
    """What the library gives of the texts as they are read: without the spaces around them, and capitals quietly."""
    read = [quieter(text).strip() for text in texts]
    return SentenceTransformer(str(folder), device="cpu").encode(read, normalize_embeddings=True)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "lasttoken"])
def test_an_xlmr_directory_gives_what_sentence_transformers_gives(tmp_path, pooling):
    folder = save_tiny(tmp_path, pooling=pooling)
    assert (folder / "modules.json").exists()
    encoder = load_encoder(folder)
    vectors = encoder.encode(TEXTS)
    assert encoder.dim == 48 and vectors.shape == (len(TEXTS), 48) and vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, reference(folder, TEXTS), atol=2e-6)


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta"])
def test_packed_serving_gives_the_same(tmp_path, kind):
    folder = save_tiny(tmp_path, kind, "mean", normalize=True)
    packed, padded = TransformerEncoder(folder, packed=True), TransformerEncoder(folder, packed=False)
    assert packed._packed is not None and padded._packed is None
    texts = [f"{TEXTS[i % len(TEXTS)]} {i}" for i in range(60)]
    np.testing.assert_allclose(packed.encode(texts), padded.encode(texts), atol=2e-6)
    assert packed.version == padded.version


def test_a_module_between_is_run_as_the_token_student_of_robust_needs(tmp_path):
    torch.manual_seed(1)
    folder = save_tiny(
        tmp_path,
        "bert",
        "max",
        Dense(48, 20, module_input_name="token_embeddings", module_output_name="token_embeddings"),
    )
    encoder = TransformerEncoder(folder, packed=True)
    assert encoder._packed is None and encoder.dim == 20  # not a shape that is packed
    np.testing.assert_allclose(encoder.encode(TEXTS), reference(folder, TEXTS), atol=2e-6)


def test_a_plain_transformers_directory_is_pooled_by_its_mean(tmp_path):
    tiny_model().save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    vectors = load_encoder(tmp_path).encode(TEXTS[:2])
    ids = tiny_tokenizer()(TEXTS[0])["input_ids"]
    with torch.inference_mode():
        mean = tiny_model()(input_ids=torch.tensor([ids])).last_hidden_state.mean(1)[0]
    np.testing.assert_allclose(vectors[0], torch.nn.functional.normalize(mean, dim=0), atol=2e-6)


def test_a_default_prompt_goes_before_every_text(tmp_path):
    folder = save_tiny(tmp_path)
    plain = load_encoder(folder)
    model = SentenceTransformer(str(folder), device="cpu", prompts={"query": "query: "}, default_prompt_name="query")
    model.save(str(tmp_path / "prompted"))
    prompted = load_encoder(tmp_path / "prompted")
    np.testing.assert_allclose(prompted.encode(["water"]), plain.encode(["query: water"]), atol=2e-6)
    assert prompted.version != plain.version


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> TransformerEncoder:
    return load_encoder(save_tiny(tmp_path_factory.mktemp("tiny")))


@given(texts=st.lists(st.text(max_size=30), max_size=9), order=st.randoms())
@settings(max_examples=25)
def test_any_texts_give_unit_rows_each_its_own_in_any_order(tiny, texts, order):
    vectors = tiny.encode(texts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    places = list(range(len(texts)))
    order.shuffle(places)
    np.testing.assert_allclose(tiny.encode([texts[i] for i in places]), vectors[places], atol=3e-6)


def test_windows_and_batches_keep_the_order(tiny):
    texts = [f"{random.Random(i).choice(TEXTS)} {i}" for i in range(1200)]  # more than a window
    vectors = tiny.encode(texts)
    for i in (0, 1023, 1024, 1199):
        np.testing.assert_allclose(tiny.encode([texts[i]])[0], vectors[i], atol=3e-6)


def test_the_mention_token_is_the_papers(tmp_path):
    save_tiny(tmp_path).rename(tmp_path / "CT-XLMR-SE")
    assert load_encoder(tmp_path / "CT-XLMR-SE").cleaning.mention_token == "@MENTION"
    (tmp_path / "CT-XLMR-SE").rename(tmp_path / "CT-M1-Complete-SE")  # of 2023: the name alone says nothing
    assert load_encoder(tmp_path / "CT-M1-Complete-SE").cleaning == Cleaning(mention_token="@USER")


def test_how_a_model_read_its_text_while_it_learnt_is_kept_beside_its_weights(tmp_path):
    folder = save_tiny(tmp_path)
    plain = load_encoder(folder)
    store_cleaning(folder, Cleaning(mention_token="@MENTION", emoji_names=False))
    told = load_encoder(folder)
    assert told.cleaning == Cleaning(mention_token="@MENTION", emoji_names=False) and told.version != plain.version
    np.testing.assert_array_equal(told.encode(["@me help"]), told.encode(["@you help"]))
    (folder / "cleaning.json").write_text("{")
    with pytest.raises(EncoderError, match="cleaning.json does not say how text is cleaned"):
        load_encoder(folder)


def test_probes_hold_torch_too(tiny):
    check_probes(tiny, probe_vectors(tiny))


def test_the_version_follows_the_weights_and_the_pooling(tmp_path, tiny):
    cls = load_encoder(save_tiny(tmp_path / "a", pooling="cls"))
    same = load_encoder(save_tiny(tmp_path / "b"))
    assert same.version == tiny.version != cls.version


@pytest.mark.parametrize(
    ("file", "changed"),
    [
        ("tokenizer.json", {"normalizer": {"type": "Lowercase"}}),
        ("config.json", {"num_attention_heads": 2}),
        ("config.json", {"hidden_act": "relu"}),
    ],
)
def test_the_version_follows_the_tokenizer_and_the_configuration_as_the_vectors_do(tmp_path, tiny, file, changed):
    folder = save_tiny(tmp_path)
    (folder / file).write_text(json.dumps(json.loads((folder / file).read_text("utf-8")) | changed))
    other = load_encoder(folder)
    assert np.abs(other.encode(TEXTS) - tiny.encode(TEXTS)).max() > 0.01
    assert other.version != tiny.version


def test_the_version_follows_what_a_dense_module_makes_of_its_sums(tmp_path):
    folders = [tmp_path / name for name in ("plain", "tanh")]
    for folder, activation in zip(folders, (torch.nn.Identity(), torch.nn.Tanh()), strict=True):
        torch.manual_seed(0)
        save_tiny(folder, "xlm-roberta", "mean", Dense(48, 48, activation_function=activation))
    assert len({load_encoder(folder / "saved").version for folder in folders}) == 2


def test_where_a_model_lies_and_which_library_wrote_it_make_no_other_version(tmp_path, tiny):
    folder = save_tiny(tmp_path)
    told = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(told | {"transformers_version": "4.0", "_name_or_path": "me/there"}))
    assert load_encoder(folder).version == tiny.version


def test_a_masked_lm_saved_without_a_pooler_has_one_version_however_often_it_is_loaded(tmp_path):
    tiny_model().save_pretrained(tmp_path)
    tiny_tokenizer().save_pretrained(tmp_path)
    torch.manual_seed(1)
    once = load_encoder(tmp_path)
    torch.manual_seed(2)  # transformers draws the missing pooler at random
    assert load_encoder(tmp_path).version == once.version


def test_what_is_no_transformer_over_text_is_refused_with_the_way_out(tmp_path):
    table = StaticEmbedding(tiny_tokenizer()._tokenizer, embedding_dim=8)
    SentenceTransformer(modules=[table], device="cpu").save(str(tmp_path / "static"))
    with pytest.raises(EncoderError, match="StaticEmbedding.*training.distill"):
        load_encoder(tmp_path / "static")


def test_a_broken_model_is_refused_by_name(tmp_path):
    folder = save_tiny(tmp_path)
    (folder / "model.safetensors").unlink()
    with pytest.raises(EncoderError, match="cannot load the model"):
        load_encoder(folder)
