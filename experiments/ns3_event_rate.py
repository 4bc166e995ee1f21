"""What driving ns-3 from Python costs: events per second, against a C++ program.

    python experiments/ns3_event_rate.py [--flows 0 60] [--megabytes 35] [--repeats 3]

Both carry out the same direct collection, from the same text, with the same headers
(datacollect/simulation/ns3/collect/) and the same ns-3 libraries: once compiled with cppyy at
start-up and driven by a Python controller, once by g++ -O2 and a C++ loop. The program prints
events, processor time, and the ratio of the two rates (the median of repetitions, taken in turns,
so that a busy machine slows both). Events and makespans have to agree exactly.

Needs `pip install '.[ns3]'` in a clone and g++.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from datacollect.control.controller import Controller
from datacollect.control.decisions import Open, Send
from datacollect.simulation.network import BackgroundFlow, SimulatedNetwork
from datacollect.simulation.ns3.engine import simulate_ns3
from datacollect.simulation.ns3.network_text import hosts_of, scenario_text
from datacollect.simulation.ns3.process import worker
from datacollect.simulation.ns3.worker import HEADER, LIBRARIES
from datacollect.topologies import paper_152

N_SOURCES = 7
WARM_UP_S = 20.0
DESTINATION = "D"

MAIN = r"""
#include "collect/simulation.h"
#include <sys/resource.h>
#include <fstream>
#include <iostream>

int main(int, char** arguments)
{
    std::ifstream file(arguments[1]);
    std::stringstream text;
    text << file.rdbuf();
    collect::Simulation simulation(text.str());
    simulation.WarmUp();
    std::ifstream decisions(arguments[2]);
    std::string word;
    while (decisions >> word)
    {
        int id, a, b;
        uint64_t bytes;
        decisions >> id >> a >> b >> bytes;
        word == "open" ? simulation.Open(id, {a, b}, 0, 0) : simulation.Send(id, a, 0, bytes);
    }
    double makespan_s = 0;
    while (!simulation.Complete() && simulation.Run() != collect::LIMIT)
    {
        for (const auto& event : simulation.TakeEvents())
        {
            makespan_s = event.time_s;
        }
    }
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double cpu_s = usage.ru_utime.tv_sec + usage.ru_utime.tv_usec / 1e6 + usage.ru_stime.tv_sec +
                   usage.ru_stime.tv_usec / 1e6;
    std::cout.precision(17);
    std::cout << simulation.Events() << ' ' << cpu_s << ' ' << makespan_s << std::endl;
    std::_Exit(0);
}
"""


class Direct(Controller):
    """Everything straight to the destination, one connection per source."""

    def __init__(self, backlog_bytes):
        self.backlog_bytes = backlog_bytes

    def start(self):
        """Open all connections and queue all data."""
        decisions = []
        for i, (host, n) in enumerate(self.backlog_bytes.items()):
            decisions += [Open(i, (host, DESTINATION)), Send(i, host, 0, n)]
        return decisions

    def handle(self, event):
        """Nothing is left to decide."""
        return []


def build_network(n_flows, seed=1):
    """Return the 152-node network with hosts in its stubs and TCP flows between other nodes."""
    topology = paper_152(seed=seed)
    draw = np.random.default_rng(seed)
    stubs = [i for i, kind in enumerate(topology.kinds) if kind == "stub"]
    places = draw.choice(stubs, N_SOURCES + 1, replace=False).tolist()
    names = [DESTINATION, *(f"S{i}" for i in range(1, N_SOURCES + 1))]
    # Across the peering wires, half of them each way; starts within the first ten seconds.
    side = {i: topology.domains[i][0] for i in stubs}
    flows = []
    for number in range(n_flows):
        a = int(draw.choice([i for i in stubs if side[i] == "AB"[number % 2]]))
        b = int(draw.choice([i for i in stubs if side[i] == "BA"[number % 2]]))
        flows.append(BackgroundFlow("tcp", a, b, start_s=float(draw.uniform(0, 10))))
    both = np.stack([topology.wire_from, topology.wire_to], axis=1).astype(np.int64)
    routes = topology.shortest_routes()
    table = np.full((topology.n_nodes, topology.n_nodes), -1, dtype=np.int64)
    for row, target in enumerate(routes.destinations):
        wire = routes.next_wire[row].astype(np.int64)
        node = np.arange(topology.n_nodes)
        backwards = (both[np.maximum(wire, 0), 0] != node).astype(np.int64)
        table[:, topology.index[target]] = np.where(wire < 0, -1, 2 * wire + backwards)
    return SimulatedNetwork(
        node_names=topology.names,
        host_node=dict(zip(names, places, strict=True)),
        tail=both.ravel(),
        head=both[:, ::-1].ravel(),
        rate_bytes_per_s=topology.rate_bytes_per_s.ravel(),
        delay_s=np.repeat(topology.delay_s, 2),
        queue_packets=topology.queue_packets.ravel(),
        next_wire=table,
        background=tuple(flows),
    )


def compile_program(folder):
    """Return the C++ program's path."""
    root = Path(importlib.util.find_spec("ns3").submodule_search_locations[0])
    source, program = folder / "main.cc", folder / "main"
    source.write_text(MAIN)
    libraries = root / "lib64"
    subprocess.run(
        ["g++", "-O2", "-std=c++20", f"-I{HEADER.parents[1]}", f"-I{root / 'include'}", source]
        + ["-o", program, f"-L{libraries}", f"-Wl,-rpath,{libraries}"]
        + [f"-l:libns3.44-{name}.so" for name in LIBRARIES],
        check=True,
    )
    return program


def run_program(program, folder, network, backlog):
    """Return events, processor time and makespan of the C++ program."""
    hosts = hosts_of(network)
    scenario, decisions = folder / "scenario.txt", folder / "decisions.txt"
    scenario.write_text(
        scenario_text(
            network,
            backlog,
            DESTINATION,
            seed=1,
            warm_up_s=WARM_UP_S,
            time_limit_s=1e6,
            stall_s=30.0,
            relay_buffer_bytes=None,
        )
    )
    lines = []
    for i, (host, n) in enumerate(backlog.items()):
        lines.append(f"open {i} {hosts.index(host)} {hosts.index(DESTINATION)} 0")
        lines.append(f"send {i} {hosts.index(host)} 0 {n}")
    decisions.write_text("\n".join(lines))
    output = subprocess.run(
        [program, scenario, decisions], check=True, capture_output=True, text=True
    ).stdout.split()
    return int(output[0]), float(output[1]), float(output[2])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flows", type=int, nargs="+", default=[0, 60])
    parser.add_argument("--megabytes", type=float, default=35.0)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    start = time.perf_counter()
    worker()
    print(f"worker ready after {time.perf_counter() - start:.1f} s")
    backlog = {
        f"S{i}": round(arguments.megabytes * 1e6 / N_SOURCES) for i in range(1, N_SOURCES + 1)
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = compile_program(folder)
        for n_flows in arguments.flows:
            network = build_network(n_flows)
            ratios = []
            for _ in range(arguments.repeats):
                run = simulate_ns3(
                    network, backlog, DESTINATION, Direct(backlog), warm_up_s=WARM_UP_S
                )
                events, cpu_s, makespan_s = run_program(program, folder, network, backlog)
                # The C++ program stops at the last arrival; cooling down adds nothing here.
                assert abs(run.events - events) <= 2 * len(backlog) + 2, (run.events, events)
                assert abs(run.makespan_s - makespan_s) < 1e-9, (run.makespan_s, makespan_s)
                ratios.append(run.events / run.cpu_s / (events / cpu_s))
                print(
                    f"{n_flows} flows, {arguments.megabytes:g} MB: makespan {run.makespan_s:.1f} s,"
                    f" {run.events / 1e6:.2f} M events; Python {run.cpu_s:.2f} s CPU"
                    f" ({run.events / run.cpu_s / 1e6:.2f} M/s,"
                    f" {run.settings['peak_memory_bytes'] / 1e6:.0f} MB), C++ {cpu_s:.2f} s"
                )
            print(f"{n_flows} flows: ratio of event rates, Python over C++: {median(ratios):.2f}")


if __name__ == "__main__":
    main()
