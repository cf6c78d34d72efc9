"""What makes a run this run and no other. Apart from the loop: what trains nothing need not load torch for it."""

from __future__ import annotations

import hashlib
import json

import msgspec
from msgspec import Struct

from models.encoders.load import folder_of

__all__ = ["run_key"]


def run_key(config: Struct, data_hash: str) -> str:
    """Every knob but where the output and its figures go, the data, and what lies in the folders and files that knobs
    name: a base that was trained again at the same place makes another run.
    """
    knobs = {name: value for name, value in msgspec.to_builtins(config).items() if name not in ("out", "result")}
    read = {name: contents for name, value in knobs.items() if (contents := _contents(value))}
    return json.dumps([knobs, data_hash, read], sort_keys=True)


def _contents(value: object) -> str:
    """A hash of the file, or of the files directly in the folder, that a knob names; "" if it names none."""
    path = folder_of(None if value == "bundled" else value) if isinstance(value, str) and value else None
    if path is None or not path.exists():
        return ""
    digest = hashlib.sha256()
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        if file.is_file():
            with file.open("rb") as content:
                digest.update(f"{file.name} {hashlib.file_digest(content, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()
