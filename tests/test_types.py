"""mypy, strict, over what pyproject.toml names. A test, so that it runs beside the others: it takes a third of one."""

import subprocess
import sys
from pathlib import Path


def test_models_and_the_pure_pipeline_keep_their_types():
    done = subprocess.run([sys.executable, "-m", "mypy"], cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no issues found" in done.stdout  # in some files, at least
