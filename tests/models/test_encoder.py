"""What every encoder promises, and what a bundle refuses."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from models.encoders.bundle import CALIBRATION, QUERY_VECTORS, Manifest, add_file, contents, read_bundle, write_bundle
from models.encoders.consonants import BASE, GRAMS, LETTERS, letters_of, skeleton_grams
from models.encoders.load import FLOOD, load_encoder
from models.encoders.whitening import Whitening
from models.errors import BundleError, EncoderError
from models.text import Cleaning

POSTS = [
    "We need water at the school, please hurry!",
    "Nou bezwen dlo nan lekòl la",
    "Нужна вода в школе",
    "مدرسے میں پانی چاہیے",
    "学校需要水",
    "NEED WATER NOW 🙏🙏 https://example.org/x @somebody",
]


def tiny_files(pieces: int = 40, dim: int = 8, seed: int = 0) -> dict[str, bytes]:
    words = ["<unk>", "▁water", "▁we", "▁need", *(f"▁w{i}" for i in range(pieces - 4))]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    rng = np.random.default_rng(seed)
    weights = {
        "rows": rng.integers(-127, 128, (pieces, dim)).astype(np.int8),
        "scales": np.full(pieces, 0.01, np.float32),
        "empty": np.eye(dim, dtype=np.float32)[-1],
    }
    return {"model.safetensors": save(weights), "tokenizer.json": tokenizer.to_str().encode()}


def tiny_manifest(**changes) -> Manifest:
    fields = {
        "backend": "static",
        "dim": 8,
        "max_length": 16,
        "cleaning": Cleaning(),
        "pooling": "sum",
        "licence": "CC0",
    }
    return Manifest(**{**fields, **changes})


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    write_bundle(tmp_path / "tiny", tiny_manifest(), tiny_files())
    return tmp_path / "tiny"


@pytest.fixture(scope="module")
def bundled():
    return load_encoder("flood")


@given(texts=st.lists(st.text(max_size=60), max_size=12), seed=st.randoms())
@settings(max_examples=60, deadline=None)
def test_any_texts_give_unit_rows_each_its_own_in_any_order(bundled, texts, seed):
    vectors = bundled.encode(texts)
    assert vectors.shape == (len(texts), bundled.dim)
    assert vectors.dtype == np.float32 and vectors.flags.c_contiguous
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)
    order = list(range(len(texts)))
    seed.shuffle(order)
    np.testing.assert_array_equal(bundled.encode([texts[i] for i in order]), vectors[order])
    for text, vector in zip(texts, vectors, strict=True):
        np.testing.assert_array_equal(bundled.encode([text])[0], vector)


def test_a_text_with_nothing_in_it_gives_one_fixed_unit_vector(bundled):
    empty, blank, invisible = bundled.encode(["", " \n\t ", "\u200b"])
    np.testing.assert_array_equal(empty, blank)
    assert np.isfinite(invisible).all()
    assert np.linalg.norm(empty) == pytest.approx(1)


def test_no_texts_give_no_rows(bundled):
    assert bundled.encode([]).shape == (0, bundled.dim)


def test_the_encoder_cleans_the_text_itself(bundled):
    one, other = bundled.encode(["need water https://a.example/1 @ann", "need water  https://b.example/2\n@bob"])
    np.testing.assert_array_equal(one, other)


def test_a_long_list_equals_its_posts_alone(bundled):
    posts = [f"{POSTS[i % len(POSTS)]} {i}" for i in range(5000)]
    vectors = bundled.encode(posts)
    for i in (0, 2047, 2048, 4999):
        np.testing.assert_array_equal(bundled.encode([posts[i]])[0], vectors[i])


def test_a_need_is_nearer_to_its_translation_than_to_another_topic(bundled):
    need, french, spanish, football = bundled.encode(
        [
            "We need drinking water",
            "Nous avons besoin d'eau potable",
            "Necesitamos agua potable",
            "The football team won the match last night",
        ]
    )
    assert min(need @ french, need @ spanish) > need @ football + 0.2


def test_leet_and_known_short_forms_are_read_as_what_they_stand_for(bundled):
    leet, meant, short, other = bundled.encode(
        ["pl3ase s3nd w4ter", "please send water", "ppl need water asap pls", "the people of the world"]
    )
    np.testing.assert_array_equal(leet, meant)
    assert short @ meant > 2 * (other @ meant)


def test_the_bundled_encoder_is_small_enough_to_ship():
    assert sum(path.stat().st_size for path in FLOOD.iterdir()) <= 40e6


def test_pieces_beyond_the_maximal_length_are_not_seen(tiny):
    encoder = load_encoder(tiny)
    long = " ".join(["water"] * 16)
    np.testing.assert_array_equal(encoder.encode([long])[0], encoder.encode([long + " w3 w4"])[0])


def test_a_static_vector_is_the_unit_sum_of_its_rows(tiny):
    rows = np.random.default_rng(0).integers(-127, 128, (40, 8)).astype(np.float32)
    expected = rows[1] + rows[3]
    np.testing.assert_allclose(
        load_encoder(tiny).encode(["Need water"])[0], expected / np.linalg.norm(expected), atol=1e-6
    )


def test_a_bundle_survives_the_way_to_disk_and_back(tmp_path):
    written = write_bundle(tmp_path / "b", tiny_manifest(parent="abc"), tiny_files())
    bundle = read_bundle(tmp_path / "b")
    assert bundle.manifest == written
    assert bundle.id == written.id != ""
    assert contents(bundle) == tiny_files()


def test_the_id_follows_the_weights_and_settings_but_not_measures_or_calibration(tmp_path):
    plain = write_bundle(tmp_path / "a", tiny_manifest(), tiny_files())
    measured = write_bundle(tmp_path / "b", tiny_manifest(evaluation={"x": 1}, licence="MIT"), tiny_files())
    assert plain.id == measured.id
    for name in ("README.md", CALIBRATION, QUERY_VECTORS):
        assert add_file(tmp_path / "b", name, b"{}").id == plain.id
    other_weights = write_bundle(tmp_path / "c", tiny_manifest(), tiny_files(seed=1))
    other_cleaning = write_bundle(
        tmp_path / "d", tiny_manifest(cleaning=Cleaning(mention_token="@MENTION")), tiny_files()
    )
    assert len({plain.id, other_weights.id, other_cleaning.id}) == 3


def test_a_calibration_may_be_added_and_replaced_later_and_nothing_else(tiny):
    for said in (b'{"need.water": 0.4}', b"{}"):
        add_file(tiny, CALIBRATION, said)
        assert contents(read_bundle(tiny))[CALIBRATION] == said
    with pytest.raises(BundleError, match="model.safetensors cannot be added"):
        add_file(tiny, "model.safetensors", b"")


@pytest.mark.parametrize("name", [CALIBRATION, QUERY_VECTORS, "README.md"])
def test_an_added_file_that_was_changed_or_slipped_in_is_refused(tiny, name):
    (tiny / name).write_bytes(b"{}")
    with pytest.raises(BundleError, match=f"{name}, which manifest.json does not list"):
        read_bundle(tiny)
    (tiny / name).unlink()
    add_file(tiny, name, b"{}")
    (tiny / name).write_bytes(b"{ }")
    with pytest.raises(BundleError, match=f"{name} was changed"):
        read_bundle(tiny)


def test_replacing_a_bundle_leaves_nothing_behind(tiny):
    add_file(tiny, CALIBRATION, b"{}")
    write_bundle(tiny, tiny_manifest(), tiny_files(seed=2))
    assert contents(read_bundle(tiny)) == tiny_files(seed=2)
    assert [p.name for p in tiny.parent.iterdir()] == ["tiny"]


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_changed_byte_is_refused_by_file_name(tiny, name):
    content = bytearray((tiny / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tiny / name).write_bytes(content)
    with pytest.raises(BundleError, match=name):
        load_encoder(tiny)


def test_a_truncated_or_missing_file_is_refused(tiny):
    weights = tiny / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-10])
    with pytest.raises(BundleError, match="was changed"):
        read_bundle(tiny)
    weights.unlink()
    with pytest.raises(BundleError, match="missing"):
        read_bundle(tiny)


@pytest.mark.parametrize(
    "key, value, reason",
    [
        ("format", "crisis-encoder/99", "format"),
        ("dim", 9, "edited by hand"),
        ("max_length", 3, "edited by hand"),
        ("files", {}, "no files"),
        ("files", {"../x": "00"}, "outside itself"),
        ("backend", 7, "not a manifest"),
    ],
)
def test_an_edited_manifest_is_refused_with_the_reason(tiny, key, value, reason):
    manifest = json.loads((tiny / "manifest.json").read_text())
    manifest[key] = value
    (tiny / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match=reason):
        read_bundle(tiny)


def test_a_truncated_manifest_is_refused(tiny):
    raw = (tiny / "manifest.json").read_bytes()
    (tiny / "manifest.json").write_bytes(raw[: len(raw) // 2])
    with pytest.raises(BundleError, match="not JSON"):
        read_bundle(tiny)


def test_a_table_that_does_not_fit_its_tokenizer_is_refused(tmp_path):
    files = {**tiny_files(pieces=40), "tokenizer.json": tiny_files(pieces=39)["tokenizer.json"]}
    write_bundle(tmp_path / "b", tiny_manifest(), files)
    with pytest.raises(BundleError, match="39 features"):
        load_encoder(tmp_path / "b")


def test_a_folder_that_is_no_model_is_refused(tmp_path):
    with pytest.raises(EncoderError, match="neither"):
        load_encoder(tmp_path)


def test_a_back_end_this_version_lacks_is_refused(tmp_path):
    write_bundle(tmp_path / "b", tiny_manifest(backend="quantum"), tiny_files())
    with pytest.raises(EncoderError, match="quantum"):
        load_encoder(tmp_path / "b")


def test_a_whitening_the_manifest_names_is_applied_and_part_of_the_id(tmp_path):
    plain = write_bundle(tmp_path / "plain", tiny_manifest(), tiny_files())
    encoder, texts = load_encoder(tmp_path / "plain"), ["need water", "help", "we need help", ""]
    whitening = Whitening(np.full(8, 0.1, np.float32), np.random.default_rng(0).normal(size=(8, 3)).astype(np.float32))
    manifest, files = (
        tiny_manifest(dim=3, whitening="w.safetensors"),
        {**tiny_files(), "w.safetensors": whitening.to_bytes()},
    )
    written = write_bundle(tmp_path / "white", manifest, files)
    white = load_encoder(tmp_path / "white")
    assert (white.version, white.dim) == (written.id, 3)
    assert written.id != plain.id
    expected = whitening.apply(encoder.encode(texts))
    np.testing.assert_allclose(
        white.encode(texts), expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-5
    )
    for wrong, reason in (
        (tiny_manifest(dim=4, whitening="w.safetensors"), "its whitening gives 3"),
        (tiny_manifest(dim=3, whitening="v.safetensors"), "does not hold it"),
    ):
        write_bundle(tmp_path / "wrong", wrong, files)
        with pytest.raises(BundleError, match=reason):
            load_encoder(tmp_path / "wrong")


def test_a_failed_write_leaves_the_old_bundle(tiny, monkeypatch):
    before = read_bundle(tiny)
    monkeypatch.setattr("models.encoders.bundle.read_bundle", lambda path: (_ for _ in ()).throw(BundleError("bad")))
    with pytest.raises(BundleError):
        write_bundle(tiny, tiny_manifest(), tiny_files(seed=3))
    monkeypatch.undo()
    assert read_bundle(tiny).manifest == before.manifest
    shutil.rmtree(tiny)


def skeleton(text: str) -> str:
    """The words as consonants, a doubled one once: by hand."""
    return re.sub(r"([a-z])\1+", r"\1", " ".join(letters_of(text).split()))


def groups_by_hand(text: str) -> list[int]:
    padded = f" {skeleton(text)}"
    windows = [padded[i : i + 4] for i in range(len(padded) - 3) if " " not in padded[i + 1 : i + 4]]
    return [
        sum(LETTERS.index(letter) * BASE ** (3 - place) for place, letter in enumerate(window)) for window in windows
    ]


@pytest.mark.parametrize(
    "name", ["Клинтон", "კლინტონი", "كلينتون", "क्लिंटन", "ክሊንተን", "คลินตัน", "Κλίντον", "קלינטון", "క్లింటన్", "ક્લિન્ટન"]
)
def test_a_name_keeps_its_consonants_in_every_script(name):
    assert skeleton(name) == skeleton("Clinton") == "klntn"


def test_a_skeleton_group_is_four_letters_inside_one_word():
    none, three, twice, chinese = skeleton_grams(["too late", "Clinton", "Clinton into Clinton", "学校需要水 123 !?"])
    assert skeleton("too late") == "t lt" and len(none) == len(chinese) == 0
    assert len(three) == 3  # " kln", "klnt", "lntn"
    assert len(set(twice.tolist())) == 3


@given(texts=st.lists(st.text(max_size=40), max_size=5))
@settings(max_examples=200, deadline=None)
def test_skeleton_groups_are_those_found_by_hand_alone_and_among_others(texts):
    found = skeleton_grams(texts)
    assert [groups.tolist() for groups in found] == [groups_by_hand(text) for text in texts]
    assert all(
        ((groups >= 0) & (groups < GRAMS)).all() and set(skeleton(t)) <= set(LETTERS)
        for groups, t in zip(found, texts, strict=True)
    )
