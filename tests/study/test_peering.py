"""Bytes over peering wires, planned and moved."""

from __future__ import annotations

import json

import datacollect as dc
from datacollect.scenario.carry_out import carry_out
from datacollect.study.peering import moved_bytes, planned_bytes, shares
from datacollect.study.rows import row_of

TWO_WIRES = {
    "topology": {"kind": "two-domains"},
    "hosts": {
        "destination": {"at": "A0"},
        "sources": [{"at": "B0", "backlog_bytes": 1_000_000}],
        "relays": [{"at": "B1"}],
    },
    "estimates": {"kind": "exact"},
    "transport": {"header_bytes": 0},
}


def test_direct_moves_all_over_the_wire_of_its_route():
    """From B0 to A0 over B0-A0, whatever the other wire could carry."""
    outcome = carry_out(TWO_WIRES, engine="fluid", method="direct")
    for text in (
        moved_bytes(outcome.run, outcome.setting),
        planned_bytes(outcome.schedule, outcome.setting),
    ):
        found = json.loads(text)
        assert found["B0 -> A0"] == 1_000_000
        assert sum(found.values()) == 1_000_000
    assert shares(text) == [1.0, 0.0]


def test_what_is_relayed_counts_on_each_wire_that_it_crosses():
    """Coordinated sends a part through the relay at B1; together all data cross once."""
    tree = TWO_WIRES | {"hosts": {**TWO_WIRES["hosts"], "relays": [{"at": "B1"}, {"at": "A1"}]}}
    outcome = carry_out(tree, engine="fluid", method="coordinated")
    by_hop = {
        (row["from"], row["to"]): row["bytes"] for row in outcome.run.routes.to_dict("records")
    }
    into_a = json.loads(moved_bytes(outcome.run, outcome.setting))
    across = sum(n for (a, b), n in by_hop.items() if a in ("S1", "K1") and b in ("D", "K2"))
    assert sum(n for name, n in into_a.items() if name.startswith("B")) == across


def test_without_peering_wires_there_is_nothing_to_say():
    wires = [{"a": "N", "b": "M", "rate_bytes_per_s": 1e6}]
    hosts = {"destination": {"at": "M"}, "sources": [{"at": "N", "backlog_bytes": 1_000_000}]}
    tree = {"topology": {"kind": "explicit", "wires": wires}, "hosts": hosts}
    row = row_of(carry_out(dc.Scenario.from_dict(tree), engine="fluid"), "k", {}, 1)
    assert (row["peering_bytes"], row["planned_peering_bytes"]) == ("", "")


def test_storage_in_bytes_is_the_mean_of_the_sources_most():
    """Direct: each source stores its own data, 1 and 3 MB, and nobody else's."""
    tree = TWO_WIRES | {
        "hosts": {
            "destination": {"at": "A0"},
            "sources": [
                {"at": "B0", "backlog_bytes": 1_000_000},
                {"at": "B1", "backlog_bytes": 3_000_000},
            ],
        }
    }
    outcome = carry_out(tree, engine="fluid", method="direct")
    row = row_of(outcome, "k", {}, 1)
    assert row["storage_bytes"] == 2_000_000
    assert row["storage_mean"] == 1.0
