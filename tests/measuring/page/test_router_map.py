"""Routers between hosts: who they belong to, without a lookup, and paths that are balanced."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from datacollect.errors import ProblemError
from datacollect.measurement.sample_store import COLUMNS
from datacollect.measuring.page.router_map import PRIVATE, provider_of, read_providers, router_map
from datacollect.pictures.colours import OTHERS, PALETTE

TABLE = "prefix,provider\n9.9.0.0/16,all\n9.9.9.0/24,few\n2001:db8::/32,six\n"


@pytest.mark.parametrize(
    ("address", "provider"),
    [
        ("9.9.1.1", "all"),
        ("9.9.9.1", "few"),  # the longer prefix
        ("2001:db8::1", "six"),
        ("8.8.4.4", "8.8.0.0/16"),
        ("2a00:1450:4001::1", "2a00:1450::/32"),
        ("10.0.0.1", PRIVATE),
        ("100.64.3.1", PRIVATE),
        ("fe80::1", PRIVATE),
    ],
)
def test_a_prefix_says_whose_a_router_is_else_its_network_stands_for_it(address, provider):
    assert provider_of(address, read_providers(TABLE, "a.csv")) == provider


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("prefix,name\n9.9.9.0/24,x\n", "a.csv: has no column provider"),
        ("prefix,provider\n9.9.9.0/24,x\nquad,x\n", "a.csv, line 3: prefix must be a network"),
        ("prefix,provider\n9.9.9.0/99,x\n", "a.csv, line 2: prefix must be a network"),
    ],
)
def test_what_is_no_table_of_prefixes_is_named(text, why):
    with pytest.raises(ProblemError, match=why):
        read_providers(text, "a.csv")


def a_map(routes, providers=""):
    rows = [
        {
            "from": tail,
            "to": "D",
            "time_s": 0.0,
            "tool": "trace",
            "ended": "done",
            "routers": json.dumps(route),
        }
        for tail, route in routes.items()
    ]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    return router_map(table, read_providers(f"prefix,provider\n{providers}", "a.csv"))


def edges(chart):
    """Return which nodes are joined, by what is shown of them."""
    lines, routers, hosts = chart["data"]
    places = {
        (x, y): text.partition("<br>")[0]
        for of in (routers, hosts)
        for x, y, text in zip(of["x"], of["y"], of["text"], strict=True)
    }
    points = [
        None if x is None else places[x, y] for x, y in zip(lines["x"], lines["y"], strict=True)
    ]
    return {frozenset(points[i : i + 2]) for i in range(0, len(points), 3)}


def test_balanced_paths_run_beside_each_other_and_a_silent_hop_is_no_router():
    chart = a_map({"S": ["8.0.0.1", ["8.0.0.2", "8.0.0.3"], None, "8.0.0.4"]})
    one, two, three, four = (f"router 8.0.0.{i}" for i in (1, 2, 3, 4))
    joined = [("S", one), (one, two), (one, three), (two, four), (three, four), (four, "D")]
    assert edges(chart) == {frozenset(pair) for pair in joined}


def test_routers_of_a_provider_have_one_colour_and_a_legend():
    chart = a_map({"S": ["8.0.0.1", "10.0.0.1", "9.0.0.1"], "K": ["9.0.0.2"]}, "9.0.0.0/8,<b>n\n")
    by = chart["colours"]["provider"]
    assert by["legend"] == [["8.0.0.0/16", PALETTE[0]], ["<b>n", PALETTE[1]], [PRIVATE, OTHERS]]
    assert by["marker"]["color"] == [PALETTE[0], OTHERS, PALETTE[1], PALETTE[1]]
    # Where plotly would take it for its own, a name is text.
    assert "<br>&lt;b&gt;n<br>1 link: S → D" in chart["data"][1]["text"][2]


def test_more_providers_than_colours_look_alike():
    chart = a_map({"S": [f"{i}.0.0.1" for i in range(11, 31)]})
    colours = chart["colours"]["provider"]["marker"]["color"]
    assert colours[len(PALETTE) :] == [OTHERS] * (20 - len(PALETTE))
