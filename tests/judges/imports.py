"""Places of our modules, and their sources. Which may import which, import-linter judges."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

# Where a package lies by the beginning of its modules' names.
FOLDERS = {"": "datacollect", "solvers.": "solvers", "topologies.": "topologies"}


@cache
def read_modules() -> dict[str, str]:
    """Return the source of every module by its name within the package; a room's is its own."""
    sources = {}
    for prefix, folder in FOLDERS.items():
        # rglob does not follow links: solvers and topologies are read once, where they lie.
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            name = prefix + ".".join(path.relative_to(REPOSITORY / folder).with_suffix("").parts)
            sources[name.removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    return sources


@cache
def packages_imported() -> dict[str, set[str]]:
    """Return the packages that each module imports, wherever the import stands."""
    return {name: _packages_imported(source) for name, source in read_modules().items()}


def _packages_imported(source: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module))
    return {name.partition(".")[0] for name in names}
