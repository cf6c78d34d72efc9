"""An exported bundle gives torch's vectors without torch."""

import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

from models.encoders.bundle import read_bundle, write_bundle
from models.encoders.load import folder_of, load_encoder
from models.encoders.onnx import MODEL, OnnxEncoder
from models.encoders.packed import PackedEncoder
from models.encoders.probes import PROBES, check_probes
from models.encoders.transformer import TransformerEncoder
from models.errors import BundleError, ConfigError, EncoderError
from tests.models.tiny_transformer import TEXTS, save_tiny, tiny_model
from tests.waiting import PATIENCE_S
from training.export_onnx import PRESETS, Config, main, read_words
from training.jobs import run
from training.onnx_graph import encoder_graph, even_range, observed_ranges
from training.tower_files import write_evening


@pytest.mark.parametrize(
    "kind, pooling", [("xlm-roberta", "mean"), ("bert", "mean"), ("bert", "cls"), ("xlm-roberta", "max")]
)
def test_float32_gives_torchs_vectors(tmp_path, kind, pooling):
    folder = save_tiny(tmp_path, kind, pooling)
    main(Config(str(folder), str(tmp_path / "bundle"), "fp32", max_texts=50))
    encoder = load_encoder(tmp_path / "bundle")
    assert isinstance(encoder, OnnxEncoder)
    vectors, expected = encoder.encode(TEXTS), TransformerEncoder(folder).encode(TEXTS)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert ((vectors * expected).sum(1) > 0.9999).all()


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The int8 bundle of a tiny XLM-R, and its directory."""
    folder = tmp_path_factory.mktemp("onnx")
    source = save_tiny(folder)
    main(Config(str(source), str(folder / "bundle"), max_texts=300))
    return folder / "bundle", source


def test_int8_is_near_torch_and_smaller(exported, tmp_path):
    bundle, source = exported
    manifest = read_bundle(bundle).manifest
    assert manifest.backend == "onnx" and manifest.settings["precision"] == "int8" and manifest.max_length == 60
    cosines = (load_encoder(bundle).encode(TEXTS) * TransformerEncoder(source).encode(TEXTS)).sum(1)
    assert cosines.min() > 0.97
    check_probes(load_encoder(bundle), manifest.evaluation["probes"])
    main(Config(str(source), str(tmp_path / "fp32"), "fp32", max_texts=50))
    assert (bundle / MODEL).stat().st_size < 0.6 * (tmp_path / "fp32" / MODEL).stat().st_size


def test_a_space_evened_out_is_the_models_own_turned_by_its_texts(tmp_path):
    """By hand: (v − mean) @ axes / √√variance @ axesᵀ, made unit again, over the same texts."""
    source = save_tiny(tmp_path)
    (tmp_path / "texts.txt").write_text("\n".join(f"{a} {b}" for a in PROBES for b in PROBES if a and b))
    main(Config(str(source), str(tmp_path / "b"), "fp32", evened=0.5, texts=str(tmp_path / "texts.txt")))
    torchs = TransformerEncoder(source)
    fitted = torchs.encode((tmp_path / "texts.txt").read_text().splitlines())
    mean, (variance, axes) = fitted.mean(0), np.linalg.eigh(np.cov(fitted.T))
    turned = (torchs.encode(TEXTS) - mean) @ axes @ np.diag(np.maximum(variance, variance[-1] / 1000) ** -0.25) @ axes.T
    expected = turned / np.linalg.norm(turned, axis=1, keepdims=True)
    np.testing.assert_allclose(load_encoder(tmp_path / "b").encode(TEXTS), expected, atol=2e-3)
    assert read_bundle(tmp_path / "b").manifest.training["evened"] == 0.5


def test_a_space_is_not_evened_out_twice(tmp_path):
    source = save_tiny(tmp_path, "bert")
    write_evening(source, np.eye(48, dtype=np.float32), np.zeros(48, np.float32))
    with pytest.raises(ConfigError, match="has a linear map of its own"):
        main(Config(str(source), str(tmp_path / "b"), evened=0.5, max_texts=50))


def test_int8_products_are_integer_products(exported):
    graph = onnx.load(exported[0] / MODEL).graph
    assert sum(node.op_type == "MatMulIntegerToFloat" for node in graph.node) == 3 * 6
    assert not [node for node in graph.node if node.op_type == "Gemm"]


def test_every_processor_computes_the_same_products_of_the_bundled_encoder(exported):
    """Without VNNI two products of uint8 and int8 are added in 16 bits, which must hold any two of them."""
    for folder in (exported[0], folder_of(None)):
        graph = onnx.load(folder / MODEL).graph
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        clipped = {node.output[0]: int(constants[node.input[2]]) for node in graph.node if node.op_type == "Clip"}
        products = [node.input[:2] for node in graph.node if node.op_type == "MatMulIntegerToFloat"]
        assert products
        for entering, weight in products:
            assert 2 * clipped[entering] * int(np.abs(constants[weight].astype(int)).max()) < 2**15


@pytest.fixture(scope="module")
def int8(exported) -> OnnxEncoder:
    return load_encoder(exported[0])


@given(texts=st.lists(st.text(max_size=30), max_size=9), order=st.randoms())
@settings(max_examples=25)
def test_an_int8_vector_does_not_hang_on_order_or_company(int8, texts, order):
    vectors = int8.encode(texts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    places = list(range(len(texts)))
    order.shuffle(places)
    shuffled = int8.encode([texts[i] for i in places])
    assert ((shuffled * vectors[places]).sum(1) > 0.9999).all()
    for text, vector in zip(texts, vectors, strict=True):
        assert int8.encode([text])[0] @ vector > 0.9999


def test_the_ranges_are_those_of_the_tokens_that_are_there():
    model, ids = tiny_model("bert"), [[5, 6, 7, 8], [9]]
    graph, names = encoder_graph(PackedEncoder(model))
    together = observed_ranges(
        graph, names, [(np.array([ids[0], [9, 0, 0, 0]]), np.array([[1, 1, 1, 1], [1, 0, 0, 0]], np.float32))]
    )
    alone = observed_ranges(graph, names, [(np.array([post]), np.ones((1, len(post)), np.float32)) for post in ids])
    assert len(names) == 3 * 4
    for name in names:
        for one, other in zip(together[name], alone[name], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    with torch.inference_mode():
        hidden = model(input_ids=torch.tensor([ids[0]]), output_hidden_states=True).hidden_states[1]
    entering = [r for n, r in alone.items() if n == "layer 0 norm 2"][0]  # what enters layer 1
    seen = hidden.numpy() / entering.columns
    assert entering.low <= seen.min() + 1e-5 and seen.max() - 1e-5 <= entering.high


def test_a_column_wider_than_the_rest_is_rounded_no_worse_than_they_are():
    low, high = np.array([-1.0, -1.0, -50.0]), np.array([1.0, 0.5, 20.0])
    low_end, high_end, columns = even_range(low, high)
    np.testing.assert_allclose(columns, [1, 1, 50])
    assert (low_end, high_end) == (-1, 1)


def test_a_bundle_is_served_where_torch_cannot_be_imported(exported):
    code = (
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, *a):\n"
        "        if name.split('.')[0] in ('torch', 'transformers', 'sentence_transformers', 'onnx'): raise "
        "ImportError(name)\n"
        "sys.meta_path.insert(0, Block())\n"
        "from models.encoders.load import load_encoder\n"
        f"assert load_encoder({str(exported[0])!r}).encode(['help', '']).shape == (2, 48)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=PATIENCE_S)


def test_a_file_that_is_no_graph_is_refused(exported, tmp_path):
    manifest = read_bundle(exported[0]).manifest
    files = {MODEL: b"not a graph", "tokenizer.json": (exported[0] / "tokenizer.json").read_bytes()}
    write_bundle(tmp_path / "b", manifest, files)
    with pytest.raises(BundleError, match=f"ONNX Runtime {onnxruntime.__version__} refuses"):
        load_encoder(tmp_path / "b")


def test_what_cannot_be_exported_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="precision"):
        main(Config("minilm", "x", "int3"))
    with pytest.raises(EncoderError, match="no BERT or XLM-R with one pooling"):
        main(Config(str(save_tiny(tmp_path, pooling="lasttoken")), str(tmp_path / "b")))


def test_the_command_tells_its_knobs_and_what_is_wrong_in_one_sentence(capsys):
    with pytest.raises(SystemExit) as asked:
        run(main, PRESETS, ["--help"], read_words)
    told = capsys.readouterr().out
    assert asked.value.code == 0 and "python -m training.export_onnx MODEL out=DIR" in told
    assert "precision=int8  – " in told and all(f"  {name}" in told for name in Config.__struct_fields__)
    with pytest.raises(SystemExit) as nothing:
        run(main, PRESETS, [], read_words)
    assert nothing.value.code == 2
    for words, message in {
        "foo=1": "name the model first: python -m training.export_onnx minilm out=DIR; got foo=1",
        "minilm foo=1": "unknown knob 'foo=1'",
        "minilm": "set out=DIR",
    }.items():
        with pytest.raises(SystemExit, match=f"^error: {message}"):
            run(main, PRESETS, words.split(), read_words)
    assert read_words(["some/model", "out=x"]) == Config("some/model", "x")


def test_the_module_is_run_with_that_command():
    done = subprocess.run(
        [sys.executable, "-m", "training.export_onnx", "foo=1"], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (
        done.returncode == 1 and done.stderr.startswith("error: name the model first") and done.stderr.count("\n") == 1
    )
