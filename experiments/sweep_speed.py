"""Cost of sweeps besides simulating, and what a second worker is worth.

    python experiments/sweep_speed.py [--scale 0.02] [--flows 20] [--seeds 12] [--fluid-seeds 250]
                                      [--report-seeds 5]

Measures, with the base scenario: runs per hour in ns-3 with one worker and with two; processor time
of all processes, loading included, over ns-3's own; fluid runs per second at a tenth of the data
and 60 flows; and how long the report takes of figure3.toml, 96 runs a seed, by the fluid engine. By
default ns-3 has a fiftieth of the data and 20 background flows, so that what every run costs
besides weighs much: the study's runs (``--scale 0.1 --flows 60``) are longer.

Ratios hold on a machine with nothing else to do and two processors. Processor time is also told,
which others' work hardly changes. Needs Linux and `pip install '.[ns3,report]'` in a clone.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

HERE = Path(__file__).resolve().parent
PR_SET_CHILD_SUBREAPER = 36
METHODS = {
    "direct": {"method.name": "direct"},
    "direct-as-many": {"method.name": "direct", "method.streams_as": "coordinated"},
    "best-path": {"method.name": "best-path"},
    "coordinated": {"method.name": "coordinated"},
}
EXPERIMENT = """
name = "speed"
scenario = "{base}"
engine = "{engine}"
scale = {scale}
set = {{ "background.flows" = {flows} }}
seeds = {{ least = {seeds}, batch = {seeds} }}

[[axes]]
name = "method"
paired = true
values = [
{values}
]
"""


@dataclass(frozen=True)
class Measured:
    """One sweep."""

    n_runs: int
    wall_s: float
    cpu_s: float  # of all its processes
    simulator_cpu_s: float  # of runs and measurements

    @property
    def overhead(self) -> float:
        return self.cpu_s / self.simulator_cpu_s - 1


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=0.02, help="of the data, in ns-3")
    parser.add_argument("--flows", type=int, default=20, help="in the background, in ns-3")
    parser.add_argument("--seeds", type=int, default=12, help="of 4 runs each, in ns-3")
    parser.add_argument("--fluid-seeds", type=int, default=250, help="of 4 runs each")
    parser.add_argument("--report-seeds", type=int, default=5, help="of 96 runs each")
    parser.add_argument("--repeats", type=int, default=1, help="the fastest counts")
    options = parser.parse_args()
    # Processes that outlive their parent become ours: their time is counted too.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    if options.seeds:
        ns3 = {
            n: fastest("ns3", options.scale, options.flows, options.seeds, n, options.repeats)
            for n in (1, 2)
        }
        for n, found in ns3.items():
            print(
                f"ns-3, {n} workers: {found.n_runs} runs in {found.wall_s:.1f} s, "
                f"{3600 * found.n_runs / found.wall_s:.0f} an hour; processor time "
                f"{found.cpu_s:.1f} s, of ns-3 {found.simulator_cpu_s:.1f} s: "
                f"{found.overhead:+.1%}"
            )
        print(f"two workers over one: {ns3[1].wall_s / ns3[2].wall_s:.2f}")
    if options.fluid_seeds:
        found = fastest("fluid", 0.1, 60, options.fluid_seeds, 2, options.repeats)
        print(
            f"fluid, 2 workers: {found.n_runs} runs in {found.wall_s:.1f} s, "
            f"{1000 * found.cpu_s / found.n_runs:.1f} ms of processor time each; "
            f"100000 in {found.wall_s / found.n_runs * 100_000 / 60:.0f} minutes"
        )
    if options.report_seeds:
        n_runs, wall_s, cpu_s = measure_report(options.report_seeds)
        print(f"report of {n_runs} runs: {wall_s:.1f} s, {cpu_s:.1f} s of processor time")
    print(f"load {os.getloadavg()[0]:.1f}")


def fastest(
    engine: str, scale: float, flows: int, seeds: int, workers: int, repeats: int
) -> Measured:
    """Measure a few times."""
    found = [measure(engine, scale, flows, seeds, workers) for _ in range(repeats)]
    return min(found, key=lambda measured: measured.wall_s)


def measure(engine: str, scale: float, flows: int, seeds: int, workers: int) -> Measured:
    """Measure one sweep, begun as users begin it."""
    with tempfile.TemporaryDirectory() as folder:
        experiment = Path(folder, "speed.toml")
        experiment.write_text(text_of(engine, scale, flows, seeds), encoding="utf-8")
        output = Path(folder, "out")
        command = ["sweep", str(experiment), "-o", str(output), "--workers", str(workers)]
        before_s, began_s = children_cpu_s(), time.monotonic()
        datacollect(*command)
        wall_s = time.monotonic() - began_s
        wait_for_all()
        cpu_s = children_cpu_s() - before_s
        table = pd.read_parquet(output / "results.parquet")
    probes_s = table.groupby("seed")["probes_cpu_s"].first().sum()
    return Measured(len(table), wall_s, cpu_s, float(table["cpu_s"].sum() + probes_s))


def measure_report(seeds: int) -> tuple[int, float, float]:
    """Return runs, seconds and processor time of the report of a sweep like Figure 3's."""
    text = (HERE / "figure3.toml").read_text(encoding="utf-8")
    text = text.replace('"base.toml"', f'"{HERE / "base.toml"}"').replace('"ns3"', '"fluid"')
    text = text.replace("half_width = 0.05", "half_width = 1e-9")  # all seeds, in every setting
    with tempfile.TemporaryDirectory() as folder:
        experiment, output = Path(folder, "figure3.toml"), Path(folder, "out")
        experiment.write_text(text, encoding="utf-8")
        size = ["--scale", "0.1", "--seeds", str(seeds)]
        datacollect("sweep", str(experiment), "-o", str(output), *size)
        n_runs = len(pd.read_parquet(output / "results.parquet"))
        before_s, began_s = children_cpu_s(), time.monotonic()
        datacollect("report", str(output), "-o", str(Path(folder, "report")))
        return n_runs, time.monotonic() - began_s, children_cpu_s() - before_s


def datacollect(*command: str) -> None:
    """Run a command as users do."""
    command = (sys.executable, "-m", "datacollect", *command)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)


def text_of(engine: str, scale: float, flows: int, seeds: int) -> str:
    """Return the experiment file."""
    values = ",\n".join(
        f'{{ label = "{label}", set = {{ '
        + ", ".join(f'"{place}" = "{value}"' for place, value in values.items())
        + " } }"
        for label, values in METHODS.items()
    )
    return EXPERIMENT.format(
        base=HERE / "base.toml",
        engine=engine,
        scale=scale,
        flows=flows,
        seeds=seeds,
        values=values,
    )


def children_cpu_s() -> float:
    """Return processor time of all processes that were waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def wait_for_all() -> None:
    """Wait for every process that became ours."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


if __name__ == "__main__":
    main()
