"""Any sentence-transformers or transformers model as an `Encoder`, through torch (extra [torch]).

sentence-transformers reads the directory: its modules, pooling, longest text and prompt; it is given what is written in
capitals in small letters (models/encoders/shouting.py), as an exported model is. A BERT or XLM-R with one
pooling is run packed on a GPU, in bfloat16; everything else in length-sorted batches by sentence-transformers' own
modules, float32 on a CPU, bfloat16 on a GPU.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer

from models.encoders.batching import encode_in_windows, micro_batches, packed_batches
from models.encoders.packed import Packed, PackedEncoder, refusal
from models.encoders.shouting import quieter
from models.encoders.stored_cleaning import stored_cleaning
from models.errors import EncoderError
from models.text import Cleaning

__all__ = ["TOKENS", "TransformerEncoder"]

TOKENS = {"cpu": 4096, "cuda": 16384}  # in a batch, padding counted; on a CPU flat within 8 % from 512 to 4096
WINDOW = {"cpu": 1024, "cuda": 8192}  # on a GPU a window should fill several batches
# Of a model's configuration, what says where it came from and not what it makes of a text.
UNREAD = {"_name_or_path", "architectures", "dtype", "torch_dtype", "transformers_version"}
LONGEST = 512  # tokens read of a text, whatever longer its model could read: posts are short, and time is not


class TransformerEncoder:
    """`Encoder` over a local directory or a hub id. Raises EncoderError if it cannot be loaded or is not for text.

    packed: run BERT and XLM-R shapes packed; None = on a GPU.
    """

    def __init__(self, ref: str | Path, cleaning: Cleaning | None = None, packed: bool | None = None) -> None:
        ref = str(ref)
        self.cleaning = cleaning or stored_cleaning(ref)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            model = SentenceTransformer(ref, device=str(self.device))
        except Exception as error:  # a model from outside fails as its libraries like
            raise EncoderError(f"cannot load the model {ref!r}: {type(error).__name__}: {error}") from error
        if not isinstance(model[0], Transformer) or model.tokenizer is None:
            raise EncoderError(
                f"{ref} begins with the module {type(model[0]).__name__}: only transformers over text are served;"
                " `python -m training.distill` makes a static encoder"
            )
        self._model = model.to(torch.bfloat16 if self.device.type == "cuda" else torch.float32).eval()
        self._tokenizer = model.tokenizer
        self._prefix: str = model.prompts.get(model.default_prompt_name or "", "") or ""
        pooling = next((module for module in model if isinstance(module, Pooling)), None)
        if self._prefix and pooling is not None and not pooling.include_prompt:
            raise EncoderError(
                f"{ref} pools without its prompt {self._prefix!r}, which is not supported: save it without one"
            )
        if (dim := model.get_embedding_dimension()) is None:
            raise EncoderError(f"{ref} does not say how wide its vectors are: save it with a pooling module")
        self.dim: int = dim
        self._longest = min(model.max_seq_length or LONGEST, LONGEST)
        self.version: str = self._version()
        self._packed: PackedEncoder | None = None
        if self.device.type == "cuda" if packed is None else packed:
            self._packed = _packed_of(model, self.device)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(n, dim) float32, C-contiguous, unit rows, row i for texts[i]."""
        where, texts = self.device.type, [quieter(text) for text in texts]  # as models/encoders/onnx.py reads them
        with torch.inference_mode():
            if self._packed is not None:
                return encode_in_windows(
                    texts, self.dim, self.cleaning, self._prepare_packed, self._packed.start, WINDOW[where]
                )
            return encode_in_windows(texts, self.dim, self.cleaning, self._prepare, self._run, WINDOW[where])

    def _ids(self, cleaned: list[str]) -> list[list[int]]:
        texts = [self._prefix + text for text in cleaned]
        ids: list[list[int]] = self._tokenizer(texts, truncation=True, max_length=self._longest)["input_ids"]
        return ids

    def _prepare(self, cleaned: list[str]) -> list[tuple[np.ndarray, dict[str, torch.Tensor]]]:
        ids = self._ids(cleaned)
        return [
            (rows, dict(self._tokenizer.pad({"input_ids": [ids[i] for i in rows]}, return_tensors="pt")))
            for rows in micro_batches([len(post) for post in ids], TOKENS[self.device.type])
        ]

    def _prepare_packed(self, cleaned: list[str]) -> list[tuple[np.ndarray, Packed]]:
        ids = self._ids(cleaned)
        batches = packed_batches([len(post) for post in ids], TOKENS[self.device.type])
        assert self._packed is not None  # this is how texts are prepared for it
        return [(rows, self._packed.pack([ids[i] for i in rows])) for rows in batches]

    def _run(self, batch: dict[str, torch.Tensor]) -> Callable[[], np.ndarray]:
        features = {name: tensor.to(self.device, non_blocking=True) for name, tensor in batch.items()}
        vectors = self._model(features)["sentence_embedding"][:, : self.dim].float()
        vectors = torch.nn.functional.normalize(vectors, dim=-1)
        return lambda: vectors.cpu().numpy()

    def _version(self) -> str:
        """12 hex digits over the weights, the modules, their configuration, the tokenizer, the cleaning and what is
        read: what decides the vectors."""
        modules = [
            (type(module).__name__, getattr(module, "pooling_mode", None), getattr(module, "activation_function", None))
            for module in self._model
        ]
        told = self._model[0].auto_model.config.to_diff_dict()
        shape = sorted((name, value) for name, value in told.items() if name not in UNREAD)
        digest = hashlib.sha256(repr((modules, shape, self._longest, self._prefix, self.cleaning)).encode())
        digest.update(_pieces(self._tokenizer))
        for name, tensor in sorted(self._model.state_dict().items()):
            if ".pooler." in name:  # never read here, and drawn at random where a masked LM was saved without one
                continue
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
        return digest.hexdigest()[:12]


def _pieces(tokenizer: Any) -> bytes:
    """All that decides which pieces a text has: the tokenizer, or the files of one that is written in Python."""
    if (backend := getattr(tokenizer, "backend_tokenizer", None)) is not None:
        found: bytes = backend.to_str().encode()
        return found
    with TemporaryDirectory() as scratch:
        return b"".join(Path(path).read_bytes() for path in sorted(tokenizer.save_vocabulary(scratch)))


def _packed_of(model: SentenceTransformer, device: torch.device) -> PackedEncoder | None:
    """The model's weights for a packed forward; None if its modules or its shape are others."""
    modules: list[Any] = list(model)
    kinds = [type(module) for module in modules]
    plain = [Transformer, Pooling], [Transformer, Pooling, Normalize]
    projected = [Transformer, Pooling, Normalize, Dense, Normalize]
    if model.truncate_dim is not None or (kinds not in plain and kinds != projected):
        return None
    projection = None
    if kinds == projected:
        if not isinstance(modules[3].activation_function, torch.nn.Identity):
            return None
        projection = modules[3].linear
    body, pooling = modules[0].auto_model, modules[1].pooling_mode
    if pooling not in ("mean", "cls", "max") or refusal(body.config):
        return None
    return PackedEncoder(body, pooling, body.dtype, projection).to(device).eval()
