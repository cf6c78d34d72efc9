"""A static table on its way from job to job: a folder that training.distill or training.robust wrote, or a bundle."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
from msgspec import Struct
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from models.encoders.bundle import MANIFEST, read_bundle
from models.encoders.static import Reader, Reading, reading_of
from models.errors import ConfigError
from models.text import Cleaning

__all__ = ["Run", "read_run"]


class Run(Struct, frozen=True):
    """What is needed to go on from it."""

    table: np.ndarray  # (rows, dim) float32
    empty: np.ndarray  # (dim,): what a text without a feature is
    reading: Reading
    cleaning: Cleaning
    tokenizer: Tokenizer
    record: dict  # training, data_hashes, pairs_by_language: how it was made

    @property
    def reader(self) -> Reader:
        return Reader(self.tokenizer, self.cleaning, self.reading)


def read_run(folder: Path) -> Run:
    """Read it. Raises ConfigError if the folder is neither."""
    tokenizer = folder / "tokenizer.json"
    if (folder / MANIFEST).exists():
        manifest = read_bundle(folder).manifest
        if manifest.backend != "static":
            raise ConfigError(
                f"{folder} is an encoder of the back-end {manifest.backend}: only a table goes on, as flood's"
            )
        tensors = load_file(folder / "model.safetensors")
        table = tensors["rows"].astype(np.float32) * tensors["scales"][:, None]
        record = {
            "training": manifest.training,
            "data_hashes": manifest.data_hashes,
            "pairs_by_language": {lang: f.pairs for lang, f in manifest.languages.items() if f.pairs},
        }
        return Run(
            table,
            tensors["empty"],
            reading_of(manifest),
            manifest.cleaning,
            Tokenizer.from_file(str(tokenizer)),
            record,
        )
    if (folder / "run.json").exists():
        record = msgspec.json.decode((folder / "run.json").read_bytes())
        tensors = load_file(folder / "model.safetensors")
        reading = msgspec.convert(record.pop("reading"), Reading)
        return Run(tensors["table"], tensors["empty"], reading, Cleaning(), Tokenizer.from_file(str(tokenizer)), record)
    raise ConfigError(
        f"{folder} is neither a bundle ({MANIFEST}) nor a run of training.distill or training.robust (run.json)"
    )
