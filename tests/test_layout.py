"""The direction of imports, and what may not be in the tree."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parents[1]
HEAVY = {"torch", "transformers", "sentence_transformers", "onnxruntime"}


def modules(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found, f"no module in {package}: the walk is looking in the wrong place"
    return found


@cache
def parsed(path: Path) -> ast.Module:
    """A file is asked for many times over."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path, top_level_only: bool = False) -> set[str]:
    """The modules a file imports (without those under `if TYPE_CHECKING`)."""
    tree = parsed(path)
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    typing_only = {
        n
        for b in ast.walk(tree)
        if isinstance(b, ast.If) and getattr(b.test, "id", "") == "TYPE_CHECKING"
        for n in ast.walk(b)
    }
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


# Each room of streams/ and the rooms it may import; config and metrics lie below all rooms.
ROOMS: dict[str, set[str]] = {
    "config": set(),
    "pipeline": set(),
    "broker": set(),
    "embedded": set(),
    "web": set(),
    "view": {"pipeline"},
    "ingest": {"broker", "web"},
    "outputs": {"broker"},
    "releases": {"pipeline", "broker", "view", "ingest"},
    "search": {"pipeline", "broker", "releases"},
    "worker": {"pipeline", "broker", "view", "releases", "web"},
    "dashboard": {"pipeline", "broker", "view", "outputs", "search", "web"},
    "commands": {
        "pipeline",
        "broker",
        "embedded",
        "view",
        "ingest",
        "outputs",
        "releases",
        "search",
        "worker",
        "dashboard",
    },
}
ON_TOP = {"app", "cli", "metrics"}  # modules of streams/ that lie in no room


def rooms_imported(path: Path) -> set[str]:
    """The rooms and top modules of streams/ that a file imports."""
    tree = parsed(path)
    names = {
        f"streams.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "streams"
        for alias in node.names
    }
    return {name.split(".")[1] for name in imports(path) | names if name.startswith("streams.")}


def test_streams_has_these_rooms_and_nothing_beside_them():
    here = ROOT / "streams"
    folders = {p.name for p in here.iterdir() if p.is_dir() and any(p.rglob("*.py"))}
    assert folders == set(ROOMS)
    assert {p.stem for p in here.glob("*.py")} - {"__init__"} == ON_TOP


def test_no_room_imports_one_above_it():
    wrong = {
        (str(path.relative_to(ROOT)), found)
        for room, below in ROOMS.items()
        for path in modules(f"streams/{room}")
        for found in rooms_imported(path) - below - {room, "config", "metrics"}
    }
    assert not wrong


def test_the_rooms_have_floors():
    """The table itself allows no circle: every room can be put above all it may import."""
    floors: list[set[str]] = []
    left = dict(ROOMS)
    while left:
        floor = {room for room, below in left.items() if not below & set(left)}
        assert floor, f"a circle among {sorted(left)}"
        floors.append(floor)
        left = {room: below for room, below in left.items() if room not in floor}
    assert floors[-1] == {"commands"}


def test_settings_and_metrics_import_no_room():
    low = [*modules("streams/config"), ROOT / "streams" / "metrics.py"]
    assert not {(path.name, room) for path in low for room in rooms_imported(path) - {"config"}}


def test_no_module_of_the_house_imports_itself_by_a_detour():
    graph: dict[str, set[str]] = {}
    for package in ("models", "streams", "training"):
        for path in modules(package):
            graph[dotted(path)] = set()
    for package in ("models", "streams", "training"):
        for path in modules(package):
            graph[dotted(path)] = (modules_imported(path) & set(graph)) - {dotted(path)}
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " → ".join((*way[way.index(module) :], module))
        if module not in done:
            for below in graph[module]:
                visit(below, (*way, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def modules_imported(path: Path) -> set[str]:
    """Every module a file may import by name: `from a import b` is a.b, and a only where there is no module a.b."""
    found = set()
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                below = ROOT / Path(*node.module.split("."), alias.name)
                found.add(
                    f"{node.module}.{alias.name}"
                    if below.is_dir() or below.with_suffix(".py").exists()
                    else node.module
                )
    return found


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def public(path: Path) -> set[str] | None:
    """What a module's `__all__` names; None without one."""
    for node in parsed(path).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return set(ast.literal_eval(node.value))
    return None


def names_imported(path: Path, houses: dict[str, Path]) -> set[tuple[str, str]]:
    """(module, name) of everything a file takes from another module of the house, `module.name` and lazy rows too."""
    source = path.read_text(encoding="utf-8")
    tree = parsed(path)
    found = {tuple(place) for place in re.findall(r'"((?:models|streams|training)[\w.]*):(\w+)"', source)}
    whole: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (full := f"{node.module}.{alias.name}") in houses:
                    whole[alias.asname or alias.name] = full
                else:
                    found.add((node.module, alias.name))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in whole:
            found.add((whole[node.value.id], node.attr))
    return {place for place in found if place[0] in houses and houses[place[0]] != path}


def test_other_rooms_import_what_a_module_names_in_all_and_nobody_what_begins_with_an_underscore():
    houses = {dotted(path): path for package in ("models", "streams", "training") for path in modules(package)}
    taken = {(path, *place) for path in houses.values() for place in names_imported(path, houses)}
    private = {(str(p.relative_to(ROOT)), m, n) for p, m, n in taken if n.startswith("_") and not n.endswith("__")}
    assert not private
    unnamed = {
        f"{name} is not in __all__ of {module}, and {path.relative_to(ROOT)} imports it"
        for path, module, name in taken
        if path.parent != houses[module].parent and not name.endswith("__")
        if name not in (public(houses[module]) or ())
    }
    assert not unnamed


def test_faust_is_only_in_the_worker():
    wrong = {
        str(p.relative_to(ROOT))
        for p in modules("streams")
        if p.relative_to(ROOT).parts[1] != "worker" and any(i.split(".")[0] == "faust" for i in imports(p))
    }
    assert not wrong


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
        "streams.commands.search",  # noqa: E501
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


@pytest.mark.parametrize("package", ["models", "streams", "training"])
def test_no_pickle_and_no_bare_except(package):
    for path in modules(package):
        tree = parsed(path)
        assert not {i for i in imports(path) if i.split(".")[0] in ("pickle", "dill", "joblib")}, path
        bare = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.ExceptHandler) and n.type is None]
        assert not bare, (path, bare)


CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time"}


def test_no_test_asserts_what_a_clock_says():
    """A busy machine fails such a test. Wait with tests/waiting.py, or give a clock of your own."""
    files = [p for p in (ROOT / "tests").rglob("*.py") if p.name != "waiting.py"]
    assert len(files) > 100
    wrong = {
        f"{p.relative_to(ROOT)}:{node.lineno}"
        for p in files
        for node in ast.walk(ast.parse(p.read_text()))
        if isinstance(node, ast.Assert)
        and any(isinstance(part, ast.Attribute) and part.attr in CLOCKS for part in ast.walk(node))
    }
    assert not wrong
