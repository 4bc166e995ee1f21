"""``datacollect schema`` prints what the library says."""

from __future__ import annotations

import json

import pytest
from instances.command_line import strict_json

from datacollect.commands.json_schemas import kinds_of_files, problem_schema, schema_of
from datacollect.commands.main import run
from datacollect.commands.schema import KINDS


def test_schema_is_what_the_library_says(here, call):
    code, out, _ = call("schema")
    assert code == 0
    assert strict_json(out) == problem_schema()
    assert call("schema", "-o", "schema.json")[0] == 0
    assert json.loads((here / "schema.json").read_text()) == problem_schema()


@pytest.mark.parametrize("kind", kinds_of_files())
def test_the_command_prints_each_schema(kind, capsys):
    assert run(["schema", kind]) == 0
    assert json.loads(capsys.readouterr().out) == schema_of(kind)


def test_the_command_knows_each_kind_by_its_name():
    assert kinds_of_files() == KINDS
