"""Positions of hosts: read, checked, written, and of no importance to plans."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

import datacollect as dc

ZURICH = {"latitude": 47.4, "longitude": 8.5}


def tree(**place) -> dict:
    """S may stand somewhere, D nowhere."""
    return {
        "destination": "D",
        "hosts": {"S": {"backlog_bytes": 10, **place}, "D": {}},
        "links": [{"from": "S", "to": "D", "bandwidth_bytes_per_s": 5}],
    }


def test_places_are_read_and_written():
    problem = dc.Problem.from_dict(tree(**ZURICH))
    assert problem.latitude.tolist() == [47.4, pytest.approx(math.nan, nan_ok=True)]
    assert problem.longitude[0] == 8.5
    assert problem.to_dict()["hosts"] == {"S": {"backlog_bytes": 10, **ZURICH}, "D": {}}
    again = dc.Problem.from_networkx(problem.to_networkx())
    assert np.array_equal(again.latitude, problem.latitude, equal_nan=True)
    assert "latitude" not in problem.to_networkx().nodes["D"]
    assert problem.replace(backlog_bytes=[20, 0]).longitude[0] == 8.5


def test_tables_and_objects_have_places_too():
    links = pd.DataFrame({"from": ["S"], "to": ["D"], "bandwidth_bytes_per_s": [5.0]})
    hosts = pd.DataFrame({key: [value, math.nan] for key, value in ZURICH.items()}, ["S", "D"])
    problem = dc.Problem.from_dataframe(links, {"S": 10}, "D", hosts=hosts)
    assert (problem.latitude[0], problem.longitude[0]) == (47.4, 8.5)
    objects = dc.Problem.from_hosts(
        [dc.Host("S", 10, latitude=-90, longitude=180), dc.Host("D")], [dc.Link("S", "D", 5)], "D"
    )
    assert (objects.latitude[0], objects.longitude[0]) == (-90, 180)


def test_plans_do_not_depend_on_places():
    placed, plain = dc.Problem.from_dict(tree(**ZURICH)), dc.Problem.from_dict(tree())
    assert placed.sha256 == plain.sha256
    assert plain.latitude is plain.longitude is None
    assert "latitude" not in json.dumps(plain.to_dict())


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ({"latitude": 90.1, "longitude": 0}, r"hosts\.S\.latitude .*from -90 to 90, got 90\.1"),
        ({"latitude": 0, "longitude": -181}, r"longitude .*from -180 to 180, got -181; .*west"),
        ({"latitude": math.nan, "longitude": 0}, "latitude .*got nan"),
        ({"latitude": "47 N", "longitude": 0}, "latitude must be a number of degrees .*'47 N'"),
        ({"latitude": True, "longitude": 0}, "latitude must be a number of degrees"),
        ({"latitude": 1}, "host 'S': .* together, got no longitude; add it"),
        ({"longitude": 1}, "host 'S': .* together, got no latitude; add it"),
    ],
)
def test_files_with_other_places_are_refused(place, message):
    with pytest.raises(dc.ProblemError, match=message):
        dc.Problem.from_dict(tree(**place))


@pytest.mark.parametrize("changes", [{"latitude": [91, 0]}, {"longitude": [0, -180.5]}])
def test_arrays_with_other_places_are_refused(changes):
    problem = dc.Problem.from_dict(tree(**ZURICH))
    with pytest.raises(dc.ProblemError, match="must be a number of degrees from"):
        problem.replace(**changes)
    assert problem.replace(latitude=None, longitude=None).latitude is None


def test_the_schema_knows_the_range():
    import jsonschema

    from datacollect.commands.json_schemas import problem_schema

    schema = problem_schema()
    jsonschema.validate(tree(**ZURICH), schema)
    with pytest.raises(jsonschema.ValidationError, match="is greater than the maximum of 90"):
        jsonschema.validate(tree(latitude=90.5, longitude=0), schema)
