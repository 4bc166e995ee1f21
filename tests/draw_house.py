"""Print the rooms of the package with the arrows between them, and circles of files or folders.

    python tests/draw_house.py

Rooms say what they are in the first line of their docstrings; the imports of all modules are the
arrows, wherever an import stands. A room stands one storey above the highest that it imports from.
Rooms within a room begin with a dot. Code 1 where files or folders import each other in a circle.
"""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Mapping

import networkx as nx
from judges.imports import (
    FRONT,
    ROOT,
    circles,
    circles_of_folders,
    down_to,
    folder_arrows,
    folders,
    imports_of_all,
    read_modules,
    room_of,
)

WIDTH, INDENT = 100, 22


def main() -> int:
    """Print the house, and return 1 where it has a circle."""
    arrows = folder_arrows()
    rooms = down_to(1, arrows)
    found = [f"circle of files: {', '.join(circle)}" for circle in circles(imports_of_all())]
    found += [f"circle of folders: {', '.join(circle)}" for circle in circles_of_folders(arrows)]
    # Rooms that import each other stand on no storey.
    drawn = [] if circles(rooms) else house(rooms)
    sys.stdout.write("\n".join([*drawn, *(found or ["no circle of files or folders"])]) + "\n")
    return 1 if found else 0


def house(arrows: Mapping[str, set[str]]) -> list[str]:
    """Return the lines of the drawing, the highest storey first."""
    graph = nx.from_dict_of_lists(arrows, create_using=nx.DiGraph)
    storeys = [sorted(rooms) for rooms in nx.topological_generations(graph.reverse())]
    high_first = [room for rooms in reversed(storeys) for room in rooms]
    lines = []
    for storey, rooms in reversed([*enumerate(storeys)]):
        for i, room in enumerate(rooms):
            imported = [other for other in high_first if other in arrows[room]]
            lines += _drawn(room, f"{storey}" if i == 0 else "", imported)
    return lines


def _drawn(room: str, storey: str, imported: list[str]) -> list[str]:
    """Return a room's lines: what it is, whom it imports, the rooms within it."""
    lines = _wrapped(f"{storey:>2}  {room}", _meaning(room))
    if imported:
        lines += _wrapped("", "→ " + " ".join(imported))
    for inner in sorted(name for name in folders() if name.startswith(f"{room}.")):
        lines += _wrapped(f"      .{inner.removeprefix(f'{room}.')}", _meaning(inner))
    return lines


def _meaning(room: str) -> str:
    """Return the first line of a room's docstring; of the root, which has none, its modules."""
    if room == ROOT:
        leaves = sorted(name for name in read_modules() if room_of(name) == ROOT)
        return "leaves that anyone may use: " + " ".join(leaves)
    source = read_modules()["__init__" if room == FRONT else room]
    return (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=f"{head:<{INDENT}}", subsequent_indent=" " * INDENT
    )


if __name__ == "__main__":
    sys.exit(main())
