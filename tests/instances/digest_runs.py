"""The simulations that `digests.py` holds digests of: what each is, by name.

They go through `datacollect`'s public names only, so that they stay what they are when its modules
move. Every scenario names its solver: what ``"auto"`` takes depends on what is installed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
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
    schedule : Schedule, optional
        Carried out instead of planning.
    """

    tree: Mapping[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)
    lost_s: Mapping[str, float] = field(default_factory=dict)
    schedule: dc.Schedule | None = None


def carried_out(engine, case, folder):
    """Carry a case out in a folder that takes the files that it names."""
    for name, text in case.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    scenario = dc.Scenario.from_dict(case.tree, folder)
    run = dc.simulate(scenario, engine=engine, schedule=case.schedule)
    if case.lost_s:
        # Nothing but the engine's own function takes losses; the run before this has loaded it.
        with losing(case.lost_s):
            run = dc.simulate(scenario, engine=engine, schedule=case.schedule)
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
UDP = {
    "flows": 4,
    "tcp_probability": 0.5,
    "udp_share": 0.2,
    "pairs": [
        {"from": "B1", "to": "A1", "kind": "udp", "rate_bytes_per_s": 2e5, "mean_off_s": 0.5},
        {"from": "A0", "to": "B0", "start_s": 1.0},
    ],
}
# The planner takes one peering wire for much better than it is, and the other for worse.
WRONG = [{"wire": "B0-A0", "factor": 3.0}, {"wire": "B1-A1", "factor": 0.5}]


def small(lost_s=None, **sections):
    return lambda: Case(merged(SMALL, **sections), lost_s=lost_s or {})


# What either engine carries out.
BOTH = {
    "direct": small(method={"name": "direct"}),
    "direct in turns": small(
        method={
            "name": "direct",
            "streams": 2,
            "at_a_time": 2,
            "order": ["S3"],
            "window_bytes": 30_000,
        }
    ),
    "direct, paced": small(
        method={"name": "direct", "total_streams": 7, "streams_shared": "evenly", "pace": True}
    ),
    "best-path": small(method={"name": "best-path"}),
    "coordinated": small(),
    "slots": small(method={"slot_s": 0.5}),
    "planned times": small(method={"timing": "planned", "open_ahead_s": 0.5, "pace": True}),
    "re-planned": small(method={"replan_s": 1.0}, estimates={"perturbations": WRONG}),
    "re-planned, free control": small(
        method={"replan_s": 1.0}, estimates={"perturbations": WRONG}, run={"control": "free"}
    ),
    "UDP": small(background=UDP, run={"udp_on_off": True}),
    "lanes": small(method={"lanes": 3}),
    "shared connections": small(method={"lanes": 2, "shared_connections": True}),
    "time limit": small(run={"time_limit_s": 1.0}),
    "probes": small(
        estimates={
            "kind": "measured",
            "probe_bytes": 500_000,
            "repeats": 2,
            "how": "median",
            "know_access": True,
            "perturbations": WRONG,
            "shared": [{"wire": "B0-A0"}, {"wire": "B1-A1", "connections": 6}],
        },
        routing={"kind": "hot-potato", "weight": "delay"},
    ),
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


def detour(lost_s=None, **sections):
    return lambda: Case(merged(DETOUR, **sections), {"grid.csv": GRID}, lost_s or {})


BOTH |= {
    # The wire from K carries less than was promised: K would store more than it has room for.
    "room at the relay": detour(run={"relay_buffer_bytes": 20_000}),
    "room at the relay, re-planned": detour(
        method={"replan_s": 1.0}, run={"relay_buffer_bytes": 40_000}
    ),
}
LOST = {
    "lost relay": detour({"K": 1.5}),
    "lost relay, planned times": detour({"K": 1.5}, method={"timing": "planned"}),
    "lost relay, slots": detour({"K": 1.5}, method={"slot_s": 0.5}),
    "lost relay, re-planned": detour({"K": 1.5}, method={"replan_s": 1.0}),
    "lost source": small({"S2": 1.0}, method={"name": "direct"}),
}

# The paper's scenario ---------------------------------------------------------------------------


def base(scale, **sections):
    """The paper's 152 nodes with 60 background flows, as `experiments/base.toml` has them.

    Probes shrink with the data, and their average is exponential, so that these runs stay short.
    """

    def case():
        tree = dc.Scenario.from_file(REPOSITORY / "experiments" / "base.toml").to_dict()
        del tree["probe_scale"]
        tree = merged(tree, scale=scale, method={"solver": SOLVER}, estimates={"how": "ewma"})
        return Case(merged(tree, **sections))

    return case


BASE = {
    "base, direct": base(0.1, method={"name": "direct"}),
    "base, direct-as-many": base(0.1, method={"name": "direct", "streams_as": "coordinated"}),
    "base, best-path": base(0.1, method={"name": "best-path"}),
    "base, coordinated": base(0.1),
    "base, slots": base(0.1, method={"slot_s": 5.0}),
    "base, planned times": base(0.1, method={"timing": "planned"}),
    "base, re-planned": base(0.1, method={"replan_s": 20.0}),
    "base, UDP": base(0.02, run={"udp_on_off": True}, background={"udp_share": 0.2}),
}
# To probe 56 pairs of hosts packet by packet would take longer than all else: three sources do.
FEW_SOURCES = {
    "sources": [
        {"domain": "A", "among": "transit"},
        {"domain": "B", "among": "transit", "count": 2},
    ]
}
SOON = {"warm_up_s": 2.0}
BASE_IN_NS3 = {
    "base, direct": base(0.003, method={"name": "direct"}, estimates={"kind": "exact"}, run=SOON),
    "base, coordinated": base(0.005, estimates={"kind": "exact"}, run=SOON),
    "base, probes": base(
        0.01,
        hosts=FEW_SOURCES,
        backlog={"total_bytes": 150_000_000},
        estimates={"repeats": 1, "probe_bytes": 2_000_000},
        run=SOON,
    ),
}

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
# To plan anew on the way takes some room everywhere.
WITH_ROOM = merged(PROBLEM, hosts={"G": {"storage_bytes": 200_000}})
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


def on_problem(tree=PROBLEM, truth=None, schedule=None, **method):
    """A scenario on a problem instead of a network."""
    scenario = {"problem": "p.json", "method": {"solver": SOLVER, **method}}
    files = {"p.json": json.dumps(tree)}
    if truth is not None:
        scenario["truth_csv"] = "truth.csv"
        files["truth.csv"] = truth
    return lambda: Case(scenario, files, schedule=schedule)


def rest_without_k(slot_s=None):
    """The rest of a collection, planned anew where the relay K is lost after 6 s."""
    problem = dc.Problem.from_dict(PROBLEM)
    plan = dc.coordinated(problem, slot_s=slot_s, solver=SOLVER)
    progress = replace(dc.Progress.from_schedule(problem, plan, 6.0), lost_hosts=("K",))
    rest = dc.replan(problem, plan, progress, solver=SOLVER)
    return on_problem(dc.remaining_problem(problem, progress).to_dict(), schedule=rest)()


def by_a_deadline():
    """Not the fastest plan, but one that is in time and sends little over relays."""
    problem = dc.Problem.from_dict(PROBLEM)
    plan = dc.coordinated(problem, prefer="relay-bytes", deadline_s=40.0, solver=SOLVER)
    return on_problem(schedule=plan)()


PROBLEMS = {
    "storage 0, direct": on_problem(name="direct"),
    "storage 0, best-path": on_problem(name="best-path"),
    "storage 0, coordinated": on_problem(),
    "storage 0, slots": on_problem(slot_s=1.0),
    "storage 0, best-path in slots": on_problem(name="best-path", slot_s=1.0),
    "storage 0, planned times": on_problem(timing="planned", pace=True),
    "another truth": on_problem(truth=TRUTH),
    "another truth, re-planned": on_problem(WITH_ROOM, TRUTH, replan_s=5.0),
    "a schedule with a deadline": by_a_deadline,
    "lost relay, the rest planned anew": rest_without_k,
    "lost relay, the rest in slots": partial(rest_without_k, slot_s=1.0),
}

# Packets only -----------------------------------------------------------------------------------

CROWDED = {
    # 18 connections through queues of 5 packets: some are lost on opening, others stall.
    "connections replaced": small(
        topology={"queue_packets": 5},
        transport={"syn_timeout_s": 0.5, "syn_retries": 0},
        method={"name": "direct", "streams": 6, "stall_patience_s": 0.5, "retry_s": 0.3},
        run={"stall_s": 0.5},
    ),
    "Cubic": small(transport={"variant": "Cubic", "delayed_ack_segments": 1}),
}

RUNS = {
    "fluid": {**BOTH, **LOST, **PROBLEMS, **BASE},
    "ns3": {**BOTH, **CROWDED, **BASE_IN_NS3},
}
