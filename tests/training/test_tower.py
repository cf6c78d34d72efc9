"""Shortening and adapting a transformer: the tower they share, and both jobs whole, on a tiny model."""

import json
import shutil

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from models.errors import ConfigError
from tests.models.tiny_transformer import TEXTS, save_tiny
from training import adapt, shorten
from training.metrics import class_similarity
from training.posts import written_posts
from training.tower import Tower
from training.tower_files import write_tower


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("tower"), "bert", normalize=True)


@pytest.fixture(scope="module")
def short(folder, tmp_path_factory, jobs_alone):
    out = tmp_path_factory.mktemp("short")
    return shorten.main(shorten.Config(str(folder), str(out), (0, 2), 1, epochs=20, batch=32, written=120, data=False))


@pytest.fixture(scope="module")
def jobs_alone():
    """Jobs use every core; beside other tests one is enough."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def texts_of(folder):
    return [text for text in TEXTS if len(Tower(folder, 0).ids([text])[0]) < 56]  # nothing cut off


def test_a_tower_reads_as_sentence_transformers_does_in_any_order(folder):
    texts, tower = texts_of(folder), Tower(folder, 1)
    expected = SentenceTransformer(str(folder), device="cpu").encode(texts, normalize_embeddings=True)
    for found in (tower.read(tower.ids(texts)), tower.vectors(tower.ids(texts))):
        assert ((found.detach().numpy() * expected).sum(1) > 0.999).all()  # bf16
    backwards = tower.read(tower.ids(texts[::-1])).numpy()[::-1]
    assert ((backwards * expected).sum(1) > 0.999).all()


def test_what_the_staying_layers_gave_can_be_kept_and_read_on_from(folder):
    texts, tower = texts_of(folder), Tower(folder, 1)
    kept = tower.lower(tower.ids(texts))
    assert [len(states) for states in kept] == [len(ids) for ids in tower.ids(texts)]
    whole = tower.read(tower.ids(texts))
    for found in (tower.read(kept), tower.vectors(kept)):
        assert ((found * whole).sum(1) > 0.9999).all()  # float16 between
    tower.vectors(kept).sum().backward()
    assert all(parameter.grad is not None for parameter in tower.learning.parameters())


@pytest.mark.parametrize(
    ("kind", "pooling", "told"), [("xlm-roberta", "mean", "xlm-roberta, only bert"), ("bert", "cls", "pooled by cls")]
)
def test_a_model_of_another_kind_or_pooling_is_refused(tmp_path, kind, pooling, told):
    with pytest.raises(ConfigError, match=told):
        Tower(save_tiny(tmp_path, kind, pooling, normalize=True), 0)
    with pytest.raises(ConfigError, match="nothere: no folder"):
        shorten.main(shorten.Config("nothere", str(tmp_path / "out"), data=False, written=20))


def test_only_the_prompt_that_is_the_models_default_goes_before_a_text(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "told")
    told = json.loads((folder / "config_sentence_transformers.json").read_text())
    told["prompts"] = {"query": "ask ", "passage": "told "}
    for default in ("passage", None):
        told["default_prompt_name"] = default
        (tmp_path / "told" / "config_sentence_transformers.json").write_text(json.dumps(told))
        tower, model = Tower(tmp_path / "told", 0), SentenceTransformer(str(tmp_path / "told"), device="cpu")
        texts = [text for text in texts_of(folder) if len(text) < 40]
        expected = model.encode(texts, normalize_embeddings=True)
        assert ((tower.read(tower.ids(texts)).numpy() * expected).sum(1) > 0.999).all()


def test_only_the_upper_layers_learn(folder):
    tower = Tower(folder, 2)
    tower.vectors(tower.ids(["help", "we need water"])).sum().backward()
    learning = set(tower.learning.parameters())
    for parameter in tower.model.parameters():
        assert (parameter.grad is not None) == (parameter in learning)


def test_a_layer_that_is_not_there_is_refused(folder):
    with pytest.raises(ConfigError, match="layers 0 to 2"):
        Tower(folder, 1, (0, 7))
    with pytest.raises(ConfigError, match="frozen=2: of 2 layers none is left to learn"):
        Tower(folder, 2, (0, 1))


def test_a_shortened_model_has_the_layers_that_were_kept_and_comes_nearer_to_the_whole_one(folder, short):
    assert json.loads((short / "config.json").read_text())["num_hidden_layers"] == 2
    texts = shorten.material(shorten.Config(written=60, data=False))[0]
    whole, before, after = Tower(folder, 0), Tower(folder, 0, (0, 2)), Tower(short, 0)
    target = whole.read(whole.ids(texts))
    far = [float((1 - (t.read(t.ids(texts)) * target).sum(1)).mean()) for t in (before, after)]
    assert far[1] < 0.7 * far[0]


def test_an_adapted_model_reads_into_the_evened_out_space_and_tells_classes_apart(short, tmp_path, jobs_alone):
    given = dict(frozen=1, batch=16, sentences=8, others=4, slips=0, hold_others=1.0, written=240, data=False)
    learnt = adapt.Config(str(short), str(tmp_path / "learnt"), **given, epochs=16, rate=2e-3)
    out = adapt.main(learnt)
    model = SentenceTransformer(str(out), device="cpu")
    assert [type(module).__name__ for module in model] == ["Transformer", "Pooling", "Normalize", "Dense", "Normalize"]
    vectors = model.encode(texts_of(short))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    wrote = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert adapt.main(learnt) == out  # goes on where it was: at its end
    assert [path for path, content in wrote.items() if path.read_bytes() != content] == []  # nothing read with dropout

    written = written_posts()
    posts = [post for post in written[:: len(written) // given["written"]] if not post.judges]  # it learnt from these

    def told_apart(folder) -> float:
        """Mean cosine within classes, minus that between classes."""
        vectors = SentenceTransformer(str(folder), device="cpu").encode([post.text for post in posts])
        found = class_similarity(vectors, [post.label for post in posts])
        return found.d_avg - found.between

    still = adapt.main(adapt.Config(str(short), str(tmp_path / "still"), **given, epochs=0, rate=0.0))
    assert told_apart(out) > told_apart(still) + 0.01  # `still` is evened out in the same way, and nothing learnt


def test_a_narrower_tower_reads_as_the_whole_one_where_what_it_lost_carries_nothing(folder, tmp_path):
    texts, whole = texts_of(folder), Tower(folder, 0)
    size = whole.model.config.intermediate_size
    with torch.no_grad():
        for layer in whole.model.encoder.layer:
            layer.output.dense.weight[:, ::2] = 0.0  # every second neuron tells nothing
    write_tower(whole, tmp_path / "idle")
    narrow = Tower(tmp_path / "idle", 0, inner=size // 2)
    assert ((narrow.read(narrow.ids(texts)) * whole.read(whole.ids(texts))).sum(1) > 0.9999).all()
    again = Tower(write_tower(narrow, tmp_path / "narrow"), 0)
    assert again.model.config.intermediate_size == size // 2
    assert ((again.read(again.ids(texts)) * whole.read(whole.ids(texts))).sum(1) > 0.9999).all()


def test_more_neurons_than_there_are_are_refused(folder):
    with pytest.raises(ConfigError, match="neurons a layer"):
        Tower(folder, 0, inner=10**6)


def test_english_texts_are_held_as_people_type_them_beside_what_they_meant():
    held = [
        "we need water tomorrow morning",
        "necesitamos agua",
        "the bridge is gone",
        "se cayó el puente",
        "¡auxilio!",
    ]
    partner = np.array([0, 0, 2, 2, 4])  # the last has no English side
    texts, meant, begin = adapt._with_slips(held, partner, adapt.Config(slips=12, seed=3))
    assert (texts[:5], begin, sorted(meant[5:])) == (held, 5, [0, 2])  # English sides alone, each once
    for seed in range(5):
        typed, meant, _ = adapt._with_slips(held, partner, adapt.Config(slips=1, seed=seed))
        assert len(typed) == 6 and meant[5] in (0, 2)
    assert adapt._with_slips(held, partner, adapt.Config(slips=0))[0] == held
