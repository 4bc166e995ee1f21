"""The simulations that `digests.py` holds digests of: what each is, by name, and what it covers.

They are few, chosen so that each engine meets what makes it differ, and each controller that a
scenario can choose carries something out; `simulation/test_digests.py` looks whether it does.

They go through `datacollect`'s public names only, so that they stay what they are when its modules
move. Every scenario names its solver: what ``"auto"`` takes depends on what is installed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import datacollect as dc

REPOSITORY = Path(__file__).resolve().parents[2]
SOLVER = "ortools"


@dataclass(frozen=True)
class Case:
    """One simulation: a scenario's tree, and what is not in it.

    Attributes
    ----------
    tree : mapping
    files : mapping
        Files that the scenario names, by name: their text.
    lost_s : mapping
        When hosts are lost; fluid engine only.
    """

    tree: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)
    lost_s: Mapping[str, float] = field(default_factory=dict)


def carried_out(engine, case, folder):
    """Carry a case out in a folder that takes the files that it names."""
    for name, text in case.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    scenario = dc.Scenario.from_dict(case.tree, folder)
    run = dc.simulate(scenario, engine=engine)
    if case.lost_s:
        # Nothing but the engine's own function takes losses; the run before this has loaded it.
        with losing(case.lost_s):
            run = dc.simulate(scenario, engine=engine)
    return run


@contextmanager
def losing(lost_s, name="simulate_fluid"):
    """Let the fluid engine lose hosts; its function is found by name, in any of our modules."""
    homes = [
        module
        for key, module in sorted(sys.modules.items())
        if key.partition(".")[0] == "datacollect" and callable(vars(module).get(name))
    ]
    assert homes, f"no module of datacollect has {name}: name the fluid engine's function here"
    kept = [getattr(module, name) for module in homes]
    for module, function in zip(homes, kept, strict=True):
        setattr(module, name, partial(function, lost_hosts_s=lost_s))
    try:
        yield
    finally:
        for module, function in zip(homes, kept, strict=True):
            setattr(module, name, function)


def merged(tree, **sections):
    """A tree with some keys of some sections changed; what is no table replaces what was there."""
    changed = {
        name: {**tree.get(name, {}), **value} if isinstance(value, dict) else value
        for name, value in sections.items()
    }
    return {**tree, **changed}


# Two domains ----------------------------------------------------------------------------------

# 2.4 MB from three sources over two peering wires, one crowded by four flows of others. Bandwidths
# are what is fair beside them, so that runs in ns-3 need not measure.
SMALL = {
    "topology": {"kind": "two-domains"},
    "scale": 0.2,
    "hosts": {
        "access": {"rate_bytes_per_s": 1.25e6, "delay_s": 0.005},
        "destination": {"at": "A0", "access": {"rate_bytes_per_s": 1.25e7}},
        "sources": [{"count": 2, "at": "B0"}, {"at": "B1"}],
        "relays": [{"at": "A1"}],
    },
    "backlog": {"least_bytes": 2_000_000, "most_bytes": 6_000_000, "total_bytes": 12_000_000},
    "background": {"flows": 4, "from": "B", "to": "A", "split": [3, 1]},
    "estimates": {"kind": "exact"},
    "method": {"name": "coordinated", "solver": SOLVER},
    "run": {"seed": 1, "warm_up_s": 2.0, "time_limit_s": 1000.0},
}
# The planner takes one peering wire for much better than it is, and the other for worse.
WRONG = [{"wire": "B0-A0", "factor": 3.0}, {"wire": "B1-A1", "factor": 0.5}]


def small(**sections):
    return Case(merged(SMALL, **sections))


# How `datacollect pull` cuts data, and deals with what is lost.
AS_PULLED = {
    "piece_bytes": 65_536,
    "retry_s": 0.5,
    "longest_wait_s": 5.0,
    "most_retries": 2**30,
}

# A detour ---------------------------------------------------------------------------------------

# S reaches D over a wire of 0.125 MB/s, or through the relay K over two of 0.25 MB/s.
DETOUR = {
    "topology": {
        "kind": "explicit",
        "wires": [
            {"a": "A", "b": "B", "rate_bytes_per_s": 1.25e5},
            {"a": "A", "b": "C", "rate_bytes_per_s": 2.5e5},
            {"a": "C", "b": "B", "rate_bytes_per_s": [1.5e5, 2.5e5], "delay_s": 0.02},
        ],
    },
    "hosts": {
        "destination": {"at": "B"},
        "sources": [{"name": "S", "at": "A", "backlog_bytes": 1_000_000}],
        "relays": [{"name": "K", "at": "C"}],
    },
    "estimates": {"kind": "given", "file": "grid.csv"},
    "method": {"name": "coordinated", "solver": SOLVER},
    "run": {"seed": 2, "warm_up_s": 0.0, "time_limit_s": 1000.0},
}
GRID = "from,to,bandwidth_bytes_per_s\nS,D,120000\nS,K,240000\nK,D,240000\n"


def detour(lost_s, **sections):
    return Case(merged(DETOUR, **sections), {"grid.csv": GRID}, lost_s)


def learned():
    """Ten times the data, over links that nobody knows: a detour of more use is found out."""
    tree = merged(DETOUR, method={"relays": "chains", "connections": 4, **AS_PULLED})
    (source,) = tree["hosts"]["sources"]
    hosts = {"sources": [{**source, "backlog_bytes": 10_000_000}]}
    return Case({**merged(tree, hosts=hosts), "estimates": {"kind": "unknown"}})


# The paper's scenario ---------------------------------------------------------------------------


def base():
    """A fiftieth of the paper's data among its 152 nodes and 60 flows (`experiments/base.toml`).

    Others' UDP flows come and go. Probes shrink with the data, and their average is exponential, so
    that it stays short.
    """
    tree = dc.Scenario.from_file(REPOSITORY / "experiments" / "base.toml").to_dict()
    del tree["probe_scale"]
    tree = merged(tree, scale=0.02, method={"solver": SOLVER}, estimates={"how": "ewma"})
    return Case(merged(tree, run={"udp_on_off": True}, background={"udp_share": 0.2}))


# Problems ---------------------------------------------------------------------------------------

# Two sources: the first data of one already lie at K, those of the other are there after 5 s. Two
# relays: K with little room for others' data, G with none. A forecast of two periods.
PROBLEM = {
    "destination": "D",
    "periods_s": [0.0, 20.0],
    "hosts": {
        "S1": {"backlog_bytes": 5_000_000, "uplink_bytes_per_s": 400_000.0},
        "S2": {"backlog_bytes": 3_000_000, "release_s": 5.0},
        "K": {"storage_bytes": 500_000},
        "G": {"storage_bytes": 0},
        "D": {"downlink_bytes_per_s": 450_000.0},
    },
    "links": [
        {"from": a, "to": b, "bandwidth_bytes_per_s": rates}
        for a, b, rates in (
            ("S1", "D", [100_000.0, 150_000.0]),
            ("S2", "D", [90_000.0, 40_000.0]),
            ("S1", "K", 120_000.0),
            ("S2", "K", 70_000.0),
            ("K", "D", [160_000.0, 110_000.0]),
            ("S1", "G", 130_000.0),
            ("S2", "G", 30_000.0),
            ("G", "D", 110_000.0),
        )
    ],
    "shared": [
        {"name": "peering", "bandwidth_bytes_per_s": 250_000.0, "links": [["S1", "D"], ["K", "D"]]}
    ],
    "held": [{"host": "K", "source": "S1", "offset_bytes": 0, "bytes": 400_000}],
}
# What turned out: both relays' ways on are slower, and the forecast does not hold.
TRUTH = """from,to,bandwidth_bytes_per_s
S1,D,110000
S2,D,80000
S1,K,120000
S2,K,70000
K,D,90000
S1,G,130000
S2,G,30000
G,D,70000
"""


def another_truth():
    """A scenario on a problem instead of a network, whose links turn out to be others."""
    files = {"p.json": json.dumps(PROBLEM), "truth.csv": TRUTH}
    method = {"solver": SOLVER}
    return Case({"problem": "p.json", "truth_csv": "truth.csv", "method": method}, files)


# The runs -----------------------------------------------------------------------------------------

ADAPTIVE = {"name": "adaptive", "connections": 8}
# A plan's routes as chains that pull their shares.
CHAINS = {"relays": "chains", "connections_as": "coordinated", "window_bytes": 30_000}
# Measured by probes, coordinated from then on: as soon as it can, its controller at a distance.
PROBES = {
    "kind": "measured",
    "probe_bytes": 500_000,
    "repeats": 2,
    "how": "median",
    "know_access": True,
    "perturbations": WRONG,
    "shared": [{"wire": "B0-A0"}, {"wire": "B1-A1", "connections": 6}],
}
TURNS = {"streams": 2, "at_a_time": 2, "order": ["S3"], "window_bytes": 30_000}
PLANNED = {"timing": "planned", "open_ahead_s": 0.5, "pace": True}
# 18 connections through queues of 5 packets: some are lost on opening, others stall.
STALLS = {"streams": 6, "stall_patience_s": 0.5, "retry_s": 0.3}
OPENING = {"syn_timeout_s": 0.5, "syn_retries": 0}

probed = partial(small, estimates=PROBES, routing={"kind": "hot-potato", "weight": "delay"})
RUNS = {
    "fluid": {
        # Direct transfers that take turns, with bounded windows.
        "direct in turns": partial(small, method={"name": "direct", **TURNS}),
        # A coordinated plan, as soon as it can, over relays; messages take time. Probes.
        "probes": probed,
        # The plan's own times and rates.
        "planned times": partial(small, method=PLANNED),
        # No plan: connections that learn.
        "adaptive": partial(small, method=ADAPTIVE),
        # A plan over chains, of which one breaks with its relay.
        "chains, lost relay": partial(detour, {"K": 1.5}, method=CHAINS),
        # Links that nobody knows are tried, and the rest is planned on what they bring.
        "learned on the way": learned,
        # The rest is planned again, where a host is lost, too.
        "lost relay, re-planned": partial(detour, {"K": 1.5}, method={"replan_s": 1.0}),
        # No network: a problem with periods, releases, storage, shared and held; rates that differ.
        "another truth": another_truth,
        # A large network; others' flows that come and go.
        "base, UDP": base,
    },
    "ns3": {
        # Probes packet by packet; then a plan over relays.
        "probes": probed,
        # The rest planned again, by whoever knows everything at once.
        "re-planned, free control": partial(
            small,
            method={"replan_s": 1.0},
            estimates={"perturbations": WRONG},
            run={"control": "free"},
        ),
        # Direct connections that are refused, stall, and are replaced.
        "connections replaced": partial(
            small,
            topology={"queue_packets": 5},
            transport=OPENING,
            method={"name": "direct", **STALLS},
            run={"stall_s": 0.5},
        ),
        # A plan over chains; links that nobody knows.
        "chains": partial(small, method=CHAINS),
        "learned on the way": learned,
        # No plan: it learns from packets, and spares others.
        "adaptive": partial(small, method={**ADAPTIVE, "harm": 0.1}),
    },
}
