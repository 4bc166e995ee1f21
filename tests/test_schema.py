"""The JSON Schema: what it refuses, reading refuses; what is right, it accepts."""

from __future__ import annotations

import json
import tomllib

import jsonschema
import pytest
from broken_files import JSON, TOML
from broken_trees import TREE, places, values, with_value
from hypothesis import given
from hypothesis import strategies as st

import datacollect as dc
from datacollect.examples import example_files, example_names
from datacollect.files import problem_from_tree, problem_to_tree
from datacollect.schema import problem_schema

VALIDATOR = jsonschema.Draft202012Validator(problem_schema())


def accepts(tree):
    return VALIDATOR.is_valid(tree)


def test_schema_is_one():
    jsonschema.Draft202012Validator.check_schema(problem_schema())


@pytest.mark.parametrize("name", example_names())
def test_examples_are_accepted(name):
    VALIDATOR.validate(tomllib.loads(example_files(name)[f"{name}.toml"]))


def test_what_is_written_is_accepted():
    VALIDATOR.validate(problem_to_tree(problem_from_tree(TREE)))


# What one value alone shows, the schema sees; what values say together only reading does.
ALONE = [
    "negative",
    "text for a number",
    "true for a number",
    "half a byte",
    "too many bytes",
    "negative release",
    "negative price",
    "number for a name",
    "empty name",
    "link without an end",
    "table for a list",
    "no destination",
    "no hosts",
    "unknown key of a host",
    "unknown key of a link",
    "unknown key at the top",
    "unknown key of a shared bottleneck",
    "unknown key of held data",
    "unknown format",
    "forecast with a bad number",
    "periods that begin late",
    "no periods",
    "one number for periods",
    "shared without links",
    "half a pair",
]


@pytest.mark.parametrize("case", ALONE)
def test_broken_trees_are_refused_by_both(case):
    text, _ = TOML[case]
    tree = tomllib.loads(text)
    assert not accepts(tree)
    with pytest.raises(dc.ProblemError):
        problem_from_tree(tree)


@pytest.mark.parametrize("case", ["list at the top", "text at the top", "null", "list for hosts"])
def test_broken_json_is_refused(case):
    assert not accepts(json.loads(JSON[case][0]))


@given(st.sampled_from(list(places(TREE))), values)
def test_what_reading_accepts_the_schema_accepts(place, value):
    tree = with_value(TREE, place, value)
    try:
        problem_from_tree(tree)
    except dc.ProblemError:
        return
    assert accepts(tree)


def test_every_key_is_described_for_editors():
    schema = problem_schema()
    tables = [schema, *schema["$defs"].values()]
    assert len(tables) == 5
    for table in tables:
        assert table["additionalProperties"] is False
        for name, field in table["properties"].items():
            assert len(field["description"]) > 10, name
            if name.endswith(("_s", "_bytes")) and not name.endswith("_per_s"):
                assert "second" in field["description"] or "byte" in field["description"].lower()


def test_limits_and_defaults_are_told():
    host = problem_schema()["$defs"]["host"]["properties"]
    assert host["backlog_bytes"]["default"] == 0
    assert host["backlog_bytes"]["exclusiveMaximum"] == 2**62
    assert host["backlog_bytes"]["type"] == "integer"
    assert host["uplink_bytes_per_s"]["minimum"] == 0
    assert "default" not in host["storage_bytes"]
