"""What tests of encoders and their bundles share."""

from pathlib import Path

import pytest

from models.encoders.bundle import write_bundle
from tests.models.tiny_bundle import tiny_files, tiny_manifest


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """The directory of a bundle with a table of forty pieces."""
    write_bundle(tmp_path / "tiny", tiny_manifest(), tiny_files())
    return tmp_path / "tiny"
