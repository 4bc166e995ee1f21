"""Gaps of plans with connections to the best whole numbers, on thousands of small problems.

    python experiments/connection_gaps.py [--problems 2000] [--first 0] [--page]

Each seed is a problem of up to four sources, two relays and eight connections, with limits of
hosts, shared wires, constant links, releases and `most_connections` mixed
(`tests/instances/connection_problems.py`). Its best is found by `tests/judges/best_connections.py`,
which knows no planner: all ways, all numbers on each hop, SciPy's linear programs. Four plans are
compared with that: as it is, with one connection less, with files, and by search alone, as larger
problems are planned. Rows are kept in `experiments/results/connection_gaps.csv` one by one, and a
second start goes on; `--page` writes `docs/connection_gaps.md` from them.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import datacollect as dc
from datacollect.methods.connections import whole_numbers
from datacollect.methods.finishing.file_cuts import files_split
from datacollect.problem.manifest import Files

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from instances.connection_problems import crowded  # the tests' problems
from judges.best_connections import soonest_s  # the tests' oracles
from judges.contract_check import judge

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "experiments" / "results" / "connection_gaps.csv"
PAGE = ROOT / "docs" / "connection_gaps.md"
COLUMNS = (
    "seed",
    "sources",
    "connections",
    "plan",  # over the best; inf where neither exists
    "tried_all",
    "searched",  # over the best, by search alone
    "fewer",  # over the plan with one connection less, at the chunks that both choose
    "direct",  # over the best straight numbers, at chunks as planned
    "compared",  # over direct as compare shows it
    "files",  # with files, over the plan without
    "split_files",
    "most_split",  # one less than its routes, for each source
)
# Parts by which numbers that are equal may differ.
SAME = 1e-6


def planned(problem: dc.Problem, connections: int, **options: Any) -> dc.Schedule | None:
    """Return a plan that both judges accept; None where there is none."""
    try:
        plan = dc.coordinated(problem, connections=connections, **options)
    except dc.InfeasibleError:
        return None
    plan.check(problem)
    refusal = judge(problem.to_dict(), plan.to_dict())
    assert refusal is None, refusal
    return plan


def with_files(problem: dc.Problem, seed: int) -> dc.Problem:
    """Return the problem with up to forty files per source, some of them empty."""
    rng = np.random.default_rng([seed, 21])
    manifest = {}
    for name, n_bytes in zip(problem.names, problem.backlog_bytes.tolist(), strict=True):
        if n_bytes:
            ends = np.sort(rng.integers(0, n_bytes + 1, int(rng.integers(0, 40))))
            sizes = np.diff(np.concatenate([[0], ends, [n_bytes]]))
            paths = tuple(f"{i:02}" for i in range(len(sizes)))
            manifest[name] = Files(paths, sizes, ("",) * len(sizes))
    return problem.replace(manifest=manifest, file_tolerance=float(rng.choice([0.0, 0.01, 0.05])))


def row_of(seed: int) -> dict[str, Any]:
    """Return all that is compared of one problem."""
    problem, connections = crowded(seed)
    tree = problem.to_dict()
    row: dict[str, Any] = dict.fromkeys(COLUMNS, math.nan)
    row |= {"seed": seed, "sources": len(problem.sources), "connections": connections}
    plan = planned(problem, connections, chunk_s=0.0)
    if plan is None:
        best_s = soonest_s(tree, connections)
        assert math.isinf(best_s), (seed, best_s)
        return row | {"plan": math.inf}
    best_s = soonest_s(tree, connections, known_s=plan.makespan_s)
    row["plan"] = plan.makespan_s / best_s
    row["tried_all"] = int(plan.solver.startswith("all numbers"))
    with mock.patch.object(whole_numbers, "MOST_ALLOCATIONS", 0):
        row["searched"] = planned(problem, connections, chunk_s=0.0).makespan_s / best_s
    plan = planned(problem, connections)
    fewer = planned(problem, connections - 1) if connections > 1 else None
    if fewer is not None:
        row["fewer"] = plan.makespan_s / fewer.makespan_s
    direct_s = soonest_s(tree, connections, hops=1)
    if math.isfinite(direct_s):
        row["direct"] = plan.makespan_s / direct_s
        row["compared"] = plan.makespan_s / dc.direct(problem).makespan_s
    filed = with_files(problem, seed)
    cut = planned(filed, connections)
    row["files"] = cut.makespan_s / plan.makespan_s
    assert row["files"] <= 1 + filed.file_tolerance + SAME, (seed, row["files"])
    routes = [route.source for route in cut.routes]
    row["split_files"] = files_split(filed, cut)[0]
    row["most_split"] = len(routes) - len(set(routes))
    assert row["split_files"] <= row["most_split"], seed
    return row


def read() -> list[dict[str, float]]:
    """Return the rows that are kept, by seed."""
    if not ROWS.exists():
        return []
    with ROWS.open(newline="") as file:
        rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]
    return sorted(rows, key=lambda row: row["seed"])


def keep(first: int, n_problems: int) -> None:
    """Add rows for seeds that have none."""
    known = {int(row["seed"]) for row in read()}
    is_new = not ROWS.exists()
    with ROWS.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        for seed in range(first, first + n_problems):
            if seed not in known:
                row = row_of(seed)
                writer.writerow(
                    {k: f"{v:.9g}" if isinstance(v, float) else v for k, v in row.items()}
                )
                file.flush()


# The page -----------------------------------------------------------------------------------


def page(rows: list[dict[str, float]]) -> str:
    """Return the documentation's page on these rows."""
    planned_rows = [row for row in rows if math.isfinite(row["plan"])]
    none = len(rows) - len(planned_rows)
    tried = [row for row in planned_rows if row["tried_all"]]
    met, split = (sum(row[c] for row in planned_rows) for c in ("most_split", "split_files"))
    lines = [
        "# Plans with connections, measured",
        "",
        f"`python experiments/connection_gaps.py` drew {len(rows)} problems of up to four sources,",
        "two relays and eight connections, with limits of hosts, shared wires of both kinds, links",
        "constant and not, releases and `most_connections`, and compared plans with the best whole",
        f"numbers, which another program found by trying all of them. Of {none} problems both said",
        "that not all can arrive. The others:",
        "",
        "| makespan over | problems | equal | within 1.02 | within 1.10 | mean | 95 % | worst |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
        _line("the best of all numbers", planned_rows, "plan"),
        _line("… where all were tried", tried, "plan"),
        _line("… where not", [row for row in planned_rows if not row["tried_all"]], "plan"),
        _line("the best, by search alone", planned_rows, "searched"),
        _line("the best of direct with as many", planned_rows, "direct"),
        _line("direct as `compare` shows it", planned_rows, "compared"),
        _line("the plan with one connection less", planned_rows, "fewer"),
        _line("the plan without files", planned_rows, "files"),
        "",
        "Equal is what differs by less than a millionth. In the first four rows relays wait for",
        "nothing, in the others as long as plans choose. Search alone is how problems are planned",
        f"that have more than {whole_numbers.MOST_ALLOCATIONS} numbers to try. All plans were",
        "accepted by the judge, and by a second one in exact fractions.",
        "",
        "Files' boundaries were kept with a tolerance of 0, 1 or 5 %, as the seed says. Routes of",
        f"one source met {met:.0f} times, where {split:.0f} files were split.",
        "",
        "The worst by search alone, and the worst of plans:",
        "",
        "| seed | sources | connections | search alone | plan |",
        "|--:|--:|--:|--:|--:|",
    ]
    worst = sorted(planned_rows, key=lambda row: (-row["plan"].__round__(6), -row["searched"]))
    lines += [
        f"| {row['seed']:.0f} | {row['sources']:.0f} | {row['connections']:.0f} "
        f"| {row['searched']:.4f} | {row['plan']:.4f} |"
        for row in worst[:10]
    ]
    return "\n".join(lines) + "\n"


def _line(name: str, rows: list[dict[str, float]], column: str) -> str:
    values = np.array([row[column] for row in rows if not math.isnan(row[column])])
    if len(values) == 0:
        return f"| {name} | 0 | | | | | | |"
    parts = [np.mean(np.abs(values - 1) <= SAME), np.mean(values <= 1.02), np.mean(values <= 1.1)]
    shown = " | ".join(f"{100 * part:.2f} %" for part in parts)
    mean, most = values.mean(), values.max()
    return (
        f"| {name} | {len(values)} | {shown} | {mean:.4f} | {np.quantile(values, 0.95):.4f} "
        f"| {most:.4f} |"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--page", action="store_true", help="write the page, draw no problems")
    options = parser.parse_args()
    if not options.page:
        keep(options.first, options.problems)
    PAGE.write_text(page(read()))
