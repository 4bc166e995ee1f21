"""The bugs of `planted.py` still fit the code, and CONTRIBUTING.md lists each."""

from __future__ import annotations

import ast

import pytest
from judges.imports import REPOSITORY
from planted import BUGS, planted


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_each_fits_in_one_place_and_is_python(bug):
    text = (REPOSITORY / bug.path).read_text(encoding="utf-8")
    changed = planted(text, bug)
    assert changed != text
    ast.parse(changed)


def test_there_are_twenty_half_of_them_blind():
    assert len(BUGS) == 20
    assert sum(bug.is_blind for bug in BUGS) == 10


def test_each_is_listed_with_what_finds_it():
    page = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and "::" in line]
    for bug in BUGS:
        assert any(row.startswith(f"| {bug.name} |") for row in rows), bug.name
