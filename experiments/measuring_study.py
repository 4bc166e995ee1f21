"""Tests of the network in the test bed, beside the true rates of its wires.

    python experiments/measuring_study.py [PART ...] [--runs 5] [--table]

Each part makes networks of namespaces with real TCP between them (`tests/testbed`, for root), an
agent at each host, and measures them by `datacollect measure`, as users do:

connections   m of curves beside m flows of others
wire          rates of tcp beside the counters of the wire
calibration   packet pairs against TCP over twelve paths
scan          windows and streams
flood         one host to a group of others, beside each of them alone

Runs are kept one by one in `results/measuring_study.csv`, and a second start goes on; then
`docs/tables/measuring_*.md` are written from all of them, with `--table` without any run.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from testbed.bed import Bed
from testbed.measuring import MeasuredHosts
from testbed.networks import one_wire, star
from timed_calls import markdown

from datacollect.measurement.series.calibration import calibrate
from datacollect.simulation.network import BackgroundFlow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from datacollect.simulation.network import SimulatedNetwork

    Values = dict[str, float]

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "experiments" / "results" / "measuring_study.csv"
TABLES = ROOT / "docs" / "tables"
COLUMNS = ("part", "case", "run", "name", "value")
MBIT = 125_000.0
# Of a frame of 1514 bytes TCP carries 1448.
PAYLOAD = 1448 / 1514
# Until others' flows have found their rates.
WARM_UP_S = 4.0
COUNTERS_EVERY_S = 0.1


# Runs ---------------------------------------------------------------------------------------


class Kept:
    """The rows of all runs so far, on the disk."""

    def __init__(self, kept_in: Path = ROWS) -> None:
        self.rows: list[dict[str, str]] = []
        self._kept_in = kept_in
        if kept_in.exists():
            with kept_in.open(newline="", encoding="utf-8") as file:
                self.rows = list(csv.DictReader(file))
        self.done = {(row["part"], row["case"], row["run"]) for row in self.rows}

    def add(self, part: str, case: str, run: int, values: Values) -> None:
        """Keep what a run has measured, and how busy the machine was."""
        values = {**values, "load": os.getloadavg()[0]}
        rows = [
            {"part": part, "case": case, "run": str(run), "name": name, "value": f"{value:.6g}"}
            for name, value in values.items()
        ]
        is_new = not self._kept_in.exists()
        with self._kept_in.open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerows(rows)
        self.rows += rows
        print(part, case, run, {name: float(f"{v:.3g}") for name, v in values.items()}, flush=True)

    def of(self, part: str) -> dict[str, list[Values]]:
        """Return the runs of each case of a part."""
        found: dict[str, dict[str, Values]] = defaultdict(lambda: defaultdict(dict))
        for row in self.rows:
            if row["part"] == part:
                found[row["case"]][row["run"]][row["name"]] = float(row["value"])
        return {case: list(runs.values()) for case, runs in found.items()}


@contextmanager
def measured_hosts(
    network: SimulatedNetwork, names: str | list[str], congestion: str = "reno"
) -> Iterator[MeasuredHosts]:
    """Yield agents at hosts of a network; others' flows have begun, if there are any."""
    with Bed(network) as bed, tempfile.TemporaryDirectory() as folder:
        hosts = MeasuredHosts(bed, Path(folder), names, congestion)
        if network.background:
            bed.start_background(congestion=congestion)
            time.sleep(WARM_UP_S)
        yield hosts


class Counters:
    """Bytes that a wire has carried, read ten times a second while a test runs."""

    def __init__(self, bed: Bed, wire: int) -> None:
        self._bed, self._wire = bed, wire
        self.rows: list[tuple[float, int]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> Counters:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._ended.wait(COUNTERS_EVERY_S):
            self.rows.append((time.monotonic(), self._bed.carried()[self._wire].bytes))

    def busy(self) -> list[tuple[float, int]]:
        """Return the readings from the first on after which data flowed, to the last."""
        moved = [
            i
            for i in range(1, len(self.rows))
            # A test's own traffic, not greetings and questions.
            if self.rows[i][1] - self.rows[i - 1][1] > 20_000
        ]
        return self.rows[moved[0] - 1 : moved[-1] + 1]


def wire_number(network: SimulatedNetwork, tail: str, head: str) -> int:
    nodes = network.node_names
    return next(
        wire
        for wire in range(len(network.tail))
        if (nodes[network.tail[wire]], nodes[network.head[wire]]) == (tail, head)
    )


def one(said: dict[str, Any], tool: str) -> dict[str, Any]:
    """Return the row of a tool, which must have done."""
    (row,) = (row for row in said["samples"] if row["tool"] == tool)
    if row["ended"] != "done":
        raise RuntimeError(row["ended"])
    return row


# Parts --------------------------------------------------------------------------------------


def connections(kept: Kept, runs: int) -> None:
    """m of curves: 20 Mbit/s, 40 ms, a queue of 60 packets, beside m endless flows."""
    for congestion, seconds in (("reno", 5), ("cubic", 5), ("cubic", 10)):
        for m in (2, 4, 8):
            case = f"{congestion}, {seconds} s each, m = {m}"
            todo = [r for r in range(runs) if ("connections", case, str(r)) not in kept.done]
            if not todo:
                continue
            network = one_wire(20 * MBIT, delay_s=0.02, queue_packets=60)
            ends = (network.host_node["L"], network.host_node["R"])
            flows = tuple(BackgroundFlow("tcp", *ends) for _ in range(m))
            with measured_hosts(replace(network, background=flows), "LR", congestion) as hosts:
                for run in todo:
                    row = one(hosts.measure("curve", "--seconds", seconds), "curve")
                    capacity = row["capacity_bytes_per_s"] / (20 * MBIT * PAYLOAD)
                    values = {"m": row["competitors"], "capacity over true": capacity}
                    kept.add("connections", case, run, values)


def wire(kept: Kept, runs: int) -> None:
    """Rates of tcp beside what the wire carried, 10 ms of round trip, nobody else."""
    for mbit in (20, 100, 500):
        for streams in (1, 4):
            case = f"{mbit} Mbit/s, {streams} streams"
            todo = [r for r in range(runs) if ("wire", case, str(r)) not in kept.done]
            if not todo:
                continue
            queue = 50 if mbit < 500 else 400
            network = one_wire(mbit * MBIT, delay_s=0.005, queue_packets=queue)
            number = wire_number(network, "L", "R")
            with measured_hosts(network, "LR") as hosts:
                for run in todo:
                    with Counters(hosts.bed, number) as counters:
                        options = ("--streams", streams, "--bytes", "2 GB")
                        row = one(hosts.measure("tcp", *options), "tcp")
                        time.sleep(2 * COUNTERS_EVERY_S)
                    readings = counters.busy()
                    begun_s = readings[0][0]
                    before = next(reading for reading in readings if reading[0] >= begun_s + 0.5)
                    moved = readings[-1][1] - before[1], readings[-1][0] - before[0]
                    carried = PAYLOAD * moved[0] / moved[1]
                    all_bytes = PAYLOAD * (readings[-1][1] - readings[0][1])
                    values = {
                        "rate over the wire's": row["bandwidth_bytes_per_s"] / carried,
                        "bytes over the wire's": row["bytes"] / all_bytes,
                        "Mbit/s": row["bandwidth_bytes_per_s"] / MBIT,
                        "from connect, Mbit/s": row["bandwidth_from_connect_bytes_per_s"] / MBIT,
                    }
                    kept.add("wire", case, run, values)


# Of each path Mbit/s, and the part of it that datagrams of others take.
PATHS = (
    *((4, 0.0), (6, 0.3), (8, 0.6), (10, 0.0), (12, 0.3), (15, 0.6)),
    *((18, 0.0), (20, 0.3), (25, 0.6), (30, 0.0), (35, 0.3), (40, 0.6)),
)
# Datagrams of others come in bursts of 10 ms on average, at their mean rate by this.
ON_S, OFF_S = 0.010, 0.005


QUICK = ("--within", 0.3, "--seconds", 8)
# How often a path is asked again of which pairs have told nothing.
REPEATED = 3


def calibration(kept: Kept, runs: int) -> None:
    """Packet pairs against TCP over twelve paths to one host, 20 ms, each with its own load."""
    todo = [r for r in range(runs) if ("calibration", "12 paths", str(r)) not in kept.done]
    if not todo:
        return
    mbit = {f"S{i}": rate for i, (rate, _) in enumerate(PATHS)}
    of_host = {name: rate * MBIT for name, rate in mbit.items()} | {"D": 100 * MBIT}
    network = star(of_host, delay_s=0.005)
    ends = {name: network.node_names.index(name) for name in (*mbit, "X")}
    flows = tuple(
        BackgroundFlow(
            "udp",
            ends[f"S{i}"],
            ends["X"],
            rate_bytes_per_s=load * rate * MBIT * (ON_S + OFF_S) / ON_S,
            mean_on_s=ON_S,
            mean_off_s=OFF_S,
        )
        for i, (rate, load) in enumerate(PATHS)
        if load
    )
    with measured_hosts(replace(network, background=flows), [*mbit, "D"]) as hosts:
        for run in todo:
            pairs = by_host(hosts.measure("pairs", *QUICK), "pairs")
            for _ in range(REPEATED):
                # Who is too busy to keep its gaps says so, and is asked again, as users do.
                missing = [each for name in mbit if name not in pairs for each in ("--from", name)]
                if missing:
                    pairs |= by_host(hosts.measure("pairs", *missing, *QUICK), "pairs")
            tests = by_host(hosts.measure("tcp", "--streams", 4, "--seconds", 5), "tcp")
            both = [name for name in mbit if name in pairs and name in tests]
            line = calibrate([pairs[name] for name in both], [tests[name] for name in both])
            values = {"R2": line.r_squared, "slope": line.slope, "paths": line.n}
            for i, (rate, load) in enumerate(PATHS):
                for what, rates in (("pairs", pairs), ("tcp", tests)):
                    if f"S{i}" in rates:
                        values[f"{what} {rate} Mbit/s at {load:.0%}"] = rates[f"S{i}"] / MBIT
            kept.add("calibration", "12 paths", run, values)


def by_host(said: dict[str, Any], tool: str) -> dict[str, float]:
    """Return what each sender's test has found."""
    return {
        row["from"]: row["bandwidth_bytes_per_s"]
        for row in said["samples"]
        if row["tool"] == tool and row["ended"] == "done" and row["bandwidth_bytes_per_s"]
    }


WINDOWS = ("16 kB", "64 kB", "256 kB", "1 MB", "auto")
STREAMS = (1, 2, 4, 8, 16, 32)


def scan(kept: Kept, runs: int) -> None:
    """Windows and streams, 10 s a cell: 50 Mbit/s, 60 ms, idle and beside eight flows."""
    for case, m in (("idle", 0), ("8 flows", 8)):
        todo = [r for r in range(runs) if ("scan", case, str(r)) not in kept.done]
        if not todo:
            continue
        network = one_wire(50 * MBIT, delay_s=0.03, queue_packets=250)
        ends = (network.host_node["L"], network.host_node["R"])
        flows = tuple(BackgroundFlow("tcp", *ends) for _ in range(m))
        with measured_hosts(replace(network, background=flows), "LR", "cubic") as hosts:
            for run in todo:
                options = [option for window in WINDOWS for option in ("--window", window)]
                options += [str(option) for n in STREAMS for option in ("--streams", n)]
                said = hosts.measure("scan", *options, timeout_s=900.0)
                labels = [(window, n) for n in STREAMS for window in WINDOWS]
                values = {
                    f"{window} x {n}": (row.get("bandwidth_bytes_per_s") or 0.0) / MBIT
                    for (window, n), row in zip(labels, said["samples"], strict=True)
                }
                (choice,) = said["choices"]
                values["chosen streams"] = choice["streams"]
                values["chosen window"] = choice["window_bytes"] or 0
                part = choice["bandwidth_bytes_per_s"] / choice["most_bytes_per_s"]
                kept.add("scan", case, run, {**values, "chosen part": part})


# Of the paper's hosts, a twentieth of their rates: 1 Gbit/s out of the sender, and remote hosts of
# 250 to 450 Mbit/s (Europe) and 70 to 120 (United States), in four groups of equal sums.
GROUPS = {
    "5 hosts": (22.5, 17.5, 12.5, 6.0, 5.0),
    "6 hosts": (20.0, 15.0, 12.5, 6.0, 5.5, 4.5),
    "6 others": (17.5, 15.0, 14.0, 6.0, 6.0, 5.0),
    "7 hosts": (14.0, 13.5, 12.5, 6.0, 6.0, 6.0, 5.5),
}
OUT_MBIT = 50.0


def flood(kept: Kept, runs: int) -> None:
    """One host to a group at once, after each of them alone; counters of its wire every 2 s."""
    for case, rates in GROUPS.items():
        todo = [r for r in range(runs) if ("flood", case, str(r)) not in kept.done]
        if not todo:
            continue
        mbit = {f"R{i}": rate for i, rate in enumerate(rates)} | {"M": OUT_MBIT}
        of_host = {name: rate * MBIT for name, rate in mbit.items()}
        network = star(of_host, delay_s=0.01, queue_packets=100)
        number = wire_number(network, "M", "X")
        with measured_hosts(network, list(mbit), "cubic") as hosts:
            to = [option for name in mbit if name != "M" for option in ("--to", name)]
            for run in todo:
                options = ("--from", "M", *to, "--streams", 2)
                alone = hosts.measure("tcp", *options, "--seconds", 5)["samples"]
                with Counters(hosts.bed, number) as counters:
                    said = hosts.measure("flood", *options, "--seconds", 20)
                    time.sleep(2 * COUNTERS_EVERY_S)
                readings = counters.busy()
                steps = int(2 / COUNTERS_EVERY_S)
                two_s = [
                    PAYLOAD * (b[1] - a[1]) / (b[0] - a[0]) / MBIT
                    for a, b in zip(readings, readings[steps:], strict=False)
                ]
                whole = readings[-1][1] - readings[0][1], readings[-1][0] - readings[0][0]
                values = {
                    "alone, sum": sum(row["bandwidth_bytes_per_s"] for row in alone) / MBIT,
                    "at once": said["together_bytes_per_s"] / MBIT,
                    "peak of 2 s": max(two_s),
                    "counters, mean": PAYLOAD * whole[0] / whole[1] / MBIT,
                }
                kept.add("flood", case, run, values)


PARTS: dict[str, Callable[[Kept, int], None]] = {
    "connections": connections,
    "wire": wire,
    "calibration": calibration,
    "scan": scan,
    "flood": flood,
}


# Tables -------------------------------------------------------------------------------------


def write_tables(kept: Kept) -> None:
    for part, table in TABLE_OF.items():
        if runs := kept.of(part):
            (TABLES / f"measuring_{part}.md").write_text(table(runs) + "\n", encoding="utf-8")


def connections_table(cases: dict[str, list[Values]]) -> str:
    rows = []
    for case, runs in cases.items():
        true = float(case.rpartition(" ")[2])
        found = [run["m"] for run in runs]
        near = sum(abs(m / true - 1) <= 0.3 for m in found)
        capacity = [run["capacity over true"] for run in runs]
        rows.append(
            [case, ", ".join(f"{m:.1f}" for m in found), f"{near} of {len(runs)}", spread(capacity)]
        )
    return markdown(["others", "m found", "within 30 %", "C found ÷ true"], rows)


def wire_table(cases: dict[str, list[Values]]) -> str:
    names = ["rate over the wire's", "bytes over the wire's", "Mbit/s", "from connect, Mbit/s"]
    rows = [
        [case, *(spread([run[name] for run in runs], 1 if "Mbit" in name else 3) for name in names)]
        for case, runs in cases.items()
    ]
    return markdown(["wire", *names], rows)


def calibration_table(cases: dict[str, list[Values]]) -> str:
    (runs,) = cases.values()
    rows = []
    for rate, load in PATHS:
        keys = [f"{what} {rate} Mbit/s at {load:.0%}" for what in ("pairs", "tcp")]
        found = [spread([run[key] for run in runs if key in run], 1) for key in keys]
        rows.append([f"{rate} Mbit/s", f"{load:.0%}", *found])
    lines = ", ".join(f"{run['R2']:.2f}" for run in runs)
    slopes = ", ".join(f"{run['slope']:.2f}" for run in runs)
    table = markdown(["path", "others", "pairs, Mbit/s", "tcp, Mbit/s"], rows)
    return f"{table}\n\nR² of the five runs: {lines}. Slopes: {slopes}."


def scan_table(cases: dict[str, list[Values]]) -> str:
    rows = []
    for case, runs in cases.items():
        for window in WINDOWS:
            means = [mean(run[f"{window} x {n}"] for run in runs) for n in STREAMS]
            rows.append([case, window, *(f"{rate:.1f}" for rate in means)])
        for run in runs:
            window = run["chosen window"]
            named = f"{window / 1000:.0f} kB" if window else "auto"
            part = f"{run['chosen part']:.0%}"
            chosen = [part if n == run["chosen streams"] else "" for n in STREAMS]
            rows.append([case, f"chosen, of the most: {named}", *chosen])
    return markdown(["wire", "window", *map(str, STREAMS)], rows, n_left=2)


def flood_table(cases: dict[str, list[Values]]) -> str:
    names = ["alone, sum", "at once", "peak of 2 s", "counters, mean"]
    rows = [
        [case, *(spread([run[name] for run in runs], 1) for name in names)]
        for case, runs in cases.items()
    ]
    return markdown(["group", *(f"{name}, Mbit/s" for name in names)], rows)


def spread(values: list[float], digits: int = 3) -> str:
    """Write a number, or the least and the most of several."""
    if not values:
        return "none"
    low, high = f"{min(values):.{digits}f}", f"{max(values):.{digits}f}"
    return low if low == high else f"{low}–{high}"


TABLE_OF = {
    "connections": connections_table,
    "wire": wire_table,
    "calibration": calibration_table,
    "scan": scan_table,
    "flood": flood_table,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    kept = Kept()
    for part in () if given.table else given.parts or PARTS:
        PARTS[part](kept, given.runs)
    write_tables(kept)


if __name__ == "__main__":
    main()
