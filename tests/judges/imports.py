"""What our modules import, and the rooms that they lie in.

Imports count wherever they stand: at the top, inside functions, under ``TYPE_CHECKING``. What is
imported by name at run time does not: that a solver is chosen then is its purpose.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

# Where a package lies by the beginning of its modules' names.
FOLDERS = {"": "datacollect", "solvers.": "solvers", "topologies.": "topologies"}

# Modules that lie in no folder are leaves that anyone may use. Two are not: the package itself,
# which offers the public names, and ``python -m datacollect``.
ROOT = "root"
FRONT = "datacollect"
NOT_ROOT = {"__init__": FRONT, "__main__": "commands"}


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
def imports_of_all() -> dict[str, set[str]]:
    """Return for every module those of ours that it imports."""
    sources = read_modules()
    return {module: imports_of(text, set(sources)) for module, text in sources.items()}


@cache
def rooms() -> frozenset[str]:
    """Return the names of all rooms, the root and the package itself among them."""
    return frozenset(room_of(module) for module in read_modules())


def room_of(module: str) -> str:
    """Return the room that a module lies in, by its name within the package."""
    if module in NOT_ROOT:
        return NOT_ROOT[module]
    room, _, rest = module.partition(".")
    is_room = rest or any(name.startswith(f"{room}.") for name in read_modules())
    return room if is_room or room == "examples" else ROOT


def imports_of(source: str, modules: set[str]) -> set[str]:
    """Return the modules of ours that `source` imports.

    A name that `datacollect` itself offers counts as ``__init__``.
    """
    return {name for node in ast.walk(ast.parse(source)) for name in _names(node, modules)}


def _names(node: ast.AST, modules: set[str]) -> list[str]:
    if isinstance(node, ast.Import):
        paths = [alias.name.split(".") for alias in node.names]
        return [".".join(rest) or "__init__" for top, *rest in paths if top == "datacollect"]
    if not isinstance(node, ast.ImportFrom):
        return []
    assert node.level == 0, f"line {node.lineno}: relative import; name the module in full"
    top, *home = node.module.split(".")
    if top != "datacollect":
        return []
    # What follows `import` is a module or a name within one.
    inner = {".".join([*home, alias.name]) for alias in node.names}
    names = sorted(inner & modules)
    if inner - modules:
        names.append(".".join(home) or "__init__")
    return names
