"""Promises of plans beside what came: networks that are drawn, carried out in the test bed.

    python experiments/promises.py [PART ...] [--at-once N] [--answers DIR] [--table]

Eight networks of namespaces with real TCP between them (`tests/testbed`, for root), drawn by the
seeds 1 to 8, with backlogs drawn for each run: two lines' and wires' worth of them (`drawn` in
`tests/testbed/networks.py` says how). Each run collects everything twice, by the coordinated plan
and by direct, as users do, by `datacollect pull`:

book      16 runs: `measure cycle`, `measure problem`, and the plan of what these have found
known     24 runs: the plan of what the wires are
beside    sixteen cycles beside eight flows of others, then ten pulls, one after the other

By what is known of the wires the fastest plan of each takes 66 s. Runs are kept one by one in
`results/promises.csv`, and a second start goes on; `--at-once` carries out so many at a time, each
in a bed of its own, `--answers` keeps what the commands have said, and `--table` writes
`docs/tables/promises.md` from what is kept.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from testbed.bed import Bed  # noqa: E402
from testbed.measuring import MeasuredHosts  # noqa: E402
from testbed.networks import MBIT_PER_S, drawn, star  # noqa: E402

import datacollect as dc  # noqa: E402
from datacollect.simulation.network import BackgroundFlow  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from testbed.networks import DrawnNetwork

ROWS = ROOT / "experiments" / "results" / "promises.csv"
TABLE = ROOT / "docs" / "tables" / "promises.md"
COLUMNS = ("part", "network", "run", "name", "value")
NETWORKS = range(1, 9)
RUNS = {"book": 2, "known": 3}
# By what is known of the wires.
LASTS_S = 66.0
CONNECTIONS = 16
# Beside others: rates of three lines, how many flows of others each has, cycles, and pulls.
LINES = {"S1": 4 * MBIT_PER_S, "S2": 4 * MBIT_PER_S, "S3": 4 * MBIT_PER_S}
FLOWS = {"S1": 3, "S2": 3, "S3": 2}
BESIDE_S = 30.0
CYCLES = 16
PULLS = 10
BESIDE_CONNECTIONS = 12
WARM_UP_S = 4.0


class Kept(NamedTuple):
    """Runs so far: values of each, by part, network and number."""

    path: Path
    lock: threading.Lock

    def rows(self) -> dict[tuple[str, int, int], dict[str, float]]:
        """Return what is kept."""
        runs: dict[tuple[str, int, int], dict[str, float]] = {}
        if self.path.exists():
            with self.path.open(newline="", encoding="utf-8") as file:
                for row in csv.DictReader(file):
                    of = runs.setdefault((row["part"], int(row["network"]), int(row["run"])), {})
                    of[row["name"]] = float(row["value"])
        return dict(sorted(runs.items()))

    def add(self, part: str, network: int, run: int, values: dict[str, float]) -> None:
        """Keep what a run has given, and how busy the machine was."""
        values = {**values, "load": os.getloadavg()[0]}
        with self.lock:
            is_new = not self.path.exists()
            with self.path.open("a", newline="", encoding="utf-8") as file:
                writer = csv.writer(file, lineterminator="\n")
                if is_new:
                    writer.writerow(COLUMNS)
                for name, value in values.items():
                    writer.writerow([part, network, run, name, f"{value:.6g}"])
            shown = {name: float(f"{value:.4g}") for name, value in values.items()}
            print(part, network, run, shown, flush=True)


def backlogs(network: DrawnNetwork, seed: str) -> dict[str, int]:
    """Draw what sources hold, so that the fastest plan by what the wires are takes `LASTS_S`."""
    draws = random.Random(seed)
    parts = {name: draws.uniform(0.3, 1.7) for name in network.sources}
    scale = 1e6
    lasts_s = dc.coordinated(known_problem(network, parts, scale)).makespan_s
    return {name: int(scale * part * LASTS_S / lasts_s) for name, part in parts.items()}


def known_problem(network: DrawnNetwork, parts: dict[str, float], scale: float = 1.0) -> dc.Problem:
    """Return the problem by what the wires are."""
    hosts = {
        name: {**limits, "backlog_bytes": int(scale * parts.get(name, 0.0))}
        for name, limits in network.known["hosts"].items()
    }
    return dc.Problem.from_dict({**network.known, "destination": network.hosts[-1], "hosts": hosts})


def carry_out(part: str, seed: int, run: int, kept: Kept, answers: Path | None) -> None:
    """Plan, collect by the plan and by direct, and keep what was promised and what it took."""
    network = drawn(seed)
    held_bytes = backlogs(network, f"{part} {seed} {run}")
    said: dict[str, Any] = {}
    with Bed(network.network) as bed, tempfile.TemporaryDirectory() as folder:
        hosts = MeasuredHosts(bed, Path(folder), network.hosts, data_bytes=held_bytes)
        if part == "book":
            said["cycle"] = hosts.measure("cycle", timeout_s=1800.0)
            said["problem"] = hosts.problem(held_bytes)
            if answers is not None:
                shutil.copytree(hosts.folder / "samples", answers / f"{part}-{seed}-{run}")
            problem = dc.Problem.from_dict(said["problem"]["problem"])
            tree = said["problem"]["problem"]
        else:
            problem = known_problem(network, held_bytes)
            tree = {**network.known, "destination": network.hosts[-1]}
        plan = dc.coordinated(problem)
        for method in ("coordinated", "direct"):
            said[method] = hosts.pull(tree, CONNECTIONS, method, method=method)
            if not said[method]["complete"]:
                raise RuntimeError(f"{part} {seed} {run}: {said[method]['missing']}")
    found = plan.assumptions
    values = {
        "promised": plan.makespan_s,
        "direct promised": found.direct_makespan_s,
        "two numbers": float(found.matter),
        "real": said["coordinated"]["makespan_s"],
        "direct real": said["direct"]["makespan_s"],
    }
    if found.cautious_makespan_s is not None:
        values["cautious"] = found.cautious_makespan_s
    if answers is not None:
        said |= {"assumptions": found.to_dict(), "tree": tree, "backlog_bytes": held_bytes}
        path = answers / f"{part}-{seed}-{run}.json"
        path.write_text(json.dumps(said, indent=1), encoding="utf-8")
    kept.add(part, seed, run, values)


def beside(kept: Kept, answers: Path | None) -> None:
    """Measure cycles beside others, then pull again and again."""
    left = [run for run in range(PULLS) if ("beside", 0, run) not in kept.rows()]
    if not left:
        return
    held_bytes = {name: int(BESIDE_S * rate) for name, rate in LINES.items()}
    network = star({**LINES, "D": 30 * MBIT_PER_S}, delay_s=0.005, queue_packets=50)
    node = network.host_node
    flows = tuple(
        BackgroundFlow("tcp", node[name], node["D"]) for name, n in FLOWS.items() for _ in range(n)
    )
    pairs = [(name, "D") for name in LINES]
    with Bed(replace(network, background=flows)) as bed, tempfile.TemporaryDirectory() as folder:
        hosts = MeasuredHosts(bed, Path(folder), [*LINES, "D"], pairs=pairs, data_bytes=held_bytes)
        bed.start_background(congestion="reno")
        time.sleep(WARM_UP_S)
        for _ in range(CYCLES):
            hosts.measure("cycle", "--tools", "tcp")
        tree = hosts.problem()["problem"]
        for run in left:
            said = hosts.pull(tree, BESIDE_CONNECTIONS, f"into-{run}")
            if not said["complete"]:
                raise RuntimeError(str(said["missing"]))
            if answers is not None:
                path = answers / f"beside-0-{run}.json"
                path.write_text(json.dumps({**said, "tree": tree}, indent=1), encoding="utf-8")
            values = {
                "promised": said["predicted_makespan_s"],
                "p10": said["promised_p10_s"],
                "p90": said["promised_p90_s"],
                "real": said["makespan_s"],
            }
            kept.add("beside", 0, run, values)


def to_do(parts: list[str], kept: Kept, answers: Path | None) -> Iterator[Callable[[], None]]:
    """Yield what is to be run, of all parts in turn; what takes longest first."""
    done = kept.rows()
    if "beside" in parts:
        yield partial(beside, kept, answers)
    for run in range(max(RUNS.values())):
        for seed in NETWORKS:
            for part, runs in RUNS.items():
                if part in parts and run < runs and (part, seed, run) not in done:
                    yield partial(carry_out, part, seed, run, kept, answers)


# Tables -------------------------------------------------------------------------------------


def write_table(kept: Kept) -> None:
    """Write the table of all runs that are kept."""
    lines = [
        (
            "| wires | network | run | promised, s | real, s | real ÷ promised | promised gain | "
            "real gain | two numbers |"
        ),
        "|---|---|---|---|---|---|---|---|---|",
    ]
    runs = kept.rows()
    for (part, network, run), one in runs.items():
        if part in RUNS:
            two = f"{one['cautious']:.1f} s" if one["two numbers"] else ""
            lines.append(
                f"| {'measured' if part == 'book' else 'known'} | {network} | {run + 1} | "
                f"{one['promised']:.1f} | {one['real']:.1f} | {one['real'] / one['promised']:.2f} "
                f"| {promised_gain(one):.2f} | {real_gain(one):.2f} | {two} |"
            )
    lines += ["", "| others' flows | run | promised, s | p10 – p90, s | real, s |"]
    lines += ["|---|---|---|---|---|"]
    for (part, _, run), one in runs.items():
        if part == "beside":
            inside = "" if one["p10"] <= one["real"] <= one["p90"] else ", outside"
            lines.append(
                f"| 8 | {run + 1} | {one['promised']:.1f} | {one['p10']:.1f} – {one['p90']:.1f} | "
                f"{one['real']:.1f}{inside} |"
            )
    TABLE.write_text("\n".join([*lines, "", *summary(runs)]) + "\n", encoding="utf-8")
    print("\n".join(summary(runs)))


def promised_gain(one: dict[str, float]) -> float:
    """Return how many times longer direct is to take."""
    return one["direct promised"] / one["promised"]


def real_gain(one: dict[str, float]) -> float:
    """Return how many times longer direct took."""
    return one["direct real"] / one["real"]


def summary(runs: dict[tuple[str, int, int], dict[str, float]]) -> list[str]:
    """Return how often promises were kept, as a table."""
    lines = ["| | measured | known | all |", "|---|---|---|---|"]
    of_part = {part: [one for (of, *_), one in runs.items() if of == part] for part in RUNS}
    columns = [*of_part.values(), [one for ones in of_part.values() for one in ones]]
    for text, holds, among in (
        ("real time within 15 % of the promised one", within_time, always),
        ("real gain within 10 % of the promised one", within_gain, always),
        ("a gain of more than 1.15 promised where none of 1.03 came", is_false, always),
        ("two numbers where a gain of 1.03 or more came", has_two, is_real),
    ):
        cells = []
        for ones in columns:
            asked = [one for one in ones if among(one)]
            cells.append(f"{sum(map(holds, asked))} of {len(asked)}")
        lines.append(f"| {text} | {' | '.join(cells)} |")
    return lines


def within_time(one: dict[str, float]) -> bool:
    return abs(one["real"] / one["promised"] - 1) <= 0.15


def within_gain(one: dict[str, float]) -> bool:
    return abs(real_gain(one) / promised_gain(one) - 1) <= 0.10


def is_false(one: dict[str, float]) -> bool:
    return promised_gain(one) > 1.15 and not is_real(one)


def is_real(one: dict[str, float]) -> bool:
    return real_gain(one) >= 1.03


def has_two(one: dict[str, float]) -> bool:
    return bool(one["two numbers"])


def always(_: dict[str, float]) -> bool:
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = [*RUNS, "beside"]
    parser.add_argument("parts", nargs="*", choices=[*parts, []], metavar="PART")
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    kept = Kept(ROWS, threading.Lock())
    failed = []
    if not given.table:
        with ThreadPoolExecutor(given.at_once) as beds:
            running = [beds.submit(one) for one in to_do(given.parts or parts, kept, given.answers)]
        failed = [str(error) for one in running if (error := one.exception())]
    write_table(kept)
    if failed:
        sys.exit("not done, start it again:\n" + "\n".join(failed))


if __name__ == "__main__":
    main()
