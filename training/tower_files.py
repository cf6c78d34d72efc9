"""A trained tower as a directory that sentence-transformers and `training.export_onnx` read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from training.tower import Tower

__all__ = ["write_evening", "write_tower"]


def write_tower(tower: Tower, out: Path, mean: np.ndarray | None = None, turn: np.ndarray | None = None) -> Path:
    """The model with its tokenizer and prompt; with `mean` (d,) and `turn` (d, d) their evening-out as a linear module
    behind the pooling: what reads the directory then gets vectors in the evened space.
    """
    shutil.copytree(tower.folder, out, dirs_exist_ok=True)
    tower.model.save_pretrained(out)
    if mean is not None and turn is not None:
        write_evening(out, turn, -mean @ turn)
    return out


def write_evening(out: Path, turn: np.ndarray, bias: np.ndarray) -> None:
    """A module behind the pooling that gives normalise(v @ turn + bias). turn: (d, d); bias: (d,)."""
    kinds = ["Transformer", "Pooling", "Normalize", "Dense", "Normalize"]
    folders = ["", "1_Pooling", "2_Normalize", "3_Dense", "4_Normalize"]
    modules = [
        {"idx": i, "name": str(i), "path": folder, "type": f"sentence_transformers.models.{kind}"}
        for i, (kind, folder) in enumerate(zip(kinds, folders, strict=True))
    ]
    for folder in folders[1:]:
        (out / folder).mkdir(exist_ok=True)
    (out / "modules.json").write_text(json.dumps(modules, indent=1) + "\n")
    width = len(bias)
    identity = "torch.nn.modules.linear.Identity"
    dense = {"in_features": width, "out_features": width, "bias": True, "activation_function": identity}
    (out / "3_Dense" / "config.json").write_text(json.dumps(dense, indent=1) + "\n")
    tensors = {
        "linear.weight": torch.from_numpy(np.ascontiguousarray(turn.T, np.float32)),
        "linear.bias": torch.from_numpy(bias.astype(np.float32)),
    }
    save_file(tensors, str(out / "3_Dense" / "model.safetensors"))
