"""The JSON Schema of collection files: it accepts what reading accepts, and no wrong values."""

from __future__ import annotations

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from instances.broken_trees import places, values, with_value

import datacollect as dc
from datacollect.commands.json_schemas import collection_schema
from datacollect.transfer.pull.config.file import Collection

VALIDATOR = jsonschema.Draft202012Validator(collection_schema())
FINGERPRINT = "sha256:" + "0" * 64
TREE = {
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


def test_a_collection_is_accepted_by_both():
    VALIDATOR.validate(TREE)
    Collection.from_dict(TREE)


@given(st.sampled_from(list(places(TREE))), values)
def test_what_reading_accepts_the_schema_accepts(place, value):
    tree = with_value(TREE, place, value)
    try:
        Collection.from_dict(tree)
    except dc.ProblemError:
        return
    VALIDATOR.validate(tree)


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
def test_wrong_values_are_refused_by_both(place, value):
    tree = with_value(TREE, place, value)
    assert not VALIDATOR.is_valid(tree)
    with pytest.raises(dc.ProblemError):
        Collection.from_dict(tree)
