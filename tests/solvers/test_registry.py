"""The registry of solvers is the one list of their names: others are made of it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from datacollect.solvers import registry

REPOSITORY = Path(__file__).resolve().parents[2]
SOURCES = [
    path
    for folder in ("datacollect", "solvers")
    for path in sorted((REPOSITORY / folder).rglob("*.py"))
    if path != REPOSITORY / "solvers/registry.py"
]
QUOTED = re.compile(rf"[\"']({'|'.join(registry.FLOW_BACKENDS)})[\"']")


def test_no_other_file_lists_names():
    """Examples may use one; lines with two are a list that somebody would have to keep."""
    lists = [
        f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()}"
        for path in SOURCES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if len(set(QUOTED.findall(line))) > 1
    ]
    assert not lists, "make it of datacollect.solvers.registry"


def test_no_other_file_decides_by_a_name():
    """What a solver is good at, its row says."""
    decides = [
        f"{path.relative_to(REPOSITORY)}:{node.lineno}"
        for path in SOURCES
        if QUOTED.search(source := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Compare)
        for side in (node.left, *node.comparators)
        for part in ast.walk(side)
        if isinstance(part, ast.Constant) and part.value in registry.FLOW_BACKENDS
    ]
    assert not decides, "make it a field of Backend"
