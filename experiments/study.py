"""Repeat the published study: all sweeps of docs/study.md, then their report.

    python experiments/study.py [NAME ...] [--scale 0.1] [--seeds 3] [--data DATA] [-o results]

It can be stopped and repeated at any time: sweeps run what is missing, and take from each other
what is the same. Runs that failed do not end it. Without --seeds a sweep goes on until means are
known as well as its file asks, which takes days. DATA holds skyplane/ and topologyzoo/; without it
what needs them is left out. Names are those of the folders of results; none means all of them.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
RUNS_FAILED = 3

# What most series use: a tenth of the paper's probes. They agree under 1:1 and 2:1, not under 1:3
# (docs/study_results.md#wrong-and-old-estimates).
SMALL_PROBES = 0.1
MOST_FLOWS = ("flows=60", "udp=5 %")
# What makespans are compared with instead of direct's, in sweeps whose own question it is.
OVER = {
    "probes=5 MB": ("probes",),
    "error=0 %": (
        *("figure4", "figure4_paper", "precision4"),
        *("slots_errors", "other_errors", "other_errors_fluid"),
    ),
}


@dataclass(frozen=True)
class Sweep:
    """A sweep of the study.

    Attributes
    ----------
    name : str
        Its folder of results, and of published rows.
    file : str
        Its experiment, without the suffix; empty: called like itself.
    scale : float or None
        Factor on the data instead of that of the study; None leaves it to the study.
    as_is : bool
        Whether size and seeds are those of the file: it costs little, or its seeds were chosen.
    probe_scale : float or None
        Factor on probes; None leaves it to the file, which has those of the paper.
    only : tuple of str
        The settings that are run, as ``--only`` takes them.
    data : str or None
        The folder within DATA that it needs, "." for DATA itself.
    """

    name: str
    file: str = ""
    scale: float | None = None
    as_is: bool = False
    probe_scale: float | None = None
    only: tuple[str, ...] = ()
    data: str | None = None

    def command(
        self, results: Path, scale: float, seeds: int | None, data: Path | None
    ) -> list[str]:
        """Return the arguments of `datacollect`; nothing where its data are not there."""
        if self.data is not None and data is None:
            return []
        file = os.path.relpath(HERE / f"{self.file or self.name}.toml")
        found = ["sweep", file, "-o", str(results / self.name)]
        if not self.as_is:
            found += ["--scale", f"{scale if self.scale is None else self.scale:g}"]
            found += [] if seeds is None else ["--seeds", str(seeds)]
        if self.probe_scale is not None:
            found += ["--probe-scale", f"{self.probe_scale:g}"]
        for choice in self.only:
            found += ["--only", choice]
        if data is not None and self.data is not None:
            found += ["--data", f"{data / self.data}"]
        return found


SWEEPS = (
    Sweep("figure3", probe_scale=SMALL_PROBES),
    Sweep("figure3_paper", "figure3", only=MOST_FLOWS),
    Sweep("figure3_full", "figure3", scale=1.0, only=MOST_FLOWS),
    Sweep("figure4", probe_scale=SMALL_PROBES),
    Sweep("figure4_paper", "figure4", only=("flows=60", "ratio=1:3")),
    Sweep("figure5", probe_scale=SMALL_PROBES),
    Sweep("figure6", probe_scale=SMALL_PROBES),
    Sweep("readings_fluid", as_is=True),
    Sweep("halves_fluid", as_is=True),
    Sweep("other_errors_fluid", as_is=True),
    Sweep("probes"),
    Sweep("slots"),
    Sweep("slots_errors"),
    Sweep("other_errors"),
    Sweep("directs"),
    Sweep("execution", only=("flows=60",)),
    Sweep("knowledge"),
    Sweep("lines", probe_scale=SMALL_PROBES, only=("flows=0",)),
    Sweep("streams", only=("flows=60",)),
    Sweep("onesided", probe_scale=SMALL_PROBES),
    Sweep("readings", probe_scale=SMALL_PROBES),
    Sweep("transports", probe_scale=SMALL_PROBES),
    Sweep("precision", probe_scale=SMALL_PROBES),
    Sweep("precision4"),
    Sweep("halves", as_is=True, probe_scale=SMALL_PROBES),
    Sweep("topologies", probe_scale=SMALL_PROBES, data="."),
    Sweep("drift", as_is=True, data="skyplane"),
)


def main() -> int:
    """Run the sweeps that are named, and report what there is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = [sweep.name for sweep in SWEEPS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--scale", type=float, default=0.1, help="part of the paper's data")
    parser.add_argument("--seeds", type=int, help="of each setting, at most")
    parser.add_argument("--data", type=Path, help="folder of skyplane/ and topologyzoo/")
    parser.add_argument("-o", "--results", type=Path, default=Path("results"))
    parser.add_argument("--report", type=Path, default=Path("report"))
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no sweep is called {unknown[0]!r}; there are {', '.join(known)}")
    if importlib.util.find_spec("pylmcf") is None:
        # Optimal plans in slots tie: another solver finds other ones.
        print("Plans in slots will differ from those published: pip install '.[fast]'", flush=True)
    data = None if options.data is None else options.data.resolve()
    chosen = [sweep for sweep in SWEEPS if sweep.name in (options.names or known)]
    for sweep in chosen:
        command = sweep.command(options.results, options.scale, options.seeds, data)
        if not command:
            print(f"\n{sweep.name} is left out: it needs --data", flush=True)
            continue
        code = run([*command, *reused(options.results, sweep)])
        if code not in (0, RUNS_FAILED):
            return code
    return run(report(options.results, options.report))


def reused(results: Path, sweep: Sweep) -> list[str]:
    """Return options that take what other sweeps have already, runs and measurements."""
    if sweep.as_is:
        return []
    folders = [results / other.name for other in SWEEPS if other != sweep]
    return [word for folder in folders if folder.is_dir() for word in ("--reuse", str(folder))]


def report(results: Path, folder: Path) -> list[str]:
    """Return the report's arguments."""
    found = ["report", str(results), "-o", str(folder), "--force"]
    found += ["--verdicts", os.path.relpath(HERE / "paper")]
    for over, names in OVER.items():
        if any((results / name).is_dir() for name in names):
            found += ["--over", over]
    return found


def run(arguments: list[str]) -> int:
    """Run `datacollect`, and say how."""
    print(f"\n$ datacollect {shlex.join(arguments)}", flush=True)
    command = [sys.executable, "-m", "datacollect", *arguments]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
