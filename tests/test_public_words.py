"""Public objects say in a line what they are, however large, and what is a table becomes one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from instances.host_profiles import COSTS
from judges.public import public_classes

import datacollect as dc
from datacollect.machine.parts import Parts
from datacollect.study.report.verdicts import COLUMNS
from datacollect.transfer.pull.answer import RouteUse

# 40 sources with a link each to D: whatever is listed whole takes more than a line.
NAMES = [*(f"a-source-{i}" for i in range(40)), "D"]
PROBLEM = dc.Problem.from_hosts(
    [dc.Host(name, 10) for name in NAMES[:-1]] + [dc.Host("D")],
    [dc.Link(name, "D", 5.0) for name in NAMES[:-1]],
    "D",
)
PLAN = dc.direct(PROBLEM)
HELD = tuple(dc.Held("D", name, 0, 5) for name in NAMES[:-1])
SAMPLES = pd.DataFrame(
    {"from": NAMES[0], "to": "D", "time_s": [0.0, 1.0], "bandwidth_bytes_per_s": [5.0, 6.0]}
)
EXPERIMENT = {
    "engine": "fluid",
    "name": "rates",
    "seeds": {"least": 2, "batch": 2},
    "axes": [
        {
            "name": "rate",
            "key": "topology.rate_bytes_per_s",
            "values": [float(10**i) for i in range(3, 40)],
        }
    ],
}
SCENARIO = {
    "topology": {"kind": "line", "n_nodes": 2, "rate_bytes_per_s": 1e6},
    "hosts": {
        "destination": {"at": "N0"},
        "sources": [{"at": "N1", "backlog_bytes": 1_000_000}],
    },
}


def _new_links() -> dc.NewLinks:
    links = np.arange(40)
    rates = np.ones((1, 40))
    return dc.NewLinks(links, np.full(40, 40), rates, np.zeros(40), np.zeros(1))


def _report(folder) -> dc.Report:
    files = tuple(f"{i}.csv" for i in range(100))
    return dc.Report(folder, None, (), _verdicts(), "", files, 40, 0)


def _verdicts() -> dc.Verdicts:
    row = dict.fromkeys(COLUMNS, "") | {"claim": "C1", "verdict": "holds", "is_settled": True}
    return dc.Verdicts(pd.DataFrame([row] * 100), tables={"more": pd.DataFrame()})


def _tunnel():
    """One that leads nowhere: no socket is opened for it."""
    tunnel = object.__new__(dc.Tunnel)
    tunnel._names = ("D", "K1", "S1", "S1:ssh")
    return tunnel


MADE = {
    "Advisory": lambda: dc.advise(PROBLEM),
    "Bottleneck": lambda: PLAN.bottleneck,
    "Certainty": lambda: dc.certainty(PROBLEM, dc.direct(PROBLEM), SAMPLES),
    "Comparison": lambda: dc.compare(PROBLEM),
    "Experiment": lambda: dc.Experiment.from_dict(EXPERIMENT, scenario=SCENARIO),
    "Explanation": lambda: dc.explain(PROBLEM),
    "Held": lambda: HELD[0],
    "Host": lambda: dc.Host("S", "6 TB"),
    "HostProfile": lambda: dc.HostProfile("D", Parts(2, COSTS), "2026-11-30T00:00:00Z"),
    "Link": lambda: dc.Link("S", "D", "10 Gbit/s"),
    "NewLinks": _new_links,
    "Parcel": lambda: PROBLEM.parcels[0],
    "Problem": lambda: PROBLEM,
    "Progress": lambda: dc.Progress(2.0, HELD, _new_links(), tuple(NAMES[:9])),
    "Pulled": lambda: dc.Pulled(
        *(True, 5, 1, None, 2.0, "direct"),
        tuple(RouteUse(name, (name, "D"), 5, 1) for name in NAMES[:-1]),
        {"changed": 3},
        (),
    ),
    "Report": lambda: _report("a/folder"),
    "Route": lambda: PLAN.routes[0],
    "Run": lambda: dc.simulate(SCENARIO, engine="fluid", method="direct"),
    "Scenario": lambda: dc.Scenario.from_dict(SCENARIO),
    "Schedule": lambda: PLAN,
    "SharedBottleneck": lambda: dc.SharedBottleneck("w", 5.0, [(n, "D") for n in NAMES[:-1]]),
    "Transfers": lambda: PLAN.columns,
    "Tunnel": _tunnel,
    "Verdicts": _verdicts,
}
# The line of each whose class writes one.
LINES = {
    "Advisory": "<Advisory: take direct; direct 2 s, relays 2 s>",
    "Certainty": "<Certainty: direct 2 s, p10 2 s, p50 2 s, p90 2 s, 200 scenarios>",
    "Comparison": "<Comparison: direct 2 s, best-path 2 s, coordinated 2 s, lower bound 2 s>",
    "Experiment": "<Experiment 'rates': 37 settings in 1 treatment, fluid, at most 2 seeds each>",
    "HostProfile": "<HostProfile 'D': 2 processors, 7 costs, measured 2026-11-30T00:00:00Z>",
    "NewLinks": "<NewLinks: 40 links, 1 period>",
    "Progress": "<Progress: at 2 s, 200 bytes held in 40 ranges, 9 lost hosts>",
    "Pulled": "<Pulled: complete, 1 file, 5 bytes by direct in 2 s, 0 missing>",
    "Report": "<Report: 0 sweeps, 40 runs, 100 files in a/folder>",
    "Run": "<Run: fluid, makespan 1.05829 s, 1000000 bytes collected>",
    "Scenario": "<Scenario 'scenario': coordinated>",
    "Schedule": "<Schedule: direct, makespan 2 s, 40 transfers on 40 routes, heuristic>",
    "SharedBottleneck": "<SharedBottleneck 'w': 5 bytes/s, 40 links>",
    "Transfers": "<Transfers: 40 transfers, 400 bytes>",
    "Tunnel": "<Tunnel: D → K1 → S1 → S1:ssh>",
    "Verdicts": "<Verdicts: 100 claims, 1 table besides>",
}
# What ends a cell of a notebook, and shows itself there.
SHOWN = (
    *("Problem", "Schedule", "Explanation", "Comparison", "Run", "Pulled", "Report"),
    *("Progress", "Scenario", "Experiment", "Advisory", "Certainty", "HostProfile"),
)


def test_every_public_class_is_looked_at():
    assert set(MADE) == {
        name for name, kind in public_classes().items() if not issubclass(kind, BaseException)
    }


@pytest.mark.parametrize("name", MADE)
def test_an_object_says_in_a_line_what_it_is(name):
    text = repr(MADE[name]())
    assert name in text
    assert "\n" not in text
    assert len(text) < 250
    assert "array(" not in text


@pytest.mark.parametrize("name", LINES)
def test_the_line_says_what_matters(name):
    assert repr(MADE[name]()) == LINES[name]


def test_graphs_over_time_say_in_a_line_what_they_are():
    graph = dc.time_expanded_graph(PROBLEM, "2 s", 3)
    assert repr(graph).startswith("<TimeExpandedGraph: 3 slots of 2 s, ")


@pytest.mark.parametrize("name", SHOWN)
def test_notebooks_show_a_table(name):
    html = MADE[name]()._repr_html_()
    assert html.startswith("<b>")
    assert "<table>" in html


def test_what_ended_early_says_so():
    run = dc.simulate(SCENARIO, engine="fluid", method="direct", time_limit_s="500 ms")
    assert repr(run).startswith("<Run: fluid, not complete, ")
    assert "not complete" in run._repr_html_()
    pulled = dc.Pulled(False, 0, 0, None, 0.0, "direct", (), {}, ())
    assert "not complete" in repr(pulled)
    assert "not complete" in pulled._repr_html_()


def test_tables_have_the_rows_of_what_they_show():
    compared = dc.compare(PROBLEM)
    assert PLAN.to_dataframe().equals(PLAN.transfers)
    assert compared.to_dataframe().equals(compared.table)
    held = dc.Progress(2.0, HELD).to_dataframe()
    assert held["bytes"].sum() == 200
    assert list(held["source"]) == NAMES[:-1]
    assert MADE["Pulled"]().to_dataframe()["bytes"].sum() == 200
    binds = dc.explain(PROBLEM).to_dataframe()
    assert binds["to_s"].max() == 2.0
    assert binds["rate_bytes_per_s"].tolist() == [200.0]


def test_tables_of_nothing_have_their_columns():
    assert list(dc.Progress(2.0).to_dataframe()) == ["host", "source", "offset_bytes", "bytes"]
    pulled = dc.Pulled(True, 0, 0, None, 0.0, "direct", (), {}, ())
    assert list(pulled.to_dataframe()) == ["source", "hosts", "bytes", "connections"]
