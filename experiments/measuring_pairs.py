"""Packet pairs on wires whose rate and load are known, in the test bed.

    python experiments/measuring_pairs.py [--runs 5] [--table]

One wire with 10 ms of delay and a queue of 50 packets, of 5 and 20 Mbit/s, on which others send
packets of 1514 bytes at random instants (Poisson) for no, 30 and 60 % of the time: `datacollect
measure pairs` by an agent at either end. What is true is what the wire's own counters say. Runs are
kept one by one in `results/measuring_pairs.csv`, and a second start goes on; `--table` writes
`docs/tables/measuring_pairs.md` from them.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from measuring_study import MBIT, Kept, measured_hosts, wire_number
from testbed.networks import one_wire

from datacollect.simulation.network import BackgroundFlow

if TYPE_CHECKING:
    from testbed.measuring import MeasuredHosts

    from datacollect.simulation.network import SimulatedNetwork

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "experiments" / "results" / "measuring_pairs.csv"
TABLE = ROOT / "docs" / "tables" / "measuring_pairs.md"
PART = "pairs"
FRAME_BYTES, PACKET_BYTES = 1514, 1500
RATES_MBIT, LOADS = (5, 20), (0.0, 0.3, 0.6)
# Beside the interval.
MEASURED_WITHIN = 0.15
# Times that a busy machine keeps to no gaps.
MOST_REFUSED = 5


def network(rate_bytes_per_s: float, load: float) -> SimulatedNetwork:
    """Return the wire, with others who are on for one packet at a time."""
    made = one_wire(rate_bytes_per_s, delay_s=0.01, queue_packets=50)
    ends = (made.host_node["L"], made.host_node["R"])
    others = BackgroundFlow(
        "udp",
        *ends,
        rate_bytes_per_s=rate_bytes_per_s,
        mean_on_s=1e-7,
        mean_off_s=FRAME_BYTES / (load * rate_bytes_per_s) if load else 0.0,
    )
    return replace(made, background=(others,) if load else ())


def run_case(kept: Kept, mbit: int, load: float, runs: int) -> None:
    """Measure one wire with one load, as often as is still missing."""
    case = f"{mbit} Mbit/s, load {load:.0%}"
    todo = [run for run in range(runs) if (PART, case, str(run)) not in kept.done]
    if not todo:
        return
    made = network(mbit * MBIT, load)
    number = wire_number(made, "L", "R")
    with measured_hosts(made, "LR") as hosts:
        for run in todo:
            for refused in range(MOST_REFUSED):
                values = measured(hosts, number, mbit * MBIT, load)
                if values is not None:
                    kept.add(PART, case, run, values | {"refused before": refused})
                    break


def measured(
    hosts: MeasuredHosts, wire: int, rate_bytes_per_s: float, load: float
) -> dict[str, float] | None:
    """Return what pairs tell beside what is true; None where they tell nothing."""
    began_s, before = time.monotonic(), hosts.bed.carried()[wire].bytes
    said = hosts.measure("pairs")["samples"][0]
    after, ended_s = hosts.bed.carried()[wire].bytes, time.monotonic()
    settings = json.loads(said["settings"])
    if said["ended"] != "done":
        print(said["ended"], flush=True)
        return None
    own_bytes = 2 * FRAME_BYTES * (settings["pairs"] + settings["capacity_pairs"])
    others = (after - before - own_bytes) / (ended_s - began_s)
    capacity = rate_bytes_per_s * PACKET_BYTES / FRAME_BYTES
    true = capacity - (others * PACKET_BYTES / FRAME_BYTES if load else 0.0)
    width = said["bandwidth_high_bytes_per_s"] - said["bandwidth_low_bytes_per_s"]
    return {
        "capacity over true": said["capacity_bytes_per_s"] / capacity,
        "available over true": said["bandwidth_bytes_per_s"] / true,
        "half interval": width / 2 / true,
        "pairs": settings["pairs"],
        "seconds": ended_s - began_s,
        "load of the wire": others / rate_bytes_per_s,
    }


def write_table(kept: Kept) -> None:
    """Write the table of all runs."""
    names = (
        "wire",
        "C ÷ true, least and most",
        "A ÷ true, each run",
        "half of the interval ÷ true",
        "pairs",
        "within",
        "refused",
        "load of the machine",
    )
    rows = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for case, runs in kept.of(PART).items():
        capacity = [run["capacity over true"] for run in runs]
        within = sum(
            abs(run["available over true"] - 1) <= MEASURED_WITHIN + run["half interval"]
            for run in runs
        )
        rows.append(
            f"| {case} | {min(capacity):.3f}, {max(capacity):.3f} | "
            + ", ".join(f"{run['available over true']:.2f}" for run in runs)
            + " | "
            + ", ".join(f"{run['half interval']:.2f}" for run in runs)
            + " | "
            + ", ".join(f"{run['pairs']:.0f}" for run in runs)
            + f" | {within} of {len(runs)} | {sum(run['refused before'] for run in runs):.0f} | "
            + ", ".join(f"{run['load']:.0f}" for run in runs)
            + " |"
        )
    TABLE.write_text("\n".join(rows) + "\n", encoding="utf-8")


def main() -> None:
    """Run what is missing, or write the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    kept = Kept(ROWS)
    if not given.table:
        for mbit in RATES_MBIT:
            for load in LOADS:
                run_case(kept, mbit, load, given.runs)
    write_table(kept)


if __name__ == "__main__":
    main()
