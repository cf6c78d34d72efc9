"""A transformer exported by `training.export_onnx`, run by ONNX Runtime on the CPU; no torch.

int8 bundles quantise activations by scales fixed at export, so a post's vector does not hang on the posts beside it, as
it does where scales are taken from each batch. One thread a session: run one worker process a core (two threads in one
process gave 1.6 times one thread's speed, two processes 2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from models.encoders.batching import encode_in_windows, micro_batches, pad
from models.encoders.bundle import Bundle
from models.encoders.shouting import quieter
from models.errors import BundleError
from models.text import Cleaning

__all__ = ["MODEL", "OnnxEncoder", "session"]

MODEL = "model.onnx"
TOKENS = 256  # in a batch, padding counted: its widest rows stay in the cache of one core; 512 took 5 % longer


class OnnxEncoder:
    """`Encoder` over a bundle whose back-end is "onnx". Raises BundleError if its graph cannot be run here."""

    def __init__(self, bundle: Bundle, threads: int = 1) -> None:
        manifest = bundle.manifest
        self.version: str = manifest.id
        self.dim: int = manifest.dim
        self.cleaning: Cleaning = manifest.cleaning
        self._prefix = str(manifest.settings.get("prefix", ""))
        self._tokenizer = Tokenizer.from_file(str(bundle.path / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(manifest.max_length)
        self._session = session((bundle.path / MODEL).read_bytes(), threads)
        shape = self._session.get_outputs()[0].shape
        if shape[1] != self.dim:
            raise BundleError(f"{bundle.path}: {MODEL} gives vectors of dim {shape[1]}, the manifest says {self.dim}")

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """(n, dim) float32, C-contiguous, unit rows, row i for texts[i]."""
        return encode_in_windows([quieter(text) for text in texts], self.dim, self.cleaning, self._prepare, self._run)

    def _prepare(self, cleaned: list[str]) -> list[tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]]:
        ids = [found.ids for found in self._tokenizer.encode_batch_fast([self._prefix + text for text in cleaned])]
        return [(rows, pad([ids[i] for i in rows])) for rows in micro_batches([len(post) for post in ids], TOKENS)]

    def _run(self, batch: tuple[np.ndarray, np.ndarray]) -> Callable[[], np.ndarray]:
        (vectors,) = self._session.run(None, {"ids": batch[0], "mask": batch[1]})
        return lambda: vectors


def session(model: bytes, threads: int = 1) -> onnxruntime.InferenceSession:
    """A session on the CPU. Raises BundleError if ONNX Runtime refuses the model."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Its one kernel for "add, then normalise" takes 5 times as long as the two it replaces (1.31.1, 512 × 384 floats).
    refused = ["SkipLayerNormFusion"]
    try:
        return onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"], disabled_optimizers=refused
        )
    except Exception as error:  # its errors share no base class but Exception
        raise BundleError(f"ONNX Runtime {onnxruntime.__version__} refuses {MODEL}: {error}") from error
