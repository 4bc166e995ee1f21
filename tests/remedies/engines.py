"""Remedies about runs in simulators, scenarios of a problem, files of plans, and maps."""

from __future__ import annotations

import json
import re
from itertools import permutations
from unittest import mock

import pandas as pd
from instances.planned_anew import triangle
from instances.small_networks import PLACES, line_network
from instances.small_scenarios import line_of
from remedies.methods import Deciding
from remedies.problems import read
from remedies.trying import Example, call, in_folder, in_new_folder, until
from simulation.ns3.test_results import TEXT
from simulation.ns3.test_results import run as run_of_ns3

import datacollect as dc
from datacollect.control.decisions import WakeMe
from datacollect.errors import SimulationError
from datacollect.scenario.probes import measure
from datacollect.scenario.setting import build
from datacollect.simulation.fluid.engine import simulate_problem
from datacollect.simulation.network import Transport
from datacollect.simulation.ns3.engine import simulate_ns3
from datacollect.simulation.ns3.network_text import scenario_text
from datacollect.topologies import from_graphml

P = """
destination = "D"
[hosts.D]
[hosts.K]
[hosts.S]
backlog_bytes = 1000
storage_bytes = 1000
[[links]]
from = "S"
to = "D"
bandwidth_bytes_per_s = 100.0
[[links]]
from = "K"
to = "D"
bandwidth_bytes_per_s = 100.0
"""
SHARED = """[[shared]]
name = "wire"
bandwidth_bytes_per_s = 100.0
links = [["S", "D"], ["K", "D"]]
"""
TRUTH = "from,to,bandwidth_bytes_per_s\nS,D,50\n"
SCENARIO = 'problem = "p.toml"\n'
OF_TRUTH = SCENARIO + 'truth_csv = "t.csv"\n'
START = "2026-11-22T20:00:00+01:00"
ESTIMATES = "from,to,bandwidth_bytes_per_s\n" + "".join(
    f"{a},{b},100\n" for a, b in permutations(("S1", "S2", "D"), 2)
)
SMALL = (
    'topology = { kind = "line", n_nodes = 2, rate_bytes_per_s = 1e6 }\n'
    'hosts = { destination = { at = "N1" }, sources = [{ at = "N0", backlog_bytes = 1000 }] }\n'
)
LINE = "simulate s.toml --engine fluid"
PROGRESS = '{"format": "datacollect-progress/1", "at_s": 1.0, "bandwidth_csv": "n.csv"}'
OUTSIDE = (
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
    '<key id="i" for="node" attr.name="Internal" attr.type="int"/>'
    '<graph><node id="0"><data key="i">0</data></node></graph></graphml>'
)


class Restless(Deciding):
    """A controller that has itself woken up again and again."""

    finished = False

    def __init__(self, n_times=1000):
        super().__init__(WakeMe(1.0, 1))
        self.n_times = n_times

    def handle(self, event):
        self.finished = event.tag == self.n_times
        return [] if self.finished else [WakeMe(event.time_s + 1.0, event.tag + 1)]


def woken(n_times):
    return lambda: simulate_problem(triangle(), Restless(n_times), event_limit=100)


def without_ns3(line, **files):
    """Run a command where ns-3 is not installed."""

    def missing():
        raise SimulationError("ns-3 is not installed")

    def run():
        with mock.patch("datacollect.simulation.ns3.process.check_installed", missing):
            return in_folder(line, **files)()

    return run


def with_ns3(line, **files):
    """Run a command as where ns-3 is installed, whether or not it is."""

    def run():
        with mock.patch("datacollect.simulation.ns3.process.check_installed", return_value=None):
            return in_folder(line, **files)()

    return run


def in_room(relay_buffer_bytes=1000, **method):
    """Simulate a plan whose relay stores 2 MB in slots of a second; K's buffer may be small."""
    text = (
        f'problem = "p.toml"\nmethod = {method_text(method)}\n'
        f"run = {{ relay_buffer_bytes = {relay_buffer_bytes} }}\n"
    )
    return in_folder(LINE, p_toml=OVER_K, s_toml=text)


def method_text(values):
    inner = ", ".join(f"{key} = {value!r}" for key, value in values.items())
    return f"{{ {inner} }}"


OVER_K = """
destination = "D"
[hosts.D]
[hosts.K]
[hosts.S]
backlog_bytes = 10_000
[[links]]
from = "S"
to = "K"
bandwidth_bytes_per_s = 1000.0
[[links]]
from = "K"
to = "D"
bandwidth_bytes_per_s = 1000.0
"""


def measured(n_sources, estimates="", more=""):
    """Simulate where two links may be probed, and no more."""
    text = SMALL.replace("at =", f"count = {n_sources}, at =", 2).replace(
        f"count = {n_sources}, ", "", 1
    )

    def run():
        with mock.patch.dict("datacollect.scenario.probes.MOST_PROBES", fluid=2):
            return in_folder(LINE, s_toml=text + estimates, e_csv=ESTIMATES)()

    return run


def probed(**estimates):
    """Measure between 6 hosts, a thousand times each."""
    sources = [{"at": "N0", "count": 5, "backlog_bytes": 1}]
    hosts = {"destination": {"at": "N1"}, "sources": sources}
    return measure(build(line_of(hosts=hosts, estimates={"repeats": 1000} | estimates)), "ns3")


def scenario_of(rate):
    what = {"seed": 1, "warm_up_s": 0.0, "time_limit_s": 1.0, "stall_s": 1.0}
    what["relay_buffer_bytes"] = None
    return scenario_text(with_rate(rate), {"S": 1}, "D", **what)


def with_rate(rate):
    return line_network([rate], {"S": 0, "D": 1})


def keep_external(keep):
    def read_map():
        with in_new_folder(m_graphml=OUTSIDE):
            return from_graphml("m.graphml", default_rate_bytes_per_s=1.0, keep_external=keep)

    return read_map


def parquet(line=""):
    """Check a plan in a Parquet file that is a table of others, or which a command has written."""

    def check():
        with in_new_folder(p_toml=P):
            pd.DataFrame({"a": [1]}).to_parquet("s.parquet")
            if line:
                call(line)
            return call("check p.toml s.parquet")

    return check


def labelled(labels):
    links = pd.DataFrame({"from": ["S"], "to": ["D"], "bandwidth_bytes_per_s": [5.0]})
    starts = pd.Series([0.0, 60.0], labels)
    return dc.Problem.from_dataframe(links, {"S": 10}, "D", periods_s=starts)


def replanned(csv):
    return in_folder(
        "plan p.toml -o s.json", "replan p.toml s.json r.json", p_toml=P, r_json=PROGRESS, n_csv=csv
    )


def begun_before(is_planned_anew):
    """Simulate a plan that begins before 0, or one that is made anew."""

    def early(folder):
        tree = json.loads((folder / "s.json").read_text())
        for row in tree["transfers"]:
            row["start_s"] -= 1.0
        (folder / "s.json").write_text(json.dumps(tree))

    def run():
        with in_new_folder(p_toml=P, s_toml=SCENARIO) as folder:
            call("plan p.toml -o s.json")
            early(folder)
            if is_planned_anew:
                call("plan p.toml -o s.json --force")
            return call("simulate s.toml --engine fluid --schedule s.json")

    return run


def with_retries(n):
    """Read what ns-3 reports, whose background flow gives up after 20 retries in a row.

    As if: another run of ns-3 would have to lose so many packets.
    """

    def read_results():
        network = line_network([5.0, 5.0], PLACES, transport=Transport(data_retries=n))
        what = {"seed": 1, "warm_up_s": 0.0, "time_limit_s": 1.0, "stall_s": 1.0}
        text = scenario_text(network, {"S": 10}, "D", relay_buffer_bytes=None, **what)
        (asked,) = re.findall(r"DataRetries (\d+)", text)
        run_of_ns3(text=TEXT if int(asked) > 20 else f"{TEXT}broken 4")

    return read_results


MAKES = P.replace("storage_bytes = 1000", "produces_bytes_per_s = 50.0")
FLUIDLY = "simulate s.toml --engine fluid --method"

EXAMPLES = [
    Example("of simulated time; is the controller in an endless loop?", woken(1000), woken(10)),
    Example(
        "makes its data (produces_bytes_per_s), which method {} cannot follow; choose coordinated",
        in_folder(f"{FLUIDLY} adaptive", p_toml=MAKES, s_toml=SCENARIO),
        in_folder(f"{FLUIDLY} coordinated", p_toml=MAKES, s_toml=SCENARIO),
    ),
    Example(
        "relay_buffer_bytes must be >= {}, two segments, got {}; None: no bound",
        lambda: simulate_ns3(with_rate(1e6), {"S": 1}, "D", Restless(), relay_buffer_bytes=1),
        until(
            "seed must be", lambda: simulate_ns3(with_rate(1e6), {"S": 1}, "D", Restless(), seed=0)
        ),
    ),
    Example(
        "for ns-3, got {}; change it",
        lambda: scenario_of(0.01),
        lambda: scenario_of(1e6),
    ),
    Example(
        "change it, or use the fluid engine",
        lambda: scenario_of(0.01),
        in_folder(LINE, s_toml=SMALL.replace("1e6", "0.5").replace("1000", "10")),
    ),
    Example(
        "or use the fluid engine: --engine fluid",
        without_ns3("simulate s.toml --engine ns3", s_toml=SMALL),
        without_ns3("simulate s.toml --engine fluid", s_toml=SMALL),
    ),
    Example(
        "use the fluid engine, --engine fluid",
        with_ns3("simulate s.toml --engine ns3", s_toml=SCENARIO, p_toml=P),
        with_ns3("simulate s.toml --engine fluid", s_toml=SCENARIO, p_toml=P),
    ),
    Example(
        "which the plan in slots stores at {}, got {}; raise it",
        in_room(slot_s=2.0),
        in_room(10_000, slot_s=2.0),
    ),
    Example("raise it, shorten method.slot_s", in_room(slot_s=2.0), in_room(slot_s=0.5)),
    Example("or leave out method.slot_s: pipelined", in_room(slot_s=2.0), in_room()),
    Example(
        'give estimates.file with kind = "given",',
        measured(2),
        measured(2, 'estimates = { kind = "given", file = "e.csv" }\n'),
    ),
    Example(
        'use kind = "exact",',
        probed,
        lambda: probed(kind="exact"),
    ),
    Example('kind = "given",{} or simulate fewer hosts', measured(2), measured(1)),
    Example(
        "truth_csv needs a problem; add problem = ...",
        in_folder(LINE, s_toml=SMALL + 'truth_csv = "t.csv"\n', p_toml=P, t_csv=TRUTH),
        in_folder(LINE, s_toml=OF_TRUTH, p_toml=P, t_csv=TRUTH),
    ),
    Example(
        "add problem = ..., or remove it",
        in_folder(LINE, s_toml=SMALL + 'truth_csv = "t.csv"\n', p_toml=P, t_csv=TRUTH),
        in_folder(LINE, s_toml=SMALL, p_toml=P, t_csv=TRUTH),
    ),
    Example(
        "of the shared bottleneck {} is missing; give it a bandwidth, 0 for none",
        in_folder(LINE, s_toml=OF_TRUTH, p_toml=P + SHARED, t_csv=TRUTH),
        in_folder(LINE, s_toml=OF_TRUTH, p_toml=P + SHARED, t_csv=TRUTH + "K,D,0\n"),
    ),
    Example(
        "metadata {} is missing; write it with `datacollect plan -o`",
        parquet(),
        parquet("plan p.toml -o s.parquet --force"),
    ),
    Example(
        "plans of what remains take new bandwidths as constants; remove it",
        replanned("from,to,bandwidth_bytes_per_s,competitors\nS,D,50,1\n"),
        replanned("from,to,bandwidth_bytes_per_s\nS,D,50\n"),
    ),
    Example("of {}; keep_external keeps all", keep_external(False), keep_external(True)),
    Example(
        "daily_periods[{}] {}, got {}; list them in a day's order",
        lambda: read(start=START, daily_periods=["20:00", "08:00"]),
        lambda: read(start=START, daily_periods=["08:00", "20:00"]),
    ),
    Example(
        "{} must have labels 0 … {} where nothing has a name, got {}; leave the labels out",
        lambda: labelled(["a", "b"]),
        lambda: labelled([0, 1]),
    ),
    Example(
        "the schedule: start_s must be >= 0, got {}; plan again",
        begun_before(False),
        begun_before(True),
    ),
    Example(
        "background flow {} lost its connection; allow more data_retries",
        with_retries(20),
        with_retries(21),
    ),
]
