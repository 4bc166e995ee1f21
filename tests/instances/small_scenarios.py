"""Scenarios that fit in the head; the shipped one and the core paper's, made small."""

from __future__ import annotations

import json
import tomllib

import datacollect as dc
from datacollect.examples import example_files

PAPER = {
    "topology": {"kind": "paper-152", "seed": 1},
    "scale": 0.1,
    "hosts": {
        "destination": {"domain": "A", "among": "transit", "access": {"rate_bytes_per_s": 1.25e7}},
        "sources": [
            {"domain": "A", "among": "transit", "count": 2},
            {"domain": "B", "among": "transit", "count": 5},
        ],
    },
    "backlog": {
        "least_bytes": 25_000_000,
        "most_bytes": 75_000_000,
        "total_bytes": 350_000_000,
    },
    "background": {"flows": 60, "from": "B", "to": "A", "split": [1, 3]},
}


def line_of(**sections):
    """S at one end of a line of two routers, D at the other: 1 MB/s, no delay, no headers."""
    tree = {
        "topology": {"kind": "line", "n_nodes": 2, "rate_bytes_per_s": 1e6, "delay_s": 0.0},
        "hosts": {
            "access": {"rate_bytes_per_s": 1e8, "delay_s": 0.0},
            "destination": {"at": "N1"},
            "sources": [{"name": "S", "at": "N0", "backlog_bytes": 5_000_000}],
        },
        "transport": {"header_bytes": 0},
        "run": {"warm_up_s": 0.0},
    }
    return dc.Scenario.from_dict(tree | sections)


def shipped(**values):
    """Three sources and a relay beside a crowded wire, as in the shipped example: 2.4 MB in 3 s."""
    tree = tomllib.loads(example_files("scenario_small")["scenario_small.toml"])
    return dc.Scenario.from_dict(tree).with_values({"scale": 0.2, **values})


def changed(place, value):
    tree = json.loads(json.dumps(PAPER))
    *tables, key = place.split(".")
    table = tree
    for name in tables:
        table = table[int(name)] if isinstance(table, list) else table.setdefault(name, {})
    if value is None:
        del table[key]
    else:
        table[int(key) if isinstance(table, list) else key] = value
    return tree
