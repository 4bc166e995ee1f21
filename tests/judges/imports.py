"""Imports of our modules, the rooms and folders that they lie in, and circles among these.

Imports count wherever they stand: at the top, inside functions, under ``TYPE_CHECKING``. What is
imported by name at run time does not: that a solver is chosen then is its purpose.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import networkx as nx

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


def room_of(module: str) -> str:
    """Return the room that a module lies in, by its name within the package."""
    if module in NOT_ROOT:
        return NOT_ROOT[module]
    room, _, rest = module.partition(".")
    is_room = rest or any(name.startswith(f"{room}.") for name in read_modules())
    return room if is_room or room == "examples" else ROOT


@cache
def folders() -> frozenset[str]:
    """Return the names of all folders with modules in them."""
    names = (name.rpartition(".")[0] for name in read_modules())
    return frozenset(name for name in names if name)


def folder_of(module: str) -> str:
    """Return the folder that a module lies in; the docstring of a folder lies in the folder."""
    home = module if module in folders() else module.rpartition(".")[0]
    return home or room_of(module)


def folder_arrows() -> dict[str, set[str]]:
    """Return for every folder those that its own modules import from, itself left out."""
    found: dict[str, set[str]] = {folder_of(module): set() for module in read_modules()}
    for module, imported in imports_of_all().items():
        home = folder_of(module)
        found[home] |= {folder_of(other) for other in imported} - {home}
    return found


def circles(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the names that lead to each other, one list for each group of them.

    >>> circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}})
    [['b', 'c']]
    """
    graph = nx.from_dict_of_lists(arrows, create_using=nx.DiGraph)
    groups = nx.strongly_connected_components(graph)
    return sorted(sorted(group) for group in groups if len(group) > 1)


def circles_of_folders(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the circles among folders, whatever the depth down to which folders are looked at.

    Folders at that depth count with all that lies below them.

    >>> circles_of_folders({"a.b": {"c.d"}, "c.d": set(), "c.e": {"a.b"}})
    [['a', 'c']]
    """
    deepest = 1 + max(folder.count(".") for folder in arrows)
    found = {tuple(each) for n in range(deepest) for each in circles(down_to(n + 1, arrows))}
    return sorted(map(list, found))


def down_to(depth: int, arrows: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the arrows between folders that count with all that lies below that depth.

    >>> down_to(1, {"a.b": {"c.d", "a.e"}, "a": set()})
    {'a': {'c'}}
    """
    found: dict[str, set[str]] = {}
    for folder, others in arrows.items():
        home, *imported = (".".join(name.split(".")[:depth]) for name in (folder, *others))
        found.setdefault(home, set()).update({*imported} - {home})
    return found


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
