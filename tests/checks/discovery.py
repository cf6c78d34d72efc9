"""Which implementations of a contract there are: read from the sources, so that none is forgotten."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]


def classes_with(methods: set[str], *folders: str) -> set[str]:
    """Names of the classes under these folders that have all the methods, Protocols left out."""
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    assert files, f"no module in {folders}: the walk looks in the wrong place"
    found = set()
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ClassDef) or "Protocol" in {getattr(base, "id", "") for base in node.bases}:
                continue
            own = {part.name for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)}
            given = {  # self.gone = view.gone
                target.attr
                for part in ast.walk(node)
                if isinstance(part, ast.Assign)
                for whole in part.targets
                for target in (whole.elts if isinstance(whole, ast.Tuple) else [whole])
                if isinstance(target, ast.Attribute)
            }
            if methods <= own | given:
                found.add(node.name)
    return found
