"""``datacollect schema`` prints what the library says."""

from __future__ import annotations

import json

import pytest
from instances.command_line import strict_json

from datacollect.commands.json_schemas import SCHEMAS, problem_schema
from datacollect.commands.main import run


def test_schema_is_what_the_library_says(here, call):
    code, out, _ = call("schema")
    assert code == 0
    assert strict_json(out) == problem_schema()
    assert call("schema", "-o", "schema.json")[0] == 0
    assert json.loads((here / "schema.json").read_text()) == problem_schema()


@pytest.mark.parametrize("kind", SCHEMAS)
def test_the_command_prints_each_schema(kind, capsys):
    assert run(["schema", kind]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMAS[kind]()
