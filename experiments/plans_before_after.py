"""Ten problems, planned as before and as now: when sources finish, routes, ends, planning time.

    python experiments/plans_before_after.py [--checkout OLD] [--repeats 3]

"Before" is what the checkout OLD plans by default, on the same problems and with the same solvers.
Without --checkout it is what options of this one bring back: chunks of a thousandth of the lower
bound, and sources that finish together. Prints a Markdown table. Times are processor time, medians
of the repetitions, each of which plans a problem of which nothing is remembered.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
from measuring import in_words, timed
from synthetic_problems import (
    changing_mesh,
    forecast_mesh,
    geometric_overlay,
    limited_mesh,
    mesh_problem,
    one_big_holder,
    released_one_by_one,
    shared_by_regions,
    twelve_sites,
)

import datacollect as dc
from datacollect.files.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PROBLEMS: Mapping[str, Callable[[], dc.Problem]] = {
    "12 sites, one of 10 bytes, a full downlink": twelve_sites,
    "full mesh of 100": lambda: mesh_problem(100),
    "full mesh of 100, one host holds 90 %": lambda: one_big_holder(100),
    "full mesh of 100, host limits": lambda: limited_mesh(100),
    "geometric overlay of 1000": lambda: geometric_overlay(1000),
    "10 regions of 100 share ways": lambda: shared_by_regions(100),
    "50 released one by one over a relay": lambda: released_one_by_one(50),
    "10 periods, 100 hosts, storage limits": lambda: forecast_mesh(100),
    "12 periods of 600 s, 30 hosts": lambda: changing_mesh(30, 12, 600.0),
    "200 periods of 10 s, 20 hosts": lambda: changing_mesh(20, 200, 10.0),
}

HEAD = (
    "problem",
    "planned",
    "first source",
    "median",
    "last",
    "routes",
    "hops",
    "× lower bound",
    "planning",
)


def before(problem: dc.Problem) -> dc.Schedule:
    """Plan with the options that bring back what was planned before."""
    options = {"chunk_s": dc.lower_bound(problem)[0] / 1000}
    if "finish" in inspect.signature(dc.coordinated).parameters:
        options["finish"] = "together"
    return dc.coordinated(problem, **options)


def measured(
    name: str, plan: Callable[[dc.Problem], dc.Schedule], repeats: int
) -> dict[str, float]:
    """Plan a problem, and say what came of it."""
    problem = PROBLEMS[name]()
    seconds = []
    for _ in range(repeats):
        taken_s, schedule = timed(plan, problem.replace())
        seconds.append(taken_s)
    finish_s = list(schedule.source_completion_s().values())
    return {
        "first_s": min(finish_s),
        "median_s": float(np.median(finish_s)),
        "last_s": max(finish_s),
        "routes": schedule.n_routes,
        "hops": max(route.n_hops for route in schedule.routes),
        "over_lower_bound": schedule.makespan_s / schedule.lower_bound_s,
        "planning_s": median(seconds),
    }


def all_measured(
    names: list[str], plan: Callable[[dc.Problem], dc.Schedule], repeats: int
) -> dict[str, dict[str, float]]:
    """Measure all problems, after one that warms up."""
    plan(changing_mesh(8, 3, 10.0))
    return {name: measured(name, plan, repeats) for name in names}


def in_checkout(folder: Path, names: list[str], repeats: int) -> dict[str, dict[str, float]]:
    """Measure what another checkout plans by default, in a process of its own."""
    script = str(Path(__file__).resolve())
    command = [sys.executable, script, "--repeats", str(repeats), "--rows", json.dumps(names)]
    environment = os.environ | {"PYTHONPATH": str(folder.resolve())}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    found = json.loads(done.stdout)
    if Path(found["package"]).parent.parent != folder.resolve():
        raise SystemExit(f"--checkout {folder} holds no package datacollect")
    return found["rows"]


def table(old: Mapping[str, Mapping[str, float]], new: Mapping[str, Mapping[str, float]]) -> str:
    """Return the Markdown table."""
    lines = ["| " + " | ".join(HEAD) + " |", "|---|---|" + "--:|" * (len(HEAD) - 2)]
    for name in new:
        for label, row in (("before", old[name]), ("now", new[name])):
            cells = [
                name if label == "before" else "",
                label,
                *(format_duration(row[key]) for key in ("first_s", "median_s", "last_s")),
                f"{row['routes']:.0f}",
                f"{row['hops']:.0f}",
                f"{row['over_lower_bound']:.4f}",
                in_words(row["planning_s"]),
            ]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--checkout", type=Path, help="folder of an older version, with its package"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=PROBLEMS, action="append", help="one problem; repeatable")
    parser.add_argument("--rows", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.repeats < 1:
        parser.error(f"--repeats must be >= 1, got {given.repeats}")
    if given.rows is not None:
        rows = all_measured(json.loads(given.rows), dc.coordinated, given.repeats)
        print(json.dumps({"package": dc.__file__, "rows": rows}))
        return
    names = given.only or list(PROBLEMS)
    if given.checkout is not None:
        old = in_checkout(given.checkout, names, given.repeats)
    else:
        old = all_measured(names, before, given.repeats)
    print(table(old, all_measured(names, dc.coordinated, given.repeats)))


if __name__ == "__main__":
    main()
