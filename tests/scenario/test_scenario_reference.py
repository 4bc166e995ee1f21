"""The docs' tables of all keys are those of the declarations, the kinds of topologies included."""

from __future__ import annotations

import importlib.util

import pytest
from conftest import REPOSITORY

from datacollect.scenario.topology_fields import TOPOLOGY


@pytest.fixture(scope="module")
def script():
    path = REPOSITORY / "docs/scenario_reference.py"
    spec = importlib.util.spec_from_file_location("scenario_reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_docs_list_what_is_declared(script):
    page = script.PAGE.read_text(encoding="utf-8")
    assert page == script.with_reference(page), "run python docs/scenario_reference.py"


@pytest.mark.parametrize(("kind", "table"), TOPOLOGY.tables)
def test_every_key_of_every_kind_of_topology_has_a_row(kind, table, script):
    """By another way than the script's: each key in the kind's part of the page."""
    page = script.PAGE.read_text(encoding="utf-8")
    part = page.partition(f'`[topology]` with `kind = "{kind}"`')[2].partition("`[")[0]
    for field in table.fields:
        row = next(line for line in part.splitlines() if line.startswith(f"| `{field.name}` |"))
        assert field.description in row
        assert ("| required |" in row) == field.required


def test_a_table_that_stands_at_several_places_is_printed_once(script):
    text = script.reference()
    assert text.count("`access`: the wire between") == 1
    assert text.count("`[topology.peering]`") == 1
