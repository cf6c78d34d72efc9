"""The direction of imports, and what may not be in the tree."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = {"torch", "transformers", "sentence_transformers", "onnxruntime"}


def modules(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found, f"no module in {package}: the walk is looking in the wrong place"
    return found


def imports(path: Path, top_level_only: bool = False) -> set[str]:
    """The modules a file imports (without those under `if TYPE_CHECKING`)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    typing_only = {
        n for b in ast.walk(tree)
        if isinstance(b, ast.If) and getattr(b.test, "id", "") == "TYPE_CHECKING" for n in ast.walk(b)
    }  # fmt: skip
    found = set()
    for node in nodes:
        if node in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def test_models_know_neither_streams_nor_training_nor_any_service():
    banned = ("streams", "training", "faust", "kafka", "aiokafka", "redis", "starlette", "uvicorn", "httpx", "click")
    wrong = {(p.name, i) for p in modules("models") for i in imports(p) if i.split(".")[0] in banned}
    assert not wrong


def test_streams_and_training_never_import_each_other():
    wrong = {(p.name, i) for p in modules("streams") for i in imports(p) if i.split(".")[0] == "training"}
    wrong |= {(p.name, i) for p in modules("training") for i in imports(p) if i.split(".")[0] == "streams"}
    assert not wrong


def test_faust_is_only_where_the_wiring_is():
    allowed = {"app.py", "agents.py", "outbox.py", "kafka.py", "worker.py"}
    wrong = {p.name for p in modules("streams") if any(i.split(".")[0] == "faust" for i in imports(p))} - allowed
    assert not wrong


def test_nothing_heavy_is_imported_at_the_top_of_models_or_streams():
    wrong = {
        (p.name, i)
        for package in ("models", "streams")
        for p in modules(package)
        if p.name not in ("transformer.py", "packed.py", "onnx.py", "characters.py")
        for i in imports(p, top_level_only=True)
        if i.split(".")[0] in HEAVY
    }
    assert not wrong


def test_the_core_runs_without_torch():
    code = (
        "import sys\n"
        f"blocked = {sorted(HEAVY)!r}\n"
        "class Block:\n"
        "    def find_spec(self, name, *a):\n"
        "        if name.split('.')[0] in blocked: raise ImportError(name)\n"
        "sys.meta_path.insert(0, Block())\n"
        "from models.encoder import load_encoder\n"
        "import streams.app, streams.replay, streams.cli\n"
        "assert load_encoder().encode(['help']).shape[0] == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("package", ["models", "streams", "training"])
def test_no_pickle_and_no_bare_except(package):
    for path in modules(package):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not {i for i in imports(path) if i.split(".")[0] in ("pickle", "dill", "joblib")}, path
        bare = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.ExceptHandler) and n.type is None]
        assert not bare, (path, bare)
