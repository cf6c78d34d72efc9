"""What is loaded: the pure floor without clients, a replay without a broker, models without torch."""

import subprocess
import sys

import pytest

from tests.house import ROOT, dotted, imports, modules
from tests.waiting import PATIENCE_S

HEAVY = {"torch", "transformers", "sentence_transformers", "onnxruntime"}


def run_without(blocked: tuple[str, ...], code: str) -> None:
    """Run code in a process of its own in which these packages cannot be imported."""
    block = (
        "import sys\n"
        f"blocked = {blocked!r}\n"
        "class Block:\n"
        "    def find_spec(self, name, *a):\n"
        "        if name.split('.')[0] in blocked: raise ImportError(f'{name} is blocked')\n"
        "sys.meta_path.insert(0, Block())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", block + code], capture_output=True, text=True, timeout=PATIENCE_S, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-2000:]


CLIENTS = ("kafka", "aiokafka", "redis", "faust", "pydantic_settings")


BACK_ENDS = {"transformer", "packed", "onnx", "characters"}  # each needs its extra


def test_models_and_the_pipeline_import_no_client_however_far_one_follows():
    pure = [dotted(p) for room in ("models", "streams/pipeline") for p in modules(room) if p.stem not in BACK_ENDS]
    assert len(pure) > 40
    run_without((*CLIENTS, "click"), f"import importlib\nfor name in {pure!r}: importlib.import_module(name)\n")


@pytest.mark.parametrize(
    "module",
    [
        "streams.cli",
        "streams.commands.replay",
        "streams.dashboard.app",
        "streams.commands.query",
        "streams.commands.search",
        "streams.commands.encoder",
        "streams.commands.ingest",
        "streams.commands.demo",
        "streams.commands.worker",
    ],
)
def test_what_is_no_worker_starts_without_faust(module):
    run_without(("faust",), f"import {module}\n")


def test_a_replay_starts_without_any_client():
    run_without(("kafka", "aiokafka", "redis", "faust"), "import streams.commands.replay\n")


def test_the_help_is_shown_without_settings_or_any_command():
    run_without(
        (*CLIENTS, "numpy", "msgspec", "rich"),
        "from click.testing import CliRunner\nfrom streams.cli import crisis\n"
        "done = CliRunner().invoke(crisis, ['--help'])\n"
        "assert done.exit_code == 0, done.output\n",
    )


def test_nothing_heavy_is_imported_at_the_top_of_models_or_streams():
    wrong = {
        (p.name, i)
        for package in ("models", "streams")
        for p in modules(package)
        if p.stem not in BACK_ENDS
        for i in imports(p, top_level_only=True)
        if i.split(".")[0] in HEAVY
    }
    assert not wrong


def test_the_core_runs_without_torch():
    run_without(
        tuple(sorted(HEAVY)),
        "from models.encoders.load import load_encoder\n"
        "import streams.worker.app, streams.pipeline.replay, streams.cli\n"
        "assert load_encoder('flood').encode(['help']).shape[0] == 1\n",
    )
