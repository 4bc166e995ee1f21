"""The drawing of the house in CONTRIBUTING.md is what the imports say."""

from __future__ import annotations

import ast

import draw_house
import pytest
from judges.imports import imports_of_all, read_modules, room_of


@pytest.fixture(scope="module")
def page() -> str:
    return draw_house.PAGE.read_text(encoding="utf-8")


def test_the_drawing_is_of_this_house(page):
    assert page == draw_house.with_drawing(page), "run python tests/draw_house.py"


def test_every_room_and_every_arrow_is_drawn():
    """By another way than the script's: lines of a room follow each other, arrows after a →."""
    drawn: dict[str, str] = {}
    room = ""
    for line in draw_house.drawing().splitlines():
        if line[4] not in " .":
            room = line[4:].split()[0]
        drawn[room] = f"{drawn.get(room, '')} {line[draw_house.INDENT :]}"
    assert set(drawn) == {room_of(module) for module in read_modules()}
    for module, imported in imports_of_all().items():
        arrows = drawn[room_of(module)].partition("→")[2].split()
        assert {room_of(other) for other in imported} <= {room_of(module), *arrows}


def test_every_room_says_in_one_line_what_it_is():
    for name, source in read_modules().items():
        if any(other.startswith(f"{name}.") for other in read_modules()):
            first, _, rest = ast.get_docstring(ast.parse(source)).partition("\n")
            assert first.endswith("."), f"{name}: the first line is no whole sentence"
            assert not rest.partition("\n")[0], f"{name}: the sentence goes on after a line"


def test_what_is_drawn_fits():
    assert max(map(len, draw_house.drawing().splitlines())) <= draw_house.WIDTH


def test_a_page_without_a_place_for_it_is_refused():
    with pytest.raises(AssertionError, match="has no line <!-- the house -->"):
        draw_house.with_drawing("# Contributing\n")
