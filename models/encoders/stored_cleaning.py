"""How a model read its text while it learnt, kept beside its weights: `cleaning.json` in its directory."""

from __future__ import annotations

from pathlib import Path

import msgspec

from models.errors import EncoderError
from models.text import Cleaning

__all__ = ["store_cleaning", "stored_cleaning"]

FILE = "cleaning.json"
# The CrisisTransformers sentence encoders of 2024 were published without such a file; all others read @USER.
_PUBLISHED = {"CT-XLMR-SE", "CT-mBERT-SE"}


def store_cleaning(folder: Path, cleaning: Cleaning) -> None:
    """Write it into a model's directory."""
    (folder / FILE).write_bytes(msgspec.json.encode(cleaning) + b"\n")


def stored_cleaning(ref: str | Path) -> Cleaning:
    """What the directory says; without a file, or of a hub id, what is known by name, else the default.

    Raises EncoderError where the file cannot be read.
    """
    path = Path(ref) / FILE
    if path.exists():
        try:
            return msgspec.json.decode(path.read_bytes(), type=Cleaning)
        except msgspec.MsgspecError as error:
            raise EncoderError(f"{path} does not say how text is cleaned: {error}") from None
    return Cleaning(mention_token="@MENTION") if Path(ref).name in _PUBLISHED else Cleaning()
