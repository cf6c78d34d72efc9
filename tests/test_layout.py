"""The rooms of the house, and which may import which."""

import ast
from pathlib import Path

import pytest

from tests.house import ROOT, dotted, imports, modules, modules_imported, names_imported, parsed, public


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
    "ingest": {"broker", "view", "web"},
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


def test_a_module_imports_of_another_what_that_names_in_all_and_nothing_that_begins_with_an_underscore():
    houses = {dotted(path): path for package in ("models", "streams", "training") for path in modules(package)}
    taken = {(path, *place) for path in houses.values() for place in names_imported(path, houses)}
    private = {(str(p.relative_to(ROOT)), m, n) for p, m, n in taken if n.startswith("_") and not n.endswith("__")}
    assert not private
    unnamed = {
        f"{name} is not in __all__ of {module}, and {path.relative_to(ROOT)} imports it"
        for path, module, name in taken
        if name not in (public(houses[module]) or ()) and not name.endswith("__")
        if f"{module}.{name}" not in houses
    }
    assert not unnamed


def test_redis_is_reached_through_the_view_and_kafka_s_clients_are_where_records_are_read_or_sent():
    """Elsewhere only their errors are known. The worker's Kafka clients are Faust's, and what mends them."""
    found: dict[str, set[str]] = {"redis": set(), "kafka": set()}
    for path in modules("streams"):
        for name in imports(path):
            library, _, part = name.partition(".")
            if library in ("redis", "kafka", "aiokafka") and not part.startswith(("exceptions", "errors")):
                found[library.removeprefix("aio")].add(str(path.relative_to(ROOT / "streams")))
    assert {name.split("/")[0] for name in found["redis"]} == {"view"}
    outside = {name for name in found["kafka"] if name.split("/")[0] not in ("broker", "embedded", "worker")}
    assert outside == {"ingest/writer.py", "outputs/follow.py", "search/window.py"}


ONE_OF_EACH = {  # what only one module may import or call, and which
    "gzip": {"training/files.py", "streams/ingest/lines.py"},  # the readers of the two worlds, which share no code
    "csv": {"streams/ingest/cells.py", "streams/outputs/table.py"},  # read in the one, written in the other
    "tenacity": {"streams/broker/backoff.py"},
}


@pytest.mark.parametrize("library", ONE_OF_EACH)
def test_files_are_read_and_pauses_made_in_one_place(library):
    found = {
        str(path.relative_to(ROOT))
        for package in ("models", "streams", "training")
        for path in modules(package)
        if library in {name.split(".")[0] for name in imports(path)}
    }
    assert found == ONE_OF_EACH[library]


def test_who_wants_a_matcher_asks_ready():
    """One way from a version to what scores posts, and to the encoder that serves."""
    found = {
        (str(path.relative_to(ROOT)), node.func.id)
        for package in ("models", "streams", "training")
        for path in modules(package)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert {path for path, name in found if name == "Matcher"} == {"models/encoders/ready.py"}
    assert not {path for path, name in found if name == "load_encoder" and path.startswith("streams/")}


def test_faust_is_only_in_the_worker():
    wrong = {
        str(p.relative_to(ROOT))
        for p in modules("streams")
        if p.relative_to(ROOT).parts[1] != "worker" and any(i.split(".")[0] == "faust" for i in imports(p))
    }
    assert not wrong
