"""The JSON Schemas of problems, schedules, collections: what they refuse, reading refuses.

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
from instances.small_scenarios import PAPER

import datacollect as dc
from datacollect.commands.json_schemas import (
    kinds_of_files,
    problem_schema,
    schedule_schema,
    schema_of,
)
from datacollect.examples import example_files, example_names
from datacollect.transfer.pull.config.file import Collection

VALIDATOR = jsonschema.Draft202012Validator(problem_schema())
OF_SCHEDULES = jsonschema.Draft202012Validator(schedule_schema())
OF_COLLECTIONS = jsonschema.Draft202012Validator(schema_of("collection"))
FINGERPRINT = "sha256:" + "0" * 64
COLLECTION = {
    "format": "datacollect-collection/1",
    "destination": "D",
    "key": "collector.key",
    "agents": {
        "S1": {"url": "https://x.example:7443", "fingerprint": FINGERPRINT},
        "S2": {"url": "https://y.example", "ca": "ca.pem"},
    },
    "servers": {
        "W": {
            "url": "https://w.example/data/",
            "paths": ["a", "b/c"],
            "redirects_to": ["*.cdn.example"],
            "plain_http": False,
        }
    },
    "sources": {"S1": {"files": ["*.tar"]}, "W": {}},
    "limits": {"connections": 4, "patience_s": "1 min", "in_flight_bytes": "100 MB"},
    "hosts": {"S1": {"uplink_bytes_per_s": 1e6}},
    "links": [{"from": "S1", "to": "D", "bandwidth_bytes_per_s": "1 Gbit/s"}],
    "shared": [{"name": "p", "bandwidth_bytes_per_s": 1e6, "links": [["S1", "D"]]}],
}


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


# By the kind of file: one that is right, and who reads it.
READ = {
    "problem": (TREE, dc.Problem.from_dict),
    "schedule": (SCHEDULE, dc.Schedule.from_dict),
    "scenario": (PAPER, dc.Scenario.from_dict),
    "collection": (COLLECTION, Collection.from_dict),
}


@pytest.mark.parametrize("kind", READ)
@given(data=st.data())
def test_what_reading_accepts_the_schema_accepts(kind, data):
    tree, read = READ[kind]
    tree = with_value(tree, data.draw(st.sampled_from(list(places(tree)))), data.draw(values))
    try:
        read(tree)
    except dc.ProblemError:
        return
    jsonschema.Draft202012Validator(schema_of(kind)).validate(tree)


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


# Collections --------------------------------------------------------------------------------


def test_a_collection_is_accepted_by_both():
    OF_COLLECTIONS.validate(COLLECTION)
    Collection.from_dict(COLLECTION)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("format",), "datacollect-problem/1"),
        (("destination",), ""),
        (("key",), 5),
        (("agents",), {}),
        (("agents", "S1"), {"fingerprint": FINGERPRINT}),
        (("agents", "S1", "port"), 7443),
        (("servers", "W", "paths"), []),
        (("servers", "W", "plain_http"), "yes"),
        (("sources", "S1", "files"), "*.tar"),
        (("limits", "connections"), 0),
        (("limits", "connections"), 2000),
        (("limits", "patience_s"), 0),
        (("limits", "patience_s"), "soon"),
        (("limits", "piece_bytes"), 2**25),
        (("links", 0, "to"), None),
        (("colour",), "red"),
    ],
)
def test_wrong_values_of_collections_are_refused_by_both(place, value):
    tree = with_value(COLLECTION, place, value)
    assert not OF_COLLECTIONS.is_valid(tree)
    with pytest.raises(dc.ProblemError):
        Collection.from_dict(tree)


# What editors show --------------------------------------------------------------------------


def test_limits_and_defaults_are_told():
    host = problem_schema()["$defs"]["host"]["properties"]
    assert host["backlog_bytes"]["default"] == 0
    assert host["backlog_bytes"]["exclusiveMaximum"] == 2**62
    assert host["backlog_bytes"]["type"] == ["integer", "string"]
    assert host["uplink_bytes_per_s"]["minimum"] == 0
    assert "default" not in host["storage_bytes"]
