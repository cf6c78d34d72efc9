"""What the tests of the house see of it: its modules and what each imports."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]


def modules(package: str) -> list[Path]:
    found = sorted((ROOT / package).rglob("*.py"))
    assert found, f"no module in {package}: the walk is looking in the wrong place"
    return found


@cache
def parsed(path: Path) -> ast.Module:
    """A file is asked for many times over."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
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
