"""The JSON Schemas of problems and schedules: what they refuse, reading refuses.

What is right, they accept. Scenarios have tests of their own.
"""

from __future__ import annotations

import json
import tomllib

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances.broken_files import JSON, TOML
from instances.broken_trees import SCHEDULE, SCHEDULES, TREE, places, values, with_value

import datacollect as dc
from datacollect.commands.json_schemas import (
    kinds_of_files,
    problem_schema,
    schedule_schema,
    schema_of,
)
from datacollect.examples import example_files, example_names

VALIDATOR = jsonschema.Draft202012Validator(problem_schema())
OF_SCHEDULES = jsonschema.Draft202012Validator(schedule_schema())


def accepts(tree):
    return VALIDATOR.is_valid(tree)


@pytest.mark.parametrize("kind", kinds_of_files())
def test_schema_is_one(kind):
    jsonschema.Draft202012Validator.check_schema(schema_of(kind))


@pytest.mark.parametrize("name", example_names())
def test_examples_are_accepted(name):
    # Schemas are of JSON, where clock times are texts; TOML knows them without quotes, too.
    tree = tomllib.loads(example_files(name)[f"{name}.toml"])
    VALIDATOR.validate(json.loads(json.dumps(tree, default=str)))


def test_what_is_written_is_accepted():
    VALIDATOR.validate(dc.Problem.from_dict(TREE).to_dict())


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
        dc.Problem.from_dict(tree)


@pytest.mark.parametrize("case", ["list at the top", "text at the top", "null", "list for hosts"])
def test_broken_json_is_refused(case):
    assert not accepts(json.loads(JSON[case][0]))


@given(st.sampled_from(list(places(TREE))), values)
def test_what_reading_accepts_the_schema_accepts(place, value):
    tree = with_value(TREE, place, value)
    try:
        dc.Problem.from_dict(tree)
    except dc.ProblemError:
        return
    assert accepts(tree)


# Schedules ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [dc.direct, dc.best_path, dc.coordinated])
def test_schedules_that_are_written_are_accepted(method):
    """With a bottleneck and without a slot, which is null."""
    OF_SCHEDULES.validate(method(dc.Problem.from_dict(TREE | {"held": [], "shared": []})).to_dict())


@pytest.mark.parametrize(
    "case", sorted(SCHEDULES.keys() - {"hop beyond the route", "infinite time"})
)
def test_broken_schedules_are_refused_by_both(case):
    """But for what two values say together, and for numbers that JSON does not have."""
    tree, _ = SCHEDULES[case]
    assert not OF_SCHEDULES.is_valid(tree)
    with pytest.raises(dc.ProblemError):
        dc.Schedule.from_dict(tree)


@given(st.sampled_from(list(places(SCHEDULE))), values)
def test_what_is_read_as_a_schedule_its_schema_accepts(place, value):
    tree = with_value(SCHEDULE, place, value)
    try:
        dc.Schedule.from_dict(tree)
    except dc.ProblemError:
        return
    OF_SCHEDULES.validate(tree)


# What editors show --------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "n_tables"), [("problem", 5), ("schedule", 4), ("scenario", 31)])
def test_every_key_is_described_for_editors(kind, n_tables):
    schema = schema_of(kind)
    tables = [schema, *schema["$defs"].values()]
    assert len(tables) == n_tables
    for table in tables:
        assert table["additionalProperties"] is False
        for name, field in table["properties"].items():
            assert len(field["description"]) > 10, name
            if name.endswith(("_s", "_bytes")) and kind != "schedule":
                assert "second" in field["description"] or "byte" in field["description"].lower()


def test_limits_and_defaults_are_told():
    host = problem_schema()["$defs"]["host"]["properties"]
    assert host["backlog_bytes"]["default"] == 0
    assert host["backlog_bytes"]["exclusiveMaximum"] == 2**62
    assert host["backlog_bytes"]["type"] == ["integer", "string"]
    assert host["uplink_bytes_per_s"]["minimum"] == 0
    assert "default" not in host["storage_bytes"]
