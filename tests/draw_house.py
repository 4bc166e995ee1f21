"""Print the rooms of the package, storey by storey, with the arrows between them.

    python tests/draw_house.py

Rooms say what they are in the first line of their docstrings; the imports of all modules are the
arrows, wherever an import stands. A room stands one storey above the highest that it imports from.
Rooms within a room begin with a dot. `make lint` judges which arrows there may be.
"""

from __future__ import annotations

import ast
import sys
import textwrap

import grimp
import networkx as nx
from judges.imports import read_modules

WIDTH, INDENT = 100, 28
PACKAGE = "datacollect"


def main() -> None:
    """Print the house."""
    sys.stdout.write("\n".join(house()) + "\n")


def house() -> list[str]:
    """Return the lines of the drawing, the highest storey first."""
    imports = grimp.build_graph(PACKAGE, cache_dir=None)
    for room in imports.find_children(PACKAGE):
        imports.squash_module(room)
    rooms = {
        room: imports.find_modules_directly_imported_by(room) - {room} for room in imports.modules
    }
    graph = nx.from_dict_of_lists(rooms, create_using=nx.DiGraph).reverse()
    storeys = [sorted(storey) for storey in nx.topological_generations(graph)]
    high_first = [room for storey in reversed(storeys) for room in storey]
    lines = []
    for number, storey in reversed([*enumerate(storeys)]):
        for i, room in enumerate(storey):
            imported = [_short(other) for other in high_first if other in rooms[room]]
            lines += _drawn(_short(room), f"{number}" if i == 0 else "", imported)
    return lines


def _short(module: str) -> str:
    return module.removeprefix(f"{PACKAGE}.")


def _drawn(room: str, storey: str, imported: list[str]) -> list[str]:
    """Return a room's lines: what it is, whom it imports, the rooms within it."""
    lines = _wrapped(f"{storey:>2}  {room}", _meaning(room))
    if imported:
        lines += _wrapped("", "→ " + " ".join(imported))
    names = read_modules()
    inner = {name.rpartition(".")[0] for name in names if name.startswith(f"{room}.")} - {room}
    for name in sorted(each for each in inner if each in names):
        lines += _wrapped(f"      .{name.removeprefix(f'{room}.')}", _meaning(name))
    return lines


def _meaning(room: str) -> str:
    """Return the first line of a room's docstring."""
    source = read_modules()["__init__" if room == PACKAGE else room]
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=f"{head:<{INDENT}}", subsequent_indent=" " * INDENT
    )


if __name__ == "__main__":
    main()
