"""Cycles of measurements in the test bed: what is collected beside what they promise, shared wires.

    python experiments/measuring_cycles.py [PART ...] [--table]

Networks of namespaces with real TCP between them (`tests/testbed`, for root), an agent at each
host, and `datacollect measure cycle`, `measure problem` and `pull` as users run them:

idle      four cycles, then what three sources hold is pulled
beside    sixteen cycles beside eight flows of others, then ten pulls, one after the other
wires     which of four links share one of two wires, five times idle, five times beside six flows
          on each wire

Runs are kept one by one in `results/measuring_cycles.csv`, and a second start goes on; `--table`
writes `docs/tables/measuring_cycles.md` from them.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from testbed.bed import Bed  # noqa: E402
from testbed.measuring import MeasuredHosts  # noqa: E402
from testbed.networks import star  # noqa: E402

from datacollect.measurement.sample_store import read_parts  # noqa: E402
from datacollect.measuring.results.shared_links import compared  # noqa: E402
from datacollect.scenario.setting import network_of  # noqa: E402
from datacollect.simulation.network import BackgroundFlow  # noqa: E402
from datacollect.topologies import Node, Topology, Wire  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datacollect.simulation.network import SimulatedNetwork

ROWS = ROOT / "experiments" / "results" / "measuring_cycles.csv"
TABLE = ROOT / "docs" / "tables" / "measuring_cycles.md"
COLUMNS = ("part", "run", "name", "value")
MBIT = 125_000.0
WARM_UP_S = 4.0
# Public addresses: private ones are none of routers in common.
PREFIX = "11.77"
# Rates of the three sources' wires, and flows of others. A pull gives connections to sources
# by what their links carry: beside others all wires are alike, so that each gets four, as tests do.
RATES = {
    "idle": {"S1": 5 * MBIT, "S2": 8 * MBIT, "S3": 10 * MBIT},
    "beside": {"S1": 8 * MBIT, "S2": 8 * MBIT, "S3": 8 * MBIT},
}
FLOWS = {"S1": 3, "S2": 3, "S3": 2}
# What takes so long where nobody else is.
HELD_S = {"idle": 60.0, "beside": 30.0}
CONNECTIONS = 12


def kept() -> list[dict[str, str]]:
    """Return the rows of all runs so far."""
    if not ROWS.exists():
        return []
    with ROWS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def keep(part: str, run: int, values: dict[str, float]) -> None:
    """Keep what a run has given, and how busy the machine was."""
    is_new = not ROWS.exists()
    with ROWS.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(COLUMNS)
        for name, value in {**values, "load": os.getloadavg()[0]}.items():
            writer.writerow([part, run, name, f"{value:.6g}"])
    print(part, run, {name: float(f"{value:.3g}") for name, value in values.items()}, flush=True)


def todo(part: str, n: int) -> list[int]:
    """Return the runs of a part that are not kept."""
    done = {int(row["run"]) for row in kept() if row["part"] == part}
    return [run for run in range(n) if run not in done]


@contextmanager
def measured_hosts(
    network: SimulatedNetwork, names: list[str], **options: Any
) -> Iterator[MeasuredHosts]:
    """Yield agents at hosts of a network; others' flows have begun, if there are any."""
    with Bed(network, prefix=PREFIX) as bed, tempfile.TemporaryDirectory() as folder:
        hosts = MeasuredHosts(bed, Path(folder), names, **options)
        if network.background:
            bed.start_background(congestion="reno")
            time.sleep(WARM_UP_S)
        yield hosts


# Collecting ---------------------------------------------------------------------------------


def collecting(part: str, runs: int, cycles: int, *, beside: bool) -> None:
    """Measure some cycles, then pull, and keep what was promised and what it took."""
    left = todo(part, runs)
    if not left:
        return
    rates = RATES[part]
    held_bytes = {name: int(HELD_S[part] * rate) for name, rate in rates.items()}
    tools = "tcp" if beside else "tcp,flood"
    network = star({**rates, "D": 100 * MBIT}, delay_s=0.005, queue_packets=50)
    node = network.host_node
    flows = [(name, "D") for name, n in FLOWS.items() for _ in range(n if beside else 0)]
    flows_of = tuple(BackgroundFlow("tcp", node[tail], node[head]) for tail, head in flows)
    names = [*rates, "D"]
    pairs = [(name, "D") for name in rates]
    network = replace(network, background=flows_of)
    with measured_hosts(network, names, pairs=pairs, data_bytes=held_bytes) as hosts:
        for _ in range(cycles):
            hosts.measure("cycle", "--only", "matter", "--tools", tools)
        tree = hosts.problem()["problem"]
        link = {one["from"]: one for one in tree["links"]}
        for run in left:
            said = hosts.pull(tree, CONNECTIONS, f"into-{run}")
            if not said["complete"]:
                raise RuntimeError(str(said["missing"]))
            values = {"predicted": said["predicted_makespan_s"], "real": said["makespan_s"]}
            if beside:
                for bound, key in (("least", "high"), ("most", "low")):
                    values[bound] = max(
                        held_bytes[name] / link[name][f"bandwidth_{key}_bytes_per_s"]
                        for name in rates
                    )
            keep(part, run, values)


# Wires --------------------------------------------------------------------------------------

N_LINKS = 4


def two_wires(flows: int) -> SimulatedNetwork:
    """L1 to L4 at router A, R1 and R2 at B, R3 and R4 at C; A-B and A-C have 5 Mbit/s each."""
    access, narrow = 100 * MBIT, 5 * MBIT
    right = {"R1": "B", "R2": "B", "R3": "C", "R4": "C"}
    wires = [Wire(f"L{i + 1}", "A", access, 0.001, 50) for i in range(N_LINKS)]
    wires += [Wire(router, host, access, 0.001, 50) for host, router in right.items()]
    wires += [Wire("A", router, narrow, 0.005, 50) for router in "BC"]
    nodes = ["A", "B", "C", *(f"L{i + 1}" for i in range(N_LINKS)), *right]
    topology = Topology.from_wires(wires, list(map(Node, nodes)))
    hosts = {name: name for name in nodes}
    network = network_of(topology, hosts, topology.shortest_routes().next_wire)
    node = network.host_node
    ends = [(node["A"], node[router]) for router in "BC" for _ in range(flows)]
    return replace(network, background=tuple(BackgroundFlow("tcp", *end) for end in ends))


def wires(part: str, runs: int, flows: int) -> None:
    """Find which links share a wire; keep pairs of links that were found, missed, and invented."""
    links = [(f"L{i + 1}", f"R{i + 1}") for i in range(N_LINKS)]
    truth = {frozenset(links[:2]), frozenset(links[2:])}
    hosts_of = [name for link in links for name in link]
    for run in todo(part, runs):
        with measured_hosts(two_wires(flows), hosts_of, pairs=links) as hosts:
            hosts.measure("cycle", "--tools", "trace,shared", timeout_s=1500.0)
            table = read_parts(hosts.folder / "samples").frame
            found = {
                frozenset(both)
                for wire in compared(table).wires()
                for both in combinations(wire.links, 2)
            }
        values = {
            "found": len(found & truth),
            "missed": len(truth - found),
            "invented": len(found - truth),
        }
        keep(part, run, values)


# Tables -------------------------------------------------------------------------------------


def write_table() -> None:
    """Write the table of all runs that are kept."""
    rows: dict[str, dict[int, dict[str, float]]] = {}
    for row in kept():
        of_run = rows.setdefault(row["part"], {}).setdefault(int(row["run"]), {})
        of_run[row["name"]] = float(row["value"])
    lines = ["| others' flows | run | predicted, s | interval, s | real, s | real ÷ predicted |"]
    lines += ["|---|---|---|---|---|---|"]
    for part in ("idle", "beside"):
        for run, one in rows.get(part, {}).items():
            interval, inside = "", ""
            if "least" in one:
                interval = f"{one['least']:.1f} – {one['most']:.1f}"
                inside = "" if one["least"] <= one["real"] <= one["most"] else ", outside"
            ratio = one["real"] / one["predicted"]
            lines.append(
                f"| {8 if part == 'beside' else 0} | {run + 1} | {one['predicted']:.1f} | "
                f"{interval} | {one['real']:.1f}{inside} | {ratio:.2f} |"
            )
    lines += ["", "| others' flows on each wire | runs | found | missed | invented | F1 |"]
    lines += ["|---|---|---|---|---|---|"]
    for part, flows in (("wires idle", 0), ("wires beside", 6)):
        runs = rows.get(part, {}).values()
        found, missed, invented = (
            int(sum(one[name] for one in runs)) for name in ("found", "missed", "invented")
        )
        if found:
            f1 = 2 * found / (2 * found + missed + invented)
            lines.append(f"| {flows} | {len(runs)} | {found} | {missed} | {invented} | {f1:.2f} |")
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


PARTS = {
    "idle": lambda: collecting("idle", 3, 4, beside=False),
    "wires": lambda: (wires("wires idle", 5, 0), wires("wires beside", 5, 6)),
    "beside": lambda: collecting("beside", 10, 16, beside=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    for part in () if given.table else given.parts or PARTS:
        PARTS[part]()
    write_table()


if __name__ == "__main__":
    main()
