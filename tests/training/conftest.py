"""What tests of training jobs share."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture
def one_thread(monkeypatch, tmp_path):
    """A cache of the test's own, and torch on one thread: small models lose time on more."""
    monkeypatch.setenv("CRISIS_CACHE", str(tmp_path / "cache"))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
