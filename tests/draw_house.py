"""Draw the rooms of the package and the arrows between them into CONTRIBUTING.md.

    python tests/draw_house.py

Rooms say what they are in the first line of their docstrings, the imports of all modules are the
arrows. A room stands one storey above the highest that it imports from. A test compares the drawing
with CONTRIBUTING.md.
"""

from __future__ import annotations

import ast
import textwrap
from functools import cache

import networkx as nx
from judges.imports import (
    FRONT,
    REPOSITORY,
    ROOT,
    imports_of_all,
    read_modules,
    room_of,
)

PAGE = REPOSITORY / "CONTRIBUTING.md"
BEGIN, END = "<!-- the house -->\n", "<!-- end of the house -->\n"
WIDTH, INDENT = 100, 22


@cache
def drawing() -> str:
    """Return the house as text, the highest storey first."""
    graph = arrows()
    storeys = [sorted(rooms) for rooms in nx.topological_generations(graph.reverse())]
    lines = []
    for storey, rooms in reversed([*enumerate(storeys)]):
        for i, room in enumerate(rooms):
            lines += _drawn(room, f"{storey}" if i == 0 else "", [*graph.successors(room)], storeys)
    return "\n".join(lines) + "\n"


def arrows() -> nx.DiGraph:
    """Return the rooms, an arrow from each to every other that its modules import from."""
    graph = nx.DiGraph()
    graph.add_nodes_from(room_of(module) for module in read_modules())
    for module, imported in imports_of_all().items():
        graph.add_edges_from((room_of(module), room_of(other)) for other in imported)
    graph.remove_edges_from([*nx.selfloop_edges(graph)])
    return graph


def with_drawing(page: str) -> str:
    """Return the page with its drawing made anew."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin, f"{PAGE.name} has no line {BEGIN.strip()}"
    assert end, f"{PAGE.name} has no line {END.strip()}"
    return f"{before}{begin}```text\n{drawing()}```\n{end}{after}"


def _drawn(room: str, storey: str, imported: list[str], storeys: list[list[str]]) -> list[str]:
    """Return a room's lines: what it is, whom it imports, the rooms within it."""
    high_first = [other for rooms in reversed(storeys) for other in rooms if other in imported]
    lines = _wrapped(f"{storey:>2}  {room}", _meaning(room))
    if high_first:
        lines += _wrapped("", "→ " + " ".join(high_first))
    for inner in _rooms_within(room):
        lines += _wrapped(f"      .{inner.removeprefix(f'{room}.')}", _meaning(inner))
    return lines


def _meaning(room: str) -> str:
    """Return the first line of a room's docstring; of the root, which has none, its modules."""
    if room == ROOT:
        leaves = sorted(name for name in read_modules() if room_of(name) == ROOT)
        return "leaves that anyone may use: " + " ".join(leaves)
    source = read_modules()["__init__" if room == FRONT else room]
    return ast.get_docstring(ast.parse(source)).partition("\n")[0]


def _rooms_within(room: str) -> list[str]:
    modules = read_modules()
    inner = {name for name in modules if any(other.startswith(f"{name}.") for other in modules)}
    return sorted(name for name in inner if name.startswith(f"{room}."))


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=f"{head:<{INDENT}}", subsequent_indent=" " * INDENT
    )


if __name__ == "__main__":
    text = with_drawing(PAGE.read_text(encoding="utf-8"))
    PAGE.write_text(text, encoding="utf-8")
