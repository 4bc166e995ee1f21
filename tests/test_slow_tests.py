"""CONTRIBUTING.md lists every test that is marked slow, with its seconds and why it is slow."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from judges.imports import REPOSITORY

ROW = re.compile(r"^\| `(tests/[\w/]+\.py)` \| `(test_\w+)` \| \d+ \| [^|]{10,} \|$", re.MULTILINE)

MARK = "mark" + ".slow"

SOURCE = """
@given(problems())
@pytest.mark.slow
def test_of_many(): ...

class TestOfSome:
    @pytest.mark.slow
    def test_one(self): ...

    def test_another(self): ...
"""


def marked_slow(source: str) -> Iterator[str]:
    """Yield the names of the functions that are marked slow."""
    if MARK not in source:
        return  # most files: parsing them all takes seconds
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            marks = {ast.unparse(decorator) for decorator in node.decorator_list}
            if f"pytest.{MARK}" in marks:
                yield node.name


def slow_tests() -> set[tuple[str, str]]:
    """Return the file and the name of every test that is marked slow."""
    paths = [path.relative_to(REPOSITORY) for path in (REPOSITORY / "tests").rglob("test_*.py")]
    sources = {path: Path(REPOSITORY, path).read_text(encoding="utf-8") for path in paths}
    return {(str(path), name) for path, text in sources.items() for name in marked_slow(text)}


def test_every_slow_test_is_listed_and_every_one_that_is_listed_is_there():
    listed = set(ROW.findall((REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")))
    assert listed == slow_tests(), "measure it, and say in CONTRIBUTING.md why it is slow"


def test_marks_stand_at_functions():
    """A mark for a whole module or class would be overlooked."""
    for path in (REPOSITORY / "tests").rglob("test_*.py"):
        n = path.read_text(encoding="utf-8").count(MARK)
        if path != Path(__file__):
            assert n == len([*marked_slow(path.read_text(encoding="utf-8"))]), path


def test_marks_are_seen_beside_others():
    assert [*marked_slow(SOURCE)] == ["test_of_many", "test_one"]


@pytest.mark.parametrize("end", ["", " 5 | |"])
def test_rows_without_seconds_or_reason_do_not_count(end):
    assert not ROW.search(f"| `tests/a.py` | `test_b` |{end}")
    assert ROW.search("| `tests/a.py` | `test_b` | 5 | eighty problems, two solvers |")
