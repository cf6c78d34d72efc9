"""What is loaded: the pure floor without clients, a replay without a broker, models without torch."""

import subprocess
import sys

import psutil
import pytest

from streams.commands.key import make_key
from streams.commands.topics import prepare
from streams.config import load_settings
from tests.house import ROOT, dotted, imports, modules
from tests.outputs.topics import fresh_prefix
from tests.services.kafka import free_ports
from tests.waiting import PATIENCE_S, wait_until
from tests.worker.test_worker import FAUST, RUNNING, running

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


def test_fausts_own_command_with_its_defaults_listens_nowhere_but_where_the_settings_say(
    embedded_broker, embedded_redis_url, tmp_path
):
    make_key(tmp_path / "key")
    settings = load_settings(
        broker={"bootstrap": embedded_broker},
        topics={"prefix": fresh_prefix()},
        redis={"url": embedded_redis_url},
        privacy={"key_file": tmp_path / "key"},
    )
    prepare(settings)
    (port,) = free_ports(1)
    log = tmp_path / "log"
    with running([word for word in FAUST if word != "--without-web"], settings, tmp_path, port) as worker:
        wait_until(lambda: worker.poll() is not None or RUNNING in log.read_text(), log.read_text)
        assert worker.poll() is None, log.read_text()
        listens = {c.laddr for c in psutil.Process(worker.pid).net_connections("inet") if c.status == "LISTEN"}
    assert listens == {("127.0.0.1", port)}


@pytest.mark.parametrize(
    ("ref", "told"),
    [
        ("flod", r"no such bundle, folder or hub id: 'flod' \(did you mean 'flood'\?\); bundled are reader and flood"),
        ("/srv/encoders/none", "no such bundle, folder or hub id"),
        ("./encoders/none", "no such bundle, folder or hub id"),
        ("encoders/none", r"no folder here, and as a hub id run by torch: pip install '\.\[torch\]'"),
    ],
)
def test_an_encoder_that_is_not_there_is_told_before_anything_is_asked_to_be_installed(ref, told):
    run_without(
        tuple(sorted(HEAVY)),
        "import re\nfrom models.encoders.load import load_encoder\nfrom models.errors import EncoderError\n"
        f"try:\n    load_encoder({ref!r})\nexcept EncoderError as error:\n"
        f"    assert re.search({told!r}, str(error)), error\nelse:\n    raise SystemExit('loaded')\n",
    )
