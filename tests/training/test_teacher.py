"""The teacher's own forward against sentence-transformers', and that a text is read once."""

from __future__ import annotations

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

from tests.models.tiny_transformer import TEXTS, save_tiny
from training import teacher

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A tiny BERT in the place of the teacher's package."""
    path = save_tiny(tmp_path, "bert")
    monkeypatch.setattr(teacher, "teacher_path", lambda: path)
    return path


def test_the_teacher_reads_as_sentence_transformers_does_whatever_stands_beside_a_text(folder, monkeypatch):
    monkeypatch.setattr(teacher, "TOKENS", 200)  # several batches, of texts of other lengths than their own
    texts = [text for text in TEXTS if text] * 9
    model = AutoModel.from_pretrained(folder).eval()
    ours = teacher._forward(model, AutoTokenizer.from_pretrained(folder), texts, max_length=32)
    theirs = SentenceTransformer(str(folder), device="cpu")
    theirs.max_seq_length = 32
    np.testing.assert_allclose(ours, theirs.encode(texts, normalize_embeddings=True), atol=2e-3)  # ours are float16
    assert ours.dtype == np.float16 and np.ptp(ours[:: len(texts) // 9], axis=0).max() < 2e-3


def test_a_text_is_read_once_and_a_source_added_at_the_end_costs_only_itself(folder, monkeypatch):
    monkeypatch.setattr(teacher, "BLOCK", 4)
    read = []
    real = teacher._forward
    monkeypatch.setattr(
        teacher, "_forward", lambda m, t, texts, length: read.append(texts) or real(m, t, texts, length)
    )
    texts = [f"text {i}" for i in range(6)]
    first = teacher.encode_with_teacher(texts)
    assert read == [texts[:4], texts[4:]]
    more = teacher.encode_with_teacher([*texts, "one more"])
    assert read[2:] == [["text 4", "text 5", "one more"]]
    np.testing.assert_array_equal(more[:4], first[:4])
    assert len(teacher.encode_with_teacher([])) == 0
