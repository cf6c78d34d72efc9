"""What may stand in no file: pickle, a bare except, a test that judges a clock."""

import ast

import pytest

from tests.house import ROOT, imports, modules, parsed


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


def test_no_consumer_commits_by_itself():
    """aiokafka's default. Where the broker is away `stop()` then commits for ever, and read is not worked off."""
    calls = {
        f"{path.relative_to(ROOT)}:{node.lineno}": {keyword.arg for keyword in node.keywords}
        for package in ("streams", "tests")
        for path in modules(package)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call)
        and "AIOKafkaConsumer" in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""))
    }
    assert len(calls) > 10
    assert not [place for place, given in calls.items() if "enable_auto_commit" not in given]


def test_the_formatter_passes_over_nothing_but_tables():
    """A table of short cells reads by rows; one cell to a line it would be many times as long."""
    for path in [p for package in ("models", "streams", "training", "tests") for p in modules(package)]:
        lines = path.read_text(encoding="utf-8").split("\n")
        skipped = {n for n, line in enumerate(lines, 1) if line.endswith("  # fmt: skip")}
        tables = {
            node.end_lineno
            for node in ast.walk(parsed(path))
            if isinstance(node, ast.Dict | ast.List | ast.Tuple | ast.Set | ast.Call)
            and sum(isinstance(part, ast.Constant) for part in ast.walk(node)) > 3 * (node.end_lineno - node.lineno)
        }
        assert skipped <= {at + more for at in tables for more in (0, 1)}, path
        assert not any("fmt: off" in line for line in lines if "assert" not in line), path
