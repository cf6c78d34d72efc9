"""Topics of their own for tests that share a broker."""

from __future__ import annotations

import uuid


def fresh_prefix() -> str:
    """A topic prefix nobody else uses."""
    return f"t{uuid.uuid4().hex[:8]}."
